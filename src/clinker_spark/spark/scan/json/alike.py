r"""Lines of JSON that differ only in their values: cut at their quotes, by Arrow's parser of delimited text.

Programs write lines of one layout: the same keys in the same order, the same blanks, strings where strings were.
Without a backslash, each quote begins or ends a string, so that every line of a piece has the same cells between its
quotes, and those that are no values are the same in all lines. To compare them takes a fraction of the time that a
parser of JSON takes. Pieces with any other line are left to somebody else.

>>> layout = layout_of(b'{"id": 7, "name": "a"}')
>>> found = read_alike(b'{"id": 7, "name": "a"}\n{"id": -1, "name": ""}\n', layout, ("id", "name"))
>>> [texts.to_pylist() for texts in found]
[['7', '-1'], ['a', '']]
>>> read_alike(b'{"id": 7, "name": "a"}\n{"id": 7, "nome": "a"}\n', layout, ()) is None
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from clinker_spark.spark.scan.json.documents import decoder
from clinker_spark.spark.scan.text.streams import MARK

_BLANK = b" "
_NINE, _ZERO, _MINUS = 57, 48, 45


@dataclass(frozen=True)
class Slot:
    """Where the value of a key stands: in a cell of its own, or, if it is no string, between two texts of a cell."""

    cell: int
    before: bytes = b""
    after: bytes = b""
    text: bool = True


@dataclass(frozen=True)
class Layout:
    """How the lines of a piece look."""

    slots: dict[str, Slot]
    fixed: dict[int, bytes]
    """The cells that are the same in all lines."""
    cells: int
    nulls: frozenset[str]
    """The keys without a value in the first line."""


def first_line(data: bytes) -> bytes:
    """The first line of a piece, without its end."""
    end = data.find(b"\n")
    return data if end < 0 else data[:end]


def is_text(data: bytes) -> bool:
    """Is it UTF-8, and nothing that stands for bytes that are not?"""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return MARK.encode() not in data


def layout_of(line: bytes) -> Layout | None:
    """The layout of a line; None if it is not one flat object without escapes."""
    try:
        record = decoder(exact=False).decode(line.decode())
    except (ValueError, RecursionError):
        return None
    flat = type(record) is dict and not any(isinstance(value, (dict, list)) for value in record.values())
    if not flat or not record or b"\\" in line or min(line) < ord(" "):
        return None
    cells = line.split(b'"')
    slots: dict[str, Slot] = {}
    fixed = {0: cells[0]}
    at = 1
    for _ in record:
        if at + 1 >= len(cells):  # a key twice is one of the record
            return None
        key, gap = cells[at].decode(), cells[at + 1]
        fixed[at] = cells[at]
        if gap.strip(_BLANK) == b":":
            fixed[at + 1] = gap
            fixed[at + 3] = cells[at + 3]
            slots[key] = Slot(at + 2)
            at += 4
            continue
        inner = gap.strip(_BLANK)
        value = inner[1:-1].strip(_BLANK)  # behind the colon, before the comma or the end of the object
        before = gap[: gap.index(b":") + 1]
        before += gap[len(before) : len(gap) - len(gap[len(before) :].lstrip(_BLANK))]
        slots[key] = Slot(at + 1, before, gap[len(before) + len(value) :], text=False)
        at += 2
    if at != len(cells) or len(slots) != len(record):
        return None
    return Layout(slots, fixed, len(cells), frozenset(name for name, value in record.items() if value is None))


def read_alike(data: bytes, layout: Layout, wanted: Sequence[str]) -> list[pa.Array] | None:
    """The texts of some keys, one for each line; None if not all lines have the layout."""
    content = np.frombuffer(data, dtype=np.uint8)
    if b"\\" in data or np.count_nonzero(content < 32) != np.count_nonzero(content == ord("\n")):
        return None  # escapes, or characters that no string may have
    names = [str(i) for i in range(layout.cells)]
    slots = [layout.slots[name] for name in wanted]
    needed = sorted({*layout.fixed, *(slot.cell for slot in slots)})
    try:
        table = pacsv.read_csv(
            pa.BufferReader(data),
            pacsv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
            pacsv.ParseOptions(delimiter='"', quote_char=False),
            pacsv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=[names[i] for i in needed],
            ),
        )
    except pa.ArrowException:
        return None
    columns = {i: _whole(table.column(names[i])) for i in needed}
    if not all(_is_always(columns[i], expected) for i, expected in layout.fixed.items()):
        return None
    found = []
    for slot in slots:
        texts = columns[slot.cell] if slot.text else _between(columns[slot.cell], slot)
        if texts is None:
            return None
        found.append(texts)
    return found


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _bytes(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Where each text begins, and where the last one ends; and the bytes of all."""
    _, offsets, content = texts.buffers()
    places = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return places, np.frombuffer(b"" if content is None else content, dtype=np.uint8)


