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


def planned(folder: Path, *nodes: str, sizes: dict[str, int] | None = None, limit: str = "", engine: str = "") -> Plan:
    for name, size in (sizes or {}).items():
        with open(folder / name, "wb") as file:
            os.truncate(file.fileno(), size)
    settings = f", memory: {{ limit: {limit} }}" if limit else ""
    settings += f", engine: {engine}" if engine else ""
    head = f"pipeline: {{ name: demo{settings} }}\nnodes:\n"
    (folder / "p.yaml").write_text(head + "".join(f"  - {node}\n" for node in nodes))
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
    plan = planned(tmp_path, ORDERS, TOTALS, REPORT, sizes={"orders.csv": 64 << 20}, engine="spark")
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
    plan = planned(
        tmp_path, ORDERS.replace("path: orders.csv", path), TOTALS, REPORT, sizes={"orders.csv": 1024}, engine="spark"
    )
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
    large = explain(planned(tmp_path, ORDERS, TOTALS, REPORT, sizes={"orders.csv": 5 << 20}, engine="spark"), "text")
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
    large = explain(planned(tmp_path, *nodes, sizes={"orders.csv": 5 << 20}, engine="spark"), "text")
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
    plan = planned(tmp_path, ORDERS, customers, both, report, sizes=sizes, limit="1G")
    assert "  Memory budget (planned share): 1G\n  on Spark: nothing is set apart" in explain(plan, "text")
    found = next(node for node in json.loads(explain(plan, "json"))["nodes"] if node["name"] == "both")
    assert found["memory_budget_bytes"] == 1 << 30
    sources = {"estimated_rows_source": "file metadata"}
    assert found["inputs"] == {
        "orders": {"role": "probe", "estimated_rows": 90, **sources},
        "customers": {"role": "build", "estimated_rows": 40, **sources},
    }
    last = text.split("=== ")[-2]  # the storage comes last
    assert last.startswith("Statistics ===\nRow counts:\n")
    assert "  orders: ≈90 rows [file metadata] (informs combine build/probe + partition bits)\n" in last


RANKED = """{ type: transform, name: ranked, input: orders,
      config: { cxl: "emit r = $window.sum(price)", analytic_window: { group_by: [dept] } } }"""


def test_retraction_of_windows(tmp_path: Path) -> None:
    orders = ORDERS.replace("path: orders.csv", "path: orders.csv, correlation_key: price")
    totals = TOTALS.replace("input: orders", "input: ranked")
    text = explain(planned(tmp_path, orders, RANKED, totals, REPORT, limit="1G"), "text")
    block = text.split("=== Retraction ===\n")[1].split("\n=== ")[0].splitlines()
    start = block.index("window 'ranked' (source: orders, partition_by: dept):")
    assert block[start + 1 : start + 4] == [
        "  buffer: 2 Value slots a row (dept, price)",
        "  worst case: the largest partition, at most the memory limit of 1G; unknown at plan time",
        "  degrade fallback: DLQ entire affected partition",
    ]
    assert block[start + 4].startswith("  on Spark: computed again")


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ("pause", "BackPressurePreferred -> Priority"),
        ("spill", "Priority"),
        ("both", "BackPressurePreferred -> LargestFirst"),
    ],
)
def test_the_policy(tmp_path: Path, asked: str, named: str) -> None:
    plan = planned(tmp_path, ORDERS, TOTALS, REPORT, limit=f"2G, backpressure: {asked}, resume_threshold: 0.6")
    text = explain(plan, "text")
    assert f"=== Execution Plan ===\narbitration: {named} (backpressure: {asked})\n1. find" in text
    budget = text.split("=== Memory Budget ===\n")[1].split("\n=== ")[0]
    assert f"\nArbitration: {named} (backpressure: {asked})\n  above 80% of the limit: " in budget
    assert "  readers go on below 60% of it (resume_threshold)" in budget
    found = json.loads(explain(plan, "json"))["memory"]
    assert found["policy"] == named and found["limit_bytes"] == 2 << 30 and found["limit_declared"]
    assert (found["soft_bytes"], found["resume_bytes"]) == (int(0.8 * (2 << 30)), int(0.6 * (2 << 30)))


def test_retraction(tmp_path: Path) -> None:
    orders = ORDERS.replace("path: orders.csv", "path: orders.csv, correlation_key: price")
    text = explain(planned(tmp_path, orders, TOTALS, REPORT), "text")
    headline = "retraction enabled — 1 relaxed aggregates, 0 buffer-mode windows, fanout policy: any.\n"
    assert "=== Retraction ===\n" + headline in text
    for line in (
        "aggregate 'dept_totals' (source: orders, group_by: dept):",
        "  accumulators: Reversible",
        "  lineage: ~8 bytes/row",
        "  synthetic CK column: $ck.aggregate.dept_totals, ~16 bytes/output row",
        "  group cardinality: unknown at plan time",
        "  degrade fallback: DLQ entire affected group",
    ):
        assert f"\n{line}\n" in text, line
    assert "  on Spark: totals are made again" in text
    average = explain(planned(tmp_path, orders, TOTALS.replace("sum(price)", "avg(price)"), REPORT), "text")
    assert "  accumulators: BufferRequired\n  lineage: n/a (" in average
    assert "=== Retraction ===" not in explain(planned(tmp_path, ORDERS, TOTALS, REPORT), "text")


