"""One row per node type: it names a model, a plan class and an operator that are there; nothing else asks for types."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from inspect import isfunction
from pathlib import Path
from typing import get_args

import pytest

import clinker_spark
from clinker_spark.config.node_types import NODE_TYPES, NodeType, node_type, resolve
from clinker_spark.plan.nodes.base import PlanNode

ROOT = Path(clinker_spark.__file__).parent


@pytest.mark.parametrize("row", NODE_TYPES.values(), ids=lambda row: row.word)
def test_a_row_connects_model_plan_and_operator(row: NodeType) -> None:
    assert set(get_args(row.model.model_fields["type"].annotation)) == {row.word, *row.aliases}
    assert isfunction(resolve(row.bind))
    assert row.plan is None or resolve(row.plan).kind == row.word
    assert row.operator is None or isfunction(resolve(row.operator))


def test_every_plan_class_has_a_row() -> None:
    def classes(of: type[PlanNode]) -> Iterator[type[PlanNode]]:
        for found in of.__subclasses__():
            yield found
            yield from classes(found)

    rows = {resolve(row.plan) for row in NODE_TYPES.values() if row.plan is not None}
    named = {found for found in classes(PlanNode) if hasattr(found, "kind")}
    assert {found for found in named if found.__module__.startswith("clinker_spark.")} == rows


def test_other_words_mean_the_same_type() -> None:
    assert node_type("sink") is node_type("output") is NODE_TYPES["output"]


def _asked(tree: ast.AST) -> Iterator[ast.AST]:
    """Where a program asks whether something is of a plan class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            yield from ast.walk(node.args[1])
        elif isinstance(node, ast.MatchClass):
            yield node.cls


def test_nobody_asks_for_the_type_of_a_plan_node() -> None:
    """What depends on the type of a node is one of its traits. Only a plan finds its sources and outputs."""
    names = {resolve(row.plan).__name__ for row in NODE_TYPES.values() if row.plan is not None}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted(ROOT.rglob("*.py"))
        for node in _asked(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and node.id in names
    ]
    assert {place.split(":")[0] for place in found} == {"plan/graph.py"}, found
