"""A node type from outside: `mask` hides all but the last characters of a text. Three modules and one row."""

from __future__ import annotations

from clinker_spark.config.node_types import NodeType
from tests.scenarios.toy_node.model import MaskNode

MASK = NodeType(
    "mask",
    MaskNode,
    bind=f"{__name__}.plan:bind_mask",
    plan=f"{__name__}.plan:MaskPlan",
    operator=f"{__name__}.operator:build_mask",
)
