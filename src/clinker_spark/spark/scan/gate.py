"""Readers wait between two batches while memory is short: a mark in the folder where they say how far they are.

The driver sets the mark and takes it away. A reader waits only so long, whatever happens to the driver: whoever waits
may be the one who holds the memory, and a run must not stand still for ever.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

LONGEST = 10.0
"""Seconds that a reader waits before a batch, at the most."""
_LOOK = 0.05
_MARK = "@paused"


def mark_path(folder: str | Path) -> str:
    """The file that tells readers to wait. No source has its name: those end in `@` and a number."""
    return os.path.join(folder, _MARK)


def close(folder: str | Path) -> None:
    """Readers wait from now on."""
    with contextlib.suppress(OSError):
        Path(mark_path(folder)).touch()


def open_again(folder: str | Path) -> None:
    """Readers go on."""
    with contextlib.suppress(OSError):
        os.unlink(mark_path(folder))


def gated(batches: Iterable[pa.RecordBatch], folder: str, longest: float = LONGEST) -> Iterator[pa.RecordBatch]:
    """The same batches; before each of them the mark is looked for."""
    mark = mark_path(folder)
    for batch in batches:
        if os.path.exists(mark):
            _wait(mark, longest)
        yield batch


def _wait(mark: str, longest: float) -> None:
    until = time.monotonic() + longest
    _give_back()
    while os.path.exists(mark) and time.monotonic() < until:
        time.sleep(_LOOK)


def _give_back() -> None:
    """What this process holds and does not use goes back to the system."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # only the C library of GNU has it
        ctypes.CDLL(None).malloc_trim(0)
