"""A build side larger than the memory: a JVM of 1 GiB joins an input of 3 GB on disk. It must end, by spilling.

python benchmarks/bench_combine_spill.py [--gigabytes 3] [--memory 1g]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from bench_pipeline import timed

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.session.sessions import session

PIPELINE = """
pipeline: { name: spill }
nodes:
  - type: source
    name: orders
    config: { type: csv, path: orders.csv, schema: { id: int, product: int } }
  - type: source
    name: products
    config: { type: csv, path: products.csv, schema: { code: int, text: string } }
  - type: combine
    name: both
    input: { o: orders, p: products }
    config:
      where: o.product == p.code
      on_miss: skip
      propagate_ck: driver
      cxl: |
        emit id = o.id
        emit text = p.text.substring(0, 8)
  - { type: output, name: out, input: both, config: { type: csv, path: out.csv } }
"""
WIDTH = 290


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=3)
    parser.add_argument("--memory", default="1g")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="clinker-bench-"))
    try:
        products = int(given.gigabytes * 1e9 / (WIDTH + 10))
        random = np.random.default_rng(7)
        with open(folder / "products.csv", "wb") as file:
            for start in range(0, products, 500_000):
                codes = np.arange(start, min(start + 500_000, products))
                texts = np.char.ljust(np.char.add("text ", codes.astype(str)), WIDTH, "x")
                options = pacsv.WriteOptions(quoting_style="none", include_header=start == 0)
                pacsv.write_csv(pa.table({"code": codes, "text": texts}), file, options)
        orders = {"id": np.arange(1_000_000), "product": random.integers(0, products, 1_000_000)}
        pacsv.write_csv(pa.table(orders), folder / "orders.csv", pacsv.WriteOptions(quoting_style="none"))
        size = (folder / "products.csv").stat().st_size
        (folder / "p.yaml").write_text(PIPELINE)
        plan = prepare(folder / "p.yaml")
        step = plan["both"].steps[0]  # type: ignore[attr-defined]
        print(
            f"build side {size / 1e9:.2f} GB, {products:,} records; JVM of {given.memory}; {step.strategy}", flush=True
        )
        spark = session("local[*]", conf={"spark.driver.memory": given.memory})
        clock, cpu, memory = timed(lambda: run(plan, spark))
        lines = (folder / "out.csv").read_bytes().count(b"\n") - 1
        assert lines == 1_000_000, lines
        print(f"done in {clock:.0f} s, {cpu:.0f} s CPU, process tree {memory / 1e9:.2f} GB at most; {lines:,} records")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
