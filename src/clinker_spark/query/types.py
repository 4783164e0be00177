"""Types of query programs: CXL's scalar kinds, and lists, groups, records, maps and functions around them.

Typing is gradual: `ANY` meets everything. Scalars and records may be null; a type says so only where it is known,
because a list literal or a join made it so.

>>> str(list_of(record({"name": STRING, "age": INT})))
'list<{name: String, age: Int}>'
>>> str(unify(INT, FLOAT)), str(unify(INT, STRING)), str(unify(NULL, INT))
('Float', 'Any', 'Int?')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from clinker_spark.core import types as core
from clinker_spark.core.types import Kind
from clinker_spark.cxl.values import kind_of


@dataclass(frozen=True, slots=True)
class QType:
    """Any type."""

    @property
    def nullable(self) -> bool:
        return False

    def as_nullable(self) -> QType:
        return self

    def present(self) -> QType:
        """This type for a value that is there."""
        return self


@dataclass(frozen=True, slots=True)
class Scalar(QType):
    """A CXL kind. `narrow` marks numbers of less than 64 bits, which Spark must widen before it computes."""

    kind: Kind
    null: bool = False
    scale: int | None = None
    narrow: bool = False

    @property
    def nullable(self) -> bool:
        return self.null or self.kind in (Kind.ANY, Kind.NULL)

    def as_nullable(self) -> QType:
        return self if self.nullable else replace(self, null=True)

    def present(self) -> QType:
        return replace(self, null=False) if self.null else self

    def __str__(self) -> str:
        return self.kind.value + ("?" if self.null else "")


@dataclass(frozen=True, slots=True)
class ListType(QType):
    """A list, or with `dataset` the rows of a file or table, which live on Spark."""

    element: QType
    dataset: bool = False
    null: bool = False

    @property
    def nullable(self) -> bool:
        return self.null

    def as_nullable(self) -> QType:
        return replace(self, null=True)

    def present(self) -> QType:
        return replace(self, null=False)

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class GroupType(QType):
    """What `into g` binds: a key and the rows that share it."""

    key: QType
    item: QType

    def __str__(self) -> str:
        return f"group of {self.item}"


@dataclass(frozen=True, slots=True)
class RecordType(QType):
    """Named fields in order. An `open` record may have more of them.

    `row_of` marks a row inside a group: the name of its source, or `*` for a row of several sources, whose fields
    are those sources. Fields of the rows are found through it.
    """

    fields: tuple[tuple[str, QType], ...]
    null: bool = False
    name: str = ""
    open: bool = False
    row_of: str = ""

    @property
    def nullable(self) -> bool:
        return self.null

    def as_nullable(self) -> QType:
        return self if self.null else replace(self, null=True)

    def present(self) -> QType:
        return replace(self, null=False) if self.null else self

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
        shown = ", ".join(f"{n}: {t}" for n, t in self.fields[:6])
        return self.name or "{" + shown + (", …" if len(self.fields) > 6 else "") + "}"


@dataclass(frozen=True, slots=True)
class MapType(QType):
    key: QType
    value: QType

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class FunctionType(QType):
    """`params` is None when the number of arguments is not known."""

    params: tuple[QType, ...] | None
    result: QType

    def __str__(self) -> str:
        return f"fun({', '.join(map(str, self.params or ()))}): {self.result}"


ANY = Scalar(Kind.ANY)
NULL = Scalar(Kind.NULL)
BOOL = Scalar(Kind.BOOL)
INT = Scalar(Kind.INT)
FLOAT = Scalar(Kind.FLOAT)
STRING = Scalar(Kind.STRING)
DATE = Scalar(Kind.DATE)
DATETIME = Scalar(Kind.DATETIME)
DECIMAL = Scalar(Kind.DECIMAL)

_NUMBERS = (Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.NUMERIC)


def list_of(element: QType, *, dataset: bool = False) -> ListType:
    return ListType(element, dataset)


def record(fields: Mapping[str, QType], name: str = "") -> RecordType:
    return RecordType(tuple(fields.items()), name=name)


def is_any(t: QType) -> bool:
    return isinstance(t, Scalar) and t.kind is Kind.ANY


def is_null(t: QType) -> bool:
    return isinstance(t, Scalar) and t.kind is Kind.NULL


def is_kind(t: QType, *kinds: Kind) -> bool:
    return isinstance(t, Scalar) and t.kind in kinds


def is_number(t: QType) -> bool:
    return is_kind(t, *_NUMBERS)


def element_of(t: QType) -> QType | None:
    """What a query over this type iterates; None when it cannot."""
    match t:
        case ListType(element=element):
            return element
        case GroupType(item=item):
            return item
        case MapType(key=key, value=value):
            return record({"key": key, "value": value})
        case Scalar(kind=Kind.ANY | Kind.NULL):
            return ANY
        case Scalar(kind=Kind.STRING):
            return STRING
        case RecordType():
            return record({"key": STRING, "value": ANY})
    return None


def unify(a: QType, b: QType) -> QType:
    """The type for two that meet, for example in one list; ANY when they have nothing in common."""
    if a == b:
        return a
    if is_null(a) or is_null(b):
        return (b if is_null(a) else a).as_nullable()
    nullable = a.nullable or b.nullable
    merged = _unify_present(a.present(), b.present())
    return merged.as_nullable() if nullable else merged


def _unify_present(a: QType, b: QType) -> QType:
    if a == b:
        return a
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        if a.kind is b.kind:
            known = a.scale is not None and b.scale is not None
            scale = max(a.scale or 0, b.scale or 0) if known else None
            return Scalar(a.kind, scale=scale, narrow=a.narrow and b.narrow)
        if {a.kind, b.kind} == {Kind.INT, Kind.FLOAT}:
            return FLOAT
        if {a.kind, b.kind} == {Kind.INT, Kind.DECIMAL}:
            return a if a.kind is Kind.DECIMAL else b
        if {a.kind, b.kind} == {Kind.FLOAT, Kind.DECIMAL}:
            return FLOAT
        return ANY
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
    if isinstance(want, Scalar) and isinstance(have, Scalar):
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


def to_core(t: QType) -> core.Type:
    """As a type of CXL, to look up its methods. Records are maps of anything there."""
    match t:
        case Scalar(kind=Kind.DECIMAL, scale=scale):
            made = core.decimal(scale)
        case Scalar(kind=kind):
            made = core.Type(kind)
        case ListType(element=element):
            made = core.array_of(to_core(element))
        case GroupType(item=item):
            made = core.array_of(to_core(item))
        case RecordType() | MapType():
            made = core.MAP
        case _:
            made = core.ANY
    return made.as_nullable() if t.nullable and made.kind is not Kind.ANY else made


def from_core(t: core.Type) -> QType:
    """The type of what a CXL method gives.

    >>> str(from_core(core.array_of(core.INT))), str(from_core(core.STRING.as_nullable()))
    ('list<Int>', 'String?')
    """
    if t.is_dynamic:
        return ANY
    if t.kind is Kind.ARRAY:
        made: QType = ListType(from_core(t.element or core.ANY))
    elif t.kind is Kind.MAP:
        made = MapType(STRING, from_core(t.element or core.ANY))
    else:
        made = Scalar(t.kind, scale=t.scale)
    return made.as_nullable() if t.nullable else made


def type_of_value(value: Any) -> QType:
    """The type of a Python value, for parameters and folded constants.

    >>> str(type_of_value([{"a": 1}, {"a": None, "b": "x"}]))
    'list<{a: Int?, b: String?}>'
    """
    if isinstance(value, dict):
        return RecordType(tuple((str(k), type_of_value(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        element: QType | None = None
        for item in value:
            found = type_of_value(item)
            element = found if element is None else unify(element, found)
        return ListType(ANY if element is None else element)
    try:
        kind = kind_of(value)
    except TypeError:
        return ANY
    if kind is Kind.DECIMAL:
        return Scalar(kind, scale=max(0, -int(value.as_tuple().exponent)))
    return Scalar(kind)
