"""What a run of the plan does, in order."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.cxl.hidden import variable_column
from clinker_spark.plan.facts import Facts
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.stages import CheckOrder, Find, Letters, LogRecords, Publish, Stage, Values, Write, sort_words
from clinker_spark.plan.variables import SHARED


def find_stages(plan: Plan, facts: Facts) -> Facts:
    found: list[Stage] = [Find(source.name, source.files_read) for source in plan.sources]
    for source in plan.sources:
        if source.config.sort_order:
            order = tuple(sort_words(item) for item in source.config.sort_order)
            found.append(CheckOrder(source.name, order, source.config.on_unsorted))
    for name in facts.variables.writers:
        names = tuple(variable_column(d.scope, d.name) for d in plan[name].declares if d.scope in SHARED)
        found.append(Values(name, names))
    found += [_write(plan, facts, plan.output(name)) for name in facts.resources.launch_order]
    for node in plan.nodes:
        if node.record_logs:
            found.append(LogRecords(node.name, tuple(log.rule.name or node.name for log in node.record_logs)))
    handling = plan.file.error_handling
    # Always: whether records failed is counted, and no opinion about it from before the run stands in the way.
    paths = [handling.dlq.path, *(own.path for own in handling.dlq.per_source.values())]
    together = facts.correlation.correlated and handling.strategy == "continue"
    found.append(Letters(handling.strategy, tuple(path for path in paths if path), together))
    found.append(Publish(tuple(output.name for output in plan.outputs)))
    return replace(facts, stages=tuple(found))


def _write(plan: Plan, facts: Facts, output: OutputPlan) -> Write:
    nodes = [*(node.name for node in plan.upstream(output.name)), output.name]
    flow = facts.flow
    ordered = output.inputs[0].node in flow.in_order
    stay = flow.in_workers - flow.totals.keys()
    shuffles = [name for name in nodes if name in facts.order.exchanges and name not in stay]
    if output.name in flow.sorts:
        shuffles.append("sort")
    if output.config.sort_order:
        order = "sorted by " + ", ".join(item.field for item in output.config.sort_order) + ", then by arrival"
    elif output.config.order == "any" and (ordered or not output.per_file):
        order = "any"
    elif output.config.order == "any":
        order = "any, but file by file"
    elif ordered:
        order = "source order, kept in place"
    else:
        order = "sorted by arrival"
    return Write(
        output.name,
        tuple(nodes),
        tuple(shuffles),
        order,
        tuple(name for name in nodes if name in facts.fallible),
        tuple(name for name in nodes if name in facts.python),
    )
