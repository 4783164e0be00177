"""Lines of JSON as columns, by Arrow's parsers: for pieces in which nothing is out of the ordinary.

It is some ten times as fast as Python's, and as strict; where it is more generous, or just another parser, the piece is
left to Python: lines that are not one flat object each, bytes that are no UTF-8, a field twice, NaN, a signed zero,
values of another type, missing ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from clinker_spark.core.types import Kind
from clinker_spark.plan.columns import CELLS_PREFIX
from clinker_spark.spark.fragments.task import Members
from clinker_spark.spark.scan.json.alike import (
    Layout,
    Stretch,
    as_bools,
    as_floats,
    as_ints,
    first_line,
    is_text,
    layout_of,
    read_alike,
    stretch_of,
)
from clinker_spark.spark.scan.json.as_written import is_as_written
from clinker_spark.spark.scan.json.values import JsonColumn

_TYPES = {
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BOOL: pa.bool_(),
    Kind.DATE: pa.string(),
    Kind.DATETIME: pa.string(),
}
_FROM_TEXT = {Kind.INT: as_ints, Kind.FLOAT: as_floats, Kind.BOOL: as_bools}
_ENOUGH = 3
"""So many pieces with lines that are not alike, and it is no longer tried."""
_PARTS, _LEAST = 16, 4096
"""Parts of a piece that was not read as a whole, and bytes that a part is worth being tried for."""


class WholeLines:
    """Reads pieces of lines for some columns; `usable` says whether it can at all. Lines with other fields are left to
    Python, too, if they are `closed`: somebody wants to hear of these."""

    def __init__(
        self,
        columns: Sequence[JsonColumn],
        places: Sequence[str],
        members: Sequence[Members] = (),
        *,
        closed: bool = False,
    ) -> None:
        self.closed = closed
        self.columns = columns
        self.places = places
        self.members = members
        plain = all(c.type.kind in _TYPES and not c.type.is_dynamic and not c.cleaning for c in columns)
        named = all(place and not set(place) & set(".\\[]") for place in places) and len(set(places)) == len(places)
        self.usable = bool(columns) and plain and named
        self.unlike = 0
        """How many pieces one after the other had lines that differ in more than their values."""

    def parts(self, data: bytes) -> Iterator[tuple[bytes, tuple[int, dict[str, pa.Array]] | None]]:
        """The piece, or the parts of it, and what was read of each: one bad line is no reason to read thousands of good
        ones slowly."""
        found = self.read(data)
        if found is not None or not self.usable or len(data) < _PARTS * _LEAST:
            yield data, found
            return
        start = 0
        while start < len(data):
            end = data.find(b"\n", start + len(data) // _PARTS) + 1 or len(data)
            yield data[start:end], self.read(data[start:end])
            start = end

    def read(self, data: bytes) -> tuple[int, dict[str, pa.Array]] | None:
        """The number of records, and their columns; None when Python has to look at the piece."""
        if not self.usable or not is_text(data):
            return None
        if self.unlike < _ENOUGH:
            found = self._alike(data)
            if found is not None:
                self.unlike = 0
                return found
            self.unlike += 1
        return self._parsed(data)

    def _alike(self, data: bytes) -> tuple[int, dict[str, pa.Array]] | None:
        """By cutting at quotes, if all lines have one layout."""
        layout = layout_of(first_line(data))
        if layout is None or not self._foresees(layout):
            return None
        there = [place for place in self.places if place in layout.slots]
        stretches = [self._stretch(layout, members) for members in self.members]
        texts = read_alike(data, layout, there, [stretch for stretch in stretches if stretch is not None])
        if not texts:
            return None
        known = dict(zip(there, texts, strict=False))
        found: dict[str, pa.Array] = {}
        for column, place in zip(self.columns, self.places, strict=True):
            values: pa.Array | None = pa.nulls(len(texts[0]), _TYPES[column.type.kind])
            if place in known:
                values = _typed(known[place], column.type.kind, is_text=layout.slots[place].text)
            values = None if values is None else _checked(column, values)
            if values is None:
                return None
            found[column.name] = values
        given = iter(texts[len(there) :])
        for i, (members, stretch) in enumerate(zip(self.members, stretches, strict=True)):
            text = None if stretch is None else next(given)
            if text is not None and all(self._as_written(cell.column, known, members.nulls) for cell in members.cells):
                found[f"{CELLS_PREFIX}{i}"] = text
        return len(texts[0]), found

    def _foresees(self, layout: Layout) -> bool:
        """Is each field known, or a text? Another value that nobody would look at may be anything."""
        others = [slot for name, slot in layout.slots.items() if name not in self.places]
        return not others or (not self.closed and all(slot.text for slot in others))

    def _stretch(self, layout: Layout, members: Members) -> Stretch | None:
        by_name = dict(zip((column.name for column in self.columns), self.places, strict=True))
        return stretch_of(layout, [(by_name[cell.column], cell.name) for cell in members.cells])

    def _as_written(self, name: str, known: Mapping[str, pa.Array], nulls: bool) -> bool:
        """Do the values of a column stand in the lines as an output writes them?"""
        at = next(i for i, column in enumerate(self.columns) if column.name == name)
        column, texts = self.columns[at], known[self.places[at]]
        return (nulls or not texts.null_count) and is_as_written(column, texts)

    def _parsed(self, data: bytes) -> tuple[int, dict[str, pa.Array]] | None:
        """By Arrow's parser of JSON, if all lines are flat objects."""
        lines = data.count(b"{")
        if not _one_object_per_line(data, lines):
            return None
        kinds = zip(self.places, self.columns, strict=True)
        schema = pa.schema([(place, _TYPES[column.type.kind]) for place, column in kinds])
        try:
            table = pj.read_json(
                pa.BufferReader(data),
                pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
                pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error" if self.closed else "ignore"),
            )
        except pa.ArrowException:
            return None
        if table.num_rows != lines:
            return None
        found: dict[str, pa.Array] = {}
        for column, place in zip(self.columns, self.places, strict=True):
            values = _checked(column, table.column(place).combine_chunks())
            if values is None:
                return None
            found[column.name] = values
        return lines, found


def _typed(texts: pa.Array, kind: Kind, *, is_text: bool) -> pa.Array | None:
    """The values of texts, if all of them are of the kind; `is_text` says whether they stood in quotes."""
    if is_text:
        return texts if _TYPES[kind] == pa.string() else None
    if kind in _FROM_TEXT:
        return _FROM_TEXT[kind](texts)
    return texts if texts.null_count == len(texts) else None


def _one_object_per_line(data: bytes, objects: int) -> bool:
    """Is every line one object without others inside of it, and none blank?"""
    if not objects or data.count(b"}") != objects or b"[" in data or b"]" in data:
        return False
    begins = data.count(b"\n{") + data.startswith(b"{")
    ends = data.count(b"}\n") + data.count(b"}\r\n") + data.endswith(b"}")
    return begins == objects == ends and data.count(b"\n") == objects - (not data.endswith(b"\n"))


def _checked(column: JsonColumn, values: pa.Array) -> pa.Array | None:
    """The values of a column, if none of them needs a second look."""
    if values.null_count and not column.type.nullable:
        return None
    if column.type.kind is Kind.FLOAT:
        numbers = values.drop_null().to_numpy(zero_copy_only=False)
        if not np.isfinite(numbers).all() or (np.signbit(numbers) & (numbers == 0)).any():
            return None
    if column.type.kind in (Kind.DATE, Kind.DATETIME):
        return column.texts(values)
    return values
