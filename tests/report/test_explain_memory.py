"""The examples of explain in the specification, as it prints them. No Spark; input files are sparse."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import (
    GRACE_HASH,
    HASH_AGGREGATE,
    INLINE_HASH,
    RANGE,
    SLOT,
    SORT,
    SORT_MERGE,
    SOURCE,
    STREAMING_AGGREGATE,
    WINDOW,
)
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain import explain

ORDERS = (
    "{ type: source, name: orders, config: { type: csv, path: orders.csv, schema: { dept: string, price: float } } }"
)
TOTALS = """{ type: aggregate, name: dept_totals, input: orders,
      config: { group_by: [dept], cxl: "emit total = sum(price)" } }"""
REPORT = "{ type: output, name: report, input: dept_totals, config: { type: csv, path: report.csv } }"


def planned(folder: Path, *nodes: str, sizes: dict[str, int] | None = None) -> Plan:
    for name, size in (sizes or {}).items():
        with open(folder / name, "wb") as file:
            os.truncate(file.fileno(), size)
    (folder / "p.yaml").write_text("pipeline: { name: demo }\nnodes:\n" + "".join(f"  - {node}\n" for node in nodes))
    return prepare(folder / "p.yaml")


def blocks(plan: Plan, title: str) -> dict[str, list[str]]:
    """The blocks of a section by their first lines."""
    text = explain(plan, "text").split(f"=== {title} ===\n")[1].split("\n=== ")[0]
    parts = [part.splitlines() for part in text.strip("\n").split("\n\n")]
    return {part[0]: part[1:] for part in parts}


def without_more(lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip().startswith(("buffer:", "arbitration:"))]


SPECIFIED = """\
source.orders:
  buffer: materialized
  arbitration: spill_priority=N/A, can_back_pressure=true, predicted_peak=1K, predicted_freed=0B, \
predicted_subtree_reclaim=1K

aggregation.dept_totals:
  buffer: materialized
  arbitration: spill_priority=30, can_back_pressure=false, predicted_peak=1K, predicted_freed=1K, \
predicted_subtree_reclaim=1K
"""
SPECIFIED_EDGE = """\
edge source.orders -> aggregation.dept_totals:
  buffer: node_buffer (slot=0)
  arbitration: spill_priority=0, can_back_pressure=false, predicted_peak=1K, predicted_freed=1K (producer: source)
