"""`join_values:`: several values that are written into one field. What `split_values` takes apart again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from clinker_spark.config.model.base import Also, Finding, Model
from clinker_spark.config.values import FlagText, Words
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import Kind, Type

_OF_TEXT = ("delimiter", "on_conflict", "escape")
_OF_XML = ("repeat_as", "wrap_in")


class JoinValues(Model):
    """A column with several values, and how they are written."""

    field: Words
    """The column, as the file calls it."""
    delimiter: FlagText = ";"
    """CSV: what stands between two values."""
    on_conflict: Literal["error", "escape", "encode_json"] = "error"
    """CSV: a value that has the delimiter in it makes its record fail (error), or gets the escape before it;
    encode_json writes all values of the column as a JSON array."""
    escape: FlagText = "\\"
    """CSV: what on_conflict: escape writes before a delimiter in a value, and before itself."""
    repeat_as: Words | None = None
    """XML: the element of each value, if it is not the name of the column."""
    wrap_in: Words | None = None
    """XML: an element around all values."""

    def check(self) -> Iterator[Finding]:
        if not self.delimiter:
            yield Finding("E007", "'delimiter' must not be empty", ("delimiter",), "write one, such as ';'")
        if len(self.escape) != 1 or self.escape in self.delimiter:
            help_text = "write a character that is not part of the delimiter, such as '\\'"
            yield Finding("E007", "'escape' must be one character", ("escape",), help_text)


def _full_form(value: Any) -> Any:
    """`- tags` as `- { field: tags }`."""
    return {"field": value} if isinstance(value, str) else value


JoinList = tuple[Annotated[JoinValues, Also(_full_form, {"type": "string"})], ...]
NO_JOINS = Field(default=())


def check_joins(kind: str, joins: JoinList) -> Iterator[Finding]:
    """What is wrong with the list for a format, whatever the columns are."""
    if joins and kind not in ("csv", "xml"):
        help_text = "remove the key: arrays are written as they are" if kind in ("json", "parquet") else None
        help_text = help_text or "join the values in a transform, or write CSV or XML"
        yield Finding("E362", f"a {kind} output does not join values", ("join_values",), help_text, on_key=True)
        return
    seen: dict[str, int] = {}
    for i, join in enumerate(joins):
        at = ("join_values", i)
        if join.field in seen:
            see = (("join_values", seen[join.field]), "the first time")
            yield Finding("E362", f"'{join.field}' is listed twice", at, "remove one", see=see)
        seen.setdefault(join.field, i)
        for key in (_OF_XML if kind == "csv" else _OF_TEXT) if isinstance(join, JoinValues) else ():
            if key in join.model_fields_set:
                help_text = f"remove the key; {kind} has {', '.join(_OF_TEXT if kind == 'csv' else _OF_XML)}"
                yield Finding("E362", f"'{key}' has no meaning in a {kind} file", (*at, key), help_text, on_key=True)


def check_joined_columns(joins: JoinList, types: Mapping[str, Type]) -> Iterator[Finding]:
    """Do the columns that are written have several values?"""
    for i, join in enumerate(joins):
        found = types.get(join.field)
        if found is None:
            help_text = did_you_mean(join.field, types) or f"the columns are {', '.join(types)}"
            yield Finding("E362", f"no column '{join.field}' is written", ("join_values", i), help_text)
        elif found.kind is not Kind.ARRAY:
            message = f"'{join.field}' holds one value of type {found}, there is nothing to join"
            help_text = "remove the item, or make the column an array: multiple: true at the source, collect, [a, b]"
            yield Finding("E362", message, ("join_values", i), help_text)
        elif found.element is not None and found.element.kind in (Kind.ARRAY, Kind.MAP):
            message = f"the values of '{join.field}' are of type {found.element}, and have no text"
            yield Finding("E362", message, ("join_values", i), "make texts of them in a transform: rows.map(r => ...)")
