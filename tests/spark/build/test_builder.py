"""What a pass builds is asked for by values: nobody changes a builder, and no class is a bag of fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import clinker_spark

SOURCE = Path(clinker_spark.__file__).parent
ROOT = SOURCE.parent.parent
MOST_FIELDS = 12
KEYWORDS = {"Options"}
"""What callers give by name, one for each option of the command line, is no builder."""
BUILDERS = ("builder", "looking", "reading")
"""Names that builders have."""


def modules(*folders: Path) -> Iterator[tuple[Path, ast.Module]]:
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def stores(tree: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes that something is assigned to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node


def test_nobody_sets_a_field_of_a_builder() -> None:
    found = []
    for path, tree in modules(SOURCE, ROOT / "tests", ROOT / "benchmarks"):
        for store in stores(tree):
            owner = store.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            if name in BUILDERS:
                found.append(f"{path.relative_to(ROOT)}:{store.lineno}: {ast.unparse(store)}")
    assert found == []


def test_a_builder_cannot_be_changed() -> None:
    frozen = {"Builder", "Pass", "RunContext", "Retraction", "Show", "Write", "Find", "Metrics", "Memo", "Rejects"}
    for _, tree in modules(SOURCE / "spark"):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name in frozen:
                frozen.remove(node.name)
                assert any("frozen=True" in ast.unparse(made) for made in node.decorator_list), node.name
    assert frozen == set()


def fields(node: ast.ClassDef) -> int:
    """Those that are declared, or that `__init__` sets."""
    declared = {s.target.id for s in node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)}
    made = [s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"]
    for store in (store for method in made for store in stores(method)):
        if isinstance(store.value, ast.Name) and store.value.id == "self":
            declared.add(store.attr)
    return len(declared)


@pytest.mark.parametrize("place", ["spark", "runtime", "plan/facts.py"])
def test_no_class_has_too_many_fields(place: str) -> None:
    folder = SOURCE / place
    found = {}
    for _, tree in modules(folder) if folder.is_dir() else [(folder, ast.parse(folder.read_text(encoding="utf-8")))]:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and fields(node) > MOST_FIELDS and node.name not in KEYWORDS:
                found[node.name] = fields(node)
    assert found == {}
