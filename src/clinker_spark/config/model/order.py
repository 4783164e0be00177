"""Sort orders, as sources declare them and outputs make them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from clinker_spark.config.model.base import STRING, Also, Model
from clinker_spark.config.values import Words


class SortField(Model):
    """A column to sort by."""

    field: Words
    """The column."""
    order: Literal["asc", "desc"] = "asc"
    """Upward or downward."""
    null_order: Literal["first", "last", "drop"] = "last"
    """Where nulls stand. `drop`, on an output, leaves out records without a value."""


def _read(value: Any) -> Any:
    return {"field": value} if isinstance(value, str) else value


def _list(value: Any) -> Any:
    return [value] if isinstance(value, str | dict) else value


SortItem = Annotated[SortField, Also(_read, STRING)]
_ONE = {
    "type": "object",
    "properties": {
        "field": STRING,
        "order": {"enum": ["asc", "desc"]},
        "null_order": {"enum": ["first", "last", "drop"]},
    },
    "required": ["field"],
    "additionalProperties": False,
}
SortOrder = Annotated[tuple[SortItem, ...], Also(_list, STRING, _ONE)]
"""A list of columns; one alone may stand without the list."""
