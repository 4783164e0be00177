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


def render(config: AnyOutput, columns: tuple[OutColumn, ...], schema: tuple[Column, ...] | None) -> Rendering:
    """How `columns` are written by `config`. Raises InputError for names that the format cannot hold. `schema` is the
    output's own, read from its file if it has one."""
    columns = with_joins(config, columns, schema)
    match config:
        case CsvOutput():
            return csv_rendering(config, columns, schema or ())
        case JsonOutput():
            return json_rendering(config, columns, schema or ())
        case XmlOutput():
            return xml_rendering(config, columns, schema or ())
        case FixedWidthOutput():
            return fixed_rendering(config, columns, schema or ())
    raise TypeError(f"{config.type} files are not written as text")
