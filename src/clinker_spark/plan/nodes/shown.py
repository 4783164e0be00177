"""How a node explains itself: the traits that explain and the run report ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from clinker_spark.cxl.program import Program
from clinker_spark.plan.facts import Required


class ShownNode:
    """What explain says about a node besides what it says about all. Saying nothing is fine."""

    __slots__ = ()
    kind: ClassVar[str]
    name: str

    @property
    def type_word(self) -> str:
        return self.kind

    @property
    def slug(self) -> str:
        """What explain calls it: `aggregation.totals`."""
        return f"{self.type_word}.{self.name}"

    @property
    def tag(self) -> str:
        """Its type and what was chosen for it: `route:exclusive`."""
        return self.kind

    @property
    def files_read(self) -> str | None:
        """Where it reads files, in words."""
        return None

    @property
    def files_written(self) -> str | None:
        """Where it writes files."""
        return None

    @property
    def shown_program(self) -> Program | None:
        """The program that is shown as it was written."""
        return None

    def property_lines(self, need: Required) -> Iterator[str]:
        """What there is to say about how it runs, besides what is said about all nodes."""
        yield from ()

    def sections(self, readers: Mapping[str | None, Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
        """Blocks of its own, by their titles. `readers` are the nodes that read each port."""
        yield from ()

    def worker_sections(self, readers: Mapping[str | None, Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
        """The same where its records stay in workers."""
        return self.sections(readers)

    def retraction_lines(self, sources: Sequence[str], limit: str) -> Iterator[str]:
        """What happens here when records are retracted that it looked at together with others: those of some sources,
        in so much memory at most."""
        yield from ()

    def details(self) -> dict[str, Any]:
        """What the JSON form says about it, besides what it says about all nodes."""
        return {}
