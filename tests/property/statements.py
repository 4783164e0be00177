"""Whole programs through `Program.apply` and `apply_aggregate`, several in one Spark job, and the same through the
interpreter. A record is known by its `$arrival`, which rides along and says what is first."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from clinker_spark.core.types import INT, Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.errors import EvalError
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN
from clinker_spark.cxl.interpret.coerce import coerce_record
from clinker_spark.cxl.interpret.expressions import Frame, compile_expr
from clinker_spark.cxl.interpret.keys import partition_key
from clinker_spark.cxl.interpret.statements import Outcome
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.cxl.program import Program, read_schema
from clinker_spark.spark.columns.programs import Window, apply, apply_aggregate
from tests.property.agreement import crash, error_of, identical, shown
from tests.property.batches import entries_sql, frame, from_entries, scoped_types
from tests.property.campaign import CONTEXT
from tests.support.batch import Result

COLUMNS: Mapping[str, str] = {
    "k": "string",
    "n": "int",
    "f": "float",
    "d": "decimal(2)",
    "day": "date",
    "flag": "bool",
    "items": "array(int)",
    "rows": "array(array(int))",
    "bag": "array",
    "x": "any",
    "g": "float",
    "m": "decimal",
}
# Few different keys, so that there are groups and duplicates; floats whose sums are exact in any order.
_POOLS: Mapping[str, Sequence[Any]] = {
    "k": ("a", "b", "é", "", None, "a"),
    "n": (1, 2, 3, 1, 0, None, -5, 2**62),
    "f": (0.5, 1.0, 2.25, -0.0, 0.0, None, -1.5),
    "d": ("1.00", "2.50", None, "-0.25", "1.00"),
    "day": ("2024-02-29", "2024-01-01", None, "2023-12-31"),
    "flag": (True, False, None),
    "items": ([1, 2, 3], [], None, [0, 5], [7], [None, 2]),
    "rows": ([[1, 2], [3]], [[]], None, [[4], None, [5, 0]], []),
    "bag": ([1, "a"], [], None, [[1, 2], [3]], [{"k": 1}, {"k": 2}], [True, None]),
    "x": (
        1,
        1.0,
        "a",
        None,
        [1, 2],
        {"k": 1},
        math.nan,
        True,
        2,
        "1",
        0,
        0.0,
        -0.0,
        2**53 + 1,
        2.0**53,
        -(2**63),
        -(2.0**63),
    ),
    # Keys that are hard to tell apart.
    "g": (0.0, -0.0, math.nan, None, 1.5, math.inf, -math.inf, math.nan),
    "m": ("1.5", "1.50", None, "10", "9", "10.0", "-0.1", "0", "0.00"),
}


def schema() -> dict[str, Type]:
    found = read_schema(COLUMNS)
    assert found is not None
    return found


def generate(rng: random.Random, count: int) -> list[dict[str, Any]]:
    return [coerce_record({name: rng.choice(pool) for name, pool in _POOLS.items()}, schema()) for _ in range(count)]


def partitioned(spark: SparkSession, data: Sequence[Mapping[str, Any]], partitions: int) -> DataFrame:
    """The records, scattered over so many partitions."""
    types = {**schema(), ARRIVAL_COLUMN: INT}
    df = frame(spark, types, [{**record, ARRIVAL_COLUMN: i} for i, record in enumerate(data)])
    return df.repartition(partitions).cache()  # every program of a job reads it


# ------------------------------------------------------------------------ rows


@dataclass(frozen=True)
class RowCase:
    """A row program; with a window its records are taken partition by partition."""

    program: Program
    window: Window | None = None

    @property
    def text(self) -> str:
        over = "" if self.window is None else f"\n  window: {self.window}"
        return self.program.typed.source.text + over


Rows = dict[int, list[Result]]
"""What became of each record (by arrival): no entry means that it was skipped or fanned out to nothing."""


def interpret_rows(case: RowCase, data: Sequence[Mapping[str, Any]]) -> Rows:
    found: Rows = {}
    if case.window is None:
        execution = case.program.execution(CONTEXT)
        for i, record in enumerate(data):
            found[i] = _results(lambda record=record: execution.run(record), case.program)
    else:
        for members in _window_partitions(case.window, data):
            execution = case.program.execution(CONTEXT)
            try:
                outcomes: Sequence[Any] = execution.run_window([data[i] for i in members], case.window.sort_by)
            except Exception as error:
                outcomes = [error] * len(members)
            for i, outcome in zip(members, outcomes, strict=True):
                found[i] = _results(lambda outcome=outcome: outcome, case.program)
    return {i: results for i, results in found.items() if results}


def _results(run: Callable[[], Any], program: Program) -> list[Result]:
    try:
        outcome = run()
    except EvalError as error:
        outcome = error
    except Exception as error:
        return [crash(error)]
    if isinstance(outcome, EvalError):
        return [Result(error=error_of(outcome))]
    if not isinstance(outcome, Outcome):
        return [crash(outcome)]
    if outcome.skipped is not None:
        return []
    written = {f"${scope}.{name}": value for scope, values in outcome.scoped.items() for name, value in values.items()}
    scoped = {name: written.get(name) for name in scoped_types(program)}
    return [Result({name: row.get(name) for name in program.output}, scoped=scoped) for row in outcome.rows]


def _window_partitions(window: Window, data: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    groups: dict[Any, list[int]] = {}
    for i, record in enumerate(data):
        groups.setdefault(tuple(partition_key(record[name]) for name in window.group_by), []).append(i)
    return [
        sorted(members, key=lambda i: tuple(_sort_key(data[i][name]) for name in window.sort_by))
        for members in groups.values()
    ]


def _sort_key(value: Any) -> tuple[int, Any]:
    """Nulls first, NaN last."""
    if value is None:
        return 0, 0
    return (2, 0) if isinstance(value, float) and math.isnan(value) else (1, value)


def spark_rows(cases: Sequence[RowCase], frames: Sequence[DataFrame]) -> list[Rows]:
    """All cases in one job, each over its own DataFrame: branches of a union, each with a column for its results."""
    branches = []
    for number, (case, df) in enumerate(zip(cases, frames, strict=True)):
        out = apply(case.program, df, context=CONTEXT, window=case.window)
        fields = {f"v{k}": entries_sql(quote(name), t) for k, (name, t) in enumerate(case.program.output.items())}
        fields |= {
            f"s{k}": entries_sql(quote(name), t) for k, (name, t) in enumerate(scoped_types(case.program).items())
        }
        fields["error"] = quote(ERROR_COLUMN) if ERROR_COLUMN in out.columns else "CAST(NULL AS STRING)"
        struct = F.struct(*[F.expr(text).alias(name) for name, text in fields.items()])
        arrival = F.col(quote(ARRIVAL_COLUMN))
        if not isinstance(out.schema[ARRIVAL_COLUMN].dataType, ArrayType):
            arrival = F.array(arrival)  # as a fan-out has it: the record's arrival, then the place among its rows
        branches.append(out.select(F.lit(number).alias("case"), arrival.alias("arrival"), struct.alias(f"r{number}")))
    found: list[Rows] = [{} for _ in cases]
    for row in sorted(_union(branches).collect(), key=lambda row: row["arrival"]):
        case, result = cases[row["case"]], row[f"r{row['case']}"]
        found[row["case"]].setdefault(row["arrival"][0], []).append(_row_result(case.program, result))
    return found


def _row_result(program: Program, row: Any) -> Result:
    if row["error"] is not None:
        return Result(error=row["error"].asDict())
    values = {name: from_entries(row[f"v{k}"], t) for k, (name, t) in enumerate(program.output.items())}
    scoped = {name: from_entries(row[f"s{k}"], t) for k, (name, t) in enumerate(scoped_types(program).items())}
    return Result(values, scoped=scoped)


def _union(branches: Sequence[DataFrame]) -> DataFrame:
    """By name. What a branch lacks is filled in once, not at every step of the union: planning is most of the time."""
    types = {f.name: f.dataType for branch in branches for f in branch.schema.fields}
    filled = [
        branch.select(
            *[name if name in branch.columns else F.lit(None).cast(t).alias(name) for name, t in types.items()]
        )
        for branch in branches
    ]
    return reduce(DataFrame.union, filled)


def row_differences(case: RowCase, data: Sequence[Mapping[str, Any]], ours: Rows, theirs: Rows) -> list[str]:
    problems = []
    for i in range(len(data)):
        a, b = ours.get(i, []), theirs.get(i, [])
        if len(a) != len(b) or not all(_same(x, y) for x, y in zip(a, b, strict=True)):
            lines = [
                f"  record {i}: {data[i]!r}",
                f"  interpreter: {[shown(r) for r in a]}",
                f"  spark:       {[shown(r) for r in b]}",
            ]
            problems.append("\n".join(lines))
    return problems


def _same(a: Result, b: Result) -> bool:
    if a.error is not None or b.error is not None:
        return a.error == b.error and "message" in (a.error or {})
    return identical(a.row, b.row) and identical(a.scoped, b.scoped)


# ------------------------------------------------------------------ aggregates


@dataclass(frozen=True)
class GroupCase:
    program: Program

    @property
    def text(self) -> str:
        return f"{self.program.typed.source.text}\n  group_by: {list(self.program.typed.group_by)}"


@dataclass
class Groups:
    """Rows (or errors) of the groups in order, and the errors of the records that never reached one."""

    rows: list[Result] = field(default_factory=list)
    failed: dict[int, Any] = field(default_factory=dict)


def spark_groups(cases: Sequence[GroupCase], frames: Sequence[DataFrame]) -> list[Groups]:
    branches, rejected = [], []
    for number, (case, df) in enumerate(zip(cases, frames, strict=True)):
        groups, failed = apply_aggregate(case.program, df, context=CONTEXT)
        fields = {f"v{k}": entries_sql(quote(name), t) for k, (name, t) in enumerate(case.program.output.items())}
        fields["error"] = quote(ERROR_COLUMN) if ERROR_COLUMN in groups.columns else "CAST(NULL AS STRING)"
        struct = F.struct(*[F.expr(text).alias(name) for name, text in fields.items()])
        # Ordered by arrival inside; a union keeps the order of its branches' rows, numbered here to be sure of it.
        numbered = groups.coalesce(1).select(
            F.lit(number).alias("case"), F.monotonically_increasing_id().alias("at"), struct.alias(f"r{number}")
        )
        branches.append(numbered)
        if failed is not None:
            rejected.append(
                failed.select(
                    F.lit(number).alias("case"),
                    F.col(quote(ARRIVAL_COLUMN)).alias("arrival"),
                    F.col(quote(ERROR_COLUMN)).alias("error"),
                )
            )
    found = [Groups() for _ in cases]
    for row in sorted(_union(branches).collect(), key=lambda row: row["at"]):
        found[row["case"]].rows.append(_row_result(cases[row["case"]].program, row[f"r{row['case']}"]))
    for row in _union(rejected).collect() if rejected else []:
        found[row["case"]].failed[row["arrival"]] = row["error"].asDict()
    return found


def group_differences(case: GroupCase, data: Sequence[Mapping[str, Any]], theirs: Groups) -> list[str]:
    """Records that Spark set aside must fail in the interpreter with the same error, before they are grouped; the rest,
    group by group, must give the same rows or errors."""
    problems = []
    for i, record in enumerate(data):
        error = row_error(case.program, record)
        if error != theirs.failed.get(i):
            problems.append(f"  record {i}: {record!r}\n  interpreter: {error}\n  spark:       {theirs.failed.get(i)}")
    kept = [record for i, record in enumerate(data) if i not in theirs.failed]
    ours, rows = _aggregate(case.program, kept), list(theirs.rows)
    if any(r.error is not None for r in ours):  # the interpreter stops at the first group that fails
        groups: dict[Any, list[Mapping[str, Any]]] = {}
        for record in kept:
            groups.setdefault(case.program.execution(CONTEXT).group_of(record), []).append(record)
        ours = sorted((r for members in groups.values() for r in _aggregate(case.program, members)), key=shown)
        rows.sort(key=shown)
    if len(ours) != len(rows) or not all(_same(a, b) for a, b in zip(ours, rows, strict=False)):
        problems.append(f"  interpreter: {[shown(r) for r in ours]}\n  spark:       {[shown(r) for r in rows]}")
    return problems


def row_error(program: Program, record: Mapping[str, Any]) -> Any:
    """The error of a record in a filter, as a key or in the argument of an aggregate function, or None."""
    frame = Frame(record, CONTEXT)
    try:
        for s in program.typed.statements:
            if isinstance(s, ir.TFilter) and compile_expr(s.predicate)(frame) is not True:
                return None
        program.execution(CONTEXT).group_of(record)
    except EvalError as error:
        return error_of(error)
    for s in program.typed.statements:
        if isinstance(s, ir.TEmit):
            try:
                for call in s.value.walk():
                    for argument in call.args if isinstance(call, ir.AggregateCall) else ():
                        compile_expr(argument)(frame)
            except EvalError as error:
                return {**error_of(error), "field": s.name}
    return None


def _aggregate(program: Program, members: Sequence[Mapping[str, Any]]) -> list[Result]:
    try:
        return [Result(row, scoped={}) for row in program.execution(CONTEXT).run_groups(members)]
    except EvalError as error:
        return [Result(error=error_of(error))]
    except Exception as error:
        return [crash(error)]
