"""The options of each file format on writing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from clinker_spark.config.model.base import Finding, Model
from clinker_spark.config.model.sources.formats import Character
from clinker_spark.config.values import Bool, Text, Words


class CsvWrite(Model):
    """How CSV files are written."""

    delimiter: Character = ","
    """The character between two values."""

    def check(self) -> Iterator[Finding]:
        if self.delimiter == '"':
            message = "'delimiter' must not be the quote, which stands around values"
            yield Finding("E007", message, ("delimiter",), "choose another one")

    later: ClassVar[dict[str, str]] = {"envelope": "envelopes"}


class JsonWrite(Model):
    """How JSON files are written."""

    format: Literal["array", "ndjson"] = "array"
    """One array, or one record per line."""
    pretty: Bool = False
    """Write each record over several lines."""

    def check(self) -> Iterator[Finding]:
        if self.pretty and self.format == "ndjson":
            yield Finding("E007", "ndjson has one record per line", ("pretty",), "remove 'pretty'", on_key=True)


class XmlWrite(Model):
    """How XML files are written."""

    root_element: Words = "Root"
    """The element around all records."""
    record_element: Words = "Record"
    """The element of a record."""
    attribute_prefix: Text = "@"
    """Columns whose name starts with this become attributes."""


class FixedWidthWrite(Model):
    """How fixed-width files are written."""

    line_separator: Literal["lf", "crlf", "none"] = "lf"
    """What ends a line."""


class ParquetWrite(Model):
    """How Parquet files are written."""

    compression: Literal["snappy", "zstd", "gzip", "none"] = "snappy"
    """How the columns are compressed."""
