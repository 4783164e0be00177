"""Programs over rows on Spark: every query of them becomes a relation, once, before anything runs."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from clinker_spark.core.tree import field_names
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.check.declared import TypeTable
from clinker_spark.query.check.programs import Checked, check
from clinker_spark.query.evaluate.expressions import Env, FunctionValue
from clinker_spark.query.evaluate.programs import Evaluator
from clinker_spark.query.failures import Failed, QueryError
from clinker_spark.query.files.formats import format_of
from clinker_spark.query.lower.base import failing_at, local_scope
from clinker_spark.query.lower.blocks import QueryLowering
from clinker_spark.query.lower.guards import Diversions
from clinker_spark.query.lower.values import Column, Rows, SparkDataset, list_type
from clinker_spark.query.names import children, free_names
from clinker_spark.query.program import deep_trees, located
from clinker_spark.query.scopes import Scope
from clinker_spark.query.sources import Sources
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import ANY, ListType, QType
from clinker_spark.query.values import Dataset
from clinker_spark.sql import tree as sql
from clinker_spark.sql.render import render

_SCALARS = (type(None), bool, int, float, Decimal, str, dt.date)


class Queries(Sources):
    """The sources and the queries of a program. What has been lowered is kept: running a program lowers nothing that
    planning it has lowered, unless it uses another value by then."""

    def __init__(self, diversions: Diversions | None = None) -> None:
        super().__init__()
        self.per_row: frozenset[int] = frozenset()
        self.diversions = diversions or Diversions()
        """What becomes of records of inputs that fail, by the positions of these."""
        self._lowered: dict[Any, tuple[cxl.Expr, SparkDataset | Column]] = {}

    def know(self, checked: Checked) -> None:
        """Of the program that will be lowered: which aggregates are values of each row."""
        self.per_row = checked.facts.per_row

    def lowered(self, e: cxl.Expr, scope: Env, types: TypeTable) -> SparkDataset | Column | None:
        """An expression over rows on Spark, as rows or as one value; None when none of its rows are there."""
        if not self._touches(e, scope):
            return None
        key = (id(e), _used(e, scope))
        if key[1] is None or key not in self._lowered:
            self._lowered[key] = (e, self._lower(e, scope, types))  # with the node, so that its id stays its own
        return self._lowered[key][1]

    def _lower(self, e: cxl.Expr, scope: Env, types: TypeTable) -> SparkDataset | Column:
        lowering = QueryLowering(types, self.inline, self.per_row, self.diversions)
        value = lowering.lower(self._loaded(e, scope, types), local_scope(scope))
        return SparkDataset(value.relation) if isinstance(value, Rows) else lowering.to_column(value)

    def _touches(self, e: cxl.Expr, scope: Env, seen: frozenset[str] = frozenset()) -> bool:
        """Does an expression read rows on Spark, by itself or through a function it calls?"""
        for name in free_names(e) - seen:
            value = scope.get(name) if name in scope else None
            if isinstance(value, Dataset):
                return True
            if isinstance(value, FunctionValue) and self._touches(value.node, value.scope, seen | {name}):
                return True
        return _has_load(e)

    def _loaded(self, e: cxl.Expr, scope: Env, types: TypeTable) -> cxl.Expr:
        """The expression with its files loaded: each `load` becomes a name of the rows."""
        if not _has_load(e):
            return e

        def replaced(node: Any) -> Any:
            if isinstance(node, ast.Load):
                name = f"file {id(node)}"
                if name not in scope:
                    scope.define(name, Evaluator(types, Planner(self)).load(node, scope))
                return cxl.Name(node.span, name)
            if isinstance(node, tuple):
                return tuple(replaced(item) for item in node)
            if not isinstance(node, cxl.Node) or not _has_load(node):
                return node
            made = type(node)(*[replaced(getattr(node, name)) for name in field_names(type(node))])
            if id(node) in self.per_row:  # what the checker found out about the node holds for its copy
                self.per_row |= {id(made)}
            return made

        made: cxl.Expr = replaced(e)
        return made

    def ordered(self, value: SparkDataset) -> sql.Query:
        """The rows in order."""
        return value.relation.build(True).sorted(value.relation.row)

    def text(self, value: SparkDataset, depth: int = 0) -> str:
        """The rows in order, as SQL over the views of the sources."""
        return render(self.ordered(value), depth).text(self.name)


class Planner:
    """The engine of a program that is only planned. A value that only a job would give is `Unplanned`."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    def load(self, e: ast.Load, path: str | None, options: dict[str, Any], types: TypeTable) -> Any:
        return self._queries.load(e, path, options, types)

    def evaluate(self, e: cxl.Expr, scope: Env, types: TypeTable) -> Any:
        found = self._queries.lowered(e, scope, types)
        if isinstance(found, Column):
            raise Unplanned
        return NotImplemented if found is None else found

    def rows(self, value: Dataset) -> list[Any]:
        raise Unplanned

    def save(self, e: ast.Save, value: Any, path: str | None, options: dict[str, Any]) -> None:
        """Nothing is written, but it must be known how."""
        with failing_at(e.span):
            format_of(path or "", options)


