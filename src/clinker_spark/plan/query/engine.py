"""Programs over rows on Spark, planned: every query of them becomes a relation, and nothing runs.

`PlanningEngine` knows the sources of a program and turns its queries into SQL text. The engine that runs them adds
DataFrames to it.
"""

from __future__ import annotations

import io
import itertools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.core.span import Span
from clinker_spark.core.tree import field_names
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.plan.columns import ROW_COLUMN
from clinker_spark.plan.query.base import local_scope
from clinker_spark.plan.query.blocks import QueryLowering
from clinker_spark.plan.query.files import PLACES, FileSource, file_source
from clinker_spark.plan.query.guards import Reasons
from clinker_spark.plan.query.order import ARRIVAL
from clinker_spark.plan.query.pieces import render, view
from clinker_spark.plan.query.values import Column, OrderTerm, Relation, Rendered, Rows
from clinker_spark.query.check.declared import TypeTable
from clinker_spark.query.check.programs import Checked, check
from clinker_spark.query.evaluate.expressions import Env, FunctionValue
from clinker_spark.query.evaluate.programs import Evaluator
from clinker_spark.query.failures import Failed, QueryError
from clinker_spark.query.names import children, free_names
from clinker_spark.query.program import deep_trees, located
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import ANY, NULL, ListType, QType, RecordType, is_any, is_null, type_of_value, unify
from clinker_spark.query.values import Dataset

_numbers = itertools.count(1)


@dataclass(eq=False)
class SparkDataset(Dataset):
    """Rows on Spark, as a plan."""

    relation: Relation


@dataclass(frozen=True)
class ListSource:
    """A list of the program that takes part in a query on Spark."""

    rows: list[Any] = field(repr=False)
    row: QType


@dataclass(frozen=True)
class Scan:
    """A source under the name of a view. `content` says where its rows come from; `order` are its hidden columns."""

    view: str
    label: str
    content: Any
    order: tuple[str, ...]

    def name(self, ordered: bool) -> str:
        return self.view + ("_in_order" if ordered and self.order else "")


class PlanningEngine:
    """Sources and queries of a program. While planning, a value that only a job would give is `Unplanned`."""

    def __init__(self) -> None:
        self.per_row: frozenset[int] = frozenset()
        self.scans: list[Scan] = []
        self.origins: dict[str, Span] = {}
        self.program_text = ""
        self.inputs: dict[str, str] = {}
        self.reasons: Reasons = {}
        self.planning = True
        self._prefix = f"q{next(_numbers)}"
        self._files: dict[int, SparkDataset] = {}
        self._lists: dict[int, tuple[list[Any], Relation]] = {}

    # ---------------------------------------------------------------- sources

    def load(self, e: ast.Load, path: str | None, options: dict[str, Any], types: TypeTable) -> Any:
        if id(e) not in self._files:
            declared = types.resolve(e.type) if e.type is not None else None
            self._files[id(e)] = self._file(file_source(path, options, declared))
        return self._files[id(e)]

    def _file(self, source: FileSource) -> SparkDataset:
        label = re.sub(r"\W+", "_", os.path.splitext(os.path.basename(source.paths[0]))[0])
        return self.source(label, source.row, source, source.places)

    def inline(self, rows: list[Any]) -> Relation:
        """A list of the program as rows on Spark."""
        known = self._lists.get(id(rows))
        if known is None:
            row = element_type(rows)
            made = self.source("list", row, ListSource(rows, row), (ROW_COLUMN,))
            known = self._lists[id(rows)] = (rows, made.relation)
        return known[1]

    def source(self, label: str, row: QType, content: Any, order: tuple[str, ...]) -> SparkDataset:
        """Rows of a type that come from somewhere, in an order that hidden columns keep (none: no order)."""
        number = len(self.scans)
        scan = Scan(f"{self._prefix}_{number + 1}_{label}".lower(), label, content, order)
        self.scans.append(scan)

        def build(ordered: bool) -> Rendered:
            read = view(number, ordered and bool(order))
            places = [OrderTerm(quote(name), type=PLACES.get(name, ARRIVAL)) for name in order]
            terms = tuple(places) if ordered else ()
            return Rendered(f"FROM {read}", terms, read)

        return SparkDataset(Relation(row, build))

    # ------------------------------------------------------------- expressions

    def evaluate(self, e: cxl.Expr, scope: Env, types: TypeTable) -> Any:
        if not self._touches(e, scope):
            return NotImplemented
        lowering = QueryLowering(types, self.inline, self.per_row)
        lowering.origins = self.origins
        lowering.source, lowering.inputs, lowering.reasons = self.program_text, self.inputs, self.reasons
        value = lowering.lower(_loaded(self, e, scope, types), local_scope(scope))
        if isinstance(value, Rows):
            return SparkDataset(value.relation)
        column = lowering.to_column(value)
        if self.planning:
            raise Unplanned
        return self.scalar(column)

    def _touches(self, e: cxl.Expr, scope: Env, seen: frozenset[str] = frozenset()) -> bool:
        """Does an expression read rows on Spark, by itself or through a function it calls?"""
        for name in free_names(e) - seen:
            value = scope.get(name) if name in scope else None
            if isinstance(value, Dataset):
                return True
            if isinstance(value, FunctionValue) and self._touches(value.node, value.scope, seen | {name}):
                return True
        return _has_load(e)

    def scalar(self, column: Column) -> Any:
        raise Unplanned

    def rows(self, value: Dataset) -> list[Any]:
        raise Unplanned

    def save(self, e: ast.Save, value: Any, path: str | None, options: dict[str, Any]) -> None:
        """Nothing is written while planning."""

    def text(self, value: SparkDataset) -> str:
        """The rows in order, as SQL over the views of the sources."""
        return render(self.ordered(value), lambda number, ordered: quote(self.scans[number].name(ordered)))

    def ordered(self, value: SparkDataset) -> str:
        """The rows in order, as SQL whose views have no names yet."""
        return value.relation.build(True).sorted(value.relation.row)


