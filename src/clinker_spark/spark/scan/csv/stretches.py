"""Neighbouring cells of records, as they stand in the file: to copy a stretch of bytes is cheaper than to join cells.

Only where cells are what stands between delimiters: in bytes without quotes of which none was replaced, with a line for
each record. Then the sizes of all cells say where each record begins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from clinker_spark.spark.scan.csv.blocks import Block

_NEWLINE = 10


def cells_between(block: Block, places: Sequence[int | None], width: int) -> pa.Array | None:
    """The cells at these places with what stands between them; None where they are no neighbours, or that cannot be
    told."""
    first, piece = places[0], block.piece
    if first is None or list(places) != list(range(first, first + len(places))) or block.ragged or block.marked:
        return None
    if not block.rows or width < 2 or len(block.columns) < width or not piece.is_plain:
        return None
    if block.records[-1] - block.records[0] != block.rows - 1:
        return None  # only some of the records that follow each other
    before = [_sizes_so_far(block.columns[place]) for place in range(width)]
    starts = np.arange(block.rows + 1) * width + piece.place(int(block.records[0]))
    for each in before:
        starts += each
    ends, starts = starts[1:] - 1, starts[:-1]
    content = np.frombuffer(piece.raw, dtype=np.uint8)
    if int(ends[-1]) > len(content):
        return None
    # A blank line is no cell: all behind it would begin too early.
    lines = content[ends[:-1]] == _NEWLINE
    whole = int(ends[-1]) == len(content) or content[ends[-1]] == _NEWLINE
    if not (whole and lines.all() and (content[starts] != _NEWLINE).all()):
        return None
    piece.places[int(block.records[-1]) + 1] = int(ends[-1]) + 1
    for each in before[:first]:
        starts = starts + np.diff(each) + 1
    for each in before[first + len(places) :]:
        ends = ends - np.diff(each) - 1
    edges = np.empty(2 * len(starts), dtype=np.int32)
    edges[::2], edges[1::2] = starts, ends
    every = pa.StringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), pa.py_buffer(piece.raw))
    return every.take(pa.array(np.arange(0, len(edges), 2)))


def _sizes_so_far(text: pa.Array) -> np.ndarray:
    """The bytes of all cells before each one, and at last of all."""
    offsets = np.frombuffer(text.buffers()[1], dtype=np.int32)[text.offset : text.offset + len(text) + 1]
    return offsets - offsets[0]
