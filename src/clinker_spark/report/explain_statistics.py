"""How `--explain` shows the numbers behind a plan."""

from __future__ import annotations

from clinker_spark.plan.facts import EXEC_SKETCH
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.run_statistics import MOST_SHOWN


def statistics(plan: Plan) -> list[str]:
    """The numbers that the plan was made with; nothing where nobody knows."""
    used = {ref.node for node in plan.nodes if node.uses_statistics for ref in node.inputs}
    used |= {up.name for name in list(used) for up in plan.upstream(name)}
    known = [(name, found) for name, found in plan.estimates.items() if found is not None and name in used]
    lines = ["Row counts:"] if known else []
    lines += [f"  {name}: {found} (informs combine build/probe + partition bits)" for name, found in known]
    sketches = _sketches(plan)
    return [*lines, "Column sketches:", *sketches] if sketches else lines


def _sketches(plan: Plan) -> list[str]:
    lines = []
    for name, sketch in (plan.statistics.keys).items():
        if sketch.distinct is not None:
            lines.append(f"  {name}: {sketch.distinct:,} distinct [{EXEC_SKETCH}]")
        if sketch.heavy:
            shown = ", ".join(f"{value}={count:,}" for value, count in sketch.heavy[:MOST_SHOWN])
            lines.append(f"  {name}: heavy hitters [{EXEC_SKETCH}, lower bound]: {shown}")
    return lines
