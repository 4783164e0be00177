"""The table of hidden columns, held against the source: who names a column is in it, and nobody else knows the name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import clinker_spark
from clinker_spark.plan.hidden.column import HiddenColumn
from clinker_spark.plan.hidden.table import HIDDEN_COLUMNS

ROOT = Path(clinker_spark.__file__).parent
DECLARING = ("cxl.hidden", "query.hidden", "plan.columns")
TABLE = "plan.hidden."
"""It names the columns, but uses none."""
SEARCHED = ("cxl.builtins.", "cxl.ir", "cxl.lower.", "query.", "plan.", "spark.", "runtime.", "report.")
"""Where a literal that looks like a hidden column is one. In the rest of the package it is a word of the language."""
NAME = re.compile(r"\$[a-z_][\w.]*")
QUOTED = re.compile(r"`\$[a-z_]|'\$[a-z_]\w*'")


@cache
def trees() -> dict[str, ast.Module]:
    """The modules by their names inside the package."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, text) of the literals of a module without its docstrings; a value inside an f-string becomes `x`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    yield from texts(part)
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield node.lineno, node.value
        else:
            yield from texts(node)


def hidden_names(tree: ast.AST) -> list[tuple[int, str]]:
    return [(line, text) for line, text in texts(tree) if NAME.fullmatch(text) or QUOTED.search(text)]


@cache
def constants() -> dict[str, str]:
    """What the declaring modules call their columns: constant -> column."""
    found = {}
    for module in DECLARING:
        for node in trees()[module].body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                [target], value = node.targets, node.value.value
                if isinstance(target, ast.Name) and isinstance(value, str) and value.startswith("$"):
                    found[target.id] = value
    return found


@cache
def users() -> dict[str, set[str]]:
    """column -> the modules that import its constant, or a function that makes names with it."""
    by_word = {constant: {column} for constant, column in constants().items()}
    for module in DECLARING:
        for node in trees()[module].body:
            if isinstance(node, ast.FunctionDef):
                words = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                by_word[node.name] = {column for word, column in constants().items() if word in words}
    found: dict[str, set[str]] = {column: set() for column in constants().values()}
    for module, tree in trees().items():
        if module in DECLARING or module.startswith(TABLE):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in [f"clinker_spark.{name}" for name in DECLARING]:
                for alias in node.names:
                    for column in by_word.get(alias.name, ()):
                        found[column].add(module)
    return found


def test_hidden_columns_are_named_in_the_declaring_modules_only() -> None:
    wrong = [
        f"{module}:{line}: {text!r}"
        for module, tree in trees().items()
        if module.startswith(SEARCHED) and module not in DECLARING and not module.startswith(TABLE)
        for line, text in hidden_names(tree)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_declared_column_has_one_row() -> None:
    assert len(set(constants().values())) == len(constants())
    assert sorted(row.name for row in HIDDEN_COLUMNS) == sorted(constants().values())


@pytest.mark.parametrize("row", HIDDEN_COLUMNS, ids=lambda row: row.name)
def test_a_row_says_who_uses_the_column(row: HiddenColumn) -> None:
    assert row.holds and row.type
    assert row.written_by and row.read_by, "a column that nobody writes or reads is none"
    assert {*row.written_by, *row.read_by} == users()[row.name]


def test_the_search_sees_what_it_should() -> None:
    tree = ast.parse(
        '''"""`$error` in a docstring"""
a = "$error"
b = f"$group.{name}"
c = f"${scope}.{name}"
d = f"SELECT `$n` {f'`$inner`'}"
e = "named_struct('$e', 1)"
f = f"${scope}.{name} is declared twice", "$", f"$.{key}", "try_variant_get(x, '$', 'string')", f"$shown/{ref}"
'''
    )
    assert [line for line, _ in hidden_names(tree)] == [2, 3, 4, 5, 5, 6]
