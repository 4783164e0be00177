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


def _asked(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions with which a program asks for a type: in `isinstance`, in a `case`, beside `type(x)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            yield node.args[1]
        elif isinstance(node, ast.MatchClass):
            yield node.cls
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Call) and getattr(side.func, "id", "") == "type" for side in sides):
                yield from sides


def _words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts that a program compares with the `kind` of something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(
            isinstance(side, ast.Attribute) and side.attr == "kind" for side in [node.left, *node.comparators]
        ):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def _classes(expression: ast.expr) -> set[str]:
    """The names in an expression, however they are qualified."""
    parts = list(ast.walk(expression))
    return {p.id for p in parts if isinstance(p, ast.Name)} | {p.attr for p in parts if isinstance(p, ast.Attribute)}


def test_nobody_asks_for_the_type_of_a_plan_node() -> None:
    """What depends on the type of a node is one of its traits. Only a plan finds its sources, outputs and combines."""
    rows = {resolve(row.plan) for row in NODE_TYPES.values() if row.plan is not None}
    names = {base.__name__ for row in rows for base in row.__mro__ if issubclass(base, PlanNode)}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted(ROOT.rglob("*.py"))
        for node in _asked(ast.parse(path.read_text(encoding="utf-8")))
        if _classes(node) & names
    ]
    assert {place.split(":")[0] for place in found} == {"plan/graph.py"}, found
    # Before there is a plan, models and the vertices of a topology have nothing but their words.
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {word}"
        for path in sorted(ROOT.rglob("*.py"))
        for line, word in _words(ast.parse(path.read_text(encoding="utf-8")))
        if word in NODE_TYPES and path.relative_to(ROOT).parts[0] not in ("config", "plan")
    ]
    assert not wrong, "ask a trait: " + ", ".join(wrong)


def test_the_search_sees_every_way_to_ask() -> None:
    tree = ast.parse(
        "isinstance(a, nodes.SourcePlan | Other); type(a) is OutputPlan; type(a) == x.MergePlan; a.kind == 'cull'\n"
        "match a:\n    case CombinePlan(): pass\n"
    )
    found = set().union(*map(_classes, _asked(tree)))
    assert {"SourcePlan", "OutputPlan", "MergePlan", "CombinePlan"} <= found
    assert [word for _, word in _words(tree)] == ["cull"]
