"""The engine of query programs: files, lists and DataFrames as rows on Spark, which starts when they are needed."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.cxl import ast as cxl
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.query.blocks import QueryLowering
from clinker_spark.plan.query.expressions import local_scope
from clinker_spark.plan.query.files import PLACE, FileSource, file_source
from clinker_spark.plan.query.values import Column, OrderTerm, Relation, Rendered, Rows
from clinker_spark.query import ast
from clinker_spark.query.check import Checked, check
from clinker_spark.query.declared import TypeTable
from clinker_spark.query.evaluate import Evaluator
from clinker_spark.query.evaluate_expressions import Env, FunctionValue
from clinker_spark.query.failures import Failed, QueryError
from clinker_spark.query.names import children, free_names
from clinker_spark.query.program import deep_trees, located
from clinker_spark.query.scopes import Scope
from clinker_spark.query.types import ANY, NULL, ListType, QType, RecordType, is_any, is_null, type_of_value, unify
from clinker_spark.query.values import Dataset

_PREVIEW = 101


@dataclass(eq=False)
class SparkDataset(Dataset):
    """Rows on Spark, as a plan."""

    relation: Relation
    engine: QueryEngine = field(repr=False)


@dataclass
class _Scan:
    """A source under the name of a view. `frame(ordered)` makes its DataFrame; `order` are its hidden columns."""

    view: str
    label: str
    frame: Callable[[bool], Any]
    order: tuple[str, ...]
    made: set[bool] = field(default_factory=set)


class QueryEngine:
    """Everything between a program and Spark. `spark` is called when the first job starts."""

    def __init__(self, spark: Callable[[], Any], per_row: frozenset[int] = frozenset()) -> None:
        self._spark = spark
        self.per_row = per_row
        self.scans: list[_Scan] = []
        self._files: dict[int, SparkDataset] = {}
        self._lists: dict[int, tuple[list[Any], Relation]] = {}
        self.planning = False
        """While planning nothing runs: a value that only Spark knows is `Unplanned`."""

    # ---------------------------------------------------------------- sources

    def load(self, e: ast.Load, path: str | None, options: dict[str, Any], types: TypeTable) -> Any:
        if id(e) not in self._files:
            declared = types.resolve(e.type) if e.type is not None else None
            self._files[id(e)] = self._file(file_source(path, options, declared))
        return self._files[id(e)]

    def _file(self, source: FileSource) -> SparkDataset:
        def frame(ordered: bool) -> Any:
            from clinker_spark.spark.query.frames import file_frame

            return file_frame(self._spark(), source, ordered)

        label = re.sub(r"\W+", "_", os.path.splitext(os.path.basename(source.paths[0]))[0])
        return self._scan(label, source.row, frame, source.places)

    def frame(self, name: str, frame: Any) -> SparkDataset:
        """A DataFrame of the caller. Its rows have no order of their own."""
        from clinker_spark.spark.query.types import row_type

        return self._scan(name, row_type(frame.schema), lambda ordered: frame, ())

    def inline(self, rows: list[Any]) -> Relation:
        """A list of the program as rows on Spark."""
        known = self._lists.get(id(rows))
        if known is None:
            row = element_type(rows)

            def frame(ordered: bool) -> Any:
                from clinker_spark.spark.query.frames import list_frame

                return list_frame(self._spark(), rows, row, ordered)

            made = self._scan("list", row, frame, (PLACE,))
            known = self._lists[id(rows)] = (rows, made.relation)
        return known[1]

    def _scan(self, label: str, row: QType, frame: Callable[[bool], Any], order: tuple[str, ...]) -> SparkDataset:
        scan = _Scan(f"q{id(self) % 10_000}_{len(self.scans) + 1}_{label}".lower(), label, frame, order)
        self.scans.append(scan)

        def build(ordered: bool) -> Rendered:
            with_order = ordered and bool(order)
            scan.made.add(with_order)
            view = quote(scan.view + ("_in_order" if with_order else ""))
            terms = tuple(OrderTerm(name) for name in order) if with_order else ()
            return Rendered(f"FROM {view}", terms, view)

        return SparkDataset(Relation(row, build), self)

    # ------------------------------------------------------------- expressions

    def evaluate(self, e: cxl.Expr, scope: Env, types: TypeTable) -> Any:
        if not self._touches(e, scope):
            return NotImplemented
        lowering = QueryLowering(types, self.inline, self.per_row)
        value = lowering.lower(_loaded(self, e, scope, types), local_scope(scope))
        if isinstance(value, Rows):
            return SparkDataset(value.relation, self)
        column = lowering.to_column(value)
        if self.planning:
            raise Unplanned
        return self._scalar(column)

    def _touches(self, e: cxl.Expr, scope: Env, seen: frozenset[str] = frozenset()) -> bool:
        """Does an expression read rows on Spark, by itself or through a function it calls?"""
        for name in free_names(e) - seen:
            value = scope.get(name) if name in scope else None
            if isinstance(value, Dataset):
                return True
            if isinstance(value, FunctionValue) and self._touches(value.node, value.scope, seen | {name}):
                return True
        return _has_load(e)

    def _scalar(self, column: Column) -> Any:
        from clinker_spark.spark.query.results import value_of

        with explained():
            return value_of(self.sql(f"SELECT {column.text} AS value").collect()[0][0])

    # ----------------------------------------------------------------- results

    def sql(self, text: str) -> Any:
        """A DataFrame of lowered text; the views it reads are made first."""
        spark = self._spark()
        for scan in self.scans:
            for ordered in (False, True):
                name = scan.view + ("_in_order" if ordered else "")
                if quote(name) in text:
                    scan.frame(ordered).createOrReplaceTempView(name)
        return spark.sql(text)

    def dataframe(self, value: SparkDataset) -> Any:
        """The rows in order, as a DataFrame."""
        return self.sql(self.text(value))

    def text(self, value: SparkDataset) -> str:
        return value.relation.build(True).sorted(value.relation.row)

    def rows(self, value: Dataset) -> list[Any]:
        from clinker_spark.spark.query.results import collect

        assert isinstance(value, SparkDataset)
        if self.planning:
            raise Unplanned
        with explained():
            return collect(self.dataframe(value), value.relation.row)

    def preview(self, value: SparkDataset) -> list[Any]:
        from clinker_spark.spark.query.results import collect

        with explained():
            return collect(self.dataframe(value).limit(_PREVIEW), value.relation.row)

    def stream(self, value: SparkDataset) -> Iterator[Any]:
        from clinker_spark.spark.query.results import stream

        with explained():
            yield from stream(self.dataframe(value), value.relation.row)

    # -------------------------------------------------------------------- save

    def save(self, e: ast.Save, value: Any, path: str | None, options: dict[str, Any]) -> None:
        try:
            self.write(value, path or "", options)
        except Failed as failed:
            failed.span = failed.span or e.span
            raise

    def write(self, value: Any, path: str, options: Mapping[str, Any] | None = None) -> None:
        from clinker_spark.plan.query.files import format_of
        from clinker_spark.runtime.query_files import write_dataset, write_list

        kind = format_of(path, options or {})
        if self.planning:
            return
        if isinstance(value, SparkDataset):
            with explained():
                write_dataset(self.dataframe(value), value.relation.row, path, kind, options or {})
        else:
            write_list(value, path, kind, options or {})


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


def _loaded(engine: QueryEngine, e: cxl.Expr, scope: Env, types: TypeTable) -> cxl.Expr:
    """The expression with its files loaded: each `load` becomes a name of the rows."""
    if not _has_load(e):
        return e
    from clinker_spark.core.tree import field_names

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
        return type(node)(*[replaced(getattr(node, name)) for name in field_names(type(node))])

    made: cxl.Expr = replaced(e)
    return made


@contextmanager
def explained() -> Iterator[None]:
    """What Spark says about a value it cannot go on with, as a failure of the query."""
    from clinker_spark.runtime.query_failures import failure

    try:
        yield
    except Failed:
        raise
    except Exception as error:
        found = failure(error)
        if found is None:
            raise
        raise found from None


# -------------------------------------------------------------------- programs


def prepare(
    program: Checked,
    engine: QueryEngine,
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


def _constant_load(engine: QueryEngine, e: ast.Load, types: TypeTable) -> SparkDataset | None:
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


def plan(program: Checked, engine: QueryEngine, names: Mapping[str, Any]) -> Any:
    """Goes through the statements without running a job, so that what has no Spark form is found first.

    A value that only a job would give is unknown here, and so is everything that depends on it. Gives the last
    value, or None.
    """
    evaluator = Evaluator(program.types, engine, io.StringIO())
    evaluator.per_row = program.per_row
    scope: Scope[Any] = Scope(None, dict(names))
    engine.planning = True
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
        engine.planning = False
    return last
