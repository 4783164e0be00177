r"""Lines of JSON that differ only in their values: cut at their quotes.

Programs write lines of one layout: the same keys in the same order, the same blanks, strings where strings were.
Without a backslash, each quote begins or ends a string, so that the quotes of a piece are a table with a row for each
line. What stands between two values is the same text in all lines, and some quote says where it is; to compare it takes
a fraction of the time that a parser of JSON takes. Pieces with any other line are left to somebody else.

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

from clinker_spark.cxl.builtins.text import json_text
from clinker_spark.spark.scan.json.documents import decoder
from clinker_spark.spark.scan.text.streams import MARK

_BLANK = b" "
_QUOTE, _NEWLINE = ord('"'), ord("\n")
_MOST = (1 << 31) - 1
_WINDOW = 1 << 19
"""So many bytes are cut at once: their quotes stay in the cache of the processor."""
_NINE, _ZERO, _MINUS = 57, 48, 45


@dataclass(frozen=True)
class Slot:
    """The value of a key: which of the values of a line it is, and whether it stands in quotes."""

    place: int
    text: bool = True


@dataclass(frozen=True)
class Stretch:
    """A part of each line, from the key of one value to the end of another one."""

    first: int
    last: int
    before: int
    """The bytes of it before the first value, and those behind the last one."""
    after: int


@dataclass(frozen=True)
class Layout:
    """How the lines of a piece look."""

    slots: dict[str, Slot]
    fixed: tuple[bytes, ...]
    """What stands before the first value, between two of them, and behind the last one, quotes of texts included."""
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
    fixed: list[bytes] = []
    open_text = cells[0]
    at = 1
    for place in range(len(record)):
        if at + 1 >= len(cells):  # a key twice is one of the record
            return None
        key, gap = cells[at], cells[at + 1]
        open_text += b'"' + key + b'"'
        is_text = gap.strip(_BLANK) == b":"
        slots[key.decode()] = Slot(place, is_text)
        if is_text:
            fixed.append(open_text + gap + b'"')
            open_text = b'"' + cells[at + 3]
            at += 4
            continue
        value = gap.strip(_BLANK)[1:-1].strip(_BLANK)  # behind the colon, before the comma or the end of the object
        start = gap.index(value, gap.index(b":"))
        fixed.append(open_text + gap[:start])
        open_text = gap[start + len(value) :]
        at += 2
    if at != len(cells) or len(slots) != len(record):
        return None
    return Layout(slots, (*fixed, open_text), frozenset(name for name, value in record.items() if value is None))


def stretch_of(layout: Layout, members: Sequence[tuple[str, str]]) -> Stretch | None:
    """Where these keys and their values stand, if they do so as they are written; with the name that is written."""
    slots = [layout.slots[name] for name, _ in members if name in layout.slots]
    first = slots[0].place if slots else 0
    if [slot.place for slot in slots] != list(range(first, first + len(members))):
        return None
    before = b""
    for slot, (_, written) in zip(slots, members, strict=True):
        key = json_text(written).encode() + b":" + (b'"' if slot.text else b"")
        text = layout.fixed[slot.place]
        if not (text == before + key if before else text.endswith(key)):
            return None
        before = b'",' if slot.text else b","
    key = json_text(members[0][1]).encode() + b":" + (b'"' if slots[0].text else b"")
    return Stretch(first, slots[-1].place, len(key), int(slots[-1].text))


def read_alike(
    data: bytes, layout: Layout, wanted: Sequence[str], stretches: Sequence[Stretch] = ()
) -> list[pa.Array] | None:
    """The texts of some keys, one for each line, and of stretches; None if not all lines have the layout."""
    slots = [layout.slots[name] for name in wanted]
    edges: list[list[np.ndarray]] = [[] for _ in slots]
    outside: list[list[np.ndarray]] = [[] for _ in stretches]
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _WINDOW) + 1 or len(data)
        values = _places(data, start, end, layout)
        if values is None:
            return None
        for slot, found in zip(slots, edges, strict=True):
            found.append(values[slot.place])
        for stretch, found in zip(stretches, outside, strict=True):
            left, right = values[stretch.first][:, 0] - stretch.before, values[stretch.last][:, 1] + stretch.after
            found.append(np.stack([left, right], axis=1))
        start = end
    texts = []
    for slot, found in zip(slots, edges, strict=True):
        text = _texts(data, np.concatenate(found))
        if not slot.text:
            if not pc.min(pc.binary_length(text)).as_py():
                return None
            if ord("n") in _bytes(text)[1]:
                text = pc.if_else(pc.equal(text, "null"), pa.scalar(None, pa.string()), text)
        texts.append(text)
    return texts + [_texts(data, np.concatenate(found)) for found in outside]


def _places(data: bytes, start: int, end: int, layout: Layout) -> list[np.ndarray] | None:
    """For each value where it begins and ends, line after line; None if not all lines have the layout."""
    if end > _MOST or data.find(b"\\", start, end) >= 0:
        return None
    content = np.frombuffer(data, np.uint8, end - start, start)
    marks = np.flatnonzero((content == _QUOTE) | (content < ord(" "))) + start
    if content[-1] != _NEWLINE:
        marks = np.append(marks, end)
    width = sum(text.count(b'"') for text in layout.fixed) + 1
    if len(marks) % width:
        return None
    # The quotes of a line and its end. That they are these is seen when the texts are compared that they belong to:
    # any other character that no string may have is in the place of one of them.
    table = marks.reshape(-1, width)
    ends = table[:, -1]
    if (content[ends[: len(ends) - (content[-1] != _NEWLINE)] - start] != _NEWLINE).any():
        return None
    before = np.empty_like(ends)
    before[0], before[1:] = start, ends[:-1] + 1
    values: list[np.ndarray] = []
    seen = 0
    for i, text in enumerate(layout.fixed):
        quoted = text.find(b'"')
        starts = ends - len(text) if quoted < 0 else table[:, seen] - quoted
        right = starts >= before if i else starts == before
        if not right.all() or int(starts[-1]) + len(text) > end or not _is_always(data, starts, text):
            return None
        if i:
            edges = np.empty((len(ends), 2), dtype=np.int32)
            edges[:, 0], edges[:, 1] = before, starts
            values.append(edges)
        before = starts + len(text)
        seen += text.count(b'"')
    return values if (before == ends).all() else None


def _is_always(data: bytes, starts: np.ndarray, expected: bytes) -> bool:
    """Does this text stand at all these places? They grow."""
    if len(expected) == 1:
        return bool((np.frombuffer(data, dtype=np.uint8)[starts] == expected[0]).all())
    # Every place of the piece as a value of so many bytes; they lie over each other.
    shape = (len(data) - len(expected) + 1,)
    texts = np.ndarray(shape, f"V{len(expected)}", data, strides=(1,))
    return texts[starts].tobytes() == expected * len(starts)


def _texts(data: bytes, edges: np.ndarray) -> pa.Array:
    """What stands between these places."""
    count = 2 * len(edges) - 1
    every = pa.StringArray.from_buffers(count, pa.py_buffer(edges), pa.py_buffer(data))
    return every.take(pa.array(np.arange(0, count, 2)))


def _bytes(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Where each text begins, and where the last one ends; and the bytes of all."""
    _, offsets, content = texts.buffers()
    places = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return places, np.frombuffer(b"" if content is None else content, dtype=np.uint8)


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