class Unplanned(Exception):
    """While planning, a value is needed that only a job would give, or something is done that only a run may do."""


class _Planning(Evaluator):
    """Goes through a program that will run later: nothing that the run looks at may change."""

    def put(self, target: Any, key: Any, value: Any, e: cxl.Expr) -> None:
        raise Unplanned

    def update(self, s: ast.Update, scope: Env) -> None:
        raise Unplanned


def _used(e: cxl.Expr, scope: Env) -> tuple[Any, ...] | None:
    """What an expression uses of the values around it; None when that may change without being another value."""
    found: list[Any] = []
    for name in sorted(free_names(e)):
        value = scope.get(name) if name in scope else None
        if isinstance(value, SparkDataset):
            found.append(value)
        elif isinstance(value, _SCALARS):
            found.append((type(value), repr(value)))  # 0.0 and -0.0 are equal, but not the same
        else:
            return None
    return tuple(found)


def _has_load(node: Any) -> bool:
    return isinstance(node, ast.Load) or any(_has_load(child) for child in children(node))


# -------------------------------------------------------------------- programs


def prepare(
    program: Checked,
    queries: Queries,
    names: Mapping[str, QType] | None = None,
    values: Mapping[str, Any] | None = None,
) -> Checked:
    """The program checked again with the types of its files, and every query of it lowered: no job has started yet."""

    def load_type(e: ast.Load, types: TypeTable) -> QType:
        value = _constant_load(queries, e, types)
        return list_type(value.relation) if value is not None else ListType(ANY, dataset=True)

    with located(program.source), deep_trees(program.source):
        checked = check(program.source, program.statements, names, load_type)
        if checked.problems:
            raise QueryError(checked.problems)
        queries.know(checked)
        plan(checked, queries, values or {})
    return checked


def _constant_load(queries: Queries, e: ast.Load, types: TypeTable) -> SparkDataset | None:
    """The rows of a file whose path is written out; None when it is computed."""
    parts = [part for part in (e.path, e.options) if part is not None]
    if any(free_names(part) for part in parts):
        return None
    with failing_at(e.span):
        found = Evaluator(types, Planner(queries)).load(e, Scope())
    assert isinstance(found, SparkDataset)
    return found


def plan(program: Checked, queries: Queries, names: Mapping[str, Any]) -> Any:
    """Goes through the statements without running a job, so that what has no Spark form is found first.

    A value that only a job would give is unknown here, and so is everything that depends on it. Gives the last
    value, or None.
    """
    evaluator = _Planning(program.types, Planner(queries), io.StringIO(), program.facts)
    scope: Scope[Any] = Scope(None, dict(names))
    last: Any = None
    for s in program.statements:
        last = None
        try:
            if isinstance(s, ast.Evaluate):
                last = evaluator.eval(s.value, scope)
            elif isinstance(s, ast.Let | ast.FunctionDef | ast.Save | ast.Expect):
                evaluator.execute(s, scope)
                last = scope.get(s.name) if isinstance(s, ast.Let) else None
        except Unplanned:
            continue
        except Failed as failed:
            if failed.code in ("E708", "E707", "E710", "E711"):
                raise
    return last
