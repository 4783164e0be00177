"""Did-you-mean: the known words nearest to an unknown one.

>>> nearest("uper", ["upper", "lower", "trim"])
'upper'
>>> nearest("xyzzy", ["upper"]) is None
True
"""

from __future__ import annotations

from collections.abc import Iterable


def edit_distance(a: str, b: str, limit: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours from `a` to `b`; `limit + 1` when more."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before_last: list[int] = []
    last = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before_last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        before_last, last = last, row
    return min(last[-1], limit + 1)


def nearest(word: str, known: Iterable[str], limit: int = 3) -> str | None:
    """The nearest known word, or None when all are far. Short words must be nearer."""
    limit = min(limit, max(1, len(word) // 2))
    best: tuple[int, str] | None = None
    for candidate in known:
        distance = 0 if candidate.lower() == word.lower() else edit_distance(word.lower(), candidate.lower(), limit)
        if distance <= limit and (best is None or (distance, candidate) < best):
            best = (distance, candidate)
    return best[1] if best else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A help line that names the nearest known word."""
    found = nearest(word, known)
    return f"did you mean '{found}'?" if found else None
