"""Runs in processes that can be killed. They share one JVM, that of the tests, so that a run costs about a second.

A real run has a JVM of its own, which ends with it; here the jobs of a killed process are cancelled by the tests.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clinker_spark.runtime.commit import attempt
from clinker_spark.runtime.commit.seam import PosixFiles
from clinker_spark.runtime.staging import inputs


class StoppingFiles:
    """The files of the system. At call `at` the process says so and waits to be killed."""

    def __init__(self, at: int | None, log: Path) -> None:
        self.real = PosixFiles()
        self.at = at
        self.calls = 0
        self.log = open(log, "a", encoding="utf-8")  # noqa: SIM115 - as long as the process lives

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.calls += 1
            print(name, *args, file=self.log, flush=True)
            if self.calls == self.at:
                print("STOPPED", file=self.log, flush=True)
                time.sleep(600)
            return getattr(self.real, name)(*args, **options)

        return call


def run_pipeline(folder: str, port: int, secret: str, at: int | None) -> None:
    """The whole life of such a process: a session in the JVM that is there, and one run."""
    log = Path(folder) / "log"
    attempt.SYSTEM = inputs.SYSTEM = StoppingFiles(at, log)  # type: ignore[assignment]
    spark = attached(port, secret)
    from clinker_spark.plan.prepare import prepare
    from clinker_spark.runtime.run.options import Options
    from clinker_spark.runtime.run.pipeline import run

    with open(log, "a", encoding="utf-8") as out:
        print("BEGIN", file=out)
    run(prepare(Path(folder) / "data" / "pipeline.yaml"), spark, Options())
    os._exit(0)  # not even the connection is closed: the JVM belongs to others


def attached(port: int, secret: str) -> Any:
    """A session of its own in a JVM that another process started."""
    os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = secret
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    from tests.support.sessions import quick

    gateway = launch_gateway()
    jvm = gateway.jvm
    java = jvm.org.apache.spark.SparkContext.getOrCreate()
    jsc = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(java)
    context = SparkContext(gateway=gateway, jsc=jsc, conf=SparkConf(_jconf=jsc.getConf()))
    return quick(SparkSession(context))
