"""Which records of a source nobody will see, so that its reader need not even fetch them.

Only sources whose readers can tell from the outside (`bounded`), whose records cannot fail, and whose one consumer
filters first of all. A filter that can fail decides by itself, record by record, and so does one in a node that sees
records before (windows, validations, logs). Nobody may ask for the number of a record or how many there are, either.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from clinker_spark.core.types import Kind
from clinker_spark.cxl import ir
from clinker_spark.plan.facts import Bound, Facts
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.source import SourcePlan

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
_VALUES: Mapping[Kind | None, type] = {Kind.INT: int, Kind.DATETIME: dt.datetime, Kind.STRING: str}
"""What a column is compared with: a date beside points in time is another comparison."""


def find_bounds(plan: Plan, facts: Facts) -> Facts:
    found = {source.name: bounds for source in plan.sources if (bounds := _bounds(plan, facts, source))}
    return replace(facts, columns=replace(facts.columns, bounds=found))


def _bounds(plan: Plan, facts: Facts, source: SourcePlan) -> tuple[Bound, ...]:
    readers = plan.readers(source.name)
    need = facts.columns.required[source.name]
    if not source.bounded or source.name in facts.fallible or len(readers) != 1 or need.members or need.document:
        return ()
    if source.key_columns or source.sorting(()):
        return ()
    condition = _condition(readers[0])
    return () if condition is None or condition.fallible else tuple(_compared(condition, source.bounded))


def _condition(node: PlanNode) -> ir.TExpr | None:
    """What a record must fulfil before anything else is done with it, and without which nobody sees it."""
    if not node.narrow or node.checks or node.log or node.shown_program is None:
        return None
    first = next(iter(node.shown_program.typed.statements), None)
    return first.predicate if isinstance(first, ir.TFilter) else None


def _compared(condition: ir.TExpr, columns: Mapping[str, Kind]) -> Iterator[Bound]:
    if isinstance(condition, ir.Logic) and condition.op == "and":
        yield from _compared(condition.left, columns)
        yield from _compared(condition.right, columns)
    elif isinstance(condition, ir.Compare) and condition.op in _TURNED:
        left, right, op = condition.left, condition.right, condition.op
        if isinstance(left, ir.Const):
            left, right, op = right, left, _TURNED[op]
        if isinstance(left, ir.Field) and isinstance(right, ir.Const):
            kind, value = columns.get(left.name), right.value
            if _comparable(kind, value) and (op == "==" or kind is not Kind.STRING):
                yield Bound(left.name, op, value)


def _comparable(kind: Kind | None, value: Any) -> bool:
    return kind in _VALUES and type(value) is _VALUES[kind]
