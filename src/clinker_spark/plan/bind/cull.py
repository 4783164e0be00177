"""Binding culls: the conditions on groups become one program over each group."""

from __future__ import annotations

from typing import Any

from clinker_spark.config.model.groups import CullNode
from clinker_spark.core.span import NO_SPAN, Source
from clinker_spark.core.types import INT
from clinker_spark.cxl import ir
from clinker_spark.cxl.conditions import first_true
from clinker_spark.cxl.program import Program
from clinker_spark.plan.bind.node import NodeBinder, Streams
from clinker_spark.plan.columns import RULE_COLUMN
from clinker_spark.plan.nodes.cull import CullPlan


def bind_cull(binder: NodeBinder, node: CullNode) -> Streams | None:
    """The streams of a cull; None when it is wrong, which is noted then."""
    schema, config = binder.inputs[0].schema, node.config
    known = binder.known(schema, config.partition_by, "config", "partition_by")
    known &= binder.known(schema, [item.field for item in config.order_by], "config", "order_by")
    if not known:
        return None
    options: dict[str, Any] = {
        "mode": "aggregate",
        "group_by": config.partition_by,
        "least_of_documents": True,
    }
    conditions = [
        binder.compile("config", "rules", i, "drop_group_when", schema=schema, condition=True, **options)
        for i in range(len(config.rules))
    ]
    if any(c is None for c in conditions):
        return None
    emit = ir.TEmit(NO_SPAN, None, RULE_COLUMN, "engine0", first_true(conditions, len(conditions)))
    by = tuple(config.partition_by)
    typed = ir.TypedProgram(Source("<engine>", ""), dict(schema), (emit,), {RULE_COLUMN: INT}, "aggregate", by)
    return binder.made(
        CullPlan(
            **binder.common(schema, tuple(schema)),
            partition_by=by,
            order_by=tuple(config.order_by),
            rules=tuple(rule.name for rule in config.rules),
            program=Program(typed),
            removed_to=config.removed_to,
        )
    )