def _is_always(texts: pa.Array, expected: bytes) -> bool:
    places, content = _bytes(texts)
    if not bool((np.diff(places) == len(expected)).all()):
        return False
    return content[places[0] : places[-1]].tobytes() == expected * len(texts)


def _between(texts: pa.Array, slot: Slot) -> pa.Array | None:
    """What stands between the two texts of a cell, null for `null`."""
    places, content = _bytes(texts)
    starts, ends = places[:-1], places[1:]
    if len(texts) and int((ends - starts).min()) <= len(slot.before) + len(slot.after):
        return None
    same = all((content[starts + i] == byte).all() for i, byte in enumerate(slot.before))
    same = same and all((content[ends - len(slot.after) + i] == byte).all() for i, byte in enumerate(slot.after))
    if not same:
        return None
    values = pc.binary_slice(texts.cast(pa.binary()), len(slot.before), -len(slot.after)).cast(pa.string())
    if ord("n") in content[places[0] : places[-1]]:
        values = pc.if_else(pc.equal(values, "null"), pa.scalar(None, pa.string()), values)
    return values


def as_ints(texts: pa.Array) -> pa.Array | None:
    """Numbers without a fraction, if all of them are."""
    if not _are_numbers(texts.drop_null(), fractions=False):
        return None
    try:
        return pc.cast(texts, pa.int64())
    except pa.ArrowException:
        return None


def as_floats(texts: pa.Array) -> pa.Array | None:
    """Numbers without an exponent, if all of them are."""
    if not _are_numbers(texts.drop_null(), fractions=True):
        return None
    try:
        return pc.cast(texts, pa.float64())
    except pa.ArrowException:
        return None


def as_bools(texts: pa.Array) -> pa.Array | None:
    """`true` and `false`, if all of them are."""
    true = pc.equal(texts, "true")
    return true if pc.all(pc.or_(true, pc.equal(texts, "false"))).as_py() is not False else None


def _are_numbers(texts: pa.Array, *, fractions: bool) -> bool:
    """Do these begin and end as numbers do in JSON? What is between is looked at by whoever converts them, but
    leading zeros, hexadecimal digits and exponents."""
    if not len(texts):
        return True
    places, content = _bytes(texts)
    starts, ends = places[:-1], places[1:]
    if int((ends - starts).min()) < 1:
        return False
    first = content[starts]
    negative = first == _MINUS
    if negative.any():
        starts = starts + negative
        if not (starts < ends).all():
            return False
        first = content[starts]
    last = content[ends - 1]
    if ((first < _ZERO) | (first > _NINE) | (last < _ZERO) | (last > _NINE)).any():
        return False
    zero = first == _ZERO
    if zero.any():
        follows = content[np.minimum(starts + 1, ends - 1)[zero]]
        alone = (ends - starts)[zero] == 1
        if not (alone | (follows == ord("."))).all():
            return False
    used = content[places[0] : places[-1]]
    return fractions is False or int(used.max()) <= _NINE  # letters of an exponent, or of a word
