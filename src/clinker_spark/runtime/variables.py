"""Variables of the pipeline and of source files: their values are found before those who read them run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import functions as F

from clinker_spark.cxl.lower.plan import ARRIVAL_COLUMN, ERROR_COLUMN, quote
from clinker_spark.cxl.system import Context
from clinker_spark.plan.nodes import Plan, StreamRef, TransformPlan
from clinker_spark.plan.scopes import SHARED, writers
from clinker_spark.spark.operators.build import Builder
from clinker_spark.spark.operators.stream import DOCUMENT_COLUMN, failed


@dataclass
class Values:
    """What is known so far. `files` has the values of `$source.x` by document."""

    pipeline: dict[str, Any] = field(default_factory=dict)
    files: dict[str, dict[int, Any]] = field(default_factory=dict)


def with_defaults(plan: Plan, context: Context) -> Context:
    """The context with the declared variables as they are before anybody writes them."""
    scopes: dict[str, dict[str, Any]] = {"pipeline": {}, "source": {}, "record": {}}
    for (scope, name), node in writers(plan).items():
        scopes[scope][name] = next(d.value for d in node.declares if d.name == name and d.scope == scope)
    return replace(
        context,
        pipeline={**context.pipeline, **scopes["pipeline"]},
        source={**context.source, **scopes["source"]},
        record={**context.record, **scopes["record"]},
    )


def with_values(context: Context, values: Mapping[str, Any]) -> Context:
    return replace(context, pipeline={**context.pipeline, **values})


def find_values(builder: Builder, node: TransformPlan, known: Values) -> None:
    """Run the pipeline up to a transform and keep the last value that each of its variables got."""
    builder.values_of = node.name
    stream = builder.stream(StreamRef(node.name))
    frame = stream.frame.where(~failed()) if ERROR_COLUMN in stream.frame.columns else stream.frame
    arrival = F.col(quote(ARRIVAL_COLUMN))
    for scope in SHARED:
        names = [d.name for d in node.declares if d.scope == scope]
        if not names:
            continue
        # A struct, because max_by leaves out nulls, and null may well be what was written last.
        last = [
            F.max_by(F.struct(F.col(quote(f"${scope}.{name}")).alias("v")), arrival).alias(f"v{i}")
            for i, name in enumerate(names)
        ]
        if scope == "pipeline":
            row = frame.agg(*last).first()
            assert row is not None
            known.pipeline |= {n: row[f"v{i}"]["v"] for i, n in enumerate(names) if row[f"v{i}"] is not None}
            continue
        rows = frame.groupBy(F.col(quote(DOCUMENT_COLUMN)).alias("document")).agg(*last).collect()  # one per file
        for i, name in enumerate(names):
            known.files[name] = {row["document"]: row[f"v{i}"]["v"] for row in rows}
