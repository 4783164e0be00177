"""The lowering rules: every kind of typed expression becomes Spark SQL text with its error channel."""

from __future__ import annotations

from collections.abc import Mapping

from clinker_spark.cxl import ir
from clinker_spark.cxl.hidden import variable_column
from clinker_spark.cxl.lower.expressions.calls import lower_call, lower_dynamic_call
from clinker_spark.cxl.lower.expressions.closures import lower_comprehension, lower_higher_order
from clinker_spark.cxl.lower.expressions.comparisons import lower_compare
from clinker_spark.cxl.lower.expressions.containers import lower_array, lower_map
from clinker_spark.cxl.lower.expressions.literals import literal_sql
from clinker_spark.cxl.lower.expressions.operators import (
    lower_coalesce,
    lower_if,
    lower_let,
    lower_logic,
    lower_narrow,
    lower_not,
    lower_widen,
)
from clinker_spark.cxl.lower.expressions.python_calls import lower_in_python, python_reason
from clinker_spark.cxl.lower.expressions.windows import lower_window
from clinker_spark.cxl.lower.lowering import Lowering, Rule
from clinker_spark.cxl.lower.plan import Sql, quote


def rule_of(e: ir.TExpr) -> Rule:
    """How to lower a node: by the rule of its kind, or as a column that Python computes."""
    return _RULES[type(e)] if python_reason(e) is None else lower_in_python


def _constant(lowering: Lowering, e: ir.Const) -> Sql:
    return Sql(literal_sql(e.value, e.type), simple=True)


def _field(lowering: Lowering, e: ir.Field) -> Sql:
    text = lowering.fields.get(e.name)
    return Sql(quote(e.name), simple=True) if text is None else lowering.builder.bind(Sql(text))


def _slot(lowering: Lowering, e: ir.Slot) -> Sql:
    return lowering.slots[e.slot].bare()


def _system(lowering: Lowering, e: ir.SystemRef) -> Sql:
    column = variable_column(e.namespace, *e.path)
    if column in lowering.system_columns:
        return Sql(quote(column), simple=True)
    return Sql(literal_sql(lowering.context.get(e.namespace, e.path), e.type), simple=True)


def _aggregate(lowering: Lowering, e: ir.AggregateCall) -> Sql:
    assert lowering.aggregates is not None
    return lowering.aggregates(e)


_RULES: Mapping[type[ir.TExpr], Rule] = {
    ir.Const: _constant,
    ir.Field: _field,
    ir.Slot: _slot,
    ir.SystemRef: _system,
    ir.Call: lower_call,
    ir.DynamicCall: lower_dynamic_call,
    ir.Widen: lower_widen,
    ir.Narrow: lower_narrow,
    ir.Compare: lower_compare,
    ir.Logic: lower_logic,
    ir.Not: lower_not,
    ir.Coalesce: lower_coalesce,
    ir.If: lower_if,
    ir.LetIn: lower_let,
    ir.HigherOrder: lower_higher_order,
    ir.Comprehend: lower_comprehension,
    ir.MakeArray: lower_array,
    ir.MakeMap: lower_map,
    ir.AggregateCall: _aggregate,
    ir.WindowRef: lower_window,
}
