"""`split_values:`: texts of a file that hold several values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field

from clinker_spark.config.model.base import Also, Finding, Model, without_effect
from clinker_spark.config.model.schema import Column
from clinker_spark.config.values import Bool, FlagText, Words
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import Kind

ELEMENTS = (Kind.STRING, Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.DATE, Kind.DATETIME)
"""The types that the parts of a text can have."""
_CELLS = ("csv", "fixed_width")
"""Formats in which a field stands once, so that several values can only be parts of its text."""


class SplitValues(Model):
    """A column whose text is several values."""

    field: Words
    """The column, as the file calls it."""
    delimiter: FlagText = ";"
    """What stands between two values."""
    escape: FlagText | None = None
    """The character before a delimiter, or before itself, that is part of a value."""

    json_: Bool = Field(default=False, alias="json")
    """Is the text a JSON array?"""

    def check(self) -> Iterator[Finding]:
        if self.json_:
            yield from without_effect(self, ("delimiter", "escape"), "the text is a JSON array")
        if not self.delimiter:
            yield Finding("E007", "'delimiter' must not be empty", ("delimiter",), "write one, such as ';'")
        if self.escape is not None and (len(self.escape) != 1 or self.escape in self.delimiter):
            help_text = "write a character that is not part of the delimiter, such as '\\'"
            yield Finding("E007", "'escape' must be one character", ("escape",), help_text)


def _full_form(value: Any) -> Any:
    """`- tags` as `- { field: tags }`."""
    return {"field": value} if isinstance(value, str) else value


SplitList = tuple[Annotated[SplitValues, Also(_full_form, {"type": "string"})], ...]
NO_SPLITS = Field(default=())


def check_splits(kind: str, columns: Sequence[Column], splits: Sequence[SplitValues]) -> Iterator[Finding]:
    """What is wrong between columns with several values and the texts that they are parts of."""
    by_field = {column.source_name or column.name: column for column in columns}
    seen: dict[str, int] = {}
    for i, split in enumerate(splits):
        at = ("split_values", i)
        column = by_field.get(split.field)
        if split.field in seen:
            see = (("split_values", seen[split.field]), "the first time")
            yield Finding("E358", f"'{split.field}' is split twice", at, "remove one", see=see)
        elif column is None:
            help_text = did_you_mean(split.field, by_field) or f"the file has {', '.join(by_field)}"
            yield Finding("E358", f"the schema reads no column '{split.field}' of the file", at, help_text)
        elif not column.multiple:
            help_text = "add multiple: true to the column"
            yield Finding("E358", f"'{column.name}' holds one value, and is split into several", at, help_text)
        elif (column.data_type.element or column.data_type).kind not in ELEMENTS:
            message = f"the parts of a text cannot be of type {column.data_type.element}"
            yield Finding("E358", message, at, "split it into texts, and convert these in a transform")
        elif split.json_ and kind not in _CELLS:
            message = f"texts of a {kind} file cannot be read as JSON arrays"
            yield Finding("E358", message, (*at, "json"), f"only sources of type {' and '.join(_CELLS)} do that")
        seen.setdefault(split.field, i)
    for i, column in enumerate(columns):
        if column.multiple and kind in _CELLS and (column.source_name or column.name) not in seen:
            message = f"a field of a {kind} file stands once, so '{column.name}' cannot have several values"
            help_text = f"add split_values: [{{ field: {column.source_name or column.name}, delimiter: ';' }}]"
            yield Finding("E361", message, ("schema", i, "multiple"), help_text, on_key=True)
