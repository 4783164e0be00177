"""How fast are CSV files read? Our reader and Spark's own, the same typed columns, side by side.

Three million rows of eight columns are generated once; each side sums them up and writes them to Spark's noop sink, in
turns in one session. Reported are the best runs in seconds of the clock and of the CPU, and their ratios: the
machine may be shared, so only ratios mean anything, and those of CPU time the most.

    python benchmarks/bench_csv_read.py [--rows 3000000] [--runs 5] [--quoted]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv as pacsv
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.formats import CsvRead
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.spark.scan.csv.planning import make_plan
from clinker_spark.spark.scan.csv.source import read_csv
from clinker_spark.spark.scan.request import ReadRequest, SourceFile
from clinker_spark.spark.session.sessions import session

TYPES = {
    "id": "int",
    "customer": "string",
    "city": "string",
    "qty": "int",
    "price": "float",
    "rate": "float",
    "ordered": "date",
    "code": "int",
}
CITIES = np.array(["Paris", "London", "New York", "Tokyo", "Berlin"])


def generate(path: Path, rows: int, *, quoted: bool) -> None:
    """Columns as they come in practice; `quoted` puts every text in quotes."""
    random = np.random.default_rng(1)
    customers = np.array([f"customer {i}" for i in range(5000)])
    table = pa.table(
        {
            "id": np.arange(rows),
            "customer": customers[random.integers(0, len(customers), rows)],
            "city": CITIES[random.integers(0, len(CITIES), rows)],
            "qty": random.integers(1, 100, rows),
            "price": np.round(random.random(rows) * 1000, 2),
            "rate": np.round(random.random(rows), 4),
            "ordered": pa.array(random.integers(15000, 20000, rows).astype("int32")).cast(pa.date32()),
            "code": random.integers(0, 10**9, rows),
        }
    )
    pacsv.write_csv(table, path, pacsv.WriteOptions(quoting_style="needed" if quoted else "none"))


def summed(frame: DataFrame) -> None:
    sums = [F.sum(name) for name in ("id", "qty", "price", "rate", "code")]
    frame.agg(F.count("*"), *sums, *(F.max(name) for name in ("customer", "city", "ordered"))).collect()


def written(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def cpu() -> float:
    """CPU seconds of this process and all below it: the JVM and its Python workers."""
    me = psutil.Process()
    times = [process.cpu_times() for process in (me, *me.children(recursive=True))]
    return sum(t.user + t.system for t in times)


def seconds(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock and of the CPU."""
    start, start_cpu = time.perf_counter(), cpu()
    run()
    return time.perf_counter() - start, cpu() - start_cpu


def compared(name: str, ours: list[tuple[float, float]], theirs: list[tuple[float, float]]) -> str:
    (clock, used), (their_clock, their_used) = (tuple(map(min, zip(*runs, strict=True))) for runs in (ours, theirs))
    return (
        f"{name}: {clock:.2f} s, Spark {their_clock:.2f} s, ratio {clock / their_clock:.2f}; "
        f"CPU {used:.2f} s, Spark {their_used:.2f} s, ratio {used / their_used:.2f}"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=3_000_000)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--quoted", action="store_true")
    options.add_argument("--master", default="local[2]")
    given = options.parse_args()
    columns = tuple(Column(name=name, type=kind) for name, kind in TYPES.items())
    schema = ", ".join(f"{column.name} {physical(column.data_type)}" for column in columns)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "orders.csv"
        generate(path, given.rows, quoted=given.quoted)
        request = ReadRequest("orders", (SourceFile(str(path), path.name),), columns, CsvRead())
        planning = min(seconds(lambda: make_plan(request, parallelism=2))[0] for _ in range(3))
        print(f"{given.rows:,} rows, {path.stat().st_size / 1e6:.0f} MB; planning {planning:.2f} s")
        spark = session(given.master, app_name="bench_csv_read", conf={"spark.driver.memory": "2g"})
        for name, use in (("sums", summed), ("noop", written)):
            ours: list[tuple[float, float]] = []
            theirs: list[tuple[float, float]] = []
            for _ in range(given.runs):
                ours.append(seconds(lambda use=use: use(read_csv(spark, request).frame)))
                theirs.append(seconds(lambda use=use: use(spark.read.csv(str(path), schema=schema, header=True))))
            print(compared(name, ours, theirs))
        spark.stop()


if __name__ == "__main__":
    main()
