"""Which node a run that needs too much memory names, and what it advises. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.arbitrate import failures
from clinker_spark.runtime.arbitrate.failures import Spent, beyond_machine, over_disk_cap, over_limit, spill_volume_full

PIPELINE = """
pipeline: { name: test }
nodes:
  - { type: source, name: orders, config: { type: csv, path: orders.csv, schema: { city: string, n: int } } }
  - { type: source, name: cities, config: { type: csv, path: cities.csv, schema: { city: string, land: string } } }
  - type: combine
    name: named
    input: { o: orders, c: cities }
    config: { where: o.city == c.city, on_miss: skip, propagate_ck: driver, cxl: "emit land = c.land\\nemit n = o.n" }
  - { type: aggregate, name: lists, input: orders, config: { group_by: [], cxl: "emit all = collect(n)" } }
  - { type: aggregate, name: lands, input: named, config: { group_by: [land], cxl: "emit total = sum(n)" } }
  - { type: output, name: first, input: lands, config: { type: csv, path: first.csv } }
  - { type: output, name: second, input: lists, config: { type: json, path: second.json } }
"""
GIB = 1 << 30


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "orders.csv").write_text("city,n\n" + "Bern,1\n" * 1000)
    (tmp_path / "cities.csv").write_text("city,land\nBern,CH\n")
    (tmp_path / "p.yaml").write_text(PIPELINE)
    return prepare(tmp_path / "p.yaml")


@pytest.mark.parametrize(
    ("running", "node", "advice"),
    [
        (["orders", "cities", "named", "lands", "first"], "named", "strategy: grace_hash"),  # it is never spilled
        (["orders", "lists", "second"], "lists", "not one value or one list"),  # a sort would give way
        (["orders", "lands", "first"], "lands", "not one value or one list"),
    ],
)
def test_a_heap_that_is_full(plan: Plan, running: list[str], node: str, advice: str) -> None:
    found = over_limit(plan, running, GIB, None)
    assert found.code == "E310" and found.message.startswith(f"'{node}' needs more memory than the limit of 1G")
    assert "heap of Spark is full" in found.message and "--memory-limit 2G" in (found.help or "")
    assert advice in (found.help or "") and found.span is not None


def test_readers_that_hold_it(plan: Plan) -> None:
    found = over_limit(plan, ["orders", "lists", "second"], GIB, Spent(2 * GIB, GIB // 4, GIB, GIB // 8))
    assert found.message.startswith("'orders' needs") and "Python workers 1G" in found.message
    assert "single records" in (found.help or "")


def test_the_disk_in_place_of_memory(plan: Plan) -> None:
    capped = over_disk_cap(plan, ["orders", "lands", "first"], 2000, 1000)
    assert capped.code == "E320" and "2,000 bytes of 1,000" in capped.message and "'lands'" in capped.message
    full = spill_volume_full(plan, ["orders", "lands", "first"], "/spill")
    assert full.code == "E321" and "'/spill'" in full.message and full.help


def test_a_limit_that_no_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM that the system kills in a container was often told the memory of the machine around it."""
    killed = Diagnostic("E410", "the JVM of Spark was killed (SIGKILL)", help="see dmesg")
    monkeypatch.setattr(failures, "machine_memory", lambda: 2 * GIB)
    assert beyond_machine(killed, 2 * GIB) is killed
    found = beyond_machine(killed, 4 * GIB)
    assert found.message == killed.message and "limit of 4G is more than" in (found.help or "")
    assert "below 2G" in (found.help or "")
