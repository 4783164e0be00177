"""The same queries as rows on Spark: same answers, same order. Files in and out, mistakes before any job."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import clinker_spark
from clinker_spark.plan import memory
from clinker_spark.query.failures import QueryError
from clinker_spark.query.lower.values import SparkDataset
from clinker_spark.query.prepare import prepare
from clinker_spark.query.program import compile_query, located, run
from clinker_spark.query.types import ListType
from clinker_spark.query.values import Dataset
from clinker_spark.runtime.query.engine import QueryEngine
from tests.query.programs import CASES, ORDERS, PEOPLE

Runner = Callable[..., Any]


@pytest.fixture
def on_spark(quick: SparkSession) -> Runner:
    """Runs a program whose lists are rows on Spark, and gives the answer as plain values."""

    def evaluate(text: str, **lists: list[Any]) -> Any:
        engine = QueryEngine(lambda: quick)
        names: dict[str, Any] = {name: SparkDataset(engine.inline(rows)) for name, rows in lists.items()}
        types = {name: ListType(value.relation.row, dataset=True) for name, value in names.items()}
        program = prepare(compile_query(text, names=types), engine, types, names)
        value = run(program, engine, names=names)
        with located(program.source):
            return engine.rows(value) if isinstance(value, Dataset) else value

    return evaluate


def test_cases_on_spark(on_spark: Runner) -> None:
    def wrong(name: str) -> str | None:
        text, answer = CASES[name]
        try:
            found = on_spark(text, people=PEOPLE, orders=ORDERS)
        except QueryError as error:
            return f"{name}: {error}"
        return None if found == answer else f"{name}: {found} is not {answer}"

    with ThreadPoolExecutor(4) as pool:  # small jobs wait more than they work
        assert [problem for problem in pool.map(wrong, CASES) if problem] == []


def test_files_in_and_out(spark: SparkSession, tmp_path: Path) -> None:
    """Reads csv, jsonl and yaml, writes every format, and reads what was written."""
    people = tmp_path / "people.csv"
    people.write_text('name,age\nAda,36\nBob,\n"Eve, M.",50\n', encoding="utf-8")
    orders = tmp_path / "orders.jsonl"
    orders.write_text('{"who": "Ada", "n": 2}\n{"who": "Bob", "n": null}\n')
    cities = tmp_path / "cities.yaml"
    cities.write_text("- {who: Ada, city: Rome}\n- {who: Bob, city: Ulm}\n")
    text = f"""
    let joined =
      from p in load "{people}"
      left join o in load "{orders}" on o.who == p.name
      left join c in load "{cities}" on c.who == p.name
      select {{name: p.name, age: p.age, n: o.n, city: c.city}}
    """
    rows = [
        {"name": "Ada", "age": 36, "n": 2, "city": "Rome"},
        {"name": "Bob", "age": None, "n": None, "city": "Ulm"},
        {"name": "Eve, M.", "age": 50, "n": None, "city": None},
    ]
    saves = "".join(f'save joined to "{tmp_path}/out.{kind}"\n' for kind in ("csv", "json", "yaml", "parquet"))
    result = clinker_spark.query(text + saves + "joined")
    assert [row.asDict() for row in result.collect()] == rows
    csv_text = (tmp_path / "out.csv").read_text()
    assert csv_text == 'name,age,n,city\nAda,36,2,Rome\nBob,,,Ulm\n"Eve, M.",50,,\n'
    assert json.loads((tmp_path / "out.json").read_text()) == rows
    for kind in ("yaml", "parquet"):
        again = clinker_spark.query(f'from r in load "{tmp_path}/out.{kind}" select r')
        assert [row.asDict() for row in again.collect()] == rows


def test_declared_types(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_text("id\tname\twhen\n007\tAda\t2024-03-01\n")
    text = f'type P {{ id: string, when: date }}\nfrom p in load "{path}" as P where p.when < #2025-01-01# select p'
    assert clinker_spark.query(text).first()[0] == "007"
    with pytest.raises(QueryError, match="missing field nme for P"):
        clinker_spark.query(f'type P {{ nme: string }}\nload "{path}" as P')


def test_dataframes_and_lists_from_python(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("Ada", 36), ("Bob", 17)], "name string, age int")
    result = clinker_spark.query(
        "from p in people join c in cities on c.who == p.name where p.age > low select {n: p.name, c: c.city}",
        people=frame,
        cities=[{"who": "Ada", "city": "Rome"}, {"who": "Bob", "city": "Ulm"}],
        low=20,
    )
    assert [tuple(row) for row in result.collect()] == [("Ada", "Rome")]
    assert clinker_spark.query("sum(from p in people select p.age)", people=frame) == 53


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("from p in people select print(p.name)", "print(p.name)"),
        ("fun f(n: int): int { var t = n\nreturn t }\nfrom p in people select f(p.age)", "f(p.age)"),
        ("from p in people select if p.age > 1 then p.name else p.age", "if p.age > 1 then p.name else p.age"),
        ("people[0]", "people[0]"),
        ("reverse(people)", "reverse(people)"),
    ],
)
def test_what_has_no_spark_form_is_found_before_any_job(spark: SparkSession, text: str, marked: str) -> None:
    frame = spark.createDataFrame([("Ada", 36)], "name string, age int")
    with pytest.raises(QueryError) as error:
        clinker_spark.query(f"let before = count(people)\n{text}", people=frame)
    found = error.value.diagnostics[0]
    assert found.code == "E708" and found.source is not None and found.span is not None
    assert found.source.text[found.span.start : found.span.end] == marked


def test_a_value_that_fails_on_spark_is_a_finding(on_spark: Runner) -> None:
    with pytest.raises(QueryError, match="division by zero") as error:
        on_spark("from p in people select 10 / (p.age - 36)", people=PEOPLE)
    found = error.value.diagnostics[0]
    assert found.code == "E705" and found.source is not None and found.span is not None
    assert found.source.text[found.span.start : found.span.end] == "10 / (p.age - 36)"


def test_sql_leaves_the_work_to_catalyst(spark: SparkSession, tmp_path: Path) -> None:
    """Columns are pruned, conditions reach the file, and a correlated exists is a join."""
    spark.createDataFrame([(1, "x", 2), (2, "y", 3)], "a int, b string, c int").write.parquet(str(tmp_path / "t"))
    text = f"""
    let t = load "{tmp_path}/t" with {{format: "parquet"}}
    from x in t where x.a > 1 && exists(from y in t where y.a == x.a select y) unordered select x.c
    """
    plan = clinker_spark.query(text)._jdf.queryExecution().executedPlan().toString()
    assert "GreaterThan(a,1)" in plan
    assert "LeftSemi" in plan
    assert "b#" not in plan


@pytest.mark.parametrize(("held", "joins"), [(2_000, (1, 1)), (100_000, (0, 2))])
def test_no_task_holds_more_than_it_may(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int, joins: tuple[int, int]
) -> None:
    """What Python reads is tiny by Spark's estimate. A file goes whole if it is known to be small."""
    monkeypatch.setattr(memory, "BROADCAST_BYTES", held)
    for name, rows in (("orders", 900), ("customers", 900), ("few", 9)):
        lines = [f"{i},{name} {i}" for i in range(rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,text", *lines]) + "\n")
    text = f"""
    from o in load "{tmp_path}/orders.csv"
    join c in load "{tmp_path}/customers.csv" on c.id == o.id
    join f in load "{tmp_path}/few.csv" on f.id == o.id
    select {{id: o.id, c: c.text, f: f.text}}
    """
    engine = QueryEngine(lambda: spark)
    value = run(prepare(compile_query(text), engine), engine)
    assert isinstance(value, SparkDataset)
    with engine._explained():
        plan = engine.dataframe(value)._jdf.queryExecution().executedPlan().toString()
    assert (plan.count("SortMergeJoin "), plan.count("BroadcastHashJoin ")) == joins, plan
    assert engine.rows(value) == [{"id": i, "c": f"customers {i}", "f": f"few {i}"} for i in range(9)]
