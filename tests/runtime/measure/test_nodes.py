"""Which node of a pipeline an operator of Spark worked for."""

from __future__ import annotations

from clinker_spark.runtime.measure.nodes import node_measures
from clinker_spark.spark.measure.executions import Metric, Operator


def operator(
    number: int, name: str, below: tuple[int, ...] = (), members: tuple[int, ...] = (), text: str = "", **metrics: float
) -> Operator:
    found = {key.replace("_", " "): Metric(value, value / 2) for key, value in metrics.items()}
    return Operator(number, name, text or name, found, below, members)


def mark(number: int, node: str, below: int) -> Operator:
    return operator(number, "CollectMetrics", (below,), text=f"CollectMetrics node:{node}:{number}, [count(1) AS rows]")


PLAN = (
    operator(0, "WriteFiles", (1,)),
    operator(1, "Sort", (2,), spill_size=100, peak_memory=64),
    operator(2, "Exchange", (3,), shuffle_bytes_written=30),
    mark(3, "totals.groups", 4),
    operator(4, "HashAggregate", (5,), spill_size=7, peak_memory=10),
    operator(5, "Exchange", (6,), shuffle_bytes_written=9),
    operator(6, "HashAggregate", (7,), peak_memory=40),
    mark(7, "orders", 8),
    operator(8, "MapInArrow", time_to_run_Python_workers=2.0),
    operator(20, "WholeStageCodegen (3)", members=(1,), duration=1.5),
    operator(21, "WholeStageCodegen (2)", members=(4,), duration=1.0),
    operator(22, "WholeStageCodegen (1)", members=(6,), duration=5.0),
)


def test_what_lies_between_two_marks_belongs_to_the_upper_one() -> None:
    found = node_measures([PLAN], "report")
    totals, orders = found["totals"], found["orders"]
    assert (totals.spilled_bytes, totals.shuffled_bytes, totals.peak_bytes) == (7 + 100, 9 + 30, 32)
    assert (orders.spilled_bytes, orders.shuffled_bytes) == (0, 0) and set(found) == {"totals", "orders"}


def test_generated_code_is_timed_without_what_it_reads_in_the_same_task() -> None:
    found = node_measures([PLAN], "report")
    assert found["orders"].seconds == 2.0
    assert found["totals"].seconds == 1.5 + 1.0 + (5.0 - 2.0)


def test_jobs_of_a_run_add_up_and_a_plan_without_marks_is_the_last_nodes() -> None:
    lone = (operator(0, "Sort", spill_size=5),)
    found = node_measures([PLAN, PLAN, lone], "report")
    assert found["totals"].spilled_bytes == 214 and found["report"].spilled_bytes == 5
    assert found["totals"].peak_bytes == 32
