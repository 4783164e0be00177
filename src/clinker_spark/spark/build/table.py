"""Which operator builds which node: a row of `config.node_types` names both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clinker_spark.config.node_types import NODE_TYPES, resolve
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.spark.build.stream import Stream

Build = Callable[[Any, Any], Stream | dict[str | None, Stream]]
"""From a `Builder` and a plan node to its stream, or to one for each port."""


def operator_of(plan: type[PlanNode]) -> Build:
    """The operator of a plan class."""
    found = {resolve(row.plan): row.operator for row in NODE_TYPES.values() if row.plan is not None}
    operator = found.get(plan)
    if operator is None:
        raise TypeError(f"{plan.__name__} has no operator")
    build: Build = resolve(operator)
    return build
