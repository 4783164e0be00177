"""Keys that are right by themselves and have no effect in this graph. They are told (W027), not refused: the graph may
still grow what they are about."""

from __future__ import annotations

from collections.abc import Iterator

from clinker_spark.config.findings.translate import finding_at
from clinker_spark.config.model.base import without_effect
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.cxl import ir
from clinker_spark.plan.columns import CK_PREFIX
from clinker_spark.plan.nodes import CombinePlan, OutputPlan, Plan, PlanNode, TransformPlan
from clinker_spark.plan.passes.correlation import is_correlated

_OF_GROUPS = ("max_group_buffer", "correlation_fanout_policy", "retraction_scope")


def without_effects(plan: Plan) -> Iterator[Diagnostic]:
    """All of them."""
    if not is_correlated(plan):
        yield from _settings_of_groups(plan)
    for node in plan.nodes:
        if isinstance(node, OutputPlan):
            yield from _of_output(plan, node)
        elif isinstance(node, CombinePlan):
            yield from _of_combine(plan, node)
        elif isinstance(node, TransformPlan) and node.window is not None and not _looks_through(node):
            yield _told(node, "analytic_window", "the program has no $window function")


def _settings_of_groups(plan: Plan) -> Iterator[Diagnostic]:
    handling, why = plan.file.error_handling, "no source has a 'correlation_key'"
    found = [
        *without_effect(handling, _OF_GROUPS, why),
        *without_effect(handling.dlq, ("include_retracted",), why, "dlq"),
    ]
    yield from (finding_at(finding, plan.file.document, ("error_handling",)) for finding in found)


def _of_output(plan: Plan, node: OutputPlan) -> Iterator[Diagnostic]:
    config = node.config
    if not plan.keys[node.inputs[0].node].columns:
        why = "no source of these records has a 'correlation_key'"
        if config.include_correlation_keys:
            yield _told(node, "include_correlation_keys", why)
        if config.correlation_fanout_policy is not None:
            yield _told(node, "correlation_fanout_policy", why)
    if config.type in ("csv", "json", "xml") and isinstance(config.schema_, tuple):
        # Columns that no schema of a source names are texts: a scale or a format means nothing to them.
        written = {name for name, _ in node.columns}
        for i, column in enumerate(config.schema_):
            name = column.source_name or column.name
            if name not in written:
                message = f"'{name}' in the schema has no effect here: no column of that name is written"
                help_text = did_you_mean(name, written) or f"the columns are {', '.join(written)}"
                yield node.diagnostic("W027", message, "config", "schema", i, "name", help=help_text)


def _of_combine(plan: Plan, node: CombinePlan) -> Iterator[Diagnostic]:
    known = {name.removeprefix(CK_PREFIX) for ref in node.inputs for name in plan.keys[ref.node].columns}
    for i, name in enumerate(node.config.propagate_ck.named):
        if name not in known:
            message = f"'{name}' has no effect here: no input has a correlation key of that name"
            help_text = did_you_mean(name, known) or f"the keys are {', '.join(sorted(known)) or 'none'}"
            yield node.diagnostic("W027", message, "config", "propagate_ck", "named", i, help=help_text)


def _looks_through(node: TransformPlan) -> bool:
    """Does the program have a `$window` function?"""
    if node.program.typed.lookups:
        return True
    parts = (part for expression in node.program.typed.expressions() for part in expression.walk())
    return any(isinstance(part, ir.WindowRef) for part in parts)


def _told(node: PlanNode, key: str, why: str) -> Diagnostic:
    path = (*node.path, "config", key)
    return node.file.diagnostic("W027", f"'{key}' has no effect here: {why}", path, "remove the key", key=True)
