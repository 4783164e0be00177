"""Records of which a field has several values, as one record for each value (`split_to_rows`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.split_rows import RowSplit


@dataclass(frozen=True)
class ValueRows:
    """A field whose values become records."""

    field: str
    extract: bool
    keep_empty: bool
    position: str | None = None
    """The field, as the file would call it, that gets the number of the value."""

    def json_rows(self, record: dict[str, Any]) -> list[dict[str, Any]]:
        """The records of a JSON object. A value that is no array is the only one.

        >>> lines = ValueRows("lines", extract=True, keep_empty=True, position="n")
        >>> lines.json_rows({"id": 7, "lines": [{"sku": "a"}, {"sku": "b"}]})
        [{'id': 7, 'sku': 'a', 'n': 1}, {'id': 7, 'sku': 'b', 'n': 2}]
        >>> lines.json_rows({"id": 8, "lines": []})
        [{'id': 8}]
        """
        rest, value = _taken(record, self.field)
        values = value if isinstance(value, list) else [] if value is None else [value]
        if not values:
            return [rest] if self.keep_empty else []
        found = []
        for i, item in enumerate(values):
            made = {**rest, **item} if self.extract and isinstance(item, dict) else {**rest, self.field: item}
            if self.position is not None:
                made[self.position] = i + 1
            found.append(made)
        return found

    def xml_rows(self, record: dict[str, Any], values: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The records of an XML element, of which the `values` were kept apart, by the dotted names of their texts."""
        if not values:
            return [record] if self.keep_empty else []
        found, prefix = [], f"{self.field}."
        for i, item in enumerate(values):
            own = {name.removeprefix(prefix) if self.extract else name: cell for name, cell in item.items()}
            made = {**record, **own}
            if self.position is not None:
                made[self.position] = str(i + 1)
            found.append(made)
        return found


def value_rows(splits: Iterable[RowSplit], columns: Sequence[Column]) -> tuple[ValueRows, ...]:
    """What a source asks for, with the names of the file."""
    names = {column.name: column.source_name or column.name for column in columns}
    return tuple(
        ValueRows(s.field, s.mode == "extract", s.keep_empty, names.get(s.position_column or "")) for s in splits
    )


def json_rows(record: dict[str, Any], splits: Sequence[ValueRows]) -> list[dict[str, Any]]:
    """The records of a JSON object, after all fields were split, one after another."""
    found = [record]
    for split in splits:
        found = [made for each in found for made in split.json_rows(each)]
    return found


def _taken(record: dict[str, Any], name: str) -> tuple[dict[str, Any], Any]:
    """A record without a field, and its value; None where it has none."""
    if name in record:
        return {key: value for key, value in record.items() if key != name}, record[name]
    dot = name.find(".")
    while dot >= 0:
        inner = record.get(name[:dot])
        if isinstance(inner, dict):
            rest, value = _taken(inner, name[dot + 1 :])
            if rest is not inner:
                return {**record, name[:dot]: rest}, value
        dot = name.find(".", dot + 1)
    return record, None
