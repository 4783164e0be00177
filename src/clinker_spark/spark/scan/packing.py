"""Which splits a task reads. A thousand small files are not a thousand tasks: to start one costs as much as to read
some megabytes."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 8 << 20
"""A task takes further splits as long as it reads no more bytes than this."""
_TASKS_PER_CORE = 3


def tasks_of(sizes: Sequence[int], parallelism: int) -> list[range]:
    """Splits that follow each other, for each task; `sizes` are the bytes of the splits.

    Small ones come together, but never so many that some cores have nothing to do.

    >>> tasks_of([10, 10, 10, 10_000_000, 10], 1)
    [range(0, 3), range(3, 4), range(4, 5)]
    """
    most = min(MOST, sum(sizes) // max(parallelism * _TASKS_PER_CORE, 1))
    found: list[range] = []
    start = taken = 0
    for i, size in enumerate(sizes):
        if i > start and taken + size > most:
            found.append(range(start, i))
            start, taken = i, 0
        taken += size
    if start < len(sizes):
        found.append(range(start, len(sizes)))
    return found
