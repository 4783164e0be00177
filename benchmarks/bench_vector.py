"""Fragments against the script one would write by hand, and against `engine: spark`, interleaved in one warm session.

Jobs: CSV to CSV with a filter and five columns; the same with 1 % of dead letters; JSON lines to JSON lines; thirty
emits; a route to four files; orders that look up 500,000 customers; points that look up 2,000 bands, with 13.4 million
rows out (`vector_joins`); totals of five and of 500,000 groups (`vector_totals`; DuckDB runs all of these, too). The
script gets no dead letters and no order: it reads with a schema and writes as Spark does. Best time of the
clock and of the CPU (all processes), and their ratios to the script.

    python benchmarks/bench_vector.py [--rows 5000000] [--runs 3]
        [--jobs csv,dirty,json,emits,route,join,bands,few,many]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import bench_pipeline as base
import pyarrow.csv as pacsv
import vector_joins as joins
import vector_totals as totals
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.session.sessions import session

Work = Callable[[], object]
EMITS = [f"emit c{i} = {text}" for i in range(10) for text in (f"qty * {i + 2}", f"price * {i}.5", f'city + "{i}"')]
ROUTES = {"paris": 'city == "Paris"', "tokyo": 'city == "Tokyo"', "many": "qty > 50"}


def _pipeline(folder: Path, data: Path, engine: str, kind: str = "csv", cxl: str = "", route: bool = False) -> Path:
    """The pipeline of `bench_pipeline`, with another engine, format, program or end."""
    text = base.PIPELINE.format(data=data, out=folder / f"{engine}.out", letters=folder / f"{engine}.letters.csv")
    text = text.replace("name: bench }", f"name: bench, engine: {engine} }}")
    if kind == "json":
        text = text.replace("type: csv", "type: json").replace(
            f"path: {data}", f"path: {data}\n      options: {{ format: ndjson }}"
        )
        text = text.replace(
            f"path: {folder / f'{engine}.out'} }}",
            f"path: {folder / f'{engine}.out'}, options: {{ format: ndjson }} }}",
        )
    if cxl:
        start, end = text.index("        filter qty"), text.index("  - type: output")
        text = text[:start] + "".join(f"        {line}\n" for line in cxl.splitlines()) + text[end:]
    if route:
        start, end = text.index("  - type: output"), text.index("error_handling")
        conditions = ", ".join(f"{name}: '{condition}'" for name, condition in ROUTES.items())
        nodes = "  - type: route\n    name: r\n    input: priced\n"
        nodes += f"    config: {{ conditions: {{ {conditions} }}, default: rest }}\n"
        for port in (*ROUTES, "rest"):
            path = folder / f"{engine}.{port}.csv"
            nodes += f"  - {{ type: output, name: {port}, input: r.{port}, config: {{ type: csv, path: {path} }} }}\n"
        text = text[:start] + nodes + text[end:]
    path = folder / f"{engine}.yaml"
    path.write_text(text)
    return path


def _emits_script(spark: SparkSession, data: Path, out: Path) -> None:
    frame = spark.read.schema(base.SCHEMA).option("header", True).csv(str(data))
    for i in range(10):
        frame = frame.withColumn(f"c{3 * i}", F.col("qty") * (i + 2))
        frame = frame.withColumn(f"c{3 * i + 1}", F.col("price") * float(f"{i}.5"))
        frame = frame.withColumn(f"c{3 * i + 2}", F.concat("city", F.lit(str(i))))
    frame.write.mode("overwrite").option("header", True).csv(str(out))


def _json_script(spark: SparkSession, data: Path, out: Path) -> None:
    frame = spark.read.schema(base.SCHEMA).json(str(data))
    _derived(frame).write.mode("overwrite").json(str(out))


def _derived(frame: F.DataFrame) -> F.DataFrame:  # type: ignore[name-defined]
    frame = frame.where(F.col("qty") > 5).withColumn("gross", F.col("price") * F.col("qty"))
    frame = frame.withColumn("net", F.col("gross") * (1.0 - F.col("rate"))).withColumn("place", F.upper("city"))
    frame = frame.withColumn("year", F.year("ordered"))
    return frame.withColumn("bulk", F.when(F.col("qty") >= 50, "bulk").otherwise("retail"))


def _route_script(spark: SparkSession, data: Path, out: Path) -> None:
    frame = _derived(spark.read.schema(base.SCHEMA).option("header", True).csv(str(data)))
    port = F.when(F.col("city") == "Paris", "paris").when(F.col("city") == "Tokyo", "tokyo")
    frame = frame.withColumn("port", port.when(F.col("qty") > 50, "many").otherwise("rest"))
    for name in (*ROUTES, "rest"):
        rows = frame.where(F.col("port") == name).drop("port")
        rows.write.mode("overwrite").option("header", True).csv(str(out / name))


def jobs(spark: SparkSession, folder: Path, rows: int, wanted: list[str]) -> dict[str, dict[str, Work]]:
    """For each job: the script and both engines."""
    clean = folder / "clean.csv"
    own = joins.JOBS | totals.JOBS
    if set(wanted) - set(own):
        base.generate(clean, rows, 0.0)
    found: dict[str, dict[str, Work]] = {}
    for name in wanted:
        here = folder / name
        here.mkdir()
        if name in own:
            found[name] = own[name](spark, here, rows)
            continue
        data, out, options = clean, here / "script", {}
        script: Callable[[SparkSession, Path, Path], None] = base.script
        if name == "dirty":
            data = folder / "dirty.csv"
            base.generate(data, rows, 0.01)
        elif name == "json":
            data, script, options = folder / "clean.json", _json_script, {"kind": "json"}
            pacsv.read_csv(clean).to_pandas(date_as_object=True).astype({"ordered": str}).to_json(
                data, orient="records", lines=True
            )
        elif name == "emits":
            script, options = _emits_script, {"cxl": "\n".join(EMITS)}
        elif name == "route":
            script, options = _route_script, {"route": True}
        sides: dict[str, Work] = {"script": lambda s=script, d=data, o=out: s(spark, d, o)}  # type: ignore[misc]
        for engine in ("spark", "vector"):
            plan = prepare(_pipeline(here, data, engine, **options))
            sides[engine] = lambda plan=plan: run(plan, spark)  # type: ignore[misc]
        found[name] = sides
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jobs", default="csv,dirty,json,emits,route,join,bands,few,many")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="clinker-bench-"))
    try:
        spark = session("local[*]")
        for name, sides in jobs(spark, folder, given.rows, given.jobs.split(",")).items():
            results: dict[str, list[tuple[float, float, int]]] = {side: [] for side in sides}
            for i in range(given.runs + 1):
                for side, work in sides.items():
                    found = base.timed(work)
                    if i:
                        results[side].append(found)
            best = {side: [min(column) for column in zip(*rows, strict=True)] for side, rows in results.items()}
            clock, cpu, _ = best["script"]
            for side, (seconds, busy, _) in best.items():
                ratios = f"{seconds / clock:.2f} of its time, {busy / cpu:.2f} of its CPU"
                print(f"{name:6} {side:7} {seconds:6.2f} s {busy:6.2f} s CPU  {ratios}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
