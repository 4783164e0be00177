"""Queries from Python: `clinker_spark.query("from p in people ...", people=df)`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.query.lower.values import SparkDataset
from clinker_spark.query.prepare import prepare
from clinker_spark.query.program import compile_query, deep_trees, located, run
from clinker_spark.query.sources import element_type
from clinker_spark.query.types import ListType, QType, type_of_value
from clinker_spark.runtime.query.engine import QueryEngine
from clinker_spark.spark.session.sessions import SparkSession, names_as_written, session


@dataclass(frozen=True)
class Table:
    """A table or view of the session, as a source: `query("from s in sales ...", sales=Table("prod.sales"))`."""

    name: str


def query(text: str, sources: Mapping[str, Any]) -> Any:
    """The result of a program: rows as a DataFrame, anything else as a plain value.

    The session is the one of the DataFrames, else the active one, else an embedded one that starts when rows need it.
    """
    given = next((s.sparkSession for s in sources.values() if _is_frame(s)), None)

    def spark() -> SparkSession:
        return given or session()

    engine = QueryEngine(spark)
    with names_as_written(given) if given is not None else nullcontext():
        return _query(text, sources, engine, spark)


def _query(text: str, sources: Mapping[str, Any], engine: QueryEngine, spark: Callable[[], SparkSession]) -> Any:
    values = {name: _source(engine, name, value, spark) for name, value in sources.items()}
    types = {name: _type(value) for name, value in values.items()}
    program = prepare(compile_query(text, names=types), engine, types, values)
    result = run(program, engine, sys.stdout, values)
    with deep_trees(program.source), located(program.source):
        return _result(engine, result)


def _is_frame(value: Any) -> bool:
    return hasattr(value, "sparkSession") and hasattr(value, "schema")


def _source(engine: QueryEngine, name: str, value: Any, spark: Any) -> Any:
    if _is_frame(value):
        return engine.frame(name, value)
    if isinstance(value, Table):
        try:
            return engine.frame(name, spark().table(value.name))
        except Exception as error:
            message = f"there is no table '{value.name}'"
            raise InputError([Diagnostic("E707", message, help=str(error).split("\n", 1)[0][:200])]) from None
    if isinstance(value, tuple):
        return list(value)
    if type(value).__name__ == "DataFrame" and hasattr(value, "to_dict"):  # pandas
        return value.to_dict("records")
    return value


def _type(value: Any) -> QType:
    if isinstance(value, SparkDataset):
        return ListType(value.relation.row, dataset=True)
    return type_of_value(value)


def _result(engine: QueryEngine, value: Any) -> Any:
    if isinstance(value, SparkDataset):
        return engine.dataframe(value)
    if isinstance(value, list) and value:
        element_type(value)  # says so when the rows have no common type
        return engine.dataframe(SparkDataset(engine.inline(value)))
    return value
