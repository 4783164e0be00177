"""The safe horizon: up to which time rows are final, because every chunk that could change them has come.

The value of an entity at time T is its newest value at or before T. A row at T is final when all chunks that begin at
or before T have arrived, of every entity: the horizon is just before the earliest beginning that is still outstanding.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable

from clinker_spark.dataset.indexes import FIRST, LAST

EVERYTHING = LAST + 1
"""The horizon when nothing is outstanding."""


class Expected:
    """The chunks of one part that have not come, by entity and by the time at which they begin.

    >>> expected = Expected([("/a", 10), ("/b", 20), ("/b", 40)])
    >>> expected.record_arrival("/a", 10), expected.record_arrival("/b", 20), expected.horizon
    (True, True, 39)
    >>> expected.record_arrival("/b", 41), expected.horizon == EVERYTHING
    (False, False)
    """

    def __init__(self, beginnings: Iterable[tuple[str, int]], static: int = 0) -> None:
        self._outstanding = Counter(beginnings)
        self._times = Counter(time for (_, time), n in self._outstanding.items() for _ in range(n))
        self._heap = sorted(self._times)
        self._static = static
        self.left = sum(self._outstanding.values()) + static

    def record_arrival(self, entity: str, time_min: int) -> bool:
        """Note a chunk. False: no such chunk was expected, and the horizon does not know what it holds."""
        key = (entity, time_min)
        if not self._outstanding[key]:
            del self._outstanding[key]
            return False
        self._outstanding[key] -= 1
        self._times[time_min] -= 1
        self.left -= 1
        while self._heap and not self._times[self._heap[0]]:  # each time goes once: O(log n) for each arrival
            heapq.heappop(self._heap)
        return True

    def record_static(self) -> None:
        """Note a static chunk. These have no time: nothing is final as long as one is missing."""
        self._static -= 1
        self.left -= 1

    @property
    def horizon(self) -> int | None:
        """The last time that is final; None as long as static values are missing."""
        if self._static:
            return None
        return max(self._heap[0] - 1, FIRST - 1) if self._heap else EVERYTHING
