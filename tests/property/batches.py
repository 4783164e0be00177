"""Records into Spark and results out of it with the order of map keys kept (rows of PySpark lose it), and hundreds of
programs in one Spark job, their projections merged level by level.

A filter becomes a kept-or-not column here instead of dropping rows, so that programs do not disturb each other; real
dropping, exploding and grouping is tested through `Program.apply`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clinker_spark.core.types import ANY, Kind, Type
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.ir import TEmit
from clinker_spark.cxl.lower.plan import LoweredProgram, Project, PythonColumn, Where, quote
from clinker_spark.cxl.lower.statements import lower_program
from clinker_spark.cxl.program import Program
from clinker_spark.cxl.system import Context
from clinker_spark.spark.columns.python_calls import arrow_type, python_column, to_arrow
from tests.support.batch import Result
from tests.support.rows import from_row

T = TypeVar("T")


def frame(spark: SparkSession, schema: Mapping[str, Type], rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """A DataFrame of the interpreter's values in their physical types, maps in their order."""
    arrays = [pa.array([to_arrow(row.get(name), t) for row in rows], arrow_type(t)) for name, t in schema.items()]
    table = pa.table(arrays, names=list(schema))
    ddl = ", ".join(f"{quote(name)} {physical(t)}" for name, t in schema.items())
    return spark.createDataFrame(table, ddl)


def run_batch(df: DataFrame, programs: Sequence[Program], context: Context) -> list[list[Result]]:
    """The results of every program on every row, in their orders."""
    lowered = [lower_program(p.typed, context, tag=f"{i}_") for i, p in enumerate(programs)]
    levels: list[_Level] = [_Level() for _ in range(max((len(p.steps) for p in lowered), default=0))]
    keeps: list[list[str]] = [[] for _ in programs]
    for i, program in enumerate(lowered):
        for level, step in zip(levels, program.steps, strict=False):
            match step:
                case Project(columns=more):
                    level.columns += more
                case PythonColumn():
                    level.python.append(step)
                case Where(condition=condition):
                    keeps[i].append(f"$keep{i}_{len(keeps[i])}")
                    level.columns.append((keeps[i][-1], f"coalesce({condition}, FALSE)"))
    outputs = [_output(p, program, keeps[i]) for i, (p, program) in enumerate(zip(programs, lowered, strict=True))]
    needed = _mentioned(text for columns in outputs for text in columns.values())
    kept: list[set[str]] = []
    for level in reversed(levels):  # what no later step reads is dropped, or hundreds of columns ride along
        kept.append(set(needed))
        needed |= _mentioned(level.texts())
    for level, names in zip(levels, reversed(kept), strict=True):
        df = level.add_to(df, names, context)
    structs = [F.struct(*[F.expr(t).alias(n) for n, t in columns.items()]) for columns in outputs]
    rows = df.select(*[struct.alias(f"r{i}") for i, struct in enumerate(structs)]).collect()
    return [[_result(row[i], lowered[i], program) for row in rows] for i, program in enumerate(programs)]


def alike(items: Sequence[T], program: Callable[[T], Program], size: int, context: Context) -> list[list[T]]:
    """Batches of items whose programs take about as many steps, those with Python columns apart; the longest first.

    A batch has as many projections as its longest program, and Spark analyses all that is below anew for each of them:
    among others, a few long programs would make every batch a long one."""

    def steps(item: T) -> tuple[bool, int]:
        try:
            found = lower_program(program(item).typed, context).steps
        except Exception:  # whoever runs the program will find out, and say so
            return False, 0
        return any(isinstance(step, PythonColumn) for step in found), len(found)

    ordered = sorted(items, key=steps, reverse=True)
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


@dataclass
class _Level:
    """One projection for all programs."""

    columns: list[tuple[str, str]] = field(default_factory=list)
    python: list[PythonColumn] = field(default_factory=list)

    def texts(self) -> Iterator[str]:
        yield from (text for _, text in self.columns)
        yield from (text for p in self.python for _, text, _ in p.inputs)

    def add_to(self, df: DataFrame, names: set[str], context: Context) -> DataFrame:
        names = names | _mentioned(text for p in self.python for _, text, _ in p.inputs)
        kept = [quote(name) for name in df.columns if name in names]
        if self.columns:
            df = df.selectExpr(*kept, *[f"{text} AS {quote(name)}" for name, text in self.columns])
        if self.python:
            df = df.select("*", *[python_column(p, context).alias(p.name) for p in self.python])
        return df


_NAME = re.compile(r"`([^`]+)`")


def _mentioned(texts: Iterable[str]) -> set[str]:
    return {name for text in texts for name in _NAME.findall(text)}


def _output(program: Program, lowered: LoweredProgram, keeps: Sequence[str]) -> dict[str, str]:
    """What is read of one program: its columns, scoped variables, error, and whether the record was kept."""
    types = scoped_types(program)
    columns = {f"{k}": entries_sql(text, program.output[name]) for k, (name, text) in enumerate(lowered.outputs)}
    columns |= {f"s{k}": entries_sql(text, types[name]) for k, (name, text) in enumerate(lowered.scoped)}
    return columns | {
        "error": lowered.error or "CAST(NULL AS STRING)",
        "keep": " AND ".join(map(quote, keeps)) or "TRUE",
    }


def _result(row: Any, lowered: LoweredProgram, program: Program) -> Result:
    if not row["keep"]:
        return Result(skipped=True)
    if row["error"] is not None:
        return Result(error=row["error"].asDict())
    values = {n: from_entries(row[k], program.output[n]) for k, (n, _) in enumerate(lowered.outputs)}
    types = scoped_types(program)
    scoped = {n: from_entries(row[f"s{k}"], types[n]) for k, (n, _) in enumerate(lowered.scoped)}
    return Result(values, scoped=scoped)


def scoped_types(program: Program) -> dict[str, Type]:
    """The types of the scoped variables a program writes, by `$scope.name`."""
    return {f"${s.scope}.{s.name}": s.value.type for s in program.typed.statements if isinstance(s, TEmit) and s.scope}


def entries_sql(text: str, t: Type, depth: int = 0) -> str:
    """The value with every map in it as an array of its entries."""
    if not _has_map(t):
        return text
    inner = entries_sql(f"cxl_e{depth}", t.element or ANY, depth + 1)
    if t.kind is Kind.ARRAY:
        return f"transform({text}, cxl_e{depth} -> {inner})"
    entries = f"map_entries({text})"
    if inner == f"cxl_e{depth}":
        return entries
    value = f"named_struct('key', cxl_m{depth}.key, 'value', {inner.replace(f'cxl_e{depth}', f'cxl_m{depth}.value')})"
    return f"transform({entries}, cxl_m{depth} -> {value})"


def from_entries(value: Any, t: Type) -> Any:
    """What `entries_sql` gives, as the interpreter has it."""
    if value is None or not _has_map(t):
        return from_row(value, t)
    if t.kind is Kind.ARRAY:
        return [from_entries(v, t.element or ANY) for v in value]
    return {entry["key"]: from_entries(entry["value"], t.element or ANY) for entry in value}


def _has_map(t: Type) -> bool:
    if t.is_dynamic:
        return False
    return t.kind is Kind.MAP or (t.kind is Kind.ARRAY and _has_map(t.element or ANY))
