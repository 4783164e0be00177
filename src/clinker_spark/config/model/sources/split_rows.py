"""`split_to_rows:`: a field that repeats, of which each value becomes a record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from clinker_spark.config.model.base import Also, Finding, Model
from clinker_spark.config.model.schema import Column
from clinker_spark.config.values import Bool, Words
from clinker_spark.core.diagnostics.suggest import did_you_mean

FORMATS = ("json", "xml")
"""Formats in which a field can stand several times in a record."""


class RowSplit(Model):
    """A field with several values: each becomes a record, beside the other fields."""

    field: Words
    """The field, as the file calls it, with dots: order.lines."""
    keep_empty: Bool = True
    """Does a record without a value stay, as one record that lacks the field?"""
    mode: Literal["extract", "split"] = "extract"
    """extract: the fields of a value are those of the record; split: they keep the name of the field: lines.price."""
    position_column: Words | None = None
    """The column that gets the number of the value in its record, from 1."""


def _full_form(value: object) -> object:
    """`- lines` as `- { field: lines }`."""
    return {"field": value} if isinstance(value, str) else value


RowSplitList = tuple[Annotated[RowSplit, Also(_full_form, {"type": "string"})], ...]
NO_ROW_SPLITS = Field(default=())


def check_row_splits(kind: str, columns: Sequence[Column], splits: Sequence[RowSplit]) -> Iterator[Finding]:
    """What is wrong between the fields that become records, and with what the schema says of them."""
    if splits and kind not in FORMATS:
        message = f"a field of a {kind} file stands once in a record, and cannot become several"
        help_text = "use 'emit each' in a transform, over split(';') for instance"
        yield Finding("E358", message, ("split_to_rows",), help_text, on_key=True)
        return
    several = {column.source_name or column.name for column in columns if column.multiple}
    names = [column.name for column in columns]
    for i, split in enumerate(splits):
        at = ("split_to_rows", i)
        for j, before in enumerate(splits[:i]):
            see = (("split_to_rows", j), "the first one")
            nested = split.field.startswith(before.field + ".") or before.field.startswith(split.field + ".")
            if before.field == split.field:
                yield Finding("E358", f"'{split.field}' is split twice", at, "remove one", see=see)
            elif nested and (kind == "xml" or before.mode == "extract" or len(before.field) > len(split.field)):
                message = f"'{split.field}' is not found in what is left after '{before.field}' was split"
                help_text = "in JSON, name the outer field first, with mode: split; in XML, split one of them"
                yield Finding("E358", message, at, help_text, see=see)
        if split.field in several:
            message = f"'{split.field}' has multiple: true in the schema: it is either several records or one array"
            yield Finding("E358", message, at, "remove one of them")
        if split.position_column is not None and split.position_column not in names:
            help_text = did_you_mean(split.position_column, names) or "declare it: - { name: line, type: int }"
            message = f"the schema has no column '{split.position_column}'"
            yield Finding("E358", message, (*at, "position_column"), help_text)
