"""The graph: its order, its edges, and what makes it impossible."""

from __future__ import annotations

from clinker_spark.config.topology import Graph, build_graph
from clinker_spark.config.tree.yaml import parse_yaml
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.span import Source


def graph(*nodes: str) -> tuple[Graph, list[Diagnostic]]:
    text = "nodes:\n" + "".join(f"  - {{ {node} }}\n" for node in nodes)
    return build_graph(parse_yaml(Source("t.yaml", text)))


def codes(*nodes: str) -> list[str]:
    return [d.code for d in graph(*nodes)[1]]


def test_order_is_that_of_the_file_where_it_can_be() -> None:
    found, problems = graph(
        "type: output, name: out, input: all",
        "type: merge, name: all, inputs: [b, a]",
        "type: source, name: z",
        "type: source, name: a",
        "type: transform, name: b, input: z",
    )
    assert problems == []
    assert found.order() == ("z", "a", "b", "all", "out")
    assert [(e.producer, e.consumer) for e in found.edges] == [("all", "out"), ("b", "all"), ("a", "all"), ("z", "b")]
    assert [e.producer for e in found.inputs("all")] == ["b", "a"]
    assert [e.consumer for e in found.readers("z")] == ["b"]


def test_roles_and_ports() -> None:
    found, problems = graph(
        "type: source, name: s",
        "type: route, name: r, input: s, config: { conditions: { x: a, y: b }, default: z }",
        "type: combine, name: c, input: { left: r.x, right: r.y }",
        "type: composition, name: k, input: nothing, inputs: { p: r.z }",
        "type: composition, name: l, input: c.out",
        "type: output, name: o, input: k.some_port",
        "type: output, name: o2, input: l",
    )
    assert problems == []
    assert [(e.producer, e.port, e.path[-1]) for e in found.edges] == [
        ("s", None, "input"),
        ("r", "x", "left"),
        ("r", "y", "right"),
        ("r", "z", "p"),
        ("c", None, "input"),
        ("k", "some_port", "input"),
        ("l", None, "input"),
    ]


def test_the_path_of_an_edge_is_that_of_the_input() -> None:
    found, _ = graph(
        "type: source, name: s", "type: merge, name: m, inputs: [s]", "type: combine, name: c, input: {a: m}"
    )
    assert [e.path for e in found.edges] == [("nodes", 1, "inputs", 0), ("nodes", 2, "input", "a")]


def test_two_cycles_are_two_findings() -> None:
    found = codes(
        "type: merge, name: a, inputs: [b]",
        "type: merge, name: b, inputs: [a]",
        "type: merge, name: c, inputs: [d, a]",
        "type: merge, name: d, inputs: [e]",
        "type: merge, name: e, inputs: [c]",
    )
    assert found == ["E003", "E003"]


def test_a_cycle_is_shown_in_the_direction_of_the_records() -> None:
    _, (found,) = graph(
        "type: transform, name: one, input: three",
        "type: transform, name: two, input: one",
        "type: transform, name: three, input: two",
    )
    assert found.message.endswith("one -> two -> three -> one")


def test_a_long_chain_needs_no_recursion() -> None:
    nodes = [f"type: transform, name: n{i}, input: n{i - 1}" for i in range(1, 1500)]
    found, problems = graph("type: source, name: n0", *nodes, "type: output, name: o, input: n1499")
    assert problems == [] and len(found.order()) == 1501
    looped = graph("type: transform, name: n0, input: n1499", *nodes)[1]
    assert [d.code for d in looped] == ["E003"]


def test_an_init_transform_feeds_nobody() -> None:
    config = "config: { phase: init }"
    assert codes("type: source, name: s", f"type: transform, name: t, input: s, {config}") == ["W004"]


def test_nodes_without_a_name_are_no_nodes() -> None:
    assert codes("type: source", "just: this") == []
    assert graph("name: [a]")[0].names == ()


def test_inputs_of_the_wrong_shape_are_left_to_the_models() -> None:
    assert codes("type: source, name: s, input: x", "type: output, name: o, input: [s]") == []
    assert codes("type: source, name: s", "type: output, name: o, input: { a: s }") == []


def test_broken_names_do_not_hide_other_findings() -> None:
    assert codes("type: source, name: a.b", "type: output, name: o, input: a.b") == ["E010"]
    assert codes("type: source, name: a", "type: source, name: a", "type: output, name: o, input: x") == [
        "E001",
        "E004",
    ]
