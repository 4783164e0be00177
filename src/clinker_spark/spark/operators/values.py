"""The last values of variables that transforms write for the pipeline or for a file."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN, variable_column
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import DOCUMENT_COLUMN
from clinker_spark.plan.nodes.base import StreamRef
from clinker_spark.plan.variables import SHARED
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.build.stream import failed


def last_values(builder: Builder) -> tuple[dict[str, Any], dict[str, dict[int, Any]]]:
    """Run the pipeline up to the transform whose values a pass shows: the last value of each variable of the pipeline,
    and of each one of a file by document. What was never written is not there."""
    assert builder.asked.values_of is not None
    node = builder.plan[builder.asked.values_of]
    of_pipeline: dict[str, Any] = {}
    of_files: dict[str, dict[int, Any]] = {}
    stream = builder.stream(StreamRef(node.name))
    frame = stream.frame.where(~failed()) if ERROR_COLUMN in stream.frame.columns else stream.frame
    arrival = F.col(quote(ARRIVAL_COLUMN))
    for scope in SHARED:
        names = [d.name for d in node.declares if d.scope == scope]
        if not names:
            continue
        # A struct, because max_by leaves out nulls, and null may well be what was written last.
        last = [
            F.max_by(F.struct(F.col(quote(variable_column(scope, name))).alias("v")), arrival).alias(f"v{i}")
            for i, name in enumerate(names)
        ]
        if scope == "pipeline":
            row = frame.agg(*last).first()
            assert row is not None
            of_pipeline |= {n: row[f"v{i}"]["v"] for i, n in enumerate(names) if row[f"v{i}"] is not None}
            continue
        rows = frame.groupBy(F.col(quote(DOCUMENT_COLUMN)).alias("document")).agg(*last).collect()  # one per file
        for i, name in enumerate(names):
            of_files[name] = {row["document"]: row[f"v{i}"]["v"] for row in rows}
    return of_pipeline, of_files
