"""Frames of analytic windows against DuckDB and plain Python, over generated data with ties and nulls."""

from __future__ import annotations

import datetime as dt
import os
import random
from typing import TYPE_CHECKING, Any

import pytest

from clinker_spark.config.model.order import SortField
from clinker_spark.config.model.transform import Frame
from clinker_spark.core.errors import ClinkerError
from clinker_spark.core.types import DATE, DATETIME, FLOAT, INT, STRING, Type
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN
from clinker_spark.cxl.program import compile
from clinker_spark.plan.nodes.transform import WindowPlan
from clinker_spark.plan.prepare import prepare
from clinker_spark.spark.columns.programs import apply
from clinker_spark.spark.operators.transform import analytic_window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA: dict[str, Type] = {
    "id": INT,
    "g": STRING.as_nullable(),
    "at": DATETIME.as_nullable(),
    "day": DATE.as_nullable(),
    "v": FLOAT.as_nullable(),
    "n": INT.as_nullable(),
}
CXL = """
emit w_sum = $window.sum(v)
emit w_avg = $window.avg(n)
emit w_min = $window.min(v)
emit w_max = $window.max(n)
emit w_count = $window.count()
emit w_all = $window.collect(v)
emit w_run = $window.cumulative_sum(n)
emit w_lag = $window.lag(1).id
"""
FRAMES = (
    {"rows": (-2, 0)},
    {"rows": (-3, -1)},
    {"rows": (None, 0)},
    {"rows": (1, None)},
    {"rows": (-1, 2)},
    {"range": dt.timedelta(days=2)},
    {"range": dt.timedelta(hours=30)},
)
SORTS = ("at", "day", "n", None)
EPOCH = dt.datetime(1970, 1, 1)


def generated(seed: int, count: int = 80) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    rows = []
    for i in range(count):
        at = EPOCH + dt.timedelta(
            days=rng.randint(-6, 6), hours=rng.choice([0, 0, 6, 23]), microseconds=rng.choice([0, 1])
        )
        rows.append(
            {
                "id": i,
                "g": rng.choice(["a", "b", "c", None]),
                "at": None if rng.random() < 0.1 else at,
                "day": None if rng.random() < 0.1 else at.date(),
                "v": None if rng.random() < 0.2 else rng.choice([0.1, 0.2, 0.3, -0.7, 1e16, -1e16, 3.0]),
                "n": None if rng.random() < 0.2 else rng.randint(-5, 5),
            }
        )
    return rows


def _seen(
    those: list[dict[str, Any]], i: int, frame: dict[str, Any], by: str | None, desc: bool
) -> list[dict[str, Any]]:
    """The records that the one at `i` sees."""
    if "rows" in frame:
        first, last = frame["rows"]
        begin = 0 if first is None else max(0, i + first)
        end = len(those) if last is None else max(0, i + last + 1)
        return those[begin:end]
    assert by is not None
    here = those[i][by]
    if here is None:
        return [r for r in those if r[by] is None]
    lift = lambda t: t if isinstance(t, dt.datetime) else dt.datetime(t.year, t.month, t.day)  # noqa: E731
    far = [(lift(here) - lift(r[by])) * (-1 if desc else 1) if r[by] is not None else None for r in those]
    return [r for r, d in zip(those, far, strict=True) if d is not None and dt.timedelta(0) <= d <= frame["range"]]


def model(rows: list[dict[str, Any]], frame: dict[str, Any], by: str | None, desc: bool) -> list[tuple[Any, ...]]:
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["g"], []).append(row)
    found = {}
    for those in groups.values():
        if by is not None:
            there = sorted((r for r in those if r[by] is not None), key=lambda r: r[by], reverse=desc)
            those = [*there, *(r for r in those if r[by] is None)]
        running: float | None = None
        for i, row in enumerate(those):
            seen = _seen(those, i, frame, by, desc)
            values = [r["v"] for r in seen if r["v"] is not None]
            numbers = [r["n"] for r in seen if r["n"] is not None]
            total: float | None = None
            for value in values:
                total = value if total is None else total + value
            if row["n"] is not None:
                running = row["n"] if running is None else running + row["n"]
            found[row["id"]] = (
                row["id"],
                total,
                sum(numbers) / len(numbers) if numbers else None,
                min(values, default=None),
                max(numbers, default=None),
                len(seen),
                values,
                running,
                those[i - 1]["id"] if i else None,
            )
    return [found[i] for i in sorted(found)]


CASES = [
    (frame, by, desc)
    for frame in FRAMES
    for by in SORTS
    for desc in (False, True)
    if "rows" in frame or by in ("at", "day")
]


EVERYTHING = os.environ.get("CLINKER_CASES") == "all"


