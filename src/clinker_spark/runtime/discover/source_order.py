"""Sources that declare an order: their files are checked before anything relies on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.plan.passes.all import with_facts
from clinker_spark.plan.stages import sort_words
from clinker_spark.runtime.errors import DataError
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.build.passes import Pass, Points, RunContext
from clinker_spark.spark.operators.source_order import Inversion, inversions, split_points

_SHOWN = 3


@dataclass(frozen=True)
class Unsorted:
    """A source that must be sorted: what there is to say, and where to cut its records for that."""

    warning: Diagnostic
    points: Points


def settle_order(builder: Builder, source: str) -> tuple[Plan, Unsorted | None]:
    """Compare the files of a source with its order. If they must be sorted, the plan is another one afterwards; raises
    `DataError` if the source does not want them sorted."""
    plan = builder.plan
    node = plan.source(source)
    found = inversions(builder, node)
    if not found:
        return plan, None
    message = _message(node, found, [file.name for file in builder.run.files[source]])
    if node.config.on_unsorted == "error":
        help_text = "sort the file, correct sort_order, or write on_unsorted: warn to have it sorted here"
        raise DataError([node.diagnostic("E450", message, "config", "sort_order", help=help_text)])
    help_text = "the records were sorted; correct sort_order, or sort the files to save that"
    warning = node.diagnostic("W307", message, "config", "sort_order", help=help_text)
    # Records no longer stay where they were read: outputs sort them.
    return with_facts(replace(plan, moved=True)), Unsorted(warning, split_points(builder, node))


def with_known_order(context: RunContext, limit: int | None = None) -> RunContext:
    """The same with the sources that must be sorted, for those who run no stages. At most `limit` records of each
    source are looked at."""
    unsorted: dict[str, Points] = {}
    for node in context.plan.sources:
        if node.config.sort_order:
            plan, found = settle_order(Builder(context, Pass(limit=limit)), node.name)
            context = replace(context, plan=plan)
            unsorted |= {} if found is None else {node.name: found.points}
    return replace(context, found=replace(context.found, unsorted=unsorted))


def _message(node: SourcePlan, found: Sequence[Inversion], names: Sequence[str]) -> str:
    order = ", ".join(sort_words(item) for item in node.config.sort_order)
    places = [
        f"'{names[i.file]}' has ({i.keys}) in row {i.row} after ({i.keys_before}) in row {i.row_before}"
        for i in found[:_SHOWN]
    ]
    more = f", and {len(found) - _SHOWN} more files" if len(found) > _SHOWN else ""
    return f"not sorted by {order}: {'; '.join(places)}{more}"
