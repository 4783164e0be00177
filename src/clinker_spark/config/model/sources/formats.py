"""The options of each file format on reading."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from clinker_spark.config.model.base import Finding, Gone, Model
from clinker_spark.config.values import Bool, Count, Size, Text, Words, problem, shown
from clinker_spark.core.diagnostics.suggest import nearest

_ENCODINGS = ("utf-8", "utf-16", "ascii", "iso-8859-1", "latin-1", "iso-8859-15", "windows-1252", "cp1252", "cp437")


def one_character(text: str) -> str:
    if len(text) != 1 or not text.isascii() or text in "\r\n\0":
        raise problem("E007", f"'{{key}}' must be one ASCII character, not {shown(text)}", 'a tab is written "\\t"')
    return text


def _encoding(text: str) -> str:
    try:
        # Python has codecs that are no encodings of text (base64, zip); decoding nothing tells them apart.
        if isinstance(b"".decode(text), str):
            return codecs.lookup(text).name
    except (LookupError, ValueError, UnicodeError):
        pass
    close = nearest(text, _ENCODINGS)
    help_text = f"did you mean '{close}'?" if close else "common ones are utf-8, iso-8859-1 and windows-1252"
    raise problem("E007", f"there is no encoding {shown(text)}", help_text)


def _field_bytes(size: int) -> int:
    if not 1 <= size <= _LONGEST_FIELD:
        raise problem("E215", f"'{{key}}' must be between 1 byte and 1G, not {size:,} bytes", "1M is the default")
    return size


Character = Annotated[Text, AfterValidator(one_character)]
Encoding = Annotated[Words, AfterValidator(_encoding)]
FieldBytes = Annotated[Size, AfterValidator(_field_bytes)]
_LONGEST_FIELD = 1024**3
_NO_INDEX = Gone("'max_index_bytes' has no meaning here", "no index of the file is kept in memory: remove the key")
NO_ARRAY_PATHS = Gone(
    "'array_paths' was replaced",
    "instead of 'explode' write split_to_rows: [field] beside 'schema', and instead of 'join' multiple: true at the "
    "column",
    "E360",
)


class CsvRead(Model):
    """How CSV files are written."""

    delimiter: Character = ","
    """The character between two values."""
    quote_char: Character = '"'
    """The character around values that contain delimiters or line ends."""
    has_header: Bool = True
    """Is the first line the names of the columns?"""
    encoding: Encoding = "utf-8"
    """The encoding of the file."""
    max_field_bytes: FieldBytes = Field(default=1024**2, json_schema_extra={"default": "1M"})
    """The most bytes of a quoted value. A longer one has a quote that nobody closed: its line is a dead letter."""
    max_field_lines: Count = 1000
    """The most lines of a quoted value."""

    def check(self) -> Iterator[Finding]:
        if self.delimiter == self.quote_char:
            given = [key for key in ("delimiter", "quote_char") if key in self.model_fields_set]
            see = ((given[1],), "this is the quote") if len(given) == 2 else None
            message = "'delimiter' and 'quote_char' are the same character"
            yield Finding("E007", message, (given[0],), "choose another one", see=see)


class JsonRead(Model):
    """How JSON files are written."""

    format: Literal["array", "ndjson", "object"] | None = None
    """An array of records, one record per line, or an object with the records inside; by default found out."""
    record_path: Words | None = None
    """The keys that lead to the array of records: result.items. The format may be array then, or object."""

    gone: ClassVar[dict[str, Gone]] = {"max_index_bytes": _NO_INDEX, "array_paths": NO_ARRAY_PATHS}


class XmlRead(Model):
    """How XML files are written."""

    record_path: Words | None = None
    """The elements that lead to a record: catalog/product."""
    attribute_prefix: Text = "@"
    """What attributes have before their name, as columns."""
    namespace_handling: Literal["strip", "qualify"] = "strip"
    """Leave the namespaces of names out, or keep their prefixes."""

    gone: ClassVar[dict[str, Gone]] = {"max_index_bytes": _NO_INDEX, "array_paths": NO_ARRAY_PATHS}


class FixedWidthRead(Model):
    """How fixed-width files are written."""

    line_separator: Literal["lf", "crlf", "none"] = "lf"
    """What ends a line; none: records follow each other without line ends."""
    encoding: Encoding = "utf-8"
    """The encoding of the file."""


class ParquetRead(Model):
    """Parquet describes itself: there are no options."""


def check_json_path(options: JsonRead) -> Iterator[Finding]:
    """`record_path` of JSON: keys with dots between them."""
    path = options.record_path
    if path is None:
        return
    help_text = "write the keys with dots between them: result.items"
    at = ("options", "record_path")
    if path.startswith(("$", "/")) or "[" in path:
        yield Finding("E363", f"'{path}' is not a path of keys", at, help_text)
    elif not all(part.strip() for part in path.split(".")):
        yield Finding("E363", f"'{path}' has an empty part", at, help_text)
    if options.format == "ndjson":
        message = "'record_path' leads into one object, and ndjson has one on each line"
        help_text = "remove it, or write format: array, or object"
        yield Finding("E363", message, at, help_text, on_key=True, see=(("options", "format"), "the format"))


def check_xml_path(options: XmlRead) -> Iterator[Finding]:
    """`record_path` of XML: names of elements with slashes between them."""
    path = options.record_path
    if path is None:
        return
    help_text = "write the elements from the root with slashes between them: catalog/product"
    at = ("options", "record_path")
    if any(char in path for char in "*[]@$ ") or "." in path.split("/"):
        yield Finding("E363", f"'{path}' is not a path of elements", at, help_text)
    elif not all(path.strip("/").split("/")) or path.startswith("//"):
        yield Finding("E363", f"'{path}' has an empty part", at, help_text)


def check_line_options(options: CsvRead | FixedWidthRead) -> Iterator[Finding]:
    """What files with several kinds of records cannot be: each record is a line, known by some of its bytes."""
    if isinstance(options, FixedWidthRead) and options.line_separator == "none":
        message = "records of several kinds have different lengths: each needs a line"
        yield Finding("E342", message, ("options", "line_separator"), "write lf or crlf")
    letters = bytes(range(128)).decode(options.encoding, "replace")
    if letters != bytes(range(128)).decode("ascii"):
        message = f"lines of several kinds cannot be told apart in {options.encoding}"
        yield Finding("E342", message, ("options", "encoding"), "use utf-8, or an encoding with one byte per character")
