"""Types of query programs: CXL's types for scalars, and lists, groups, records, maps and functions around them.

Typing is gradual: `ANY` meets everything. Scalars and records may be null; a type says so only where it is known,
because a list literal or a join made it so.

>>> from clinker_spark.core.types import FLOAT, INT, NULL, STRING
>>> str(ListType(record({"name": STRING, "age": INT})))
'list<{name: String, age: Int}>'
>>> [f"{t:?}" for t in (unify(INT, FLOAT), unify(INT, STRING), unify(NULL, INT))]
['Float', 'Any', 'Int?']
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from clinker_spark.core import types as core
from clinker_spark.core.types import FLOAT, STRING, Kind, Type
from clinker_spark.cxl.values import kind_of

ANY = core.ANY.as_nullable()
NULL = Type(Kind.NULL, nullable=True)
NOTHING = Type(Kind.ANY, nullable=True, dynamic=True)
"""The type of the elements of an empty list: ANY for everybody, but it gives way to every type that it meets."""


class Compound:
    """A type that is no scalar. Only lists and records may be null."""

    __slots__ = ()
    nullable = False

    def as_nullable(self) -> QType:
        return self

    def unwrap(self) -> QType:
        """This type for a value that is there."""
        return self

    def __format__(self, spec: str) -> str:
        return str(self)


QType = Type | Compound


class _Nullable(Compound):
    __slots__ = ()

    def as_nullable(self) -> QType:
        return self if self.nullable else replace(self, nullable=True)  # type: ignore[type-var]

    def unwrap(self) -> QType:
        return replace(self, nullable=False) if self.nullable else self  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class ListType(_Nullable):
    """A list, or with `dataset` the rows of a file or table, which live on Spark."""

    element: QType
    dataset: bool = False
    nullable: bool = False

    def __str__(self) -> str:
        return f"list<{self.element:?}>"


@dataclass(frozen=True, slots=True)
class GroupType(Compound):
    """What `into g` binds: a key and the rows that share it."""

    key: QType
    item: QType

    def __str__(self) -> str:
        return f"group of {self.item:?}"


@dataclass(frozen=True, slots=True)
class RecordType(_Nullable):
    """Named fields in order. An `open` record may have more of them.

    `row_of` marks a row inside a group: the name of its source, or `*` for a row of several sources, whose fields
    are those sources. Fields of the rows are found through it.
    """

    fields: tuple[tuple[str, QType], ...]
    nullable: bool = False
    name: str = ""
    open: bool = False
    row_of: str = ""

    def field(self, name: str) -> QType | None:
        own = next((t for n, t in self.fields if n == name), None)
        if own is None and self.row_of == name:
            return self
        if own is None and self.row_of == "*":
            return next((f for _, t in self.fields if isinstance(t, RecordType) and (f := t.field(name))), None)
        return own

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(n for n, _ in self.fields)

    def __str__(self) -> str:
        fields = ", ".join(f"{n}: {t:?}" for n, t in self.fields[:6])
        return self.name or "{" + fields + (", …" if len(self.fields) > 6 else "") + "}"


@dataclass(frozen=True, slots=True)
class MapType(Compound):
    key: QType
    value: QType

    def __str__(self) -> str:
        return f"map<{self.key:?}, {self.value:?}>"


@dataclass(frozen=True, slots=True)
class FunctionType(Compound):
    """`params` is None when the number of arguments is not known."""

    params: tuple[QType, ...] | None
    result: QType

    def __str__(self) -> str:
        return f"fun({', '.join(f'{p:?}' for p in self.params or ())}): {self.result:?}"


def record(fields: Mapping[str, QType], name: str = "") -> RecordType:
    return RecordType(tuple(fields.items()), name=name)


def is_kind(t: QType, *kinds: Kind) -> bool:
    return isinstance(t, Type) and t.kind in kinds


def is_any(t: QType) -> bool:
    return is_kind(t, Kind.ANY)


def is_null(t: QType) -> bool:
    return is_kind(t, Kind.NULL)


def is_number(t: QType) -> bool:
    return isinstance(t, Type) and t.is_numeric


def element_of(t: QType) -> QType | None:
    """What a query over this type iterates; None when it cannot."""
    match t:
        case ListType(element=element):
            return element
        case GroupType(item=item):
            return item
        case MapType(key=key, value=value):
            return record({"key": key, "value": value})
        case Type(kind=Kind.ANY | Kind.NULL):
            return ANY
        case Type(kind=Kind.STRING):
            return STRING
        case RecordType():
            return record({"key": STRING, "value": ANY})
    return None


def unify(a: QType, b: QType) -> QType:
    """The type for two that meet, for example in one list; ANY when they have nothing in common."""
    if a == b or b == NOTHING:
        return a
    if a == NOTHING:
        return b
    if is_null(a) or is_null(b):
        return (b if is_null(a) else a).as_nullable()
    merged = _unify_present(a.unwrap(), b.unwrap())
    return merged.as_nullable() if a.nullable or b.nullable else merged


def _unify_present(a: QType, b: QType) -> QType:
    if a == b:
        return a
    if is_any(a) or is_any(b):
        return ANY
    if isinstance(a, Type) and isinstance(b, Type):
        if {a.kind, b.kind} == {Kind.FLOAT, Kind.DECIMAL}:
            return FLOAT
        merged = core.unify(a, b) or ANY
        return replace(merged, narrow=a.kind is b.kind and a.narrow and b.narrow)
    if isinstance(a, ListType) and isinstance(b, ListType):
        return ListType(unify(a.element, b.element), a.dataset or b.dataset)
    if isinstance(a, RecordType) and isinstance(b, RecordType):
        return _unify_records(a, b)
    if isinstance(a, MapType) and isinstance(b, MapType):
        return MapType(unify(a.key, b.key), unify(a.value, b.value))
    return ANY


def _unify_records(a: RecordType, b: RecordType) -> RecordType:
    """All fields of both; one that only some have is null in the others."""
    theirs = dict(b.fields)
    fields: dict[str, QType] = {}
    for name, t in a.fields:
        fields[name] = unify(t, theirs[name]) if name in theirs else t.as_nullable()
    for name, t in b.fields:
        fields.setdefault(name, t.as_nullable())
    return RecordType(tuple(fields.items()), name=a.name if a.name == b.name else "", open=a.open or b.open)


def fits(have: QType, want: QType) -> bool:
    """May a value of `have` stand where `want` is declared? Unknown types fit everywhere."""
    if is_any(have) or is_any(want) or is_null(have):
        return True
    if isinstance(want, Type) and isinstance(have, Type):
        if want.kind is have.kind:
            return True
        return have.kind is Kind.INT and want.kind in (Kind.FLOAT, Kind.DECIMAL)
    if isinstance(want, ListType) and isinstance(have, ListType | GroupType):
        return fits(element_of(have) or ANY, want.element)
    if isinstance(want, RecordType) and isinstance(have, RecordType):
        return all((t := have.field(n)) is None or fits(t, w) for n, w in want.fields)
    if isinstance(want, MapType):
        return isinstance(have, MapType | RecordType)
    if isinstance(want, RecordType):
        return isinstance(have, MapType)
    return type(have) is type(want)


def to_core(t: QType) -> Type:
    """As a type of CXL, to look up its methods. Records are maps of anything there."""
    match t:
        case Type(kind=Kind.ANY):
            return core.ANY
        case Type(kind=Kind.NULL):
            return core.NULL
        case Type():
            return replace(t, narrow=False)
        case ListType(element=element) | GroupType(item=element):
            made = core.array_of(to_core(element))
        case RecordType() | MapType():
            made = core.MAP
        case _:
            return core.ANY
    return made.as_nullable() if t.nullable else made


def from_core(t: core.Type) -> QType:
    """The type of what a CXL method gives.

    >>> str(from_core(core.array_of(core.INT.as_nullable())))
    'list<Int?>'
    """
    if t.is_dynamic or t.kind is Kind.NULL:
        return NULL if t.kind is Kind.NULL else ANY
    if t.kind is Kind.ARRAY:
        made: QType = ListType(from_core(t.element or core.ANY))
    elif t.kind is Kind.MAP:
        made = MapType(STRING, from_core(t.element or core.ANY))
    else:
        return t
    return made.as_nullable() if t.nullable else made


def type_of_value(value: Any) -> QType:
    """The type of a Python value, for parameters and folded constants.

    >>> str(type_of_value([{"a": 1, "b": []}, {"a": None, "b": ["x"]}]))
    'list<{a: Int?, b: list<String>}>'
    """
    if isinstance(value, dict):
        return RecordType(tuple((str(k), type_of_value(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return ListType(unified(map(type_of_value, value)))
    try:
        kind = kind_of(value)
    except TypeError:
        return ANY
    if kind is Kind.DECIMAL:
        return core.decimal(max(0, -int(value.as_tuple().exponent)))
    return NULL if kind is Kind.NULL else Type(kind)


def unified(types: Iterable[QType]) -> QType:
    """The type for all of them."""
    start: QType = NOTHING
    return functools.reduce(unify, types, start)
