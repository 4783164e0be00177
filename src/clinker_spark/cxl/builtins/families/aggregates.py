"""The aggregate functions, one row each: `sum(x)`, `count(*)`, ...

On Spark an aggregate is one or more partial columns (computed by the grouping itself) and a final
expression over them, so that a sum can be exact: an Int sum is kept in two 64-bit lanes and checked once
per group; sums of floats are the subject of `floatsums`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from clinker_spark.core.types import ANY, FLOAT, INT, Kind, Type, array_of, decimal
from clinker_spark.cxl import values
from clinker_spark.cxl.builtins import floatsums
from clinker_spark.cxl.builtins.floatsums import float_mean, float_sum
from clinker_spark.cxl.builtins.table import Failure
from clinker_spark.cxl.errors import ErrorKind, Fail
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN
from clinker_spark.sql.quoting import identifier

ARRIVAL = identifier(ARRIVAL_COLUMN)
"""Placeholder in partials for the column that keeps the order of arrival."""


@dataclass(frozen=True)
class AggregateSql:
    """`partials` are aggregate expressions, `final` a template over them: `{0}`, `{1}`, ...

    `overflow` is another one, the condition on which the group fails; `{r}` in it is what `final` gave. Without it the
    group fails where that is null although the first partial is not, if it can fail at all.
    """

    partials: tuple[str, ...]
    final: str = "{0}"
    overflow: str = ""


@dataclass(frozen=True)
class Aggregate:
    """`run` gets the argument tuples of the group's rows in order of arrival."""

    name: str
    doc: str
    arity: tuple[int, int]
    result: Callable[[Sequence[Type]], Type | str]
    """The result type, or what is wrong with the argument types."""
    run: Callable[[list[tuple[Any, ...]]], Any]
    sql: Callable[[Sequence[str], Sequence[Type]], AggregateSql]
    failures: tuple[Failure, ...] = ()
    """How a group can fail; the last one when floats are added up."""
    examples: tuple[tuple[str, str], ...] = field(default=())
    vector: frozenset[Kind] = frozenset()
    """The kinds of arguments of which workers can make totals (`cxl.vector.totals`)."""

    def loses_value(self, types: Sequence[Type]) -> bool:
        """Can a group have no value of the type? A sum can be too large for every type, a mean only for floats."""
        return self.name == "sum" or (bool(self.failures) and any(t.kind is Kind.FLOAT for t in types))

    def failure_for(self, types: Sequence[Type]) -> Failure:
        return self.failures[-1 if Kind.FLOAT in (t.kind for t in types) else 0]


_NUMBERS = frozenset((Kind.INT, Kind.FLOAT))
_ORDERED_KINDS = _NUMBERS | {Kind.DECIMAL, Kind.STRING, Kind.DATE, Kind.DATETIME}
_OVERFLOW = Failure(ErrorKind.INTEGER_OVERFLOW, "integer overflow in sum", value=None)


def _beyond(name: str) -> Failure:
    return Failure(ErrorKind.INTEGER_OVERFLOW, f"float overflow in {name}", value=None)


def _first(rows: list[tuple[Any, ...]]) -> list[Any]:
    return [row[0] for row in rows if row[0] is not None]


def _numeric(name: str, exact: Callable[[Type], Type]) -> Callable[[Sequence[Type]], Type | str]:
    def rule(types: Sequence[Type]) -> Type | str:
        t = types[0]
        if t.kind is Kind.NULL or (t.is_dynamic and t.kind in (Kind.ANY, Kind.NUMERIC)):
            return FLOAT.as_nullable()
        if not t.is_numeric:
            return f"{name}() needs a number, but got {t}"
        if t.kind is Kind.DECIMAL and t.scale is None:
            return f"{name}() of a Decimal whose scale is not known"
        return exact(t).as_nullable()

    return rule


def _sum(rows: list[tuple[Any, ...]]) -> Any:
    found = _first(rows)
    if not found:
        return None
    if isinstance(found[0], float):
        return float_sum(found)
    if isinstance(found[0], Decimal):
        return values.decimal_sum(found)
    total = sum(found)
    if not values.I64_MIN <= total <= values.I64_MAX:
        raise Fail(ErrorKind.INTEGER_OVERFLOW)
    return total


