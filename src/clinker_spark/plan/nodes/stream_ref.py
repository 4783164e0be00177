"""What a node reads of another one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamRef:
    """A stream: the output of a node, or of one port of it."""

    node: str
    port: str | None = None

    def __str__(self) -> str:
        return self.node if self.port is None else f"{self.node}.{self.port}"
