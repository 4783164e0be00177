"""The bytes behind a column of texts, for questions that are cheaper to ask of all bytes at once than text by text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


class TextBytes:
    """The bytes of a text column, and where its texts begin and end. A null is an empty text."""

    def __init__(self, text: pa.Array) -> None:
        _, offsets, content = text.buffers()
        if not len(text):
            places = np.zeros(1, dtype=np.int32)
        else:
            places = np.frombuffer(offsets, dtype=np.int32)[text.offset : text.offset + len(text) + 1]
        self.content = np.zeros(0, np.uint8) if content is None else np.frombuffer(content, dtype=np.uint8)
        self.starts, self.ends = places[:-1], places[1:]
        self.lengths = self.ends - self.starts
        self._first, self._last = int(places[0]), int(places[-1])

    @property
    def used(self) -> np.ndarray:
        """The bytes of all texts."""
        return self.content[self._first : self._last]

    def at(self, places: np.ndarray) -> np.ndarray:
        """The bytes at some places; outside of all texts any byte will do."""
        if not len(self.content):
            return np.zeros(len(places), dtype=np.uint8)
        return np.take(self.content, places, mode="clip")

    def texts_with(self, wanted: np.ndarray) -> np.ndarray:
        """The positions of the texts that have one of the bytes marked in a table (`byte_table`)."""
        places = np.flatnonzero(wanted[self.used]) + self._first
        return np.unique(np.searchsorted(self.ends, places, side="right"))


def byte_table(marked: bytes, *, others: bool = False) -> np.ndarray:
    """A table that is true for some bytes, or for all others."""
    table = np.full(256, others)
    table[list(marked)] = not others
    return table


def mentions(text: pa.Array, marks: bytes) -> bool:
    """May one of these bytes stand in the column? It may look at values outside a slice, and then errs with yes."""
    data = text.buffers()[2]
    if not marks or data is None:
        return False
    content = data.to_pybytes()
    return any(mark in content for mark in marks)
