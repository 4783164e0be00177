"""A plan as streams: which queries it is, and what of it cannot go on over records that never end.

Spark runs one query for each place from which records go to outputs without being held any more: its *root*, a stateful
node, a merge or a source. What stands after the root is done batch by batch, as in a run over files.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clinker_spark.config.findings.translate import finding_at
from clinker_spark.config.model.base import Finding
from clinker_spark.config.model.sources.keys import Files
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.errors import PlanError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.source import SourcePlan

INSTEAD = {
    "combine": "join streams with 'type: stream_join'; look-ups in files belong into a run over files",
    "aggregate": "a stream has totals of windows of time: add 'time_window', or total what it writes with clinker run",
    "query": "a query needs all of its records: write what the stream puts out to files, and query these",
    "transform": "distinct, windows, look-ups and shared variables need all records: leave them to a run over the "
    "results",
    "merge": "write mode: concat; taking turns needs all records",
}
_REST = "end the stream before it, and do the rest with clinker run over the files that it writes"

_SOURCE_KEYS = {
    "correlation_key": "the records of a group may still be to come",
    "sort_order": "records are taken as they come",
}
_FILES_KEYS = {
    "only_new": "it reads each file once anyway",
    "on_bad_file": "a file is read in pieces and in parts of batches, and one that cannot be read stops the stream",
    "take_first": "files come one after the other, and there is no first one of all",
    "take_last": "files come one after the other, and there is no last one of all",
    "sort_by": "files are read as they come, those that are found together in the order of their names",
    "sort_order": "files are read as they come, those that are found together in the order of their names",
}
_OUTPUT_KEYS: dict[str, tuple[Any, str]] = {
    "split": (None, "each batch is a file already"),
    "sort_order": ((), "records are written as they come"),
    "write_meta": (False, "the checkpoint says what was read"),
    "if_exists": ("overwrite", "the checkpoint says which files are the stream's own"),
    "include_correlation_keys": (False, "a stream has no correlation groups"),
    "partition_by": ((), "each batch is a file in one folder"),
    "reconstruct_envelope": (False, "the envelopes of files are looked up before a run"),
}


@dataclass(frozen=True)
class StreamQuery:
    """One query of Spark."""

    root: PlanNode
    outputs: tuple[OutputPlan, ...]
    sources: tuple[SourcePlan, ...]
    stateful: tuple[PlanNode, ...]
    scans: Mapping[str, int]
    """By source: how often Spark reads it, once for each way from it to the root."""

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def lag(self) -> dt.timedelta:
        """How much further than the delays of sources its watermark stays behind."""
        return max((node.lag for node in self.stateful), default=dt.timedelta(0))

    def delay(self, source: SourcePlan) -> dt.timedelta:
        """How far behind the newest record of a source its watermark stays."""
        mark = source.config.watermark
        return self.lag + (dt.timedelta(0) if mark is None or mark.delay is None else mark.delay)

    def first_stateful(self, plan: Plan) -> tuple[PlanNode, ...]:
        """The nodes at which records are held for the first time."""
        return tuple(node for node in self.stateful if not any(n.stateful for n in plan.upstream(node.name)))


def check_finite(plan: Plan) -> None:
    """Can the plan be run to an end? Raises `PlanError` for sources and outputs that only streams have."""
    found = [
        node.diagnostic(
            "E504", f"'{node.name}' is {what} of type {node.config.type}, {why}", "config", "type", help=help
        )
        for nodes, what, why, help in (
            (plan.sources, "a source", "which never ends", "use clinker stream, or read files here"),
            (plan.outputs, "an output", "which only streams write", "use clinker stream, or write files here"),
        )
        for node in nodes
        if node.config.stream_only
    ]
    if plan.file.error_handling.dlq.topic is not None:
        message = "a run over files writes its dead letters to a file, not to a topic"
        at = ("error_handling", "dlq", "topic")
        found.append(
            finding_at(Finding("E504", message, at, "write 'path', or use clinker stream"), plan.file.document, ())
        )
    if found:
        raise PlanError(found)


def queries(plan: Plan) -> tuple[StreamQuery, ...]:
    """The queries of a plan. Raises `PlanError` when it cannot be a stream."""
    found = [*_finite(plan), *_between(plan), *_settings(plan)]
    if found:
        raise PlanError(found)
    roots: dict[str, list[OutputPlan]] = {}
    for output in plan.outputs:
        roots.setdefault(_root(plan, output).name, []).append(output)
    result = []
    for name, outputs in roots.items():
        before = [*plan.upstream(name), plan[name]]
        sources = [source for source in plan.sources if source in before]
        stateful = tuple(node for node in before if node.stateful)
        result.append(StreamQuery(plan[name], tuple(outputs), tuple(sources), stateful, _scans(plan, plan[name])))
    return tuple(result)


def _scans(plan: Plan, root: PlanNode) -> Mapping[str, int]:
    ways = Counter({root.name: 1})
    for node in reversed(plan.nodes):
        for ref in node.inputs:
            ways[ref.node] += ways[node.name]
    return ways


def operators(plan: Plan, root: PlanNode) -> tuple[str, ...]:
    """The nodes that hold records, in the order in which Spark numbers them: from the root towards the sources. One
    that several others read is there for each of them."""
    own = (root.name,) if root.stateful else ()
    return own + tuple(name for ref in root.inputs for name in operators(plan, plan[ref.node]))


def arrangement(plan: Plan, root: PlanNode) -> str:
    """From which sources records come to the nodes that hold them: `ab(a, b)`. Spark knows sources and state by their
    place in its plan, not by name."""
    inputs = [arrangement(plan, plan[ref.node]) for ref in root.inputs]
    if root.stateful:
        return f"{root.name}({', '.join(inputs)})"
    return root.name if not inputs else inputs[0] if len(inputs) == 1 else f"({', '.join(inputs)})"


def _root(plan: Plan, output: OutputPlan) -> PlanNode:
    node: PlanNode = output
    while len(node.inputs) == 1 and not node.stateful:
        node = plan[node.inputs[0].node]
    return node


def _finite(plan: Plan) -> Iterator[Diagnostic]:
    """The nodes that need all records."""
    for node in plan.nodes:
        yield from node.not_in_streams()
        shared = [d for d in node.declares if d.scope != "record"]
        alone = node.takes_each_alone and not shared and (node.unites or len(node.inputs) < 2)
        if read := sorted(node.source_members - {"name", "batch", "ingestion_timestamp"}):
            message = f"'$source.{read[0]}' cannot be read in a stream: its records do not carry it"
            yield node.diagnostic("E503", message, "config", help="remove it from the program")
        if any(namespace == "doc" for namespace, _ in node.system_members()):
            message = "'$doc.section.field' cannot be read in a stream: it is looked up in whole files before a run"
            help_text = "write these values into each record, or bring the files into a form that has them: clinker run"
            yield node.diagnostic("E503", message, "config", help=help_text)
        if node.log:
            message = "'log' cannot be used in a stream: rules are about the end of a run, or all of its records"
            yield node.diagnostic("E503", message, "config", "log", help="remove the key")
        if node.stateful or alone:
            continue
        message = f"'{node.name}' cannot be part of a stream: a node of type {node.kind} needs all records here"
        yield node.diagnostic("E503", message, "type", help=INSTEAD.get(node.kind, _REST))


def _settings(plan: Plan) -> Iterator[Diagnostic]:
    """Keys that speak of all records, or of the one file that a run writes."""
    for source in plan.sources:
        if source.config.finite_only:
            message = f"a {source.config.type} cannot be the source of a stream: it is not watched"
            yield source.diagnostic(
                "E503", message, "config", "type", help="read files of another type, or use clinker run"
            )
        if source.by_document:
            message = "'dlq_granularity: document' cannot be used in a stream: what is written cannot be taken back"
            yield source.diagnostic("E503", message, "config", "dlq_granularity", help="use clinker run")
        if source.kinds is not None:
            message = "files with several kinds of records cannot be the source of a stream: they are read as wholes"
            yield source.diagnostic("E503", message, "config", "schema", help="use clinker run")
        for key, why in _SOURCE_KEYS.items():
            if getattr(source.config, key, None):
                message = f"'{key}' cannot be used in a stream: {why}"
                yield source.diagnostic("E503", message, "config", key, help="remove the key, or use clinker run")
        usual = Files()
        for key, why in _FILES_KEYS.items():
            if getattr(source.config.files, key) != getattr(usual, key):
                message = f"'{key}' cannot be used in a stream: {why}"
                help_text = "remove the key, or use clinker run"
                yield source.diagnostic("E503", message, "config", "files", key, help=help_text)
    for output in plan.outputs:
        for key, (usual, why) in _OUTPUT_KEYS.items():
            if getattr(output.config, key, usual) != usual:
                message = f"'{key}' cannot be used in a stream: {why}"
                yield output.diagnostic("E503", message, "config", key, help="remove the key, or use clinker run")
        if "{" in str(getattr(output.config, "path", "")):
            message = "the path of a stream's output has no tokens: each batch has a file with its number"
            yield output.diagnostic("E503", message, "config", "path", help="write a path without { }")
    handling = plan.file.error_handling
    limits = {("type_error_threshold",): handling.type_error_threshold, ("dlq", "max_rate"): handling.dlq.max_rate}
    limits |= {("dlq", "per_source", name, "max_rate"): own.max_rate for name, own in handling.dlq.per_source.items()}
    for path, value in limits.items():
        if value is not None:
            message = f"'{path[-1]}' cannot be used in a stream: a share of all records is known when all were read"
            yield plan.file.diagnostic("E503", message, ("error_handling", *path), "remove the key")


def _between(plan: Plan) -> Iterator[Diagnostic]:
    """A record that fails between two joins is made of records that are gone when its letter is written."""
    for node in plan.nodes:
        held = any(before.stateful for before in plan.upstream(node.name))
        if held and node.can_fail and any(after.stateful for after in _downstream(plan, node)):
            message = f"records may fail at '{node.name}', between two nodes that hold records"
            help_text = "do what can fail before the first of them, or after the last one"
            yield node.diagnostic("E509", message, "type", help=help_text)


def _downstream(plan: Plan, node: PlanNode) -> Iterator[PlanNode]:
    todo, seen = [node], {node.name}
    while todo:
        for reader in plan.readers(todo.pop().name):
            if reader.name not in seen:
                seen.add(reader.name)
                todo.append(reader)
                yield reader
