"""What the nodes of syntax and typed trees share.

Nodes are `@dataclass(slots=True, eq=False, repr=False)` over this base rather than frozen dataclasses: creating
sixty frozen classes costs about 60 ms at every start of `cxl check`, these cost 14 (measured). They are values all
the same: nothing assigns to a node after it is made.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

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