_LANES = ("sum(shiftright({x}, 32))", "sum({x} & 4294967295L)")
_JOINED_LANES = "(CAST({0} AS DECIMAL(38, 0)) * 4294967296BD + CAST({1} AS DECIMAL(38, 0)))"


def _sum_sql(args: Sequence[str], types: Sequence[Type]) -> AggregateSql:
    if types[0].kind is Kind.INT:
        lanes = tuple(lane.format(x=args[0]) for lane in _LANES)
        return AggregateSql(lanes, f"try_cast({_JOINED_LANES} AS BIGINT)")
    if types[0].kind is Kind.DECIMAL:
        return AggregateSql((f"try_sum({args[0]})",), f"try_cast({{0}} AS DECIMAL(29, {types[0].scale}))")
    beyond = f"{floatsums.INFINITE} AND {floatsums.finite()}"
    return AggregateSql(floatsums.partials(args[0]), floatsums.final(), beyond)


def _avg(rows: list[tuple[Any, ...]]) -> Any:
    found = _first(rows)
    if not found:
        return None
    return float_mean(found) if isinstance(found[0], float) else float(sum(found)) / len(found)


def _avg_sql(args: Sequence[str], types: Sequence[Type]) -> AggregateSql:
    if types[0].kind is Kind.INT:
        lanes = tuple(lane.format(x=args[0]) for lane in _LANES)
        return AggregateSql((*lanes, f"count({args[0]})"), f"(CAST({_JOINED_LANES} AS DOUBLE) / nullif({{2}}, 0L))")
    if types[0].kind is Kind.DECIMAL:
        return AggregateSql((f"sum({args[0]})", f"count({args[0]})"), "({0} / nullif({1}, 0L))")
    texts = (*floatsums.partials(args[0]), f"count({args[0]})")
    return AggregateSql(texts, floatsums.mean("{6}"), f"{floatsums.INFINITE} AND {floatsums.finite()}")


def _weighted(rows: list[tuple[Any, ...]]) -> Any:
    pairs = [(float(v), float(w)) for v, w in rows if v is not None and w is not None]
    total = float_sum([w for _, w in pairs])
    products = [v * w for v, w in pairs]
    finite = all(math.isfinite(x) for pair in pairs for x in pair)
    if any(math.isinf(p) and math.isfinite(v) and math.isfinite(w) for p, (v, w) in zip(products, pairs, strict=True)):
        raise Fail(ErrorKind.INTEGER_OVERFLOW)
    weighed = float_sum(products)
    result = weighed / total if pairs and total != 0 else None
    if result is not None and math.isinf(result) and finite:
        raise Fail(ErrorKind.INTEGER_OVERFLOW)
    return result


def _weighted_sql(args: Sequence[str], types: Sequence[Type]) -> AggregateSql:
    v, w = (f"CAST({a} AS DOUBLE)" for a in args)
    weight = f"CASE WHEN {args[0]} IS NOT NULL THEN {w} END"
    product = f"({v} * {w})"
    lost = f"abs({product}) = double('Infinity') AND abs({v}) < double('Infinity') AND abs({w}) < double('Infinity')"
    texts = (
        *floatsums.partials(product),
        *floatsums.partials(f"({weight})"),
        f"bool_or({lost})",
    )
    total, weights = floatsums.final(), floatsums.final(6)
    if Kind.FLOAT not in (t.kind for t in types):
        return AggregateSql(texts[:-1], f"({total} / nullif({weights}, 0.0D))")  # no product of these is too large
    beyond = f"coalesce({{12}}, FALSE) OR abs({weights}) = double('Infinity') AND {floatsums.finite(6)}"
    infinite = f"({floatsums.INFINITE} OR abs({total}) = double('Infinity'))"
    beyond += f" OR {infinite} AND {floatsums.finite()} AND {floatsums.finite(6)}"
    return AggregateSql(texts, f"({total} / nullif({weights}, 0.0D))", beyond)


def _extreme(better: Callable[[int], bool]) -> Callable[[list[tuple[Any, ...]]], Any]:
    def run(rows: list[tuple[Any, ...]]) -> Any:
        best: Any = None
        for value in _first(rows):
            if isinstance(value, float):
                if math.isnan(value):
                    continue
                value += 0.0  # -0.0 and 0.0 are equal: whichever comes first, the answer is 0.0
            order = None if best is None else values.compare(value, best)
            if best is None or (order is not None and better(order)):
                best = value
        return best

    return run


