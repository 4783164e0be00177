"""Records of the model: what they were made of, and the correlation keys they carry; and keys along the graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.property.rollback.graph import Graph, Node

Origin = tuple[str, int]
"""A source, and a row in it counted from 1."""


@dataclass(frozen=True)
class Key:
    """The key of one source (or of several that were merged), or what a combine let pass of it."""

    of: tuple[str, ...]
    """All fields of the key, as the source declares it."""
    values: tuple[tuple[str, Any], ...]
    """The fields that are carried."""
    sources: frozenset[str]
    """Whose groups these are: one source, or for what a combine or a strict aggregate made all that came together."""


@dataclass(frozen=True)
class Record:
    values: dict[str, Any]
    origin: Origin | None
    """The row that this record is, or the driver's row for what a combine made; None for totals."""
    lone: str | None
    """The source, for records that no combine and no aggregate made: failures of other sources spare them."""
    members: frozenset[Origin]
    keys: tuple[Key, ...]
    totalled: frozenset[str] = frozenset()
    """The sources before the total that it is, or that was combined with others."""


def canonical(value: Any) -> Any:
    """`-0.0` is `0.0`."""
    return value + 0.0 if isinstance(value, float) else value


@dataclass
class Stream:
    """What is known of a stream before anything runs."""

    sources: frozenset[str]
    keys: dict[str, frozenset[str]] = field(default_factory=dict)
    """The fields of keys that its records carry, and the sources they come from."""
    rewritten: frozenset[str] = frozenset()
    level: int = 0
    """How many relaxed aggregates stand before it."""
    lineage: bool = False
    """Are its failures taken back to rows? Not without any key."""


Levels = frozenset[str]
"""What is judged only after what comes before it, besides relaxed totals: `window`, `distinct`, `strict`."""


def streams_of(graph: Graph, levels: Levels = frozenset()) -> dict[str, Stream]:
    found: dict[str, Stream] = {}
    declared = {source.name: source.key for source in graph.sources}
    for source in graph.sources:
        alone = frozenset({source.name})
        found[source.name] = Stream(alone, dict.fromkeys(source.key, alone), lineage=bool(source.key))
    for node in graph.nodes:
        inputs = [found[ref] for ref in node.reads]
        stream = _after(node, inputs, levels, declared)
        if node.kind == "cull":
            found[f"{node.name}.removed"] = stream
        if node.kind == "route":
            for port in (*node.options["conditions"], "rest"):
                found[f"{node.name}.{port}"] = stream
        found[node.name] = stream
    return found


def _after(node: Node, inputs: list[Stream], levels: Levels, declared: dict[str, tuple[str, ...]]) -> Stream:
    sources = frozenset().union(*(stream.sources for stream in inputs))
    level = max(stream.level for stream in inputs)
    lineage = any(stream.lineage for stream in inputs)
    rewritten = frozenset().union(*(stream.rewritten for stream in inputs))
    first = inputs[0]
    match node.kind:
        case "merge":
            keys = {name: frozenset().union(*(s.keys[name] for s in inputs)) for name in first.keys}
            return Stream(sources, keys, rewritten, level, lineage)
        case "combine":
            keys = {name: frozenset(s for s in sources if name in declared[s]) for name in _carried(node, inputs)}
            return Stream(sources, keys, first.rewritten, level, lineage)
        case "aggregate" if is_strict(node, first):
            return Stream(sources, first.keys, rewritten, level + ("strict" in levels), lineage)
        case "aggregate":
            return Stream(sources, {}, frozenset(), level + lineage, lineage)
        case "reshape":
            rewritten |= {"g", "v"}
        case "transform":
            steps = node.options["steps"]
            rewritten |= {step[1] for step in steps if step[0] == "rewrite"}
            level += any(step[0] in levels for step in steps)
    return Stream(sources, first.keys, rewritten, level, lineage)


def _carried(node: Node, inputs: list[Stream]) -> list[str]:
    """The driver's fields come first, and count where both sides have one of that name."""
    named = node.options["propagate"]
    if named == "driver":
        return list(inputs[0].keys)
    every = list(dict.fromkeys(name for stream in inputs for name in stream.keys))
    return every if named == "all" else [name for name in every if name in named]


def is_strict(node: Node, reads: Stream) -> bool:
    """Does `group_by` have all the keys, as they were read?"""
    return bool(reads.keys) and set(reads.keys) <= set(node.options["group_by"]) - reads.rewritten
