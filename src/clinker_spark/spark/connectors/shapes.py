"""The records of an output as a topic or a table takes them: its columns as SQL, and which records it cannot take."""

from __future__ import annotations

from dataclasses import dataclass

from clinker_spark.config.model.output import CsvOutput, JsonOutput
from clinker_spark.config.model.output_formats import CsvWrite, JsonWrite
from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.lower.errors import first_error
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.spark.connectors.kafka.sink import HEADERS, KEY, VALUE
from clinker_spark.spark.connectors.postgres.tables import is_json
from clinker_spark.spark.render.contract import OutColumn, unwritable
from clinker_spark.spark.render.json_values import json_value
from clinker_spark.spark.render.rendering import render

_NUL = "PostgreSQL has no character U+0000 in texts"
_ESCAPED_NUL = sql_string(r"(?<!\\)(\\\\)*\\u0000")
_JSON_LINE = JsonWrite(format="ndjson")


@dataclass(frozen=True)
class Shape:
    """Names and SQL of the columns, and SQL for the error of a record that cannot be written, null for the others."""

    columns: tuple[tuple[str, str], ...]
    error: str | None


def shape_of(node: OutputPlan) -> Shape:
    """The shape of an output that is no file."""
    shapes = {"kafka": _messages, "postgres": _rows, "console": _lines}
    make = shapes.get(node.config.type)
    if make is not None:
        return make(node)
    return Shape(tuple((name, quote(source)) for name, source in node.columns), None)


def _messages(node: OutputPlan) -> Shape:
    config = node.config
    sources = dict(node.columns)
    columns = [
        OutColumn(name, node.schema[source], quote(source)) for name, source in node.columns if name != config.headers
    ]
    error = None
    if config.format == "raw":
        [value] = [column for column in columns if column.name != config.key]
        line = sql_text(value.sql, value.type)
    else:
        how: JsonOutput | CsvOutput
        if config.format == "json":
            how = JsonOutput(type="json", path="-", options=_JSON_LINE, preserve_nulls=config.preserve_nulls)
        else:
            options = CsvWrite(delimiter=config.options.delimiter)
            how = CsvOutput(type="csv", path="-", options=options, include_header=False)
        rendering = render(how, tuple(columns), None)
        line, error = rendering.line, rendering.error
    found = [(VALUE, line)]
    if config.key is not None:
        source = sources[config.key]
        found.append((KEY, sql_text(quote(source), node.schema[source])))
    if config.headers is not None:
        found.append((HEADERS, quote(sources[config.headers])))
    return Shape(tuple(found), error)


def _lines(node: OutputPlan) -> Shape:
    """Each record as a text of JSON."""
    columns = tuple(OutColumn(name, node.schema[source], quote(source)) for name, source in node.columns)
    rendering = render(JsonOutput(type="json", path="-", options=_JSON_LINE, preserve_nulls=True), columns, None)
    return Shape(((VALUE, rendering.line),), rendering.error)


def _rows(node: OutputPlan) -> Shape:
    columns = [OutColumn(name, node.schema[source], quote(source)) for name, source in node.columns]
    values = [(column, _value(column.sql, column.type)) for column in columns]
    failures = []
    for column, value in values:
        when = None
        if is_json(column.type):
            when = f"rlike({value}, {_ESCAPED_NUL})"
        elif column.type.kind is Kind.STRING:
            when = f"contains({value}, {sql_string(chr(0))})"
        if when is not None:
            failures.append((unwritable(f"coalesce({when}, FALSE)", f"substring({value}, 1, 200)", _NUL), column.name))
    errors = [first_error(failures)] if failures else []
    nested = tuple(column for column in columns if is_json(column.type))
    if nested:  # what JSON cannot hold, it cannot hold in a column either
        refused = render(JsonOutput(type="json", path="-", options=_JSON_LINE), nested, None).error
        errors += [] if refused is None else [refused]
    error = None if not errors else errors[0] if len(errors) == 1 else f"coalesce({', '.join(errors)})"
    return Shape(tuple((column.name, value) for column, value in values), error)


def _value(sql: str, t: Type) -> str:
    """JSON where a column holds JSON; else the value, which Arrow can write."""
    return json_value(sql, t) if is_json(t) else sql
