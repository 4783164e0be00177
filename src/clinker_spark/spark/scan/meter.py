"""How many bytes of its files a task has read so far: for the progress of a run, and for nothing else.

A Python worker runs one task at a time, so that a number of the process is the number of its task once what was read
before is subtracted. Readers add to it where they open files; `scans` writes it down beside the records.
"""

from __future__ import annotations

import io

_read = 0


def add(count: int) -> None:
    """So many bytes more were read."""
    global _read
    _read += count


def read_so_far() -> int:
    """All bytes that this process has read.

    >>> before = read_so_far(); add(5); read_so_far() - before
    5
    """
    return _read


class MeteredFile(io.FileIO):
    """A file whose bytes are counted as they are read, compressed ones as they lie on the disk."""

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(-1 if size is None else size)
        add(len(data or b""))
        return data

    def readall(self) -> bytes:
        data = super().readall()
        add(len(data or b""))
        return data

    def readinto(self, buffer: object) -> int:
        count = super().readinto(buffer)  # type: ignore[arg-type]
        add(count or 0)
        return count
