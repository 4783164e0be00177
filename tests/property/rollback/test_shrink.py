"""Differences are made small before anybody has to read them."""

from __future__ import annotations

from tests.property.rollback.graph import Graph
from tests.property.rollback.graphs import generated
from tests.property.rollback.model import Model, Readings
from tests.property.rollback.shrink import shrink


def differs(graph: Graph) -> bool:
    """As if a run judged totals together with the failures of records."""
    try:
        right, wrong = Model(graph).run(), Model(graph, Readings(strata=False)).run()
    except (KeyError, IndexError):  # a column is gone that somebody reads
        return False
    return (right.outputs, right.letters) != (wrong.outputs, wrong.letters)


def test_what_is_left_still_differs_and_is_small() -> None:
    sizes = []
    for seed in (seed for seed in range(100) if differs(generated(seed))):
        graph = shrink(generated(seed), differs, tries=2000)
        assert differs(graph)
        sizes.append((len(graph.nodes), sum(len(source.rows) for source in graph.sources)))
    assert len(sizes) > 5
    assert sorted(nodes for nodes, _ in sizes)[len(sizes) // 2] <= 9
    assert sorted(rows for _, rows in sizes)[len(sizes) // 2] <= 7
