"""Generated queries over small lists: the evaluator and Spark must agree on values, their order, and failures.

Another run with a seed of your own: `QUERY_SEED=7 pytest tests/property/test_queries_agree.py`.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from threading import Lock
from typing import Any

import pytest
from pyspark.sql import SparkSession

from clinker_spark.query.check.programs import Checked
from clinker_spark.query.failures import Failed, QueryError
from clinker_spark.query.lower.blocks import QueryLowering
from clinker_spark.query.lower.values import Column, SparkDataset, list_type
from clinker_spark.query.prepare import prepare
from clinker_spark.query.program import compile_query, run
from clinker_spark.query.scopes import Scope
from clinker_spark.runtime.query.engine import QueryEngine
from clinker_spark.spark.query.results import value_of
from clinker_spark.sql import tree as sql
from tests.property.queries import LISTS, Program, programs

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
SEED = int(os.environ.get("QUERY_SEED", "20261118"))
TOGETHER = 600 if EVERYTHING else 60
"""Programs that give values, asked many at a time: each is one value of one row."""
ALONE = 100 if EVERYTHING else 8
"""Programs asked one by one: their rows come sorted, as users get them. As many fail, which only one by one can."""
BATCH = 20

NO_FORM = "no Spark form"
FAILED = "failed"


class Engines:
    """Both engines over the same lists."""

    def __init__(self, spark: SparkSession) -> None:
        self.engine = QueryEngine(lambda: spark)
        self._lock = Lock()
        self.rows = {name: SparkDataset(self.engine.inline(rows)) for name, rows in LISTS.items()}
        self.types = {name: list_type(value.relation) for name, value in self.rows.items()}

    def _prepared(self, program: Program) -> Checked:
        """The program with its queries lowered. An engine is made for one program at a time."""
        with self._lock:
            return prepare(compile_query(str(program), names=self.types), self.engine, self.types, self.rows)

    def expected(self, program: Program) -> Any:
        """What the evaluator gives; None when the program is wrong before it runs."""
        checked = compile_query(str(program), names=self.types)
        try:
            return run(checked, names=dict(LISTS))
        except QueryError as error:
            return FAILED if error.diagnostics[0].code == "E705" else error

    def alone(self, program: Program) -> Any:
        try:
            checked = self._prepared(program)
            value = run(checked, self.engine, names=self.rows)
            return self.engine.rows(value) if isinstance(value, SparkDataset) else value
        except (QueryError, Failed) as error:
            code = error.diagnostics[0].code if isinstance(error, QueryError) else error.code
            return {"E705": FAILED, "E708": NO_FORM}.get(code, error)

    def column(self, program: Program) -> sql.Expr | None:
        """All that a program gives as one SQL value; None when it has no Spark form."""
        try:
            checked = self._prepared(program)
            [statement] = checked.statements
            found = self.engine.lowered(statement.value, Scope(None, dict(self.rows)), checked.types)  # type: ignore[attr-defined]
            if isinstance(found, Column):
                return found.sql
            assert found is not None
            return QueryLowering(checked.types, self.engine.inline).rows_as_array(found.relation).sql
        except QueryError as error:
            assert error.diagnostics[0].code == "E708", program
            return None

    def together(self, batch: Sequence[Program]) -> list[Any]:
        """What each gives, from one job. Where one of them fails, they are asked in smaller batches."""
        made = [self.column(program) for program in batch]
        asked = [sql.As(e, f"r{i}") for i, e in enumerate(made) if e is not None]
        try:
            row = self.engine.sql(sql.Query((sql.Select(tuple(asked)),))).collect()[0] if asked else ()
        except Exception as error:
            if len(batch) == 1:
                return [f"{FAILED}: {str(error)[:300]}"]
            half = len(batch) // 2
            return self.together(batch[:half]) + self.together(batch[half:])
        values = iter(value_of(value) for value in row)
        return [NO_FORM if e is None else next(values) for e in made]


def same(a: Any, b: Any) -> bool:
    """Value for value, in the same order; numbers of the same type."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and bool(a == b)


def smallest(engines: Engines, program: Program) -> Program:
    """The program with as many parts cut away as can be while the engines still differ."""
    for _ in range(30):
        for less in program.smaller():
            try:
                expected = engines.expected(less)
            except QueryError:
                continue
            found = engines.alone(less)
            if found is not NO_FORM and not same(expected, found):
                program = less
                break
        else:
            return program
    return program


@pytest.fixture(scope="module")
def engines(spark: SparkSession) -> Engines:
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    return Engines(spark)


def test_queries_agree(engines: Engines) -> None:
    wanted = Counter(values=TOGETHER, alone=ALONE, failing=ALONE)
    chosen: dict[str, list[tuple[Program, Any]]] = {kind: [] for kind in wanted}
    for program in programs(SEED):
        expected = engines.expected(program)
        kind = "failing" if expected is FAILED else "values" if len(chosen["alone"]) == ALONE else "alone"
        if len(chosen[kind]) < wanted[kind]:
            chosen[kind].append((program, expected))
        elif all(len(found) == wanted[name] for name, found in chosen.items()):
            break
    batches = [chosen["values"][i : i + BATCH] for i in range(0, TOGETHER, BATCH)]
    single = chosen["alone"] + chosen["failing"]
    with ThreadPoolExecutor(3) as pool:
        many = pool.map(lambda batch: engines.together([program for program, _ in batch]), batches)
        results = [found for batch in many for found in batch] + list(pool.map(lambda p: engines.alone(p[0]), single))
    compared = list(zip([*chosen["values"], *single], results, strict=True))
    without = sum(found is NO_FORM for _, found in compared)
    wrong = [(p, e, f) for (p, e), f in compared if f is not NO_FORM and not same(e, f)]
    lines = [f"{len(wrong)} of {len(compared)} programs differ (seed {SEED})"]
    for program, expected, found in sorted(wrong, key=lambda w: len(str(w[0])))[:6]:
        small = smallest(engines, program)
        lines += ["", str(program), f"  {expected!r}", f"  {found!r}"]
        lines += ["smaller:", str(small), f"  {engines.expected(small)!r}", f"  {engines.alone(small)!r}"]
    assert not wrong, "\n".join(lines)
    assert without < len(compared) * 0.1
    values = [e for (_, e), _ in compared]
    assert sum(bool(v) for v in values) > len(values) * 0.4


def test_the_generator_reaches_every_clause() -> None:
    text = "\n".join(str(program) for program in islice(programs(SEED), 400))
    words = ("left join", "right join", "outer join", "group by", "having", "sort by", "desc", "skip", "take", "let ")
    words += (
        "distinct",
        "union all",
        "intersect",
        "except",
        "exists(",
        "first(",
        "match ",
        "if ",
        " in [",
        ".to_int()",
    )
    assert [word for word in words if word not in text] == []