class Unplanned(Exception):
    """While planning, a value is needed that only a job would give."""


def element_type(rows: list[Any]) -> QType:
    """The type of the rows of a list, as columns can hold them."""
    found: QType = NULL
    for item in rows:
        found = type_of_value(item) if found is NULL else unify(found, type_of_value(item))
    if is_null(found):
        return RecordType(()) if not rows else ANY.as_nullable()
    if is_any(found) or (isinstance(found, ListType) and is_any(found.element)):
        raise Failed("a list of different kinds of values cannot go to Spark", code="E708")
    return found


def _has_load(node: Any) -> bool:
    return isinstance(node, ast.Load) or any(_has_load(child) for child in children(node))


def _loaded(engine: PlanningEngine, e: cxl.Expr, scope: Env, types: TypeTable) -> cxl.Expr:
    """The expression with its files loaded: each `load` becomes a name of the rows."""
    if not _has_load(e):
        return e

    def replaced(node: Any) -> Any:
        if isinstance(node, ast.Load):
            name = f"file {id(node)}"
            if name not in scope:
                scope.define(name, Evaluator(types, engine).load(node, scope))
            return cxl.Name(node.span, name)
        if isinstance(node, tuple):
            return tuple(replaced(item) for item in node)
        if not isinstance(node, cxl.Node) or not _has_load(node):
            return node
        made = type(node)(*[replaced(getattr(node, name)) for name in field_names(type(node))])
        if id(node) in engine.per_row:  # what the checker found out about the node holds for its copy
            engine.per_row |= {id(made)}
        return made

    made: cxl.Expr = replaced(e)
    return made


# -------------------------------------------------------------------- programs


def prepare(
    program: Checked,
    engine: PlanningEngine,
    names: Mapping[str, QType] | None = None,
    values: Mapping[str, Any] | None = None,
) -> Checked:
    """The program checked again with the types of its files, and every query of it lowered: no job has started yet."""

    def load_type(e: ast.Load, types: TypeTable) -> QType:
        value = _constant_load(engine, e, types)
        return ListType(value.relation.row, dataset=True) if value is not None else ListType(ANY, dataset=True)

    with located(program.source), deep_trees(program.source):
        checked = check(program.source, program.statements, names, load_type)
        if checked.problems:
            raise QueryError(checked.problems)
        engine.per_row = checked.per_row
        plan(checked, engine, values or {})
    return checked


def _constant_load(engine: PlanningEngine, e: ast.Load, types: TypeTable) -> SparkDataset | None:
    """The rows of a file whose path is written out; None when it is computed."""
    parts = [part for part in (e.path, e.options) if part is not None]
    if any(free_names(part) for part in parts):
        return None
    evaluator = Evaluator(types, engine)
    try:
        found = evaluator.load(e, Scope())
    except Failed as failed:
        failed.span = failed.span or e.span
        raise
    assert isinstance(found, SparkDataset)
    return found


def plan(program: Checked, engine: PlanningEngine, names: Mapping[str, Any]) -> Any:
    """Goes through the statements without running a job, so that what has no Spark form is found first.

    A value that only a job would give is unknown here, and so is everything that depends on it. Gives the last
    value, or None.
    """
    evaluator = Evaluator(program.types, engine, io.StringIO())
    evaluator.per_row = program.per_row
    scope: Scope[Any] = Scope(None, dict(names))
    was_planning, engine.planning = engine.planning, True
    last: Any = None
    try:
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
    finally:
        engine.planning = was_planning
    return last
