"""What is asked of a reader when only a few columns matter, and nothing that the plan does with the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.spark.scan.request import ReadRequest

if TYPE_CHECKING:
    from clinker_spark.spark.operators.build import Builder


def columns_only(builder: Builder, node: SourcePlan, wanted: frozenset[str], *, positions: bool = False) -> ReadRequest:
    """The wanted columns of all records of a source; no columns at all are enough to count them."""
    return ReadRequest(
        source=node.name,
        files=builder.files[node.name],
        columns=node.columns,
        options=node.config.options,
        compression=node.config.compression,
        on_unmapped="drop",
        date_formats=tuple(builder.plan.file.settings.date_formats),
        wanted=wanted,
        positions=positions,
        limit=builder.limit,
    )
