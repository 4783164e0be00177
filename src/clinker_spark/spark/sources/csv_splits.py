"""Byte ranges of delimited files that can be parsed on their own: every one starts where a record starts.

Whether a newline ends a record depends on all quotes before it. They are counted chunk by chunk, which is exact as
long as quotes stand where quotes belong; a file in which they do not is scanned value by value, which is slower.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from clinker_spark.spark.sources.csv_dialect import CsvDialect, QuoteCount

TARGET = 24 << 20
"""The size of a split that keeps several workers busy and the start of a task unimportant."""
SMALLEST = 2 << 20
"""Files below this are not worth a second task."""
_CHUNK = 2 << 20  # small enough to stay in the processor's cache
_PAGE = 1 << 16


def byte_ranges(
    path: str, start: int, dialect: CsvDialect, *, parallelism: int, target: int = TARGET, smallest: int = SMALLEST
) -> list[tuple[int, int]]:
    """The ranges (from, to) from `start`, the end of the header, to the end of the file; empty ones are left out."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        if size <= start:
            return []
        pieces = min(max(parallelism, -(-(size - start) // target)), max((size - start) // max(smallest, 1), 1))
        if pieces <= 1:
            return [(start, size)]
        wanted = [start + (size - start) * i // pieces for i in range(1, pieces)]
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            cuts = sorted(set(_boundaries(data, start, wanted, dialect)))
    edges = [start, *(cut for cut in cuts if start < cut < size), size]
    return list(pairwise(edges))


def _boundaries(data: mmap.mmap, start: int, wanted: list[int], dialect: CsvDialect) -> Iterator[int]:
    """The first start of a record after each wanted place."""
    if data.find(dialect.quote.encode(), start) < 0:
        for place in wanted:
            newline = data.find(b"\n", place)
            yield newline + 1 if newline >= 0 else len(data)
        return
    quoted = _quotes_before(data, start, wanted, dialect)
    if quoted is None:
        yield from _exact_boundaries(data, start, wanted, dialect)
        return
    for place, inside in zip(wanted, quoted, strict=True):
        yield _next_record(data, place, inside, dialect.quote.encode())


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
    edges = [start, *wanted, len(data)]
    chunks = [(at, min(at + _CHUNK, right)) for left, right in pairwise(edges) for at in range(left, right, _CHUNK)]

    def count(chunk: tuple[int, int]) -> QuoteCount:
        # A copy of a chunk is cheap, and leaves no view behind that would keep the map from closing.
        left, right = chunk
        return dialect.count_quotes(data[left:right], data[left - 1] if left > start else ord("\n"))

    inside, found = False, {}
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for (_, right), counted in zip(chunks, pool.map(count, chunks), strict=True):
            if not counted.opens_well[inside]:
                return None
            inside = inside != bool(counted.quotes % 2)
            found[right] = inside
    return [found[place] for place in wanted]


def _exact_boundaries(data: mmap.mmap, start: int, wanted: list[int], dialect: CsvDialect) -> Iterator[int]:
    """Value by value. The map is a buffer that patterns can search without a copy."""
    places = iter(wanted)
    place = next(places, None)
    free = start  # everything from here to the next quoted value is outside quotes
    for opening, closing in dialect.quoted(data, start):  # type: ignore[arg-type]
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


def count_lines(data: bytes) -> int | None:
    """The records in bytes without quotes: lines that are not blank. None when a lone return may end lines too."""
    content = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(content == 10)
    returns = data.count(b"\r")
    if returns and returns != data.count(b"\r\n"):
        return None
    if len(content) and content[-1] != 10:
        ends = np.append(ends, len(content))
    lengths = np.diff(ends, prepend=-1) - 1
    blank = lengths == 0
    if returns:
        blank |= (lengths == 1) & (content[np.maximum(ends - 1, 0)] == 13)
    return int(len(ends) - np.count_nonzero(blank))
