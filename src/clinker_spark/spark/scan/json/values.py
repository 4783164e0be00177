"""JSON values as typed Arrow columns. JSON has types of its own, so nothing is guessed from texts but dates.

A decimal takes numbers and texts of digits, exactly as they are written; a number is never taken for a text.

>>> found = JsonColumn("qty", INT).convert([7, None, 1.0, "7"])
>>> found.values.to_pylist(), {row: error["kind"] for row, error in found.errors.items()}
([7, None, None, None], {1: 'missing_required_field', 2: 'type_coercion_failure', 3: 'type_coercion_failure'})
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.config.model.schema import Column
from clinker_spark.core.types import ANY, INT, Kind, Type
from clinker_spark.cxl.values import I64_MAX, I64_MIN
from clinker_spark.spark.columns.python_calls import arrow_type, to_arrow
from clinker_spark.spark.scan.record_batches import Error, missing, shown
from clinker_spark.spark.scan.text.cleaning import NO_CLEANING, Cleaning
from clinker_spark.spark.scan.text.readers import reader_of
from clinker_spark.spark.scan.text.values import TextColumn

__all__ = ["ABSENT", "INT", "JsonColumn", "JsonValues", "json_cell", "lookup"]


class _Absent:
    """The value of a field that is not there; null is another thing to say in a message, and nowhere else."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __reduce__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()
_LARGEST_EXPONENT = 60  # no decimal that can be kept has one; its plain digits may fill the memory
_PLAIN_TYPES: dict[Kind, frozenset[type]] = {
    Kind.INT: frozenset({int}),
    Kind.FLOAT: frozenset({float}),
    Kind.STRING: frozenset({str}),
    Kind.BOOL: frozenset({bool}),
}


class _Unfit(Exception):
    """A value is not of its type."""


@dataclass(frozen=True)
class JsonValues:
    """A typed column, and the errors of its rows."""

    values: pa.Array
    errors: dict[int, Error] = field(default_factory=dict)


@dataclass(frozen=True)
class JsonColumn:
    """How the values of one column are read."""

    name: str
    type: Type
    digits: int | None = None
    formats: tuple[str, ...] = ()
    only_formats: bool = False
    cleaning: Cleaning = NO_CLEANING

    @classmethod
    def of(cls, column: Column, date_formats: Sequence[str] = (), cleaning: Cleaning = NO_CLEANING) -> JsonColumn:
        text = TextColumn.of(column, date_formats)
        return cls(text.name, text.type, text.digits, text.formats, text.only_formats, cleaning)

    @property
    def arrow(self) -> pa.DataType:
        return arrow_type(self.type)

    def convert(self, values: Sequence[Any]) -> JsonValues:
        """The typed column of parsed values; ABSENT stands for a field that is not there."""
        if self.cleaning:
            values = [self.cleaning.clean_value(value) for value in values]
        whole = self._whole(values)
        if whole is not None:
            return JsonValues(whole)
        errors: dict[int, Error] = {}
        found: list[Any] = []
        read = self._reader()
        for row, value in enumerate(values):
            try:
                if value is None or value is ABSENT or self._is_empty_text(value):
                    found.append(None)
                    if not self.type.nullable and not self.type.is_dynamic:
                        how = "missing" if value is ABSENT else "null" if value is None else "empty"
                        errors[row] = missing(self.name, self.type, how)
                else:
                    found.append(to_arrow(read(value), self.type))
            except _Unfit:
                found.append(None)
                errors[row] = self.error(value)
        return JsonValues(pa.array(found, self.arrow), errors)

    def error(self, value: Any) -> Error:
        """The `$error` of a value that is not of this column's type."""
        text = shown(json_cell(value) or "")
        what = f"'{text}'" if isinstance(value, str) else text
        kind = f"the text {what}" if isinstance(value, str) and self.type.kind in _PLAIN_TYPES else what
        message = f"cannot convert {kind} to {self.type.unwrap()}"
        return {"kind": "type_coercion_failure", "field": self.name, "value": text, "message": message}

    def _is_empty_text(self, value: Any) -> bool:
        # The rules for dates and digits in text hold: an empty one is no value.
        return value == "" and self.type.kind in (Kind.DECIMAL, Kind.DATE, Kind.DATETIME)

    # ---------------------------------------------------------------- the whole column at once

    def _whole(self, values: Sequence[Any]) -> pa.Array | None:
        """The column as Arrow takes it, if all values are of the one type that needs no second look."""
        types = set(map(type, values))
        if _Absent in types:
            if not self.type.nullable:
                return None
            values = [None if value is ABSENT else value for value in values]
            types = {*(types - {_Absent}), type(None)}
        if type(None) in types and not self.type.nullable:
            return None
        types.discard(type(None))
        if self.type.is_dynamic:
            return None
        try:
            if types <= _PLAIN_TYPES.get(self.type.kind, frozenset()):
                array = pa.array(values, self.arrow)
                return array if self.type.kind is not Kind.FLOAT or _finite(array) else None
            if self.type.kind in (Kind.DATE, Kind.DATETIME) and types <= {str} and "" not in values:
                return self.texts(pa.array(values, pa.string()))
            if self.type.kind is Kind.DECIMAL and types <= {Decimal, int, str} and "" not in values:
                digits = [v if v is None or isinstance(v, str) else _digits(v) for v in values]
                return self.texts(pa.array(digits, pa.string()))
        except (pa.ArrowException, OverflowError, UnicodeEncodeError, _Unfit):
            pass
        return None

    def texts(self, texts: pa.Array) -> pa.Array | None:
        """The column of texts as they stand between quotes, if all of them are of its type. Empty ones are not."""
        column = TextColumn(self.name, self.type.as_nullable(), self.digits, self.formats, self.only_formats)
        if pc.any(pc.equal(texts, "")).as_py():
            return None
        found = column.convert(texts)
        return found.values if found.failed is None else None

    # ---------------------------------------------------------------- one by one

    def _reader(self) -> Callable[[Any], Any]:
        return _reader(self.type, self)


