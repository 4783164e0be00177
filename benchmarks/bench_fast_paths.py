"""What each fast path saves: the same run with it and without it, in turns, in one warm session.

A fast path is a second way to the same bytes (`core/fast_paths.py` lists all of them). Each has a job here that takes
it. Reported are the best runs, by the CPU of all processes and by the clock, and the ratios; on a shared machine only
those of the CPU mean anything. A path whose ratio is not clearly below 1 is code for nothing, and should go.

    python benchmarks/bench_fast_paths.py [small_inputs fragments ...] [--rows 500000] [--runs 3]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import bench_correlation as correlation
import bench_pipeline as base
import pyarrow.csv as pacsv
from pyspark.sql import SparkSession

from clinker_spark.core.fast_paths import FAST_PATHS, without
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.session.sessions import session

GRAPH = """
pipeline: {{ name: graph }}
nodes:
  - type: source
    name: orders
    config:
      type: csv
      path: {data}
      {key}
      schema: {{ id: int, customer: string, city: string, qty: int, price: float, rate: float, ordered: date }}
  - {{ type: transform, name: priced, input: orders, config: {{ cxl: "emit gross = price * qty" }} }}
  - type: aggregate
    name: totals
    input: priced
    config: {{ group_by: [customer], cxl: "emit customer = customer\\nemit total = sum(gross)" }}
  - type: combine
    name: shares
    input: {{ p: priced, t: totals }}
    config: {{ where: p.customer == t.customer, on_miss: skip, propagate_ck: driver,
              cxl: "emit id = p.id\\nemit share = p.gross / t.total" }}
  - {{ type: output, name: a, input: shares, config: {{ type: csv, path: {folder}/a.csv }} }}
  - {{ type: output, name: b, input: totals, config: {{ type: csv, path: {folder}/b.csv }} }}
  - {{ type: transform, name: large, input: totals, config: {{ cxl: "filter total > 1000.0" }} }}
  - {{ type: output, name: c, input: large, config: {{ type: csv, path: {folder}/c.csv }} }}
error_handling: {{ strategy: continue, dlq: {{ path: {folder}/letters.csv }} }}
"""
"""A part of each job of a run: a transform, a total with two readers, a combine, three outputs, dead letters."""

KEY = "correlation_key: id"
"""Totals of customers are made of many of these: they are made again without those of records that failed."""

TINY, SMALL = 500, 5_000
JOBS: dict[str, tuple[str, int, str]] = {
    "small_inputs": ("graph", SMALL, ""),
    "interpreted_expressions": ("graph", TINY, ""),
    "rows_in_plan": ("graph", SMALL, ""),
    "shared_rows": ("graph", SMALL, ""),
    "outputs_together": ("graph", SMALL, ""),
    "one_message": ("graph", SMALL, ""),
    "few_letters": ("graph", SMALL, ""),
    "fragments": ("lines", 0, "auto"),
    "worker_parts": ("lines", 0, "auto"),
    "growing_files": ("lines", 0, "auto"),
    "whole_pieces": ("json lines", 0, "auto"),
    "finished_cells": ("lines", 0, "spark"),
    "guessed_names": ("json lines", 0, "auto"),
    "readers_letters": ("dirty", 0, "spark"),
    "kept_results": ("graph", 0, ""),
    "small_groups": ("keyed graph", SMALL, ""),
    "row_groups": ("groups", 0, ""),
    "failures_alone": ("group totals", 0, ""),
    "listed_groups": ("group totals", 0, ""),
}
"""By fast path: the kind of pipeline, how many records it reads (0: `--rows`), and its engine."""


def made(folder: Path, kind: str, rows: int, *, small: bool) -> Path:
    """The input of pipelines of a kind."""
    if kind in ("groups", "group totals"):  # ten records each; one group in a thousand fails
        data = folder / f"groups-{rows}.csv"
        if not data.exists():
            correlation.generate(data, rows, rows // 10, 0.001)
        return data
    # A record in a hundred fails; in small inputs one in fifty, so that there are some.
    dirty = 0.02 if small else 0.01 if kind == "dirty" else 0.0
    data = folder / f"{rows}-{dirty}.csv"
    if not data.exists():
        base.generate(data, rows, dirty)
    if kind != "json lines":
        return data
    lines = data.with_suffix(".jsonl")
    if not lines.exists():
        frame = pacsv.read_csv(data).to_pandas(date_as_object=True).astype({"ordered": str})
        frame.to_json(lines, orient="records", lines=True)
    return lines


def pipeline(folder: Path, kind: str, data: Path, engine: str) -> Path:
    """A file with a pipeline of a kind."""
    if kind in ("graph", "keyed graph"):
        text = GRAPH.format(data=data, folder=folder, key=KEY if kind == "keyed graph" else "")
    elif kind in ("groups", "group totals"):
        rest = correlation.LINES if kind == "groups" else correlation.TOTALS
        text = correlation.PIPELINE.format(data=data, key="correlation_key: order_id", rest=rest)
    else:
        text = base.PIPELINE.format(data=data, out=folder / "out.csv", letters=folder / "letters.csv")
        text = text.replace("name: bench }", f"name: bench, engine: {engine} }}")
        if kind == "json lines":
            text = text.replace("      type: csv\n", "      type: json\n      options: { format: ndjson }\n")
            text = text.replace("{ type: csv, ", "{ type: json, options: { format: ndjson }, ")
    path = folder / "pipeline.yaml"
    path.write_text(text)
    return path


def measured(spark: SparkSession, file: Path, name: str, runs: int) -> dict[str, tuple[float, float]]:
    """The best times with it and without it: (CPU, clock)."""

    def once() -> None:
        run(prepare(file), spark)

    def left_out() -> None:
        with without(name):
            once()

    sides: dict[str, Callable[[], None]] = {"with": once, "without": left_out}
    found: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
    for turn in range(runs + 1):
        for side, work in sides.items():
            clock, cpu, _ = base.timed(work)
            if turn:
                found[side].append((cpu, clock))
    return {side: (min(c for c, _ in times), min(t for _, t in times)) for side, times in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(FAST_PATHS)}")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="clinker-bench-"))
    spark = session("local[*]")
    print(f"{'':24} {'CPU with':>9} {'without':>9} {'ratio':>6} {'clock with':>11} {'without':>9} {'ratio':>6}")
    try:
        for name in given.names or FAST_PATHS:
            kind, rows, engine = JOBS[name]
            here = folder / name
            here.mkdir()
            data = made(folder, kind, rows or given.rows, small=rows > 0)
            best = measured(spark, pipeline(here, kind, data, engine), name, given.runs)
            (cpu, clock), (cpu_without, clock_without) = best["with"], best["without"]
            print(
                f"{name:24} {cpu:8.2f}s {cpu_without:8.2f}s {cpu / cpu_without:6.2f}"
                f" {clock:10.2f}s {clock_without:8.2f}s {clock / clock_without:6.2f}",
                flush=True,
            )
            shutil.rmtree(here)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
