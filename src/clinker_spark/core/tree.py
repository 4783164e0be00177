"""What the nodes of syntax and typed trees share.

Nodes are `@dataclass(slots=True, eq=False, repr=False)` over this base rather than frozen dataclasses: creating
sixty frozen classes costs about 60 ms at every start of `cxl check`, these cost 14 (measured). They are values all
the same: nothing assigns to a node after it is made.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any, Self

_NAMES: dict[type, tuple[str, ...]] = {}


def field_names(node: type[Any]) -> tuple[str, ...]:
    """The fields of a node class, in order."""
    names = _NAMES.get(node)
    if names is None:
        names = _NAMES[node] = tuple(f.name for f in fields(node))
    return names


class Tree:
    """Compares and prints by content. Written with loops: one stack frame per level of a deep tree."""

    __slots__ = ()

    def children(self) -> Iterator[Any]:
        """The nodes directly inside this one, in the order in which they are written."""
        for name in field_names(type(self)):
            value = getattr(self, name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Tree):
                    yield part

    def walk(self) -> Iterator[Any]:
        """This node and all inside it, in the order in which they are written."""
        waiting: list[Tree] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(list(node.children())))

    def with_children(self, change: Callable[[Any], Any]) -> Self:
        """This node with every node directly inside it changed; itself, when none is."""
        changes: dict[str, Any] = {}
        for name in field_names(type(self)):
            value = getattr(self, name)
            if isinstance(value, Tree):
                changed = change(value)
            elif isinstance(value, tuple):
                changed = tuple(change(part) if isinstance(part, Tree) else part for part in value)
                changed = value if all(map(operator.is_, changed, value)) else changed
            else:
                continue
            if changed is not value:
                changes[name] = changed
        return replace(self, **changes) if changes else self  # type: ignore[type-var]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        for name in field_names(type(self)):  # noqa: SIM110
            if getattr(self, name) != getattr(other, name):
                return False
        return True

    def __hash__(self) -> int:
        return hash((type(self), *[getattr(self, name) for name in field_names(type(self))]))

    def __reduce__(self) -> tuple[Any, ...]:
        # Flat state keeps pickling of deep trees (to Spark's workers) within the stack.
        return type(self), tuple([getattr(self, name) for name in field_names(type(self))])

    def __repr__(self) -> str:
        shown = []
        for name in field_names(type(self)):
            shown.append(f"{name}={getattr(self, name)!r}")
        return f"{type(self).__name__}({', '.join(shown)})"
