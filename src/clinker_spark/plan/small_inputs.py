"""Inputs of a few megabytes run as one task, and outputs of one kind share a job (decision 0016)."""

from __future__ import annotations

SMALL = 4 << 20
"""Inputs of up to so many bytes, in all, are small."""


def is_small(size: int | None) -> bool:
    """Are inputs of so many bytes small? Where nobody knows it before the run, they may turn out to be."""
    return size is not None and size <= SMALL
