"""Names and what they stand for: nested scopes, for values while running and for types while checking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Scope(Generic[T]):
    """A block's own names in front of those around it.

    >>> outer = Scope[int]()
    >>> outer.define("a", 1)
    >>> inner = Scope(outer)
    >>> inner.assign("a", 2)
    >>> outer.get("a"), "b" in inner
    (2, False)
    """

    __slots__ = ("names", "parent")

    def __init__(self, parent: Scope[T] | None = None, names: dict[str, T] | None = None) -> None:
        self.parent = parent
        self.names: dict[str, T] = {} if names is None else names

    def define(self, name: str, value: T) -> None:
        self.names[name] = value

    def get(self, name: str) -> T:
        """Raises KeyError when nobody defined it."""
        if name in self.names:
            return self.names[name]
        if self.parent is None:
            raise KeyError(name)
        return self.parent.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self.names or (self.parent is not None and name in self.parent)

    def assign(self, name: str, value: T) -> None:
        """Changes the nearest one of this name; raises KeyError when there is none."""
        scope: Scope[T] | None = self
        while scope is not None:
            if name in scope.names:
                scope.names[name] = value
                return
            scope = scope.parent
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        scope: Scope[T] | None = self
        while scope is not None:
            yield from scope.names
            scope = scope.parent
