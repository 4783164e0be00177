"""A query program from its text: compiled (all mistakes in one go), then run.

>>> import io
>>> program = compile_query('from n in [3, 1, 2] where n > 1 sort by n select {n: n, square: n * n}')
>>> run(program, out=io.StringIO())
[{'n': 2, 'square': 4}, {'n': 3, 'square': 9}]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.span import Source
from clinker_spark.query.check.programs import Checked, LoadType, check
from clinker_spark.query.evaluate.programs import NOTHING, Engine, Evaluator
from clinker_spark.query.failures import Failed, QueryError
from clinker_spark.query.names import walk
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.syntax.parser import parse
from clinker_spark.query.types import QType

_MAX_FRAMES = 20_000


def compile_query(
    text: str,
    name: str = "query",
    names: Mapping[str, QType] | None = None,
    load_type: LoadType | None = None,
) -> Checked:
    """A checked program; raises `QueryError` with everything that is wrong with it."""
    source = Source(name, text)
    with deep_trees(source):
        statements, problems = parse(source)
        if problems:
            raise QueryError(problems)
        checked = check(source, statements, names, load_type)
    if checked.problems:
        raise QueryError(checked.problems)
    return checked


def run(
    program: Checked, engine: Engine | None = None, out: TextIO | None = None, names: Mapping[str, Any] | None = None
) -> Any:
    """What the program's last expression gives, or None. `print` and `json` write to `out`."""
    evaluator = Evaluator(program.types, engine, out, program.facts)
    scope: Scope[Any] = Scope(None, dict(names or {}))
    with deep_trees(program.source), located(program.source):
        value = evaluator.run(program.statements, scope)
        if value is NOTHING:
            value = scope.get(name) if (name := shown_let(program)) is not None else None
    return value


def shown_let(program: Checked) -> str | None:
    """The variable that a program is about when it ends with a let and shows nothing by itself."""
    last = program.statements[-1] if program.statements else None
    return last.name if isinstance(last, ast.Let) and not shows_something(program) else None


def has_result(program: Checked) -> bool:
    """Does the program end with a value, rather than with something it does?"""
    last = program.statements[-1] if program.statements else None
    if isinstance(last, ast.Evaluate):
        return not _is_output(last.value)
    return shown_let(program) is not None


def shows_something(program: Checked) -> bool:
    outputs = (ast.Save, ast.Expect)
    return any(isinstance(n, outputs) or _is_output(n) for s in program.statements for n in walk(s))


def reads_files(program: Checked) -> bool:
    return any(isinstance(n, ast.Load) for s in program.statements for n in walk(s))


def _is_output(node: Any) -> bool:
    return getattr(node, "function", None) in ("print", "json")


@contextmanager
def deep_trees(source: Source) -> Iterator[None]:
    """Room for recursive functions; running out of it is a finding, not a crash."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _MAX_FRAMES))
    try:
        yield
    except RecursionError:
        message = "the program calls itself too often, or is nested too deeply"
        help_text = "check where the recursion ends, or use a loop"
        raise QueryError([Diagnostic("E705", message, source, help=help_text)]) from None
    finally:
        sys.setrecursionlimit(before)


@contextmanager
def located(source: Source) -> Iterator[None]:
    """A failure while running becomes a diagnostic at its place."""
    try:
        yield
    except Failed as failed:
        found = Diagnostic(failed.code, failed.message, source, failed.span, failed.help, phase="eval")
        raise QueryError([found]) from None
