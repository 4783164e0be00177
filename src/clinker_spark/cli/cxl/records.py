"""Records for `cxl`: from JSON text, files, standard input or single fields, fitted to a schema or with one inferred.

>>> from clinker_spark.core.types import parse_type
>>> rows = read_record('{"price": 2, "on": "2024-03-15"}').rows
>>> {name: str(t) for name, t in infer_schema(rows).items()}
{'price': 'Int', 'on': 'String'}
>>> fit_record(rows[0], {"price": parse_type("float"), "on": parse_type("date")})
{'price': 2.0, 'on': datetime.date(2024, 3, 15)}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinker_spark.cli.cxl.json_input import Number, json_values, wrong_record
from clinker_spark.cli.cxl.sources import STDIN, given_text, read_text
from clinker_spark.cli.cxl.typed_text import Guessed, Unfit, fit_value
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.core.span import Source, Span
from clinker_spark.core.types import ANY, ARRAY, BOOL, FLOAT, INT, MAP, STRING, Type, unify


@dataclass(frozen=True)
class Records:
    """`stream`: the input is a sequence of records, though it may hold one or none."""

    rows: list[dict[str, Any]]
    stream: bool = False


# ------------------------------------------------------------------- reading


def read_records(record: str | None, fields: Sequence[str]) -> Records:
    """What `--record` and `--field` give; a record without fields when neither is there."""
    if record is not None and fields:
        message = "--record and --field cannot be given together"
        raise InputError([Diagnostic("E225", message, help="use one of the two")])
    if record is not None:
        return read_record(record)
    return Records([dict(read_field(field, "--field") for field in fields)])


def read_record(given: str) -> Records:
    """`given` is JSON, `@file`, or `-` for standard input. JSON objects may follow each other, or stand in a list."""
    if given == STDIN:
        source = Source("<stdin>", read_text(STDIN))
    elif given.startswith("@"):
        source = Source(given[1:], read_text(given[1:]))
    else:
        source = Source("<record>", given_text(given, "--record"))
    values = json_values(source)
    if not values and given != STDIN:
        raise wrong_record(source, Span(0, len(source.text)), "there is no record")
    stream = given == STDIN or len(values) > 1
    if len(values) == 1 and isinstance(values[0][0], list):
        value, span = values[0]
        if any(not isinstance(item, dict) for item in value) or not value:
            raise wrong_record(source, span, "a record must be a JSON object, but this is an array")
        return Records(value, stream=True)
    for value, span in values:
        if not isinstance(value, dict):
            raise wrong_record(source, span, f"a record must be a JSON object, but this is {_json_kind(value)}")
    return Records([value for value, _ in values], stream)


def read_field(text: str, option: str) -> tuple[str, Guessed]:
    """`name=value`; the value's type is guessed: int, float, true/false, null, else text."""
    given_text(text, option)
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        help_text = f"write {option} name=value"
        raise InputError([Diagnostic("E225", f"'{text}' is not of the form name=value", help=help_text)])
    return name.strip(), Guessed(value)


def _json_kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a Boolean"
        case Number():
            return "a number"
        case str():
            return "a text"
    return "an array"


# ------------------------------------------------------------------- fitting


def infer_schema(rows: Iterable[Mapping[str, Any]]) -> dict[str, Type]:
    """The types of the fields in all records; Any where they do not agree or are never known."""
    rows = list(rows)
    schema: dict[str, Type] = {}
    unknown: set[str] = set()  # fields that some record leaves null
    for row in rows:
        for name, raw in row.items():
            t = type_of(raw)
            if t is None:
                unknown.add(name)
            else:
                schema[name] = t if name not in schema else unify(schema[name], t) or ANY
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _nullable(schema.get(name), name, rows, unknown) for name in names}


def _nullable(t: Type | None, name: str, rows: Sequence[Mapping[str, Any]], unknown: set[str]) -> Type:
    if t is None:
        return ANY
    return t.as_nullable() if name in unknown or any(name not in row for row in rows) else t


def type_of(raw: Any) -> Type | None:
    """The type of a value as it was read; None for null."""
    if isinstance(raw, Guessed):
        raw = raw.value
    match raw:
        case None:
            return None
        case bool():
            return BOOL
        case int():
            return INT
        case float():
            return FLOAT
        case Number():
            return INT if re.fullmatch("-?[0-9]+", raw) else FLOAT
        case list():
            return ARRAY
        case dict():
            return MAP
    return STRING


def fit_record(row: Mapping[str, Any], schema: Mapping[str, Type], number: int | None = None) -> dict[str, Any]:
    """The record as values of the schema's types. Fields that it does not name are left out."""
    result: dict[str, Any] = {}
    problems: list[Diagnostic] = []
    where = "" if number is None else f"record {number}: "
    for name, t in schema.items():
        try:
            result[name] = fit_value(row.get(name), t)
        except Unfit as error:
            problems.append(Diagnostic("E225", f"{where}field '{name}': {error}", help=error.help))
    if problems:
        raise InputError(problems)
    return result
