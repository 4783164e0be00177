"""`type: merge`: several streams become one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from clinker_spark.config.model.base import Finding, Gone, Model
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.values import Int, Words


class MergeConfig(Model):
    """In what order the records come."""

    mode: Literal["concat", "interleave"] = "concat"
    """One input after the other, or mixed."""
    interleave_seed: Int | None = None
    """A number that makes the mixture the same in every run."""

    def check(self) -> Iterator[Finding]:
        if self.interleave_seed is not None and self.mode != "interleave":
            help_text = "write 'mode: interleave', or remove the seed"
            message = "'interleave_seed' belongs to 'mode: interleave'"
            yield Finding("E007", message, ("interleave_seed",), help_text, on_key=True)


class MergeNode(NodeModel):
    """Puts the records of several nodes into one stream."""

    input_keys: ClassVar[tuple[str, ...]] = ("inputs",)

    type: Literal["merge"]
    inputs: Annotated[tuple[Words, ...], Field(min_length=1)]
    """The nodes that are read, or node.port, in order."""
    config: MergeConfig = Field(default_factory=MergeConfig)

    gone: ClassVar[dict[str, Gone]] = {"input": Gone("a merge reads several nodes", "write 'inputs: [a, b]'")}
