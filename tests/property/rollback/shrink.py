"""A graph that shows a difference, made as small as it gets."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

from tests.property.rollback.graph import Graph, Node

Test = Callable[[Graph], bool]


def shrink(graph: Graph, differs: Test, tries: int = 150) -> Graph:
    """`differs` runs a graph; it is asked at most so many times."""
    left = tries
    again = True
    while again and left > 0:
        again = False
        for smaller in _smaller(graph):
            left -= 1
            if differs(smaller):
                graph, again = smaller, True
                break
            if left <= 0:
                break
    return graph


def _smaller(graph: Graph) -> Iterator[Graph]:
    for node in graph.outputs:
        if len(graph.outputs) > 1:
            yield _pruned(graph, without=node.name)
    for name in ("max_group_buffer", "retraction_scope", "correlation_fanout_policy", "include_retracted"):
        if name in graph.handling:
            other = copy.deepcopy(graph)
            del other.handling[name]
            yield other
    for node in graph.nodes:
        if node.kind == "transform":
            yield _bypassed(graph, node, node.reads[0])
    for source in graph.sources:
        half = len(source.rows) // 2
        for rows in (slice(0, half), slice(half, None)) if half > 2 else ():
            other = copy.deepcopy(graph)
            del next(s for s in other.sources if s.name == source.name).rows[rows]
            yield other
    for source in graph.sources:
        for at in reversed(range(len(source.rows))):
            other = copy.deepcopy(graph)
            del next(s for s in other.sources if s.name == source.name).rows[at]
            yield other


def _pruned(graph: Graph, without: str = "") -> Graph:
    """Only what an output needs."""
    other = copy.deepcopy(graph)
    other.nodes = [node for node in other.nodes if node.name != without]
    used: set[str] = set()
    kept: list[Node] = []
    for node in reversed(other.nodes):
        if node.kind == "output" or node.name in used:
            kept.append(node)
            used |= {ref.split(".")[0] for ref in node.reads}
    other.nodes = kept[::-1]
    other.sources = [source for source in other.sources if source.name in used]
    return other


def _bypassed(graph: Graph, node: Node, ref: str) -> Graph:
    """Readers of the node read what it read, without the columns it made."""
    other = copy.deepcopy(graph)
    made = {step[1] for step in node.options["steps"] if step[0] in ("divide", "above", "below", "window", "length")}
    other.nodes = [n for n in other.nodes if n.name != node.name]
    for reader in other.nodes:
        reader.reads = [ref if name == node.name else name for name in reader.reads]
        for option in ("columns", "keeps"):
            if option in reader.options:
                reader.options[option] = [name for name in reader.options[option] if name not in made]
    return other
