"""What do CSV lines as SQL text cost? Ten columns written by `render` with write.text and by Spark's CSV writer.

Three million rows are generated once as Parquet; the two sides write them in turns in one session. The machine is
shared, so only the ratio of the best runs means anything.

    python benchmarks/bench_csv_lines.py [--rows 3000000] [--runs 5] [--cores 2]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from clinker_spark.config.model.output import CsvOutput
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.spark.columns.types import schema_of
from clinker_spark.spark.render.rendering import OutColumn, render
from clinker_spark.spark.session.sessions import session

COLUMNS = (
    "id",
    "concat('customer ', id) AS name",
    "concat('user', id, '@example.com') AS email",
    "IF(id % 20 = 0, concat('12, Long \"Road\" ', id), concat('Street ', id)) AS street",
    "concat('Town ', id % 1000) AS town",
    "CAST(id % 97 AS BIGINT) AS qty",
    "CAST((id % 100000) / 7 AS DOUBLE) AS price",
    "CAST((id % 100000) / 100 AS DECIMAL(29, 2)) AS amount",
    "date_add(DATE'2020-01-01', CAST(id % 2000 AS INT)) AS ordered",
    "id % 2 = 0 AS paid",
)


def best_of(runs: int, sides: dict[str, Callable[[], None]]) -> dict[str, float]:
    """The best time of each side; they take turns, so that both see the same machine."""
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(runs):
        for name, run in sides.items():
            began = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, default=3_000_000)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--cores", type=int, default=2)
    given = options.parse_args()
    spark = session(f"local[{given.cores}]", app_name="bench", conf={"spark.driver.memory": "2g"})
    folder = Path(tempfile.mkdtemp(prefix="bench_csv_lines"))
    try:
        spark.range(given.rows).selectExpr(*COLUMNS).write.parquet(str(folder / "rows"))
        frame = spark.read.parquet(str(folder / "rows"))
        columns = tuple(OutColumn(name, t, quote(name)) for name, t in schema_of(frame.schema).items())
        line = render(CsvOutput(type="csv", path="out.csv"), columns, None).line
        lines = frame.selectExpr(f"{line} AS value")
        sides: dict[str, Callable[[], None]] = {
            "write.text of lines": lambda: lines.write.mode("overwrite").text(str(folder / "text")),
            "write.csv": lambda: frame.write.mode("overwrite").csv(str(folder / "csv"), escape='"'),
        }
        best = best_of(given.runs, sides)
        for name, seconds in best.items():
            print(f"{name:<22}{seconds:8.2f} s {given.rows / seconds / 1e6:8.2f} M rows/s")
        ours, theirs = best.values()
        print(f"ratio (ours / Spark's) {ours / theirs:7.2f}")
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
