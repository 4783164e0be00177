"""What is wrong between the parts of a pipeline, each of which is right by itself."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence

from clinker_spark.config.model.base import Finding
from clinker_spark.config.model.documents.pipeline import ErrorHandling
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.model.output import OutputNode
from clinker_spark.config.model.source import SourceNode
from clinker_spark.config.model.transform import TransformNode
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import Type

Nodes = Sequence[tuple[int, NodeModel]]
"""The nodes that could be read, with their positions in the file."""


def check_pipeline(nodes: Nodes, handling: ErrorHandling | None, sources: Collection[str] = ()) -> Iterator[Finding]:
    """All of them; `at` starts at the top of the file. `sources` are the names of all sources, also of broken ones."""
    yield from _declared_once(nodes)
    yield from _envelopes(nodes)
    if handling is not None:
        yield from _per_source(sources, handling)
    yield from _paths(nodes, handling or ErrorHandling())


def _declared_once(nodes: Nodes) -> Iterator[Finding]:
    """A scoped variable has one writer."""
    seen: dict[tuple[str, str], tuple[str | int, ...]] = {}
    for i, node in nodes:
        if not isinstance(node, TransformNode):
            continue
        for k, declared in enumerate(node.config.declares):
            at = ("nodes", i, "config", "declares", k, "name")
            first = seen.setdefault((declared.scope, declared.name), at)
            if first != at:
                message = f"${declared.scope}.{declared.name} is declared twice"
                yield Finding("E014", message, at, "declare it where it is written", see=(first, "first declared here"))


def _envelopes(nodes: Nodes) -> Iterator[Finding]:
    """`$doc.section.field` has one type, whichever file a record comes from."""
    seen: dict[str, tuple[Type, tuple[str | int, ...]]] = {}
    for i, node in nodes:
        if not isinstance(node, SourceNode) or node.config.envelope is None:
            continue
        for name, t in node.config.envelope.types.items():
            section, _, field = name.partition(".")
            at = ("nodes", i, "config", "envelope", "sections", section, "fields", field)
            first, place = seen.setdefault(name, (t, at))
            if first != t:
                message = f"$doc.{name} is {t.unwrap()} here, and {first.unwrap()} elsewhere"
                yield Finding("E007", message, at, "give both the same type", see=(place, "first declared here"))


def _per_source(sources: Collection[str], handling: ErrorHandling) -> Iterator[Finding]:
    at = ("error_handling", "dlq", "per_source")
    taken: dict[str, tuple[str, ...]] = {}
    if handling.dlq.path:
        taken[_key(handling.dlq.path)] = ("error_handling", "dlq", "path")
    for name, own in handling.dlq.per_source.items():
        if name not in sources:
            known = ", ".join(sorted(sources)) or "none"
            help_text = did_you_mean(name, sources) or f"the sources are {known}"
            yield Finding("E317", f"there is no source named '{name}'", (*at, name), help_text, on_key=True)
        if own.path is not None:
            mine: tuple[str, ...] = (*at, name, "path")
            first = taken.setdefault(_key(own.path), mine)
            if first != mine:
                message = f"the dead letters of '{name}' go to a file that has others already"
                help_text = "give them a file of their own, or remove the path to use the common one"
                yield Finding("E318", message, mine, help_text, see=(first, "also written here"))


def _paths(nodes: Nodes, handling: ErrorHandling) -> Iterator[Finding]:
    """No two writers of one file."""
    taken: dict[str, tuple[tuple[str | int, ...], str]] = {}
    if handling.dlq.path:
        taken[_key(handling.dlq.path)] = (("error_handling", "dlq", "path"), "the dead letters go here")
    for name, own in handling.dlq.per_source.items():
        if own.path:
            place = ("error_handling", "dlq", "per_source", name, "path")
            taken.setdefault(_key(own.path), (place, "the dead letters go here"))
    for i, node in nodes:
        if isinstance(node, OutputNode) and node.config.path:
            at = ("nodes", i, "config", "path")
            first, said = taken.setdefault(_key(node.config.path), (at, f"'{node.name}' writes it here"))
            if first != at:
                message = f"output '{node.name}' writes a file that is written already"
                yield Finding("E322", message, at, "give each output a path of its own", see=(first, said))


def _key(path: str) -> str:
    """Paths that are one file, as far as their text tells."""
    return path if "://" in path else os.path.normpath(path)
