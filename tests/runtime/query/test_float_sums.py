"""Sums of floats in queries do not depend on the order of the rows (decision 0006), and are those of the evaluator."""

from __future__ import annotations

import random
from typing import Any

from pyspark.sql import SparkSession

from clinker_spark.query.lower.values import SparkDataset
from clinker_spark.query.prepare import prepare
from clinker_spark.query.program import compile_query, run
from clinker_spark.query.types import ListType
from clinker_spark.runtime.query.engine import QueryEngine

PROGRAM = """
from r in rows
group by r.k into g
sort by g.key
select {
  key: g.key,
  total: sum(from x in g select x.v),
  some: sum(from x in g where x.n > 5 select x.v * 2.0),
  mean: avg(from x in g select x.v),
  means: avg(from x in g select x.n),
  once: sum(distinct(from x in g select x.v)),
  once_mean: avg(distinct(from x in g select x.n)),
  none: sum(from x in g where x.n < 0 select x.v),
  listed: sum((from x in g select x.v + 0.5)),
  inside: sum(from x in (from y in g sort by y.n select y.v) select x)
}
"""
WHOLE = "{total: sum(from r in rows select r.v), mean: avg(from r in rows select r.n)}"


def test_the_order_of_the_rows_does_not_show(quick: SparkSession) -> None:
    chance = random.Random(7)
    rows: list[dict[str, Any]] = [
        {"k": i % 3, "v": chance.choice([1e15, -1e15, 1.0, 1e-9]) * chance.random(), "n": 2**53 + chance.randrange(99)}
        for i in range(300)
    ]
    rows += [{"k": 0, "v": None, "n": 1}, {"k": 1, "v": rows[1]["v"], "n": None}, {"k": 3, "v": None, "n": None}]
    expected: Any = None
    for turn in range(3):
        chance.shuffle(rows)
        engine = QueryEngine(lambda: quick)
        frame = quick.createDataFrame(rows, "k BIGINT, v DOUBLE, n BIGINT").repartition(turn + 1)
        names: dict[str, Any] = {"rows": engine.frame("rows", frame)}
        types = {"rows": ListType(names["rows"].relation.row, dataset=True)}

        def on_spark(text: str, engine: QueryEngine = engine, names: Any = names, types: Any = types) -> Any:
            value = run(prepare(compile_query(text, names=types), engine, types, names), engine, names=names)
            return engine.rows(value) if isinstance(value, SparkDataset) else value

        found = on_spark(PROGRAM), on_spark(WHOLE)
        if expected is None:
            given = {"rows": list(rows)}
            expected = tuple(run(compile_query(t, names=types), names=given) for t in (PROGRAM, WHOLE))
        assert found == expected
