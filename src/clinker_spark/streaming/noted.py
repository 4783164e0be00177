"""Which batches of a stream have their dead letters: two threads may find the same ones."""

from __future__ import annotations

import threading

_REMEMBERED = 100
"""So many batches of a query may be looked at out of their order."""


class Noted:
    """Whose letters were found already: by query, batch, and what made them.

    >>> noted = Noted()
    >>> noted.is_new("joined", 3, ""), noted.is_new("joined", 3, ""), noted.is_new("joined", 3, "totals")
    (True, False, True)
    """

    def __init__(self) -> None:
        self._known: set[tuple[str, int, str]] = set()
        self._one_at_a_time = threading.Lock()

    def is_new(self, query: str, batch: int, made: str) -> bool:
        """Remember it. Was it unknown?"""
        with self._one_at_a_time:  # batches, and what Spark says about them, are looked at by two threads
            if (query, batch, made) in self._known:
                return False
            self._known = {each for each in self._known if each[0] != query or each[1] > batch - _REMEMBERED}
            self._known.add((query, batch, made))
            return True