def _ordered(name: str) -> Callable[[Sequence[Type]], Type | str]:
    def rule(types: Sequence[Type]) -> Type | str:
        t = types[0]
        if t.is_dynamic or t.kind in (Kind.ARRAY, Kind.MAP, Kind.BOOL):
            return f"{name}() needs values with an order, but got {t}"
        if t.kind is Kind.DECIMAL and t.scale is None:
            return f"{name}() of a Decimal whose scale is not known"
        return t.as_nullable()

    return rule


def _extreme_sql(function: str) -> Callable[[Sequence[str], Sequence[Type]], AggregateSql]:
    def sql(args: Sequence[str], types: Sequence[Type]) -> AggregateSql:
        x = f"nanvl({args[0]}, CAST(NULL AS DOUBLE)) + 0.0D" if types[0].kind is Kind.FLOAT else args[0]
        return AggregateSql((f"{function}({x})",))

    return sql


def _collect_sql(args: Sequence[str], types: Sequence[Type]) -> AggregateSql:
    # Structs keep the nulls that collect_list alone would drop; the arrival column orders them.
    arrivals = f"collect_list(named_struct('o', {ARRIVAL}, 'v', {args[0]}))"
    by_arrival = "(cxl_a, cxl_b) -> CASE WHEN cxl_a.o < cxl_b.o THEN -1 WHEN cxl_a.o > cxl_b.o THEN 1 ELSE 0 END"
    return AggregateSql((arrivals,), f"transform(array_sort({{0}}, {by_arrival}), cxl_e -> cxl_e.v)")


AGGREGATES = {
    row.name: row
    for row in (
        Aggregate(
            "sum",
            "The sum of the non-null values; null when there are none. A sum that its type cannot hold is an error.",
            (1, 1),
            _numeric("sum", lambda t: t.unwrap().as_static()),
            _sum,
            _sum_sql,
            (_OVERFLOW, _beyond("sum")),
            vector=_NUMBERS | {Kind.DECIMAL},
        ),
        Aggregate(
            "count",
            "`count(*)`: all rows. `count(x)`: the rows where x is not null.",
            (0, 1),
            lambda types: INT,
            lambda rows: sum(1 for row in rows if not row or row[0] is not None),
            lambda args, types: AggregateSql((f"count({args[0]})" if args else "count(1)",)),
            vector=_ORDERED_KINDS | {Kind.BOOL},
        ),
        Aggregate(
            "avg",
            "The mean of the non-null values as Float (exact Decimal for decimals); null when there are none.",
            (1, 1),
            _numeric("avg", lambda t: decimal(None) if t.kind is Kind.DECIMAL else FLOAT),
            _avg,
            _avg_sql,
            (_beyond("avg"),),
            vector=_NUMBERS,
        ),
        Aggregate(
            "min",
            "The smallest non-null value.",
            (1, 1),
            _ordered("min"),
            _extreme(lambda o: o < 0),
            _extreme_sql("min"),
            vector=_ORDERED_KINDS,
        ),
        Aggregate(
            "max",
            "The largest non-null value.",
            (1, 1),
            _ordered("max"),
            _extreme(lambda o: o > 0),
            _extreme_sql("max"),
            vector=_ORDERED_KINDS,
        ),
        Aggregate(
            "collect",
            "All values, nulls included, in order of arrival.",
            (1, 1),
            lambda types: array_of(types[0].as_nullable() if types[0].kind is not Kind.NULL else ANY),
            lambda rows: [row[0] for row in rows],
            _collect_sql,
        ),
        Aggregate(
            "weighted_avg",
            "`weighted_avg(value, weight)`: rows where either is null are left out; null when the weights sum to 0.",
            (2, 2),
            lambda types: next(
                (
                    f"weighted_avg() needs numbers, but got {t}"
                    for t in types
                    if not (t.is_numeric or t.is_dynamic or t.kind is Kind.NULL)
                ),
                FLOAT.as_nullable(),
            ),
            _weighted,
            _weighted_sql,
            (_beyond("weighted_avg"),),
        ),
    )
}
