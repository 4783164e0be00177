"""Many small programs in one Spark job: their projections are merged level by level into one select each.

A filter becomes a kept-or-not column here instead of dropping rows, so that programs do not disturb each
other; real dropping, exploding and grouping is tested through `Program.apply`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clinker_spark.core.types import Type
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.lower.plan import Project, PythonColumn, Where, quote
from clinker_spark.cxl.lower.statements import lower_program
from clinker_spark.cxl.program import Program
from clinker_spark.cxl.system import Context
from clinker_spark.spark.columns.python_calls import python_column
from tests.support.rows import from_row, to_row


@dataclass(frozen=True)
class Job:
    """One program; `fields` maps its columns to columns of the shared DataFrame."""

    program: Program
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Result:
    """What became of one record: emitted columns, or an error kind with field, value and message, or a skip."""

    row: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    skipped: bool = False
    scoped: dict[str, Any] | None = None


def frame(spark: SparkSession, schema: Mapping[str, Type], rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """A DataFrame of the interpreter's values in their physical types."""
    ddl = ", ".join(f"{quote(name)} {physical(t)}" for name, t in schema.items()) or "`$none` INT"
    data = [tuple(to_row(row.get(name), t) for name, t in schema.items()) or (0,) for row in rows]
    return spark.createDataFrame(data, ddl)


def run_batch(df: DataFrame, jobs: Sequence[Job], context: Context) -> list[list[Result]]:
    """The results of every program on every row, in the order of `jobs` and of the rows."""
    lowered = [lower_program(j.program.typed, context, fields=j.fields, tag=f"{i}_") for i, j in enumerate(jobs)]
    keeps: list[list[str]] = [[] for _ in jobs]
    depth = max((len(p.steps) for p in lowered), default=0)
    for level in range(depth):
        columns: list[tuple[str, str]] = []
        python: list[PythonColumn] = []
        for i, program in enumerate(lowered):
            if level >= len(program.steps):
                continue
            match program.steps[level]:
                case Project(columns=more):
                    columns += more
                case PythonColumn() as column:
                    python.append(column)
                case Where(condition=condition):
                    keeps[i].append(f"$keep{i}_{level}")
                    columns.append((keeps[i][-1], f"coalesce({condition}, FALSE)"))
        if columns:
            df = df.select("*", *[F.expr(text).alias(name) for name, text in columns])
        for column in python:
            df = df.withColumn(column.name, python_column(column, context))
    outputs = []
    for i, program in enumerate(lowered):
        values = [F.expr(text).alias(f"{k}") for k, (_, text) in enumerate(program.outputs)]
        scoped = [F.expr(text).alias(f"s{k}") for k, (_, text) in enumerate(program.scoped)]
        error = F.expr(program.error) if program.error else F.lit(None).cast("string")
        keep = F.expr(" AND ".join(map(quote, keeps[i])) or "TRUE")
        outputs.append(F.struct(*values, *scoped, error.alias("error"), keep.alias("keep")).alias(f"r{i}"))
    rows = df.select(*outputs).collect()
    return [[_result(lowered[i], job, row[i]) for row in rows] for i, job in enumerate(jobs)]


def _result(lowered: Any, job: Job, row: Any) -> Result:
    if not row["keep"]:
        return Result(skipped=True)
    if row["error"] is not None:
        return Result(error=row["error"].asDict())
    types = job.program.output
    values = {name: from_row(row[k], types[name]) for k, (name, _) in enumerate(lowered.outputs)}
    scoped = {name: row[f"s{k}"] for k, (name, _) in enumerate(lowered.scoped)}
    return Result(row=values, scoped=scoped)
