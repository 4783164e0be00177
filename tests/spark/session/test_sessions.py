"""The shared session works, and its Python workers are this interpreter."""

from __future__ import annotations

import os
import sys
import time

import pytest
from py4j.protocol import Py4JNetworkError

from clinker_spark.spark.session.sessions import names_as_written, share_of_tasks, working_session
from clinker_spark.spark.streaming.state import stream_session


def test_a_session_that_is_gone_says_nothing_of_its_tasks() -> None:
    """The thread that asks must not end with a traceback: the run itself tells what happened to the JVM."""

    class Gone:
        @property
        def sparkContext(self) -> Gone:
            return self

        def statusTracker(self) -> None:
            raise Py4JNetworkError("Answer from Java side is empty")

    assert share_of_tasks(Gone()) == 0.0  # type: ignore[arg-type]


def test_workers_run_this_python(spark) -> None:  # type: ignore[no-untyped-def]
    from pyspark.sql.functions import udf

    executable = udf(lambda _: sys.version, "string")
    assert spark.range(1).select(executable("id")).first()[0] == sys.version


def test_workers_are_forked_with_what_they_need(spark) -> None:  # type: ignore[no-untyped-def]
    """Loaded by the process that they come from, and out of the way of the garbage collector."""
    from collections.abc import Iterator

    import pyarrow as pa

    def loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gc

        for _ in batches:
            found = ["clinker_spark.spark.scan.csv.source" in sys.modules, gc.get_freeze_count() > 10_000]
            yield pa.RecordBatch.from_pydict({"fine": found})

    rows = spark.range(0, 1, 1, 1).mapInArrow(loaded, "fine boolean").collect()
    assert [row.fine for row in rows] == [True, True]


@pytest.mark.skipif(os.environ.get("CLINKER_CASES") != "all", reason="CLINKER_CASES=all: takes seconds")
def test_spark_forgets_what_was_executed_long_ago(spark) -> None:  # type: ignore[no-untyped-def]
    store = spark._jsparkSession.sharedState().statusStore()
    for _ in range(300):
        spark.range(1).count()
    until = time.monotonic() + 30
    while store.executionsCount() > 260:  # it tidies up in a thread of its own
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_name_is_a_name_in_every_session(spark) -> None:  # type: ignore[no-untyped-def]
    """Spark would put a setting or a variable of the system in place of `${env:HOME}`, in names and in constants."""
    own = spark.newSession()  # as a user has it
    own.conf.set("spark.sql.variable.substitute", "true")
    own.conf.set("spark.sql.caseSensitive", "true")
    text = "SELECT '${env:HOME}' AS `${env:HOME}`"
    assert own.sql(text).columns != ["${env:HOME}"]

    for session in (stream_session(own, 1, 100), working_session(own)):
        frame = session.sql(text)
        assert frame.columns == ["${env:HOME}"] and frame.first()[0] == "${env:HOME}"
    with names_as_written(own):
        assert own.sql(text).columns == ["${env:HOME}"]
    assert own.conf.get("spark.sql.variable.substitute") == "true"
    quiet = working_session(own)
    assert working_session(quiet) is quiet
