"""Sessions for tests, beside the one of the process."""

from __future__ import annotations

from pyspark.sql import SparkSession

from clinker_spark.spark.session.small_inputs import SETTING

_QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    SETTING: "0",  # several tasks, as for large inputs
}


def quick(spark: SparkSession) -> SparkSession:
    """A session that does not compile its expressions to Java, and plans each job once: for a few rows, that would be
    most of the time.

    The conformance cases, the examples and the commands run with generated code and new plans, as users do."""
    session = spark.newSession()
    for key, value in _QUICK.items():
        session.conf.set(key, value)
    return session
