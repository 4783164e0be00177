"""What correlation keys cost: the same pipeline without keys, with keys on clean data, and with groups that fail.

python benchmarks/bench_correlation.py [--rows 10000000] [--groups 1000000] [--runs 2] [--dirty 0.001]

Does it hold when a third of all groups fail, with a heap of 1 GiB? One run of the dirty pipelines, without warm-up:
python benchmarks/bench_correlation.py --dirty 0.3 --memory 1g
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
pipeline: {{ name: bench }}
nodes:
  - type: source
    name: lines
    config:
      type: csv
      path: {data}
      {key}
      schema: {{ order_id: int, product: string, region: string, qty: int, price: string }}
  - type: transform
    name: priced
    input: lines
    config:
      cxl: |
        emit price = price.to_float()
        emit total = price * qty
{rest}
error_handling: {{ strategy: continue, dlq: {{ path: dead.csv }} }}
"""
LINES = """
  - { type: output, name: out, input: priced, config: { type: csv, path: out.csv } }
"""
TOTALS = "".join(
    f"""
  - type: aggregate
    name: by_{name}
    input: priced
    config: {{ group_by: [{name}], cxl: "emit {name} = {name}\\nemit total = sum(total)\\nemit most = max(total)" }}
  - {{ type: output, name: out_{name}, input: by_{name}, config: {{ type: csv, path: {name}.csv }} }}
"""
    for name in ("product", "region", "qty")
)


def generate(path: Path, rows: int, groups: int, dirty: float) -> None:
    random = np.random.default_rng(7)
    orders = np.sort(random.integers(0, groups, rows))
    price = np.round(random.random(rows) * 100, 2).astype(str).astype(object)
    if dirty:
        bad = random.choice(groups, int(groups * dirty), replace=False)
        first = np.searchsorted(orders, bad)
        price[first[first < rows]] = "n/a"
    table = pa.table(
        {
            "order_id": orders,
            "product": np.char.add("product ", random.integers(0, 500, rows).astype(str)),
            "region": np.array(["north", "east", "south", "west"])[random.integers(0, 4, rows)],
            "qty": random.integers(1, 20, rows),
            "price": pa.array(price, pa.string()),
        }
    )
    pacsv.write_csv(table, path, pacsv.WriteOptions(quoting_style="none"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--groups", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--dirty", type=float, default=0.001)
    parser.add_argument("--memory", help="only the dirty pipelines, once, with a heap of this size")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="clinker-bench-"))
    try:
        generate(folder / "dirty.csv", given.rows, given.groups, given.dirty)
        if not given.memory:
            generate(folder / "clean.csv", given.rows, given.groups, 0)
        spark = session("local[*]", conf={"spark.driver.memory": given.memory} if given.memory else None)
        cases = {
            "lines, no keys": ("clean.csv", "", LINES),
            "lines, keys": ("clean.csv", "correlation_key: order_id", LINES),
            "lines, keys, dirty": ("dirty.csv", "correlation_key: order_id", LINES),
            "totals, no keys": ("clean.csv", "", TOTALS),
            "totals, keys, dirty": ("dirty.csv", "correlation_key: order_id", TOTALS),
        }
        if given.memory:
            cases = {name: case for name, case in cases.items() if name.endswith("dirty")}
        best: dict[str, tuple[float, float]] = {}
        for i in range(1 if given.memory else given.runs + 1):
            for name, (data, key, rest) in cases.items():
                path = folder / f"{name.replace(' ', '-').replace(',', '')}.yaml"
                path.write_text(PIPELINE.format(data=data, key=key, rest=rest))
                plan = prepare(path)
                clock, cpu, memory = timed(lambda plan=plan: run(plan, spark))  # type: ignore[misc]
                label = "once" if given.memory else "warm-up" if i == 0 else f"run {i}"
                print(f"  {label:8} {name:22} {clock:7.2f} s  {cpu:7.2f} s CPU  {memory / 1e6:6.0f} MB", flush=True)
                if i:
                    before = best.get(name, (clock, cpu))
                    best[name] = (min(clock, before[0]), min(cpu, before[1]))
        print(f"{given.rows:,} rows, {given.groups:,} groups, {given.dirty:.2%} of them with a failure: clock, CPU")
        if given.memory:
            return
        for name, base in (
            ("lines, keys", "lines, no keys"),
            ("lines, keys, dirty", "lines, no keys"),
            ("totals, keys, dirty", "totals, no keys"),
        ):
            ratios = [a / b for a, b in zip(best[name], best[base], strict=True)]
            print(f"  {name:22} / {base:16} = {ratios[0]:.2f}, {ratios[1]:.2f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
