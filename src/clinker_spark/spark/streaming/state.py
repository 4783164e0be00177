"""How Spark keeps the state of streams: on disk, in the format that was measured to be the fastest."""

from __future__ import annotations

from clinker_spark.spark.session.sessions import SparkSession

PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
JOIN_FORMAT = 4
_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": PROVIDER,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.join.stateFormatVersion": str(JOIN_FORMAT),
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    # Spark 4.3 passes the watermark of its sources to a stateful operator through the plan below it, and the plan ends
    # at an exchange that is reused: a second join of the same two inputs would let go of nothing for ever.
    "spark.sql.exchange.reuse": "false",
    # What is counted in a batch that had no records is not news.
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}

FLAT = {
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
}
"""How a session of a stream is started: Spark keeps the plans of the last thousand executions, each as a text of up to
some hundred kilobytes, for a page that nobody has open. The heap of a driver would grow for the first hours."""


def stream_session(spark: SparkSession, partitions: int, kept: int) -> SparkSession:
    """A session of its own, with the settings of a stream: they stay out of the user's."""
    own = spark.newSession()
    for key, value in {
        **_SETTINGS,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.caseSensitive": "true",
        "spark.sql.variable.substitute": "false",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.streaming.minBatchesToRetain": str(kept),
    }.items():
        own.conf.set(key, value)
    return own
