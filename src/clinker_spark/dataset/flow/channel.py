"""A bounded channel from fetches to the worker, which can be closed from either side."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Closed(Exception):
    """Nobody listens."""


class Channel(Generic[T]):
    """`put` waits while it is full. `get` waits while it is empty, and gives None when no more will come."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._finished = False
        self._closed = False

    def put(self, item: T) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._items) < self.most)
            if self._closed:
                raise Closed
            self._items.append(item)
            self._changed.notify_all()

    def get_nowait(self) -> T | None:
        with self._changed:
            return self._next()

    def get(self) -> T | None:
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._finished or self._closed)
            return self._next()

    def _next(self) -> T | None:
        found = self._items.popleft() if self._items else None
        self._changed.notify_all()
        return found

    def finish(self) -> None:
        """Nothing will be put any more."""
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def close(self) -> list[T]:
        """Nothing will be got any more; what was on the way."""
        with self._changed:
            self._closed = True
            left, self._items = list(self._items), deque()
            self._changed.notify_all()
            return left
