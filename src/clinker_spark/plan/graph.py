"""The graph of a pipeline: all nodes, who reads whom, and what the passes found out about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.types import Type
from clinker_spark.plan.facts import Estimate, Facts
from clinker_spark.plan.nodes.aggregate import AggregatePlan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.combine import CombinePlan
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.plan.run_statistics import RunStatistics


@dataclass(frozen=True, eq=False)
class Plan:
    """All nodes so that each comes after what it reads. `plan.passes.with_facts` adds the facts."""

    file: Any
    """The pipeline file (config.PipelineFile)."""
    nodes: tuple[PlanNode, ...]
    warnings: tuple[Diagnostic, ...] = ()
    vars: Mapping[str, Any] = field(default_factory=dict)
    estimates: Mapping[str, Estimate | None] = field(default_factory=dict)
    """How many records each source probably has; None where nobody knows."""
    file_sizes: Mapping[str, int] = field(default_factory=dict)
    """The bytes on disk of each source that reads one file which is there."""
    statistics: RunStatistics = field(default_factory=RunStatistics)
    """What the last run found out."""
    memory_limit: int | None = None
    """How much memory the run may use, all processes together; None if nobody said it."""
    rules: Path | None = None
    """The folder of the CXL modules."""
    moved: bool = False
    """Do records of sources not lie in their order? A run finds out: files that must be sorted first, or records that
    are taken out by a shuffle."""
    facts: Facts = field(default_factory=Facts)

    @property
    def envelope_types(self) -> dict[str, Type]:
        """What the envelopes of sources declare, by `section.field`."""
        found: dict[str, Type] = {}
        for source in self.sources:
            found |= source.config.envelope.types if source.config.envelope is not None else {}
        return found

    @property
    def shows_keys(self) -> bool:
        """Does a node read correlation columns that a user names, or write them?"""
        return any(node.shows_keys for node in self.nodes)

    def __getitem__(self, name: str) -> PlanNode:
        return self.by_name[name]

    @cached_property
    def by_name(self) -> Mapping[str, PlanNode]:
        return {node.name: node for node in reversed(self.nodes)}

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each node stands among all."""
        return {node.name: i for i, node in enumerate(self.nodes)}

    def readers(self, name: str) -> list[PlanNode]:
        """Who reads a node, once for each input that does."""
        return list(self._readers.get(name, ()))

    def read_ports(self, name: str) -> set[str | None]:
        """The ports of a node that somebody reads."""
        return {ref.port for node in self.readers(name) for ref in node.inputs if ref.node == name}

    @cached_property
    def _readers(self) -> Mapping[str, list[PlanNode]]:
        found: dict[str, list[PlanNode]] = {}
        for node in self.nodes:
            for ref in node.inputs:
                found.setdefault(ref.node, []).append(node)
        return found

    @cached_property
    def sources(self) -> Sequence[SourcePlan]:
        return [node for node in self.nodes if isinstance(node, SourcePlan)]

    @cached_property
    def outputs(self) -> Sequence[OutputPlan]:
        return [node for node in self.nodes if isinstance(node, OutputPlan)]

    @cached_property
    def combines(self) -> Sequence[CombinePlan]:
        return [node for node in self.nodes if isinstance(node, CombinePlan)]

    @cached_property
    def aggregates(self) -> Sequence[AggregatePlan]:
        return [node for node in self.nodes if isinstance(node, AggregatePlan)]

    def source(self, name: str) -> SourcePlan:
        return next(node for node in self.sources if node.name == name)

    def output(self, name: str) -> OutputPlan:
        return next(node for node in self.outputs if node.name == name)

    def sources_of(self, name: str) -> list[SourcePlan]:
        """The sources that a node's records come from."""
        before = {node.name for node in self.upstream(name)}
        return [source for source in self.sources if source.name in before]

    def up_to(self, ends: Sequence[str]) -> tuple[PlanNode, ...]:
        """Some nodes, and all that stand before them."""
        names = {node.name for end in ends for node in self.upstream(end)} | set(ends)
        return tuple(node for node in self.nodes if node.name in names)

    def upstream(self, name: str) -> list[PlanNode]:
        """Everything that a node's records come from, itself not included."""
        found: dict[str, PlanNode] = {}
        todo = [ref.node for ref in self[name].inputs]
        while todo:
            node = self[todo.pop()]
            if node.name not in found:
                found[node.name] = node
                todo += [ref.node for ref in node.inputs]
        return sorted(found.values(), key=lambda node: self.places[node.name])
