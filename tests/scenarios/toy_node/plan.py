"""What is planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clinker_spark.core.types import STRING
from clinker_spark.plan.bind.node import NodeBinder, Streams
from clinker_spark.plan.facts import Required
from clinker_spark.plan.nodes.narrow import NarrowPlan
from tests.scenarios.toy_node.model import MaskNode


@dataclass(frozen=True, eq=False, kw_only=True)
class MaskPlan(NarrowPlan):
    """Each record goes through by itself; one whose text is too short fails."""

    kind = "mask"
    category = "too_short_to_mask"
    made_category = "too_short_to_mask"
    conserves = True
    one_for_one = True
    can_fail = True

    column: str
    keep: int

    @property
    def written(self) -> frozenset[str]:
        return frozenset((self.column,))

    rewritten = written

    def required(self, i: int, need: Required, *, in_order: bool) -> Required:
        return replace(need, columns=need.columns | self.written)

    def property_lines(self, need: Required) -> Iterator[str]:
        yield f"  hides: all but {self.keep} characters of {self.column}"

    def sections(self, readers: Mapping[str | None, Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
        yield "Masks", [f"'{self.name}' hides {self.column} from {', '.join(readers[None])}"]

    def details(self) -> dict[str, Any]:
        return {"column": self.column, "keep": self.keep}


def bind_mask(binder: NodeBinder, node: MaskNode) -> Streams | None:
    [stream] = binder.inputs
    column = node.config.column
    if not binder.known(stream.schema, [column], "config", "column"):
        return None
    if stream.schema[column].unwrap() != STRING:
        binder.problem("E200", f"'{column}' is no text", "config", "column", help="convert it in a transform before")
        return None
    return binder.made(MaskPlan(**binder.common(stream.schema, stream.emitted), column=column, keep=node.config.keep))
