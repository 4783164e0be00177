"""Which parts of the graph run vectorised, in the workers that read the files (decision 0050).

A fragment begins with a source and has all nodes that its records come to, up to the text of outputs. If one of them
has no vector form, the records go through Spark.
"""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.cxl.vector.reasons import is_vector_name
from clinker_spark.plan.facts import Facts, Fragment
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.source import SourcePlan


def find_fragments(plan: Plan, facts: Facts) -> Facts:
    by_output: dict[str, Fragment] = {}
    unfit: dict[str, tuple[str, str]] = {}
    for source in plan.sources if plan.file.settings.engine != "spark" else ():
        nodes = _with_readers(plan, source)
        reason = _reason(plan, facts, source, nodes)
        if reason is not None:
            unfit[source.name] = reason
            continue
        names = {node.name for node in nodes}
        outputs = tuple(output.name for output in plan.outputs if output.name in names)
        fragment = Fragment(source.name, tuple(node.name for node in nodes), outputs)
        by_output.update(dict.fromkeys(outputs, fragment))
    return replace(facts, flow=replace(facts.flow, fragments=by_output, unfit=unfit))


def _with_readers(plan: Plan, source: SourcePlan) -> list[PlanNode]:
    """A source and everything that its records come to, in the order of the plan."""
    found: dict[str, PlanNode] = {source.name: source}
    todo: list[PlanNode] = [source]
    while todo:
        for reader in plan.readers(todo.pop().name):
            if reader.name not in found:
                found[reader.name] = reader
                todo.append(reader)
    return sorted(found.values(), key=lambda node: plan.places[node.name])


def _reason(plan: Plan, facts: Facts, source: SourcePlan, nodes: list[PlanNode]) -> tuple[str, str] | None:
    """The node that stands in the way, and why."""
    need = facts.columns.required[source.name]
    if facts.correlation.correlated:
        return source.name, "records that fail take their groups along"
    for node in nodes:
        if len(node.inputs) > 1:
            return node.name, "it brings several streams together"
        if node.vector_reason is not None:
            return node.name, node.vector_reason
        if not all(map(is_vector_name, node.schema)):
            return node.name, "names of columns are patterns to Polars"
    if need.arrival or need.document or need.event or need.members:
        return source.name, "the place or the file of each record is asked for"
    return None
