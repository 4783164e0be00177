"""`log:` rules of transforms that speak of single records: their columns and conditions are checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clinker_spark.config.model.transform import LogRule, TransformNode
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.cxl.conditions import as_program
from clinker_spark.plan.bind.node import NodeBinder
from clinker_spark.plan.columns import LOG_COLUMN
from clinker_spark.plan.nodes.base import PlanNode, Schema
from clinker_spark.plan.nodes.record_rules import RecordLog


def bind_logs(binder: NodeBinder, node: TransformNode, schema: Schema) -> tuple[RecordLog, ...] | None:
    """The rules for records, against the columns that come in; None when one is wrong, which is noted then."""
    found: list[RecordLog] = []
    fine = True
    for i, rule in enumerate(node.config.log):
        fine &= _fields_are_there(binder, rule, i, schema)
        if rule.when != "per_record":
            continue
        program = None
        if rule.condition is not None:
            place = ("config", "log", i, "condition")
            condition = binder.compile(*place, schema=schema, condition=True, codes={"E202": "E373"}, code="E373")
            fine &= condition is not None
            program = None if condition is None else as_program(schema, [(LOG_COLUMN, condition.value)])
        found.append(RecordLog(rule=rule, condition=program))
    return tuple(found) if fine else None


def _fields_are_there(binder: NodeBinder, rule: LogRule, i: int, schema: Schema) -> bool:
    missing = [(k, name) for k, name in enumerate(rule.fields) if name not in schema]
    for k, name in missing:
        help_text = did_you_mean(name, schema) or f"the columns are {', '.join(schema)}"
        message = f"the records that come in have no column '{name}'"
        binder.problem("E374", message, "config", "log", i, "fields", k, help=help_text)
    return not missing


def check_events(nodes: Iterable[PlanNode]) -> Iterator[Diagnostic]:
    """An event has the same fields wherever it happens."""
    known: dict[str, tuple[PlanNode, LogRule]] = {}
    for node in nodes:
        for i, rule in enumerate(node.log):
            if rule.name is None:
                continue
            first, other = known.setdefault(rule.name, (node, rule))
            if set(other.fields) != set(rule.fields):
                message = f"the event '{rule.name}' has other fields in '{first.name}'"
                help_text = "give both the same fields, or one of them another name"
                yield node.diagnostic("E375", message, "config", "log", i, "name", help=help_text)
