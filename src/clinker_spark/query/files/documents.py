"""Files of JSON and YAML before Spark sees them: their records tell the types of the columns."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any

from clinker_spark.core.types import STRING, Kind, Type
from clinker_spark.query.failures import Failed
from clinker_spark.query.files.csv import WHOLE, shown_path
from clinker_spark.query.types import NOTHING, NULL, ListType, QType, RecordType, type_of_value, unified

_JSON_BLOCK = 16 * 2**20
_EXACT = 2**53
"""Whole numbers up to here are floats without a loss."""


def json_rows(paths: tuple[str, ...], kind: str) -> tuple[Any, ...]:
    """The records that tell the types: all of them, but of a long file with a record a line only as many as differ."""
    rows: list[Any] = []
    for path in paths:
        with open(path, "rb") as file:
            if kind == "json":
                found = _json_value(file.read(), path, None)
                rows += found if isinstance(found, list) else [found]
                continue
            size = os.path.getsize(path)
            beginning = size if size <= WHOLE or not _fits_its_beginning(path) else _JSON_BLOCK
            start = file.tell()
            for number, line in enumerate(file, 1):
                if line.strip():
                    rows.append(_json_value(line, path, number))
                start += len(line)
                if start >= beginning:
                    break
    return tuple(rows)


def _json_value(data: bytes, path: str, number: int | None) -> Any:
    where = f"line {number} of '{shown_path(path)}'" if number is not None else f"'{shown_path(path)}'"
    try:
        return _DECODER.decode(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise Failed(f"{where} is not UTF-8", "convert the file, for example with iconv", code="E712") from None
    except ValueError as error:
        reason = str(error) if number is None else str(error).split(": line ")[0]
        raise Failed(f"{where} is not JSON: {reason}", code="E712") from None


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _fits_its_beginning(path: str) -> bool:
    """Have all records of a long file the fields and the types of those at its beginning?"""
    import pyarrow as pa  # Arrow is loaded by queries that read such files
    from pyarrow import json as pa_json

    try:
        reader = pa_json.open_json(path, pa_json.ReadOptions(block_size=_JSON_BLOCK))
        return sum(1 for _ in reader) > 0
    except pa.ArrowInvalid:
        return False


def yaml_rows(paths: tuple[str, ...]) -> tuple[Any, ...]:
    import yaml  # few queries read YAML

    rows: list[Any] = []
    for path in paths:
        with open(path, encoding="utf-8-sig") as file:
            try:
                found = yaml.safe_load(file)
            except yaml.YAMLError as error:
                raise ValueError(str(error)) from None
        rows += found if isinstance(found, list) else [] if found is None else [found]
    return tuple(rows)


def row_type(rows: tuple[Any, ...], paths: tuple[str, ...]) -> RecordType:
    """The type of all rows. Those of one shape have one type, and there are few shapes."""
    shapes: dict[Any, tuple[int, Any]] = {}
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise ValueError("its rows are no records")
        shapes.setdefault(_shape(row), (number, row))
    found = unified(type_of_value(row) for _, row in shapes.values())
    if not isinstance(found, RecordType):
        return RecordType(())
    for number, row in shapes.values():
        lost = _lost(row, found)
        if lost is not None:
            where = f"'{shown_path(paths[0])}'" if len(paths) == 1 else "the files"
            message = f"record {number} of {where}: {lost} has more digits than a column of numbers can hold"
            raise Failed(message, "write it as a text", code="E712")
    made = _storable(found)
    assert isinstance(made, RecordType)
    return made


def _shape(value: Any) -> Any:
    """The same for values of the same type, of which the same columns of numbers can hold all."""
    kind = type(value)
    if kind is dict:
        return tuple([(name, _shape(inner)) for name, inner in value.items()])
    if kind is list:
        return frozenset(map(_shape, value))
    if kind is not int or -_EXACT <= value <= _EXACT:
        return kind
    return _is_int(value), _is_float(value)


def _storable(t: QType) -> QType:
    """The type with texts for what is null everywhere, or an element of lists that have none."""
    if isinstance(t, RecordType):
        return replace(t, fields=tuple((name, _storable(field)) for name, field in t.fields))
    if isinstance(t, ListType):
        return replace(t, element=_storable(t.element))
    return STRING.as_nullable() if t in (NULL, NOTHING) else t


def _lost(value: Any, t: QType) -> int | None:
    """A whole number inside of a value that its type would change: beyond 64 bits, or rounded as a float."""
    if isinstance(value, dict) and isinstance(t, RecordType):
        found = (_lost(inner, f) for name, inner in value.items() if (f := t.field(name)) is not None)
        return next((n for n in found if n is not None), None)
    if isinstance(value, list) and isinstance(t, ListType):
        return next((n for n in (_lost(inner, t.element) for inner in value) if n is not None), None)
    if not isinstance(value, int) or isinstance(value, bool) or not isinstance(t, Type):
        return None
    if t.kind is Kind.INT:
        return None if _is_int(value) else value
    return value if t.kind is Kind.FLOAT and not _is_float(value) else None


def _is_int(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _is_float(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False