def test_totals_in_workers(tmp_path: Path) -> None:
    """Their groups lie in files, in order: nothing is sorted, and what is exchanged are parts of totals."""
    doubled = '{ type: transform, name: doubled, input: orders, config: { cxl: "emit twice = price * 2" } }'
    totals = TOTALS.replace("input: orders", "input: doubled")
    nodes, sizes = (ORDERS, doubled, totals, REPORT), {"orders.csv": 64 << 20}
    plan = planned(tmp_path, *nodes, sizes=sizes, engine="vector")
    text = explain(plan, "text")
    assert "     shuffles: dept_totals\n     order: source order, kept in place\n" in text
    assert "(before it a job in which workers make the groups of 'dept_totals')\n" in text
    edges = {edge: lines[-1] for edge, lines in blocks(plan, "Buffer Edges").items()}
    assert list(edges) == [
        "edge transform.doubled -> aggregation.dept_totals:",
        "edge aggregation.dept_totals -> output.report:",
    ]
    assert [line.split(":")[1] for line in edges.values()] == [" shuffle", " files"]
    assert "spark: shuffle: written to disk" not in text and "sorted by arrival" not in text
    properties = blocks(plan, "Physical Properties")
    assert without_more(properties["source.orders:"])[0] == "  buffer: streaming"
    assert without_more(properties["aggregation.dept_totals:"])[0] == "  buffer: materialized"
    assert "spill_priority=N/A" in without_more(properties["output.report:"])[1]
    assert "Estimated Spill Volume" not in text  # Spark has nothing there that it could spill
    found = json.loads(explain(plan, "json"))
    assert [edge["spark"] for edge in found["buffer_edges"]] == ["parts", "files"]
    # The same plan with Spark, and with inputs that are known to be small: one task sorts them.
    spark = explain(planned(tmp_path, *nodes, sizes=sizes, engine="spark"), "text")
    assert "     shuffles: dept_totals, sort\n     order: sorted by arrival\n" in spark
    small = planned(tmp_path, *nodes, sizes={"orders.csv": 1024}, engine="vector")
    assert "order: sorted by arrival" in explain(small, "text") and "engine: vector" not in explain(small, "text")


def test_one_job_for_groups_and_lines(tmp_path: Path) -> None:
    """Whoever is asked for first has all made."""
    again = [TOTALS.replace("dept_totals", "prices").replace("[dept]", "[price]")]
    again += [REPORT.replace("dept_totals", "prices").replace("report", "second")]
    copy = REPORT.replace("input: dept_totals", "input: orders").replace("report", "copy")
    sizes = {"orders.csv": 64 << 20}

    def jobs(*nodes: str) -> list[str]:
        plan = planned(tmp_path, ORDERS, *nodes, sizes=sizes, engine="vector")
        assert set(plan.facts.flow.totals) == {"dept_totals", "prices"}
        return [line.partition(". write ")[2] for line in explain(plan, "text").splitlines() if ". write '" in line]

    both = "before it a job in which workers make the groups of 'dept_totals', 'prices'"
    assert jobs(TOTALS, REPORT, *again) == [
        f"'report': one Spark job, parts in parallel ({both})",
        "'second': one Spark job, parts in parallel (the groups are made by the job of 'report')",
    ]
    assert "'copy': by the job of 'second'" in jobs(TOTALS, *again, copy, REPORT)
    assert jobs(copy, TOTALS, REPORT, *again)[0] == (
        "'copy': one Spark job, whose workers write the parts and make the groups of 'dept_totals', 'prices'"
    )


def test_a_combine_in_workers(tmp_path: Path) -> None:
    """What it looks up is a file that they map; its matches stay where they are."""
    cities = ORDERS.replace("orders", "cities")
    both = """{ type: combine, name: both, input: { o: orders, c: cities }, config: { match: all, drive: o,
      where: o.dept == c.dept, on_miss: skip, propagate_ck: driver, cxl: "emit dept = o.dept" } }"""
    report = REPORT.replace("input: dept_totals", "input: both")
    sizes = {"orders.csv": 64 << 20, "cities.csv": 4096}
    plan = planned(tmp_path, ORDERS, cities, both, report, report.replace("report", "again"), sizes=sizes)
    edges = blocks(plan, "Buffer Edges")
    assert list(edges) == ["edge source.cities -> combine.both:"]
    assert edges["edge source.cities -> combine.both:"][-1].startswith("  spark: one Arrow file: all workers map it")
    text = explain(plan, "text")
    assert text.count("     shuffles: none\n     order: source order, kept in place\n") == 2
    assert "write 'again': by the job of 'report'\n" in text
    assert "Strategy: in-memory hash, in workers (" in text and "Order: kept in place" in text
    assert "broadcast:" not in text.replace("combine:broadcast", "")
    assert plan.facts.resources.predicted["both"].freed == 4096
    spark = planned(tmp_path, ORDERS, cities, both, report, sizes=sizes, engine="spark")
    assert "spark: broadcast: every task holds all of it" in explain(spark, "text")
    small = planned(tmp_path, ORDERS, cities, both, report, sizes=dict.fromkeys(sizes, 4096))
    assert "engine: vector" not in explain(small, "text")
