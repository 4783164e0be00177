"""The free functions of the query language: one row each says all there is to say.

`count(xs)`, `len(s)`, `substring(s, 0, 2)`. Every method of CXL is a function too: `upper(s)` is `s.upper()`, and
needs no row here (`methods` has those of another name). Rows of `aggregate` take a list (or a group) and are the ones
that a grouped query turns into plain aggregates on Spark. `sql` is a template for floats; where it has no finite result
for finite numbers, there is none.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from clinker_spark.core.types import BOOL, FLOAT, INT, STRING, Kind, Type
from clinker_spark.query import values
from clinker_spark.query.evaluate import functions as runs
from clinker_spark.query.types import (
    ANY,
    GroupType,
    ListType,
    MapType,
    QType,
    RecordType,
    element_of,
    is_kind,
    is_number,
    unified,
    unify,
)

ResultRule = Callable[[Sequence[QType]], QType]
Check = Callable[[Sequence[QType]], str | None]


@dataclass(frozen=True)
class Function:
    """One function. `check` looks at the types of the arguments and says what is wrong with them."""

    name: str
    doc: str
    run: Callable[..., Any]
    result: QType | ResultRule
    least: int = 1
    most: int | None = 1
    aggregate: bool = False
    check: Check | None = None
    sql: str | None = None

    def result_type(self, args: Sequence[QType]) -> QType:
        return self.result(args) if callable(self.result) else self.result


# ----------------------------------------------------------------- type rules


def _element(args: Sequence[QType]) -> QType:
    return element_of(args[0]) or ANY


def _maybe_element(args: Sequence[QType]) -> QType:
    return _element(args).as_nullable()


def _total(args: Sequence[QType]) -> QType:
    element = _element(args).unwrap()
    if isinstance(element, Type) and element.kind in (Kind.INT, Kind.FLOAT, Kind.DECIMAL):
        return Type(element.kind, scale=element.scale)
    return ANY


def _present_element(args: Sequence[QType]) -> QType:
    element = _element(args)
    return element.unwrap() if is_number(element) else element.as_nullable()


def _length(args: Sequence[QType]) -> QType:
    return INT.as_nullable() if args[0].nullable else INT


def _same(args: Sequence[QType]) -> QType:
    return args[0]


def _list_of_element(args: Sequence[QType]) -> QType:
    return ListType(_element(args))


def _appended(args: Sequence[QType]) -> QType:
    element = element_of(args[0])
    return ListType(args[1] if element is None else unify(element, args[1]))


def _concatenated(args: Sequence[QType]) -> QType:
    if any(is_kind(a, Kind.STRING) for a in args):
        return STRING
    return ListType(unified(element_of(arg) or ANY for arg in args))


def _map_values(args: Sequence[QType]) -> QType:
    match args[0]:
        case MapType(value=value):
            return ListType(value)
        case RecordType(fields=fields) if fields:
            return ListType(unified(t for _, t in fields))
    return ListType(ANY)


def needs_list(args: Sequence[QType]) -> str | None:
    """What is wrong with the argument of an aggregate: it must be a list or a group."""
    t = args[0]
    if isinstance(t, ListType | GroupType) or (isinstance(t, Type) and t.kind in (Kind.ANY, Kind.NULL)):
        return None
    return f"needs a list or a group, not {t:?}"


def _needs_numbers(args: Sequence[QType]) -> str | None:
    problem = needs_list(args)
    if problem is not None:
        return problem
    element = _element(args)
    if is_number(element) or is_kind(element, Kind.ANY, Kind.NULL):
        return None
    return f"needs numbers, not {element:?}"


def _needs_length(args: Sequence[QType]) -> str | None:
    if is_kind(args[0], Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.DATE):
        return f"needs a text, a list or a map, not {args[0]:?}"
    return None


def _needs_countable(args: Sequence[QType]) -> str | None:
    return None if isinstance(args[0], MapType) or is_kind(args[0], Kind.STRING) else needs_list(args)


def _aggregate(name: str, doc: str, run: Callable[..., Any], result: QType | ResultRule, check: Check) -> Function:
    return Function(name, doc, run, result, aggregate=True, check=check)


def _of_floats(name: str, doc: str, run: Callable[..., float], sql: str, args: int = 1) -> Function:
    return Function(name, doc, runs.math_function(run), FLOAT, args, args, sql=sql)


FUNCTIONS: dict[str, Function] = {
    row.name: row
    for row in (
        _aggregate("count", "How many elements; nulls count.", runs.count, INT, _needs_countable),
        _aggregate("sum", "The total; nulls are left out, nothing gives 0.", runs.total, _total, _needs_numbers),
        _aggregate("avg", "The mean; nulls are left out, nothing gives 0.", runs.mean, FLOAT, _needs_numbers),
        _aggregate("min", "The smallest; nulls are left out.", runs.extreme(-1), _present_element, needs_list),
        _aggregate("max", "The greatest; nulls are left out.", runs.extreme(1), _present_element, needs_list),
        _aggregate("first", "The first element, or null.", runs.first, _maybe_element, needs_list),
        _aggregate("last", "The last element, or null.", runs.last, _maybe_element, needs_list),
        _aggregate("exists", "Is there any element?", lambda v: bool(runs.items(v)), BOOL, needs_list),
        _aggregate("distinct", "The first of each that are equal.", runs.distinct, _list_of_element, needs_list),
        Function("len", "How long a text, a list or a map is.", runs.length, _length, check=_needs_length),
        Function("append", "The list with one more element.", runs.appended, _appended, 2, 2),
        Function("push", "The list with one more element.", runs.appended, _appended, 2, 2),
        Function("concat", "Lists or texts one after the other.", runs.concatenated, _concatenated, 1, None),
        Function("reverse", "A list or a text backwards.", runs.reverse, _same),
        Function("keys", "The keys of a map or record, in order.", runs.keys, ListType(ANY)),
        Function("values", "The values of a map or record, in order.", runs.map_values, _map_values),
        Function("contains", "Is it in the list, the text, or a key of the map?", runs.contains, BOOL, 2, 2),
        Function("str", "As text, the way `print` shows it.", values.show, STRING),
        Function("string", "As text, the way `print` shows it.", values.show, STRING),
        Function("int", "As a whole number; a fraction is cut off.", runs.to_int, INT),
        Function("float", "As a float.", runs.to_float, FLOAT),
        Function("substring", "From a 0-based position up to, not including, another.", runs.substring, STRING, 3, 3),
        Function("slice", "The part of a list from one position up to another.", runs.part, _same, 3, 3),
        Function("join", "The elements as one text, with something between them.", runs.joined, STRING, 2, 2),
        _of_floats("sqrt", "The square root.", math.sqrt, "sqrt({0})"),
        _of_floats("pow", "To a power.", math.pow, "pow({0}, {1})", 2),
        _of_floats("exp", "e to a power.", math.exp, "exp({0})"),
        _of_floats("log", "The natural logarithm.", math.log, "ln({0})"),
        _of_floats("sin", "The sine.", math.sin, "sin({0})"),
        _of_floats("cos", "The cosine.", math.cos, "cos({0})"),
        Function("now", "Nanoseconds since 1970.", time.time_ns, INT, 0, 0),
    )
}


def function(name: str, args: int) -> Function | None:
    """The function that a call with so many arguments means, if it is one of these: `min(a, b)` is CXL's."""
    return None if name in ("min", "max") and args == 2 else FUNCTIONS.get(name)


STATEMENT_FUNCTIONS = ("print", "json")
"""Functions that write something: they give nothing back, and cannot stand inside a query over a file."""
