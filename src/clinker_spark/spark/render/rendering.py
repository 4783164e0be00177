"""One record as text, for every format that is written as text. Parquet is written by Spark itself."""

from __future__ import annotations

from clinker_spark.config.model.output import AnyOutput, CsvOutput, FixedWidthOutput, JsonOutput, XmlOutput
from clinker_spark.config.model.schema import Column
from clinker_spark.spark.render.contract import OutColumn, Rendering
from clinker_spark.spark.render.csv_lines import csv_rendering
from clinker_spark.spark.render.fixed_lines import fixed_rendering
from clinker_spark.spark.render.joined_values import with_joins
from clinker_spark.spark.render.json_lines import json_rendering
from clinker_spark.spark.render.xml_lines import xml_rendering

__all__ = ["OutColumn", "Rendering", "render"]


def render(
    config: AnyOutput,
    columns: tuple[OutColumn, ...],
    schema: tuple[Column, ...] | None,
    *,
    widened: str | None = None,
) -> Rendering:
    """How `columns` are written by `config`. Raises InputError for names that the format cannot hold.

    `schema` is the output's own, read from its file if it has one. `widened` is SQL text for a MAP of further
    columns by name (MAP<STRING, VARIANT>): JSON and XML write its entries after the others; in CSV and fixed-width
    files, whose columns are fixed before the first record, a record that has any is an error.
    """
    columns = with_joins(config, columns, schema)
    match config:
        case CsvOutput():
            return csv_rendering(config, columns, schema or (), widened)
        case JsonOutput():
            return json_rendering(config, columns, schema or (), widened)
        case XmlOutput():
            return xml_rendering(config, columns, schema or (), widened)
        case FixedWidthOutput():
            return fixed_rendering(config, columns, schema or (), widened)
    raise TypeError(f"{config.type} files are not written as text")
