"""What the parts are called that the workers of a fragment write. No Polars here: the run looks for them, too."""

from __future__ import annotations

UNFORESEEN = ".unforeseen"
"""A file beside the parts: what was taken for granted of the input is not so, and the parts are worth nothing."""


def part_name(number: int) -> str:
    """The part of the task with this number among those of a fragment.

    >>> part_name(7)
    'part-00007-.text'
    """
    return f"part-{number:05}-.text"
