"""Binding routes: their conditions become one program that says which ports a record takes."""

from __future__ import annotations

from clinker_spark.config.model.route import RouteNode
from clinker_spark.cxl.conditions import as_program, first_true
from clinker_spark.plan.bind.node import NodeBinder, Streams
from clinker_spark.plan.columns import PORT_COLUMN, PORT_PREFIX
from clinker_spark.plan.nodes.route import RoutePlan


def bind_route(binder: NodeBinder, node: RouteNode) -> Streams | None:
    """The streams of a route; None when a condition is wrong, which is noted then."""
    schema = binder.inputs[0].schema
    config = node.config
    conditions = [
        binder.compile("config", "conditions", name, schema=schema, condition=True) for name in config.conditions
    ]
    if any(c is None for c in conditions):
        return None
    if config.mode == "exclusive":
        columns = [(PORT_COLUMN, first_true(conditions, len(conditions)))]
    else:
        columns = [(f"{PORT_PREFIX}{i}", c.value) for i, c in enumerate(conditions)]
    return binder.made(
        RoutePlan(
            **binder.common(schema, binder.inputs[0].emitted),
            program=as_program(schema, columns),
            conditions=tuple(config.conditions),
            default=config.default,
            inclusive=config.mode == "inclusive",
        )
    )
