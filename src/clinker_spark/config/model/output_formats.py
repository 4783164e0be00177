"""The options of each file format on writing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from clinker_spark.config.model.base import Finding, Model
from clinker_spark.config.model.sources.formats import Character
from clinker_spark.config.values import Bool, Text, Words


class WrittenEnvelope(Model):
    """What an output with `reconstruct_envelope` writes around the records of a document."""

    header_from_doc: Words | None = None
    """The section before the records: one of the files ($doc), or one that an envelope node makes."""
    footer_from_doc: Words | None = None
    """The section behind them."""
    footer_record_count_field: Words | None = None
    """A field of the footer with the number of its records."""


def check_framing(config: Any, *, per_file: bool) -> Iterator[Finding]:
    """What an output cannot be, if it writes documents with headers and footers."""
    envelope = getattr(config.options, "envelope", None)
    if not config.reconstruct_envelope:
        if envelope is not None and envelope != WrittenEnvelope():
            message = "'envelope' has no effect here: nothing asks for documents"
            help_text = "add reconstruct_envelope: true, or remove the key"
            yield Finding("W027", message, ("options", "envelope"), help_text, on_key=True)
        return
    at, reasons = ("reconstruct_envelope",), []
    if envelope is None:
        reasons.append(f"a {config.type} file has no place for headers and footers")
    if config.type == "json" and config.options.format == "ndjson":
        reasons.append("a document is an object with all its records, and ndjson has one record per line")
    if config.split is not None or per_file or config.path.endswith("/"):
        reasons.append("documents are written to one file, and this output makes several")
    if config.if_exists == "append":
        reasons.append("nothing can be added to a document that has its footer")
    for reason in reasons:
        yield Finding("E347", reason, at, "remove one of the two, or write CSV, XML or a JSON array", on_key=True)


class CsvWrite(Model):
    """How CSV files are written."""

    delimiter: Character = ","
    """The character between two values."""
    envelope: WrittenEnvelope = Field(default_factory=WrittenEnvelope)
    """With reconstruct_envelope: what stands around the records of a document."""

    def check(self) -> Iterator[Finding]:
        if self.delimiter == '"':
            message = "'delimiter' must not be the quote, which stands around values"
            yield Finding("E007", message, ("delimiter",), "choose another one")


class JsonWrite(Model):
    """How JSON files are written."""

    format: Literal["array", "ndjson"] = "array"
    """One array, or one record per line."""
    pretty: Bool = False
    """Write each record over several lines."""
    envelope: WrittenEnvelope = Field(default_factory=WrittenEnvelope)
    """With reconstruct_envelope: what stands around the records of a document."""

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
    envelope: WrittenEnvelope = Field(default_factory=WrittenEnvelope)
    """With reconstruct_envelope: what stands around the records of a document."""


class FixedWidthWrite(Model):
    """How fixed-width files are written."""

    line_separator: Literal["lf", "crlf", "none"] = "lf"
    """What ends a line."""


class ParquetWrite(Model):
    """How Parquet files are written."""

    compression: Literal["snappy", "zstd", "gzip", "none"] = "snappy"
    """How the columns are compressed."""
