"""Room for recursion over trees that are deeper than Python's usual limit of a thousand frames."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_FRAMES = 60_000
"""Frames of Python functions calling each other take no C stack, so this is memory: some thirty megabytes at most."""
_lock = threading.Lock()
_inside = 0
_usual = 1000


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raises the limit of recursion in the block. Blocks of several threads may overlap: the last one out lowers it.

    For recursion in Python only: what recurses in C (comparing, hashing or pickling of nested values) would need stack.
    """
    global _inside, _usual
    with _lock:
        if not _inside:
            _usual = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_usual, _FRAMES))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                sys.setrecursionlimit(_usual)
