"""Runs to show on a page, with odd names and numbers in them."""

from __future__ import annotations

from pathlib import Path

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.page.run_page import RunPage
from clinker_spark.runtime.arbitrate.arbitrator import Arbitration
from clinker_spark.runtime.measure.memory import MemoryUse
from clinker_spark.runtime.measure.nodes import NodeMeasure
from clinker_spark.runtime.measure.processes import Sample
from clinker_spark.runtime.measure.used import Used
from clinker_spark.runtime.reject.letter_files import Letter, Reason
from clinker_spark.runtime.run.report import (
    Balance,
    LetterReport,
    NodeReport,
    OutputReport,
    RunIdentity,
    RunReport,
    SourceReport,
)

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = ("02-sales-roll-up", "04-alerts-inclusive-route", "21-retraction")


def plan_of(example: str) -> Plan:
    return prepare(next((EXAMPLES / example).glob("*.yaml")))


def page_of(example: str, limit: int | None = 2 << 30) -> RunPage:
    """A page with a made-up run of an example: every part of it has something to show."""
    plan = plan_of(example)
    report = RunReport(RunIdentity(plan.file.settings.name, "0190-run", "batch <1>", "2026-01-02T03:04:05Z"))
    report.cost.seconds = 75.25
    for i, source in enumerate(plan.sources):
        report.sources.append(SourceReport(source.name, 2, 5_000_000 + i, 1_200_345 + i, 3, [f"{source.name}.csv"]))
    for i, node in enumerate(plan.nodes):
        report.nodes.append(NodeReport(node.name, node.kind, 1_000 + i, 990 + i, {"filter": 7 + i}, i % 3))
    for i, output in enumerate(plan.outputs):
        report.outputs.append(OutputReport(output.name, [f"out/{i}.csv", f"out/{i}-2.csv"], 900 + i, 12_345 + i))
    report.letters = [LetterReport(plan.sources[0].name, "source", "type_coercion_failure", 3)]
    report.letter_paths = ["out/dead-letters.csv"]
    report.balances = [Balance([plan.sources[0].name], 12, 9, 3, [])]
    report.cost.stage_seconds = {"write": 3.25, "dead letters": 1.5, "publish": 0.012}
    memory = MemoryUse()
    for i in range(40):
        memory.add(Sample(i * 0.5, 90 << 20, (400 + 20 * i) << 20, (i % 7) * (60 << 20)))
    nodes = {node.name: NodeMeasure(1.25 * i, (i % 2) << 28, i << 22, i << 20) for i, node in enumerate(plan.nodes)}
    done = Arbitration(limit or (3 << 30), "pause", 2, 3.5, 1, 0.25, 1, 5 << 20, 3)
    report.cost.used = Used(memory, nodes, 0.125, done.as_dict())
    engine = {"source_file": "a&b.csv", "source_row": "7", "error_detail": "'<script>alert(1)</script>' is no int"}
    letter = Letter(engine, {"id": "5", "note": "</script><b>bold</b>"})
    reason = Reason("type_coercion_failure", "source", "amount", 3, samples=[letter])
    return RunPage(plan, report, "the plan\n  in words", [reason], limit)
