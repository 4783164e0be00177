"""`clinker query --explain`: what a program will do, and the Spark SQL of its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clinker_spark.query.check.programs import Checked
from clinker_spark.query.lower.values import OrderTerm, SparkDataset
from clinker_spark.query.prepare import plan
from clinker_spark.sql.render import render


def explain(program: Checked, engine: Any) -> str:
    """The sources, and the result as Spark SQL in pipe syntax: the very text that runs."""
    if engine is None:
        return "No file or table is read: the program runs in this process, without Spark.\n"
    value = plan(program, engine, {})
    lines = ["Sources"]
    lines += [f"  {scan.view}: {scan.label}" for scan in engine.scans] or ["  none"]
    if isinstance(value, SparkDataset):
        relation = value.relation
        lines += ["", "Result", f"  rows: {relation.row}", f"  order: {_order(relation.build(True).order)}"]
        lines += ["", "Spark SQL", f"  {engine.text(value, depth=1)}"]
    else:
        lines += ["", "The result is not one relation: each query in the program runs where its rows are needed."]
    return "\n".join(lines) + "\n"


def _order(terms: Sequence[OrderTerm]) -> str:
    return "kept, by " + ", ".join(str(render(t.key())) for t in terms) if terms else "none"