@pytest.mark.parametrize("partitions", range(1, 8) if EVERYTHING else (1, 2, 7))
def test_frames_are_those_of_the_model(spark: SparkSession, partitions: int) -> None:
    """Sums of floats are compared bit by bit: their order is part of the answer."""
    from pyspark.sql import functions as F

    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    columns = "id long, g string, at timestamp_ntz, day date, v double, n long"
    program = compile(CXL, SCHEMA)
    try:
        for number, (frame, by, desc) in enumerate(CASES):
            if not EVERYTHING and number % 3 != partitions % 3:  # each case in one of the ways
                continue
            rows = generated(number)
            sort_by = () if by is None else (SortField(field=by, order="desc" if desc else "asc"),)
            window = WindowPlan(group_by=("g",), sort_by=sort_by, frame=Frame(**frame))
            listed = [tuple(row[name] for name in SCHEMA) for row in rows]
            df = spark.createDataFrame(listed, columns).withColumn(ARRIVAL_COLUMN, F.col("id"))
            made = apply(program, df.repartition(partitions, "v"), window=analytic_window(window, SCHEMA))
            names = ["id", *(name for name in made.columns if name.startswith("w_"))]
            got = [tuple(row) for row in made.orderBy("id").select(*names).collect()]
            assert got == model(rows, frame, by, desc), (frame, by, desc)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


HEAD = """
pipeline: { name: test }
nodes:
  - type: source
    name: rows
    config: { type: csv, path: rows.csv, schema: { id: int, g: string, at: nullable(date_time), n: nullable(int) } }
"""


def framed(name: str, frame: str, more: str = "") -> str:
    return f"""
  - type: transform
    name: {name}
    input: rows
    config:
      analytic_window: {{ group_by: [g], sort_by: [at], frame: {frame}{more} }}
      cxl: |
        emit total = $window.sum(n)
        emit mean = $window.avg(n)
        emit low = $window.min(n)
        emit high = $window.max(n)
        emit c = $window.count()
  - {{ type: output, name: {name}_out, input: {name}, config: {{ type: csv, path: {name}.csv }} }}
"""


def test_a_run_gives_what_duckdb_gives(bench: Any) -> None:
    import duckdb

    rows = [row for row in generated(5, 200) if row["g"] is not None]
    for i, row in enumerate(rows):  # DuckDB has no order of arrival: no ties among rows
        row["at"] = None if row["at"] is None or i % 13 == 0 else row["at"] + dt.timedelta(seconds=i)
    lines = [
        [r["id"], r["g"], "" if r["at"] is None else r["at"].isoformat(), "" if r["n"] is None else r["n"]]
        for r in rows
    ]
    bench.file("rows.csv", "id,g,at,n\n" + "".join(",".join(map(str, line)) + "\n" for line in lines))
    bench.run(HEAD + framed("week", "{ range: 3d }") + framed("seven", "{ rows: [-6, 0] }"))
    asked = {
        "week": "RANGE BETWEEN INTERVAL 3 DAY PRECEDING AND CURRENT ROW",
        "seven": "ROWS BETWEEN 6 PRECEDING AND CURRENT ROW",
    }
    for name, frame in asked.items():
        by = '"at" NULLS LAST' + (", id" if name == "seven" else "")
        query = f"""
            SELECT id, sum(n) OVER w, avg(n) OVER w, min(n) OVER w, max(n) OVER w, count(*) OVER w
            FROM read_csv('{bench.folder / "rows.csv"}')
            WINDOW w AS (PARTITION BY g ORDER BY {by} {frame}) ORDER BY id"""
        with duckdb.connect() as connection:
            wanted = connection.execute(query).fetchall()
        found = []
        for line in bench.text(f"{name}.csv").splitlines()[1:]:
            cells = line.split(",")
            numbers = [None if cell == "" else float(cell) for cell in cells[4:]]
            found.append((int(cells[0]), *numbers))
        assert found == [(row[0], *(None if x is None else float(x) for x in row[1:])) for row in wanted], name


@pytest.mark.parametrize(
    ("frame", "more", "code"),
    [
        ("{ rows: [0, -1] }", "", "E007"),
        ("{ rows: [0] }", "", "E007"),
        ("{ rows: [0, 9999999999] }", "", "E007"),
        ("{ range: 7 }", "", "E214"),
        ("{ range: 7d, rows: [0, 1] }", "", "E007"),
        ("{}", "", "E007"),
        ("{ rows: [-6, 0] }", ", source: rows", "E007"),
        ("{ range: 7d }", ", sort_by: []", "E007"),
        ("{ range: 7d }", ", sort_by: [id]", "E200"),
    ],
)
def test_frames_that_say_nothing(tmp_path: Any, frame: str, more: str, code: str) -> None:
    text = HEAD + framed("w", frame, more)
    if "sort_by" in more:
        text = text.replace("sort_by: [at], ", "")
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    assert caught.value.diagnostics[0].code == code
    assert caught.value.diagnostics[0].help and caught.value.diagnostics[0].span
