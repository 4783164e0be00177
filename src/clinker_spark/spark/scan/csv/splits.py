"""Byte ranges of delimited files that can be parsed on their own: every one starts where a record starts.

Whether a newline ends a record depends on all quotes before it. They are counted chunk by chunk, which is exact as
long as quotes stand where quotes belong; a file in which they do not is scanned value by value, which is slower.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

from clinker_spark.spark.scan.csv.dialect import CsvDialect, QuoteCount

TARGET = 24 << 20
"""The size of a split that keeps several workers busy and the start of a task unimportant."""
SMALLEST = 2 << 20
"""Files below this are not worth a second task."""
_CHUNK = 2 << 20  # small enough to stay in the processor's cache
_PAGE = 1 << 16
_WINDOW = 16 << 20
_NEAR = 64


@dataclass(frozen=True)
class Ranges:
    """Where a file is cut: (from, to) from the end of the header to the end of the file; empty ones are left out."""

    ranges: list[tuple[int, int]]
    clean: bool = False
    """Are all quotes known to be closed? Otherwise whoever reads the ranges has to look."""


def byte_ranges(
    path: str, start: int, dialect: CsvDialect, *, parallelism: int, target: int = TARGET, smallest: int = SMALLEST
) -> Ranges:
    """Cut a file whose records begin at `start`."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        if size <= start:
            return Ranges([])
        pieces = min(max(parallelism, -(-(size - start) // target)), max((size - start) // max(smallest, 1), 1))
        if pieces <= 1:
            return Ranges([(start, size)])
        wanted = [start + (size - start) * i // pieces for i in range(1, pieces)]
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            wanted = [_beside_quotes(data, place, dialect) for place in wanted]
            found, clean = _boundaries(data, start, wanted, dialect)
    edges = [start, *(cut for cut in sorted(set(found)) if start < cut < size), size]
    return Ranges(list(pairwise(edges)), clean)


def _boundaries(data: mmap.mmap, start: int, wanted: list[int], dialect: CsvDialect) -> tuple[list[int], bool]:
    """The first start of a record after each wanted place, and whether all quotes are closed."""
    if not _has(data, dialect.quote.encode(), start):
        newlines = (data.find(b"\n", place) for place in wanted)
        return [newline + 1 if newline >= 0 else len(data) for newline in newlines], True
    quoted = _quotes_before(data, start, wanted, dialect)
    if quoted is None:
        return list(_exact_boundaries(data, start, wanted, dialect)), False
    quote = dialect.quote.encode()
    return [_next_record(data, place, inside, quote) for place, inside in zip(wanted, quoted, strict=True)], True


def _has(data: mmap.mmap, text: bytes, start: int) -> bool:
    """Does it stand anywhere after `start`? What was looked at is forgotten: it would count as memory of this
    process."""
    for left in range(start, len(data), _WINDOW):
        right = min(left + _WINDOW, len(data))
        if data.find(text, left, right + len(text) - 1) >= 0:
            return True
        _forget(data, left, right)
    return False


def _forget(data: mmap.mmap, left: int, right: int) -> None:
    """Pages of the map that are not needed now. Who asks for them gets them again."""
    if hasattr(mmap, "MADV_DONTNEED"):
        first = left // mmap.PAGESIZE * mmap.PAGESIZE
        data.madvise(mmap.MADV_DONTNEED, first, right - first)


def _next_record(data: mmap.mmap, place: int, inside: bool, quote: bytes) -> int:
    """The first newline at or after `place` that is not quoted, given whether `place` is."""
    at = place
    while at < len(data):
        end = min(at + _PAGE, len(data))
        page = data[at:end]
        offset = 0
        while True:
            if inside:
                closing = page.find(quote, offset)
                if closing < 0:
                    break
                offset, inside = closing + 1, False
            newline, opening = page.find(b"\n", offset), page.find(quote, offset)
            if newline >= 0 and (opening < 0 or newline < opening):
                return at + newline + 1
            if opening < 0:
                break
            offset, inside = opening + 1, True
        at = end
    return len(data)


def _quotes_before(data: mmap.mmap, start: int, wanted: list[int], dialect: CsvDialect) -> list[bool] | None:
    """Is each wanted place inside quotes? None when counting cannot tell. Chunks are counted side by side."""
    inner = {*wanted, *(_beside_quotes(data, at, dialect) for at in range(start + _CHUNK, len(data), _CHUNK))}
    doubled = dialect.quote.encode() * 2
    if any(data[place - 1 : place + 1] == doubled for place in inner):
        return None
    chunks = list(pairwise(sorted({start, *inner, len(data)})))

    def count(chunk: tuple[int, int]) -> QuoteCount:
        # A copy of a chunk is cheap, and leaves no view behind that would keep the map from closing.
        left, right = chunk
        before = data[left - 1] if left > start else ord("\n")
        found = dialect.count_quotes(data[left:right], before, data[right] if right < len(data) else ord("\n"))
        _forget(data, left, right)
        return found

    inside, found = False, {}
    size = lines = 0  # of the value that a chunk begins in
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for (_, right), counted in zip(chunks, pool.map(count, chunks), strict=True):
            state = counted.states[inside]
            assert state is not None
            size, lines = size + state.head, lines + state.head_lines
            if not state.well or size > dialect.max_bytes or lines >= dialect.max_lines:
                return None
            inside = inside != bool(counted.quotes % 2)
            if state.closes:
                size, lines = state.tail, state.tail_lines
            found[right] = inside
    return None if inside else [found[place] for place in wanted]


def _beside_quotes(data: mmap.mmap, place: int, dialect: CsvDialect) -> int:
    """This place, or one soon after it that does not lie inside of a doubled quote, if there is one."""
    near = data[place - 1 : place + _NEAR]
    doubled = dialect.quote.encode() * 2
    offset = next((i for i in range(len(near) - 1) if near[i : i + 2] != doubled), 0)
    return place + offset


def _exact_boundaries(data: mmap.mmap, start: int, wanted: list[int], dialect: CsvDialect) -> Iterator[int]:
    """Value by value. The map is a buffer that patterns can search without a copy."""
    places = iter(wanted)
    place = next(places, None)
    free = start  # everything from here to the next quoted value is outside quotes
    for opening, closing, closed in dialect.quoted(data, start):  # type: ignore[arg-type]
        if not closed:  # a character like any other: the record ends with its line
            continue
        while place is not None and place < opening:
            newline = data.find(b"\n", max(place, free), opening)
            if newline < 0:
                break
            yield newline + 1
            place = next(places, None)
        free = closing
        if place is None:
            return
    while place is not None:
        newline = data.find(b"\n", max(place, free))
        yield newline + 1 if newline >= 0 else len(data)
        place = next(places, None)
