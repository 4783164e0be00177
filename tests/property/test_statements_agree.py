"""Statements that drop, multiply or group records, and windows: interpreter against `Program.apply` on real DataFrames.

Written programs first, one for each promise; then generated ones. They run over 1, 2 and 7 partitions in turn, the
written ones over each of these with CLINKER_CASES=all.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.families.aggregates import AGGREGATES
from clinker_spark.cxl.builtins.families.windows import WINDOWS
from clinker_spark.cxl.program import Program, compile
from clinker_spark.spark.columns.programs import Window
from tests.property import statements as st
from tests.property.statement_programs import group_cases, row_cases, window_cases
from tests.support.sessions import quick

SEED = int(os.environ.get("CXL_SEED", "20261115"))
EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
PARTITIONS = (1, 2, 7)
RECORDS = 30
GENERATED = 24  # of windows, of aggregates
GENERATED_ROWS = 18  # these are the largest: blocks in blocks, some of them run in Python
JOB = 12  # programs in one Spark job


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = quick(spark)
    # For a few records planning is most of the time: no order is sampled first.
    session.conf.set("spark.sql.shuffle.partitions", "1")
    return session


Frames = Mapping[int, DataFrame]


@pytest.fixture(scope="module")
def data() -> list[dict[str, Any]]:
    return st.generate(random.Random(SEED), RECORDS)


@pytest.fixture(scope="module")
def frames(session: SparkSession, data: list[dict[str, Any]]) -> Frames:
    """The records over each number of partitions."""
    return {n: st.partitioned(session, data, n) for n in PARTITIONS}


Runs = Sequence[tuple[Any, int]]
"""Cases, each with the number of partitions it runs over."""


def everywhere(cases: Sequence[Any]) -> Runs:
    """Over every number of partitions, if all cases are asked for, or else over one after the other."""
    return [(case, n) for n in PARTITIONS for case in cases] if EVERYTHING else in_turn(cases)


def in_turn(cases: Iterable[Any]) -> Runs:
    return list(zip(cases, cycle(PARTITIONS), strict=False))


def _jobs(runs: Runs, frames: Frames, spark_side: Callable[..., list[Any]]) -> Iterator[tuple[Any, int, Any]]:
    for i in range(0, len(runs), JOB):
        part = runs[i : i + JOB]
        found = spark_side([case for case, _ in part], [frames[n] for _, n in part])
        yield from ((case, n, theirs) for (case, n), theirs in zip(part, found, strict=True))


def _no_problems(problems: Sequence[str]) -> None:
    assert not problems, f"seed {SEED}, {len(problems)} differ\n\n" + "\n\n".join(problems[:15])


def check_rows(runs: Runs, data: list[dict[str, Any]], frames: Frames) -> Counter[str]:
    """Compares both engines on all cases; counts what came out."""
    ours = {id(case): st.interpret_rows(case, data) for case, _ in runs}
    results = [r for found in ours.values() for of_record in found.values() for r in of_record]
    counts = Counter("errors" if r.error is not None else "rows" for r in results)
    problems = []
    for case, partitions, theirs in _jobs(runs, frames, st.spark_rows):
        found = st.row_differences(case, data, ours[id(case)], theirs)
        problems += [f"{case.text}\n  {partitions} partitions\n{f}" for f in found[:1]]
    _no_problems(problems)
    return counts


def check_groups(runs: Runs, data: list[dict[str, Any]], frames: Frames) -> Counter[str]:
    problems: list[str] = []
    counts: Counter[str] = Counter()
    for case, partitions, theirs in _jobs(runs, frames, st.spark_groups):
        counts.update("errors" if r.error is not None else "rows" for r in theirs.rows)
        counts["failed"] += len(theirs.failed)
        found = st.group_differences(case, data, theirs)
        problems += [f"{case.text}\n  {partitions} partitions\n{f}" for f in found[:2]]
    _no_problems(problems)
    return counts


def rows(text: str, window: Window | None = None, **options: int) -> st.RowCase:
    return st.RowCase(compile(text, st.COLUMNS, **options), window)


def groups(text: str, *group_by: str) -> st.GroupCase:
    return st.GroupCase(compile(text, st.COLUMNS, mode="aggregate", group_by=group_by))


# ------------------------------------------------------------------ written programs

ROW_PROGRAMS = [
    "filter n > 1\nemit v = n * 2",
    "filter flag\nemit v = k",
    "emit before = 10 / n\nfilter flag\nemit v = n",
    "filter flag\nemit v = 10 / n",
    "filter 10 / n > 3\nemit v = n",
    "emit n = n + 1\nfilter n > 2\nemit v = n",
    "distinct by k\nemit v = n",
    "distinct by f\nemit v = n",
    "distinct by d\nemit v = k",
    "distinct by day\nemit v = n",
    "distinct by flag\nemit v = n",
    "distinct by x\nemit v = n",
    "distinct by items\nemit v = n",
    "distinct by g\nemit v = g",
    "distinct by m\nemit v = m",
    "distinct\nemit v = n",
    'let key = k.upper() ?? "none"\ndistinct by key\nemit v = key',
    "let key = 10 / n\ndistinct by key\nemit v = key",
    "filter n > 0\ndistinct by k\nemit v = n",
    "distinct by k\nfilter n > 0\nemit v = n",
    "distinct by k\ndistinct by flag\nemit v = n",
    'emit k = "same"\ndistinct by k\nemit v = n',
    "emit $record.total = n + 1\nemit $pipeline.last = k\nemit $source.seen = day\nemit v = $record.total * 2",
    "emit $record.a = n\nfilter $record.a > 1\nemit $record.a = $record.a * 10\nemit v = $record.a",
    "trace info if flag 10 / n\nemit v = 1",
    "10 / n\nemit v = 1",
]

EACH_PROGRAMS = [
    "emit each e in items { emit v = e }",
    "emit each e in items outer { emit v = e }",
    "emit tag = k\nemit each e in items { emit v = e * 2\n emit w = v.to_string() }",
    "emit each e in items { emit v = 10 / e }",
    "emit each e in items outer { emit v = 10 / e }",
    "emit each r in rows { emit each e in r { emit v = e } }",
    "emit each r in rows outer { emit size = r.length()\n emit each e in r outer { emit v = e } }",
    "emit each r in rows { emit v = r.length()\n emit each e in r { emit w = 10 / e } }",
    "emit each r in rows { let s = 10 / r.length()\n emit each e in r { emit v = e + s } }",
    "emit each e in items { emit v = e }\nemit each e in items { emit v = e + 100\n emit w = k }",
    "emit each r in rows { emit each e in r { emit v = e }\n emit each e in items { emit w = e } }",
    "emit each e in bag { emit v = e.type_of() }",
    "emit each e in bag { emit v = e.k }",
    "emit each e in x { emit v = e }",
    "emit each e in x outer { emit v = e\n emit t = e.type_of() }",
    "emit each b in bag { emit each e in b { emit v = e } }",
    "filter flag\nemit each e in items { emit v = e + n }",
    "emit each e in items { emit n = e\n emit v = n + 1 }",
    "emit each e in items.filter(it => it > 1) { emit v = [y + e for y in items if y != null] }",
    'emit each e in items { emit v = if e > 1 then "big" else null }\nemit after = 10 / n',
    "distinct by k\nemit each e in items { emit v = e }",
    "emit each e in items { emit v = e }\nemit each e in bag { emit v = e }",
    "emit each e in items { emit v = e }\nemit each e in items { emit v = e * 0.5 }",
    'emit each e in items { let a = e ?? 0\n trace "x"\n emit v = [a, a * 2].map(it => it + n) }',
    "emit each e in items { emit $record.last = e\n emit v = $record.last }",
    "emit v = d\nemit each e in items { emit v = d * e }",
    'emit each e in items { emit v = ("" + k).repeat(e) }',
]

WINDOW_PROGRAMS = [
    ("emit v = $window.count()\nemit w = $window.row_number()", ("k",), ("n",)),
    ("emit v = $window.sum(f)\nemit w = $window.cumulative_sum(f)\nemit a = $window.avg(f)", ("k",), ("n",)),
    ("emit v = $window.sum(d)\nemit w = $window.cumulative_sum(d)\nemit a = $window.avg(d)", ("flag",), ("day",)),
    ("emit v = $window.min(n)\nemit w = $window.max(k)\nemit a = $window.min(f)", ("flag",), ("k",)),
    ("emit v = $window.rank()\nemit w = $window.dense_rank()", ("k",), ("n",)),
    ("emit v = $window.rank()\nemit w = $window.dense_rank()", (), ("f", "k")),
    ("emit v = $window.lag(1).n\nemit w = $window.lead(2).k\nemit a = n - $window.lag(1).n", ("k",), ("day", "n")),
    ("emit v = $window.first().n\nemit w = $window.last().items\nemit a = $window.first_value(k)\nemit b = $window.last_value(x)", ("flag",), ("n",)),  # noqa: E501
    ("emit v = $window.any(n > 2)\nemit w = $window.every(flag)\nemit a = $window.exists(n == 1)\nemit b = $window.not_exists(n > 5)", ("k",), ()),  # noqa: E501
    ("emit v = $window.collect(n)\nemit w = $window.distinct(n)\nemit a = $window.distinct(k)\nemit b = $window.collect(x)", ("flag",), ("n",)),  # noqa: E501
    ("emit v = $window.distinct(f)\nemit w = $window.distinct(d)", ("k",), ("n",)),
    ("emit v = $window.distinct(g)\nemit w = $window.min(g)\nemit a = $window.max(g)", ("flag",), ("n",)),
    ("emit v = $window.min(g)\nemit w = $window.max(-g)", (), ()),
    ("emit v = $window.count()\nemit w = $window.row_number()", ("g",), ("n",)),
    ("emit v = $window.count()\nemit w = $window.collect(n)", ("x",), ("n",)),
    ("emit v = $window.count()\nemit w = $window.first_value(x)", ("m", "flag"), ()),
    ("emit v = $window.rank()\nemit w = $window.dense_rank()", (), ("g",)),
    ("let m = f * 2.0\nfilter n > 0\nemit v = $window.sum(m)\nemit w = $window.count()", ("k",), ("n",)),
    ("filter n > 0\nlet m = f * 2.0\nemit v = $window.sum(m)\nemit w = $window.first_value(m)", ("k",), ("n",)),
    ("let half = 10 / n\nlet other = half ?? 7\nemit v = $window.first_value(half)\nemit w = $window.collect(other)", ("flag",), ("n",)),  # noqa: E501
    ("emit v = $window.max(10 / n)\nemit w = $window.any(10 / n > 4)", ("k",), ("n",)),
    ("filter $window.row_number() <= 2\nemit v = n", ("k",), ("n",)),
    ("emit v = 10 / n\nemit w = $window.count()", ("flag",), ("n",)),
    ("emit v = $window.sum(n)\nemit w = v / $window.count()", (), ("n",)),
    ("emit share = f / $window.sum(f)\nemit v = $window.max(n) - n", ("flag",), ()),
    ("let half = 10 / n\nemit v = $window.max(half)", ("k",), ("n",)),
]  # fmt: skip

GROUP_PROGRAMS = [
    ("emit t = sum(n)", "k"),
    ("emit t = sum(n)", "flag"),
    ("emit t = sum(f)\nemit m = avg(f)", "k"),
    ("emit t = sum(d)\nemit m = avg(d)\nemit w = weighted_avg(d, n)", "k"),
    ("emit c = count(*)\nemit d = count(n)\nemit e = count(x)", "day"),
    ("emit lo = min(n)\nemit hi = max(n)\nemit s = min(k)\nemit f = max(f)\nemit day = max(day)", "flag"),
    ("emit l = collect(n)\nemit m = collect(x)\nemit i = collect(items)", "k"),
    ("emit w = weighted_avg(f, n)", "k"),
    ("filter n > 0\nemit t = sum(n)\nemit v = t * 2", "k"),
    ("emit t = sum(10 / n)", "k"),
    ("emit t = 10 / sum(n)", "k"),
    ("let half = n / 2\nemit t = sum(half)\nemit a = avg(n) - avg(half)", "k", "flag"),
    ("emit c = count(*)", "f"),
    ("emit c = count(*)", "d"),
    ("emit c = count(*)\nemit l = collect(n)", "g"),
    ("emit c = count(*)\nemit l = collect(x)", "x"),
    ("emit c = count(*)\nemit kind = x.type_of()\nemit half = sum(10 / n)", "x", "flag"),
    ("filter n > 0\nemit c = count(*)", "x"),
    ("emit c = count(*)\nemit twice = m + m", "m"),
    ("emit c = count(*)", "items"),
    ("emit x = count(x)\nemit y = min(n)", "x"),
    ('emit c = count(*)\nemit label = k.upper() + "!"', "k", "flag", "day"),
    ("emit t = sum(n)\nemit c = count(*)",),
    ("filter false\nemit t = sum(n)\nemit c = count(*)\nemit l = collect(k)\nemit lo = min(day)\nemit a = avg(d)",),
    ("filter false\nemit t = sum(n)", "k"),
    ("emit t = sum(n * 2)", "k"),
    (
        'emit t = sum(if flag then n else 0)\nemit u = sum(n) ?? -1\nemit v = if count(n) > 1 then "many" else "few"',
        "k",
    ),
    ("emit t = collect(n).length()\nemit v = collect(n).filter(it => it > 1)", "k"),
]


def _nodes(program: Program) -> Iterator[ir.TExpr]:
    return (node for expression in program.typed.expressions() for node in expression.walk())


def test_rows_filtered_deduplicated_and_scoped(data: list, frames: Frames) -> None:
    counts = check_rows(everywhere([rows(text) for text in ROW_PROGRAMS]), data, frames)
    assert counts["rows"] > 100 and counts["errors"] > 10


def test_emit_each(data: list, frames: Frames) -> None:
    cases = [rows(text) for text in EACH_PROGRAMS]
    cases += [rows(EACH_PROGRAMS[i], max_expansion=limit) for i in (0, 1, 3, 5, 6, 9) for limit in (1, 2, 3)]
    counts = check_rows(in_turn(cases), data, frames)  # a record fans out where it is, whatever its partition
    assert counts["rows"] > 300 and counts["errors"] > 30


def test_windows(data: list, frames: Frames) -> None:
    cases = [rows(text, Window(group_by, sort_by)) for text, group_by, sort_by in WINDOW_PROGRAMS]
    used = {n.function for case in cases for n in _nodes(case.program) if isinstance(n, ir.WindowRef)}
    assert used == set(WINDOWS)
    counts = check_rows(everywhere(cases), data, frames)
    assert counts["rows"] > 200


def test_aggregates(data: list, frames: Frames) -> None:
    cases = [groups(text, *group_by) for text, *group_by in GROUP_PROGRAMS]
    used = {n.function for case in cases for n in _nodes(case.program) if isinstance(n, ir.AggregateCall)}
    assert used == set(AGGREGATES)
    counts = check_groups(everywhere(cases), data, frames)
    assert counts["rows"] > 100 and counts["errors"] > 0 and counts["failed"] > 0


def test_aggregates_of_nothing(session: SparkSession) -> None:
    cases = [
        groups("emit t = sum(n)\nemit c = count(*)"),
        groups("emit t = sum(n)", "k"),
        groups("emit m = avg(d)\nemit l = collect(k)"),
    ]
    nothing = {n: st.partitioned(session, [], n) for n in PARTITIONS}
    assert check_groups(everywhere(cases), [], nothing)["rows"] > 0


# ---------------------------------------------------------------- generated programs


def test_generated_rows(data: list, frames: Frames) -> None:
    cases = list(islice(row_cases(random.Random(SEED)), GENERATED_ROWS))
    counts = check_rows(in_turn(cases), data, frames)
    assert counts["rows"] > GENERATED_ROWS and counts["errors"] > 0
    kinds = {type(s).__name__ for case in cases for s in _statements(case.program.typed.statements)}
    assert {"TEach", "TDistinct", "TFilter", "TLet", "TEmit"} <= kinds


def _statements(body: Sequence[ir.TStatement]) -> Iterator[ir.TStatement]:
    for s in body:
        yield s
        if isinstance(s, ir.TEach):
            yield from _statements(s.body)


def test_generated_windows(data: list, frames: Frames) -> None:
    counts = check_rows(in_turn(islice(window_cases(random.Random(SEED)), GENERATED)), data, frames)
    assert counts["rows"] > GENERATED * 10


def test_generated_aggregates(data: list, frames: Frames) -> None:
    counts = check_groups(in_turn(islice(group_cases(random.Random(SEED)), GENERATED)), data, frames)
    assert counts["rows"] > GENERATED and counts["failed"] > 0