def _reader(t: Type, column: JsonColumn) -> Callable[[Any], Any]:
    """What makes a value of type `t` of a JSON value that is not null, or raises _Unfit."""
    if t.is_dynamic:
        return _dynamic
    match t.kind:
        case Kind.INT:
            return _int
        case Kind.FLOAT:
            return _float
        case Kind.STRING:
            return _string
        case Kind.BOOL:
            return _bool
        case Kind.ARRAY:
            element = _element(t.element or ANY, column)
            return lambda value: [element(v) for v in _of(value, list)]
        case Kind.MAP:
            element = _element(t.element or ANY, column)
            return lambda value: {_string(k): element(v) for k, v in _of(value, dict).items()}
    texts = reader_of(t, column.digits, column.formats, only_formats=column.only_formats)
    is_decimal = t.kind is Kind.DECIMAL

    def read(value: Any) -> Any:
        if is_decimal and type(value) in (Decimal, int):
            value = _digits(value)
        found = texts(value) if type(value) is str else None
        if found is None:
            raise _Unfit
        return Decimal(found) if is_decimal and isinstance(found, str) else found

    return read


def _element(t: Type, column: JsonColumn) -> Callable[[Any], Any]:
    read = _reader(t, column)

    def element(value: Any) -> Any:
        if value is None:
            if t.nullable or t.is_dynamic:
                return None
            raise _Unfit
        return read(value)

    return element


def _of(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise _Unfit
    return value


def _int(value: Any) -> int:
    if type(value) is not int or not I64_MIN <= value <= I64_MAX:
        raise _Unfit
    return value


def _float(value: Any) -> float:
    if type(value) not in (float, int, Decimal):
        raise _Unfit
    try:
        number = float(value)
    except OverflowError:
        raise _Unfit from None
    if not math.isfinite(number):
        raise _Unfit
    return number


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise _Unfit
    return value


def _string(value: Any) -> str:
    if type(value) is not str:
        raise _Unfit
    try:
        value.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        raise _Unfit from None
    return value


def _dynamic(value: Any) -> Any:
    """A value as a VARIANT keeps it: numbers are Int or Float."""
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, Decimal) or (type(value) is int and not I64_MIN <= value <= I64_MAX):
        return _float(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, list):
        return [_dynamic(v) for v in value]
    if isinstance(value, dict):
        return {_string(k): _dynamic(v) for k, v in value.items()}
    return value


def _digits(value: Decimal | int) -> str:
    """A number in plain digits."""
    if type(value) is bool or (isinstance(value, Decimal) and abs(value.adjusted()) > _LARGEST_EXPONENT and value):
        raise _Unfit
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _finite(array: pa.Array) -> bool:
    return bool(np.isfinite(array.drop_null().to_numpy(zero_copy_only=False)).all())


# ---------------------------------------------------------------- texts and names


def json_cell(value: Any) -> str | None:
    """The text of a value in `$record`: a string as it is, everything else as compact JSON."""
    if value is None or value is ABSENT:
        return None
    if isinstance(value, str):
        return value
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, (int, Decimal)):
        return str(value)
    return _compact(value)


def json_text(value: Any) -> str | None:
    """The JSON of a value, with all the digits that it had; None for null."""
    return None if value is None or value is ABSENT else _compact(value)


def _compact(value: Any) -> str:
    # `json` cannot write a Decimal, and a list or object can hold one anywhere.
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{_compact(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_compact, value)) + "]"
    if isinstance(value, Decimal):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def lookup(record: dict[str, Any], name: str) -> Any:
    """The value under a dotted name: `a.b` is the key `a.b`, or `b` inside of `a`.

    >>> lookup({"a": {"b": 1}}, "a.b"), lookup({"a.b": 2, "a": {"b": 1}}, "a.b"), lookup({"a": 1}, "a.b")
    (1, 2, ABSENT)
    """
    if name in record:
        return record[name]
    dot = name.find(".")
    while dot >= 0:
        inner = record.get(name[:dot])
        if isinstance(inner, dict):
            found = lookup(inner, name[dot + 1 :])
            if found is not ABSENT:
                return found
        dot = name.find(".", dot + 1)
    return ABSENT


def undeclared(record: dict[str, Any], declared: frozenset[str], prefix: str = "") -> dict[str, Any]:
    """The fields that no column reads, by dotted name. An empty object has no fields.

    >>> undeclared({"a": 1, "b": {"c": 2, "d": []}, "e": {}}, frozenset({"a", "b.c"}))
    {'b.d': []}
    """
    found: dict[str, Any] = {}
    for key, value in record.items():
        name = prefix + key
        if name in declared:
            continue
        if isinstance(value, dict):
            found |= undeclared(value, declared, name + ".")
        else:
            found[name] = value
    return found
