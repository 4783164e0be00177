"""The types of CXL and the seven rules by which two of them become one.

A `Type` is a kind plus what the kind needs: an element type for arrays and maps, a scale
for decimals. Two flags ride along:

* `nullable`: written `Nullable(T)`; sticky through unification.
* `dynamic`: the static type is only an expectation, because an `Any` took part in it
  (rule 2: `Any + T` is `T`). At run time the value may still be of another type, so the
  engine keeps it in its dynamic representation (VARIANT on Spark).

>>> str(unify(INT, FLOAT)), str(unify(NULL, STRING)), unify(STRING, INT)
('Float', 'Nullable(String)', None)
>>> t = unify(ANY, INT)
>>> str(t), t.is_dynamic
('Int', True)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cache


class Kind(Enum):
    """The concrete value kinds, and the two that exist only at compile time."""

    NULL = "Null"
    BOOL = "Bool"
    INT = "Int"
    FLOAT = "Float"
    DECIMAL = "Decimal"
    STRING = "String"
    DATE = "Date"
    DATETIME = "DateTime"
    ARRAY = "Array"
    MAP = "Map"
    NUMERIC = "Numeric"
    ANY = "Any"


@dataclass(frozen=True, slots=True)
class Type:
    """A CXL type. `element` is for arrays and map values, `scale` for decimals (None: not known before the run)."""

    kind: Kind
    nullable: bool = False
    element: Type | None = None
    scale: int | None = None
    dynamic: bool = False
    narrow: bool = False
    """A number of fewer than 64 bits, in a file or DataFrame that a query reads: it is widened before it is used."""

    def __str__(self) -> str:
        text = self.kind.value
        if self.kind in (Kind.ARRAY, Kind.MAP) and self.element and self.element.kind is not Kind.ANY:
            text = f"{text}({self.element})"
        return f"Nullable({text})" if self.nullable else text

    def __format__(self, spec: str) -> str:
        """`f"{t:?}"` is how queries write a scalar: `Int?`."""
        if spec != "?":
            return format(str(self), spec)
        return self.kind.value + "?" * (self.nullable and self.kind not in (Kind.ANY, Kind.NULL))

    @property
    def is_dynamic(self) -> bool:
        """Is the run-time type not fixed by this static type?"""
        return self.dynamic or self.kind in (Kind.ANY, Kind.NUMERIC)

    @property
    def is_numeric(self) -> bool:
        return self.kind in (Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.NUMERIC)

    def as_nullable(self) -> Type:
        return self if self.nullable or self.kind is Kind.NULL else self._with(True, self.dynamic)

    def unwrap(self) -> Type:
        """This type without `Nullable`."""
        return self._with(False, self.dynamic) if self.nullable else self

    def as_dynamic(self) -> Type:
        return self if self.is_dynamic else self._with(self.nullable, True)

    def as_static(self) -> Type:
        """The type promised when the run-time type is known to be the static one."""
        return self._with(self.nullable, False) if self.dynamic else self

    def _with(self, nullable: bool, dynamic: bool) -> Type:
        return Type(self.kind, nullable, self.element, self.scale, dynamic, self.narrow)


NULL = Type(Kind.NULL)
BOOL = Type(Kind.BOOL)
INT = Type(Kind.INT)
FLOAT = Type(Kind.FLOAT)
DECIMAL = Type(Kind.DECIMAL)
STRING = Type(Kind.STRING)
DATE = Type(Kind.DATE)
DATETIME = Type(Kind.DATETIME)
NUMERIC = Type(Kind.NUMERIC)
ANY = Type(Kind.ANY)


def array_of(element: Type) -> Type:
    return Type(Kind.ARRAY, element=element)


def map_of(value: Type) -> Type:
    return Type(Kind.MAP, element=value)


def decimal(scale: int | None) -> Type:
    return Type(Kind.DECIMAL, scale=scale)


MAX_SCALE = 28
"""Digits after the point that a decimal can have."""

ARRAY = array_of(ANY)
MAP = map_of(ANY)


@cache
def unify(a: Type, b: Type) -> Type | None:
    """The one type for two that meet, or None when no rule applies."""
    nullable = a.nullable or b.nullable
    dynamic = a.is_dynamic or b.is_dynamic
    merged = _unify_bare(replace(a, nullable=False, dynamic=False), replace(b, nullable=False, dynamic=False))
    if merged is None:
        return None
    merged = replace(merged, dynamic=dynamic and merged.kind not in (Kind.ANY, Kind.NULL))
    return merged.as_nullable() if nullable else merged


def _unify_bare(a: Type, b: Type) -> Type | None:
    kinds = {a.kind, b.kind}
    if a.kind is b.kind:  # 1. identity
        return _unify_same_kind(a, b)
    if Kind.ANY in kinds:  # 2. Any absorbs
        other = b if a.kind is Kind.ANY else a
        # Null says nothing about the other value, which may be of any type and must stay so.
        return ANY.as_nullable() if other.kind is Kind.NULL else other
    if Kind.NUMERIC in kinds and kinds & {Kind.INT, Kind.FLOAT}:  # 3. Numeric resolves
        return b if a.kind is Kind.NUMERIC else a
    if kinds == {Kind.INT, Kind.FLOAT}:  # 4. Int promotes
        return FLOAT
    if kinds == {Kind.INT, Kind.DECIMAL}:  # 4b. and widens to Decimal
        return a if a.kind is Kind.DECIMAL else b
    if Kind.NULL in kinds:  # 5. Null wraps (6, Nullable, was peeled off by the caller)
        return (b if a.kind is Kind.NULL else a).as_nullable()
    return None  # 7. incompatible


def _unify_same_kind(a: Type, b: Type) -> Type:
    if a.kind in (Kind.ARRAY, Kind.MAP):
        return replace(a, element=unify(a.element or ANY, b.element or ANY) or ANY)
    if a.kind is Kind.DECIMAL:
        known = a.scale is not None and b.scale is not None
        return decimal(max(a.scale, b.scale) if known else None)  # type: ignore[type-var]
    return a


_NAMES = {
    "bool": BOOL,
    "int": INT,
    "float": FLOAT,
    "decimal": DECIMAL,
    "string": STRING,
    "date": DATE,
    "date_time": DATETIME,
    "datetime": DATETIME,
    "array": ARRAY,
    "map": MAP,
    "any": ANY,
    "numeric": NUMERIC,
    "null": NULL,
}
TYPE_NAMES = tuple(name for name in _NAMES if name not in ("datetime", "null"))


def parse_type(text: str) -> Type | None:
    """Read a schema type: `int`, `decimal(2)`, `array(string)`, `nullable(date)`; None when it is not one.

    >>> str(parse_type("nullable(array(int))")), parse_type("integer")
    ('Nullable(Array(Int))', None)
    """
    text = text.strip()
    if text in _NAMES:
        return _NAMES[text]
    head, _, rest = text.partition("(")
    if not rest.endswith(")"):
        return None
    inner = rest[:-1].strip()
    if head == "decimal":
        parts = [p.strip() for p in inner.split(",")]  # decimal(scale) or decimal(precision, scale)
        fits = len(parts) <= 2 and all(p.isascii() and p.isdigit() and len(p) <= 2 for p in parts)
        return decimal(int(parts[-1])) if fits and int(parts[-1]) <= MAX_SCALE else None
    argument = parse_type(inner)
    if argument is None:
        return None
    return {"nullable": argument.as_nullable, "array": lambda: array_of(argument), "map": lambda: map_of(argument)}.get(
        head, lambda: None
    )()