"""


def test_a_fast_source_and_a_slow_aggregate(tmp_path: Path) -> None:
    plan = planned(tmp_path, ORDERS, TOTALS, REPORT, sizes={"orders.csv": 1024})
    found = blocks(plan, "Physical Properties")
    for part in SPECIFIED.strip().split("\n\n"):
        name, *lines = part.splitlines()
        assert without_more(found[name]) == lines
    assert without_more(found["output.report:"])[0] == "  buffer: streaming"
    text = explain(plan, "text")
    assert "=== Physical Properties ===\n\nsource.orders:\n" in text
    assert "=== Buffer Edges ===\n\n" + SPECIFIED_EDGE in text


def test_the_same_numbers_for_programs(tmp_path: Path) -> None:
    plan = planned(tmp_path, ORDERS, TOTALS, REPORT, sizes={"orders.csv": 64 << 20})
    found: dict[str, Any] = json.loads(explain(plan, "json"))
    size = 64 << 20
    keys = ("predicted_peak_bytes", "predicted_freed_bytes_on_complete", "predicted_subtree_reclaim_bytes")
    properties = found["node_properties"]
    assert [properties["orders"][key] for key in keys] == [size, 0, size]
    assert [properties["dept_totals"][key] for key in keys] == [size, size, size]
    assert [edge["spark"] for edge in found["buffer_edges"]] == ["shuffle", "shuffle"]
    nodes = found["nodes"]
    assert [node["slug"] for node in nodes] == ["source.orders", "aggregation.dept_totals", "output.report"]
    assert [node["depends_on"] for node in nodes] == [[], ["source.orders"], ["aggregation.dept_totals"]]
    assert [edge["producer"] for edge in found["buffer_edges"]] == [node["slug"] for node in nodes[:2]]
    assert found["storage_summary"]["estimated_spill"]["total_known_bytes"] == 2 * size


@pytest.mark.parametrize("path", ["path: gone.csv", 'glob: "orders*.csv"', "paths: [orders.csv]"])
def test_where_no_size_is_known_all_is_zero(tmp_path: Path, path: str) -> None:
    plan = planned(tmp_path, ORDERS.replace("path: orders.csv", path), TOTALS, REPORT, sizes={"orders.csv": 1024})
    lines = [line for block in blocks(plan, "Physical Properties").values() for line in block if "arbitration" in line]
    zeros = "predicted_peak=0B, predicted_freed=0B, predicted_subtree_reclaim=0B"
    assert len(lines) == 3 and all(line.endswith(zeros) for line in lines)
    assert "Total: unknown\n" in explain(plan, "text")
    assert "(one task if the inputs turn out to be small)" in explain(plan, "text")


def test_spill_priorities_are_those_of_the_specification() -> None:
    table = [
        (SLOT, "0", False),
        (GRACE_HASH, "10", False),
        (SORT, "20", False),
        (RANGE, "20", False),
        (SORT_MERGE, "25", False),
        (HASH_AGGREGATE, "30", False),
        (INLINE_HASH, "30", False),
        (SOURCE, "N/A", True),
        (STREAMING_AGGREGATE, "N/A", False),
        (WINDOW, "last", False),
    ]
    assert [(row.shown_priority, row.can_back_pressure) for row, _, _ in table] == [row[1:] for row in table]


def test_what_spark_does_in_place_of_a_slot(tmp_path: Path) -> None:
    small = explain(planned(tmp_path, ORDERS, TOTALS, REPORT, sizes={"orders.csv": 1024}), "text")
    large = explain(planned(tmp_path, ORDERS, TOTALS, REPORT, sizes={"orders.csv": 5 << 20}), "text")
    assert small.count("  spark: no shuffle: one task has all records") == 2 and "spark: shuffle" not in small
    assert large.count("  spark: shuffle: written to disk") == 2 and "no shuffle" not in large
    assert "[aggregation:hash] dept_totals → 5M\n" in large


def test_jobs_of_small_inputs(tmp_path: Path) -> None:
    """Outputs of one kind are one job; larger inputs have a job for each."""
    nodes = [ORDERS, TOTALS, REPORT, REPORT.replace("report", "second"), REPORT.replace("report", "third")]
    nodes[-1] = nodes[-1].replace("type: csv", "type: json")
    small = explain(planned(tmp_path, *nodes, sizes={"orders.csv": 1024}), "text")
    assert "write 'report': one Spark job, one task: the inputs are small\n" in small
    assert "write 'second': by the job of 'report'\n" in small
    assert "write 'third': one Spark job, one task: the inputs are small\n" in small
    large = explain(planned(tmp_path, *nodes, sizes={"orders.csv": 5 << 20}), "text")
    assert large.count("': one Spark job, parts in parallel\n") == 3


def test_row_counts_of_a_join(tmp_path: Path) -> None:
    """With their provenance, in the block of the combine and in the statistics, which come last."""
    customers = ORDERS.replace("orders", "customers")
    both = """{ type: combine, name: both, input: { orders: orders, customers: customers }, config: { match: first,
      where: orders.dept == customers.dept, on_miss: skip, propagate_ck: driver, cxl: "emit dept = orders.dept" } }"""
    report = REPORT.replace("input: dept_totals", "input: both")
    sizes = {"orders.csv": 90 * 16, "customers.csv": 40 * 16}
    text = explain(planned(tmp_path, ORDERS, customers, both, report, sizes=sizes), "text")
    assert "Driving input: orders <- orders (est. 90 [file metadata] rows)\n" in text
    assert "Build input: customers <- customers (est. 40 [file metadata] rows)\n" in text
    last = text.split("=== ")[-1]
    assert last.startswith("Statistics ===\nRow counts:\n")
    assert "  orders: ≈90 rows [file metadata] (informs combine build/probe + partition bits)\n" in last


def test_retraction(tmp_path: Path) -> None:
    orders = ORDERS.replace("path: orders.csv", "path: orders.csv, correlation_key: price")
    text = explain(planned(tmp_path, orders, TOTALS, REPORT), "text")
    headline = "retraction enabled — 1 relaxed aggregates, 0 buffer-mode windows, fanout policy: any.\n"
    assert "=== Retraction ===\n" + headline in text
    assert "unknown at plan time" in text
    assert "=== Retraction ===" not in explain(planned(tmp_path, ORDERS, TOTALS, REPORT), "text")
