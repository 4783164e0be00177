"""Bins for range joins: how finely an axis is cut, for intervals of very different lengths.

Two intervals that meet have a bin in common, so that a range join becomes an equality of bins. One width does not fit
all: narrow bins copy long intervals many times, wide ones compare short intervals with everything near them. So
intervals are put into a few classes by length, each with a width of its own (a power of two), and the other side is
looked up once in each class. The classes are chosen by what they cost for the lengths that were counted.

>>> classes = choose_classes({3: 1000, 4: 1000}, others=10_000, span=1e6)
>>> len(classes), classes[0].width
(1, 6)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

POINT = -10_000
"""The length of a point, as a power of two."""
MOST_COPIES = 4096
"""An interval stands in at most so many bins: longer ones get wider bins."""
MOST_CLASSES = 6


@dataclass(frozen=True)
class LengthClass:
    """Intervals up to a length of 2**longest are cut into bins of 2**width."""

    longest: int
    width: int


def choose_classes(lengths: Mapping[int, int], others: int, span: float) -> list[LengthClass]:
    """The cheapest classes for intervals, given how many there are of each length (as a power of two, rounded up),
    how many records will be looked up, and how far the axis reaches. At least one."""
    found = sorted(lengths)
    if not found:
        return [LengthClass(0, 0)]
    # best[i]: the cost of the intervals up to the i-th length, and its classes
    best: list[tuple[float, list[LengthClass]]] = [(0.0, [])]
    for end in range(1, len(found) + 1):
        options = []
        for start in range(end):
            cost, before = best[start]
            if len(before) < MOST_CLASSES:
                own, width = _cheapest_width({b: lengths[b] for b in found[start:end]}, others, span)
                options.append((cost + own, [*before, LengthClass(found[end - 1], width)]))
        best.append(min(options, key=lambda option: option[0]))
    return best[-1][1]


def _cheapest_width(lengths: Mapping[int, int], others: int, span: float) -> tuple[float, int]:
    longest = max(lengths)
    lowest = max(min(lengths), longest - int(math.log2(MOST_COPIES)))
    widths = range(lowest, longest + 4)
    return min((_cost(lengths, width, others, span), width) for width in widths)


def _cost(lengths: Mapping[int, int], width: int, others: int, span: float) -> float:
    """Rows that are made and candidates that are compared. Every class costs one more look-up of each record."""
    density = others / max(span, 1e-300)
    copies = sum(count * (2.0 ** min(bits - width, 60) + 1) for bits, count in lengths.items())
    candidates = sum(
        count * min(density * (2.0 ** min(bits, 1000) + 2.0 ** (width + 1)), float(others))
        for bits, count in lengths.items()
    )
    return others + 2 * copies + 0.2 * candidates
