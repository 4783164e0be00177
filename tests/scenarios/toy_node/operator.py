"""What runs."""

from __future__ import annotations

from pyspark.sql import functions as F

from clinker_spark.cxl.hidden import ERROR_COLUMN, ERROR_TYPE
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.build.stream import Stream
from tests.scenarios.toy_node.plan import MaskPlan


def build_mask(builder: Builder, node: MaskPlan) -> Stream:
    [stream] = builder.inputs(node)
    text = F.col(quote(node.column))
    hidden = F.length(text) - node.keep
    error = F.struct(
        F.lit("too_short").alias("kind"),
        F.lit(node.column).alias("field"),
        text.alias("value"),
        F.lit(f"has fewer than {node.keep} characters").alias("message"),
    )
    failed = F.when(F.coalesce(hidden < 0, F.lit(True)), error.cast(ERROR_TYPE))
    if stream.fallible:
        failed = F.coalesce(F.col(quote(ERROR_COLUMN)), failed)
    masked = F.concat(F.repeat(F.lit("*"), hidden), F.right(text, F.lit(node.keep)))
    return builder.mark(node, stream.over(stream.frame.withColumns({ERROR_COLUMN: failed, node.column: masked})))
