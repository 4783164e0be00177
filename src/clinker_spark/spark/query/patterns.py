"""The functions behind the patterns of queries: Arrow functions with a name, which SQL can call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clinker_spark.cxl.regex.columns import over_texts
from clinker_spark.cxl.regex.patterns import compile_regex
from clinker_spark.query.lower.expressions.patterns import PatternCall


def register_patterns(spark: SparkSession, functions: Mapping[str, PatternCall]) -> None:
    """Make functions known to a session, which a query calls by these names."""
    for name, call in functions.items():
        if not spark.catalog.functionExists(name):
            kind = "STRING" if call.method == "capture" else "BOOLEAN"
            spark.udf.register(name, F.arrow_udf(_function(call), returnType=kind))  # type: ignore[attr-defined]


def _function(call: PatternCall) -> Callable[[pa.Array], pa.Array]:
    def run(texts: pa.Array) -> pa.Array:
        return over_texts(compile_regex(call.pattern), call.method, call.group)(texts)

    # Spark reads the annotations to learn that the function takes and returns Arrow arrays.
    run.__annotations__ = {"texts": pa.Array, "return": pa.Array}
    return run
