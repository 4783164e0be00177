"""The Spark session of a run: the command line, then clinker.toml, then the embedded default."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from clinker_spark.config.workspace import find_workspace
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError

if TYPE_CHECKING:
    from clinker_spark.plan.nodes import Plan
    from clinker_spark.spark.session import SparkSession


def open_session(plan: Plan, pipeline: str, options: dict[str, Any]) -> SparkSession:
    """A session as the options ask for it. Raises `ClinkerError` when Spark cannot start."""
    from clinker_spark.spark.session import session

    spark = find_workspace(pipeline).config.spark
    conf = dict(spark.conf)
    for given in options["conf"]:
        key, equals, value = given.partition("=")
        if not equals or not key:
            raise ClinkerError(
                [
                    Diagnostic(
                        "E018",
                        f"'{given}' is not of the form key=value",
                        help="write --conf spark.sql.shuffle.partitions=8",
                    )
                ]
            )
        conf[key.strip()] = value
    threads = plan.file.settings.concurrency.threads
    default = f"local[{threads}]" if threads else "local[*]"
    remote = options["remote"] or (None if options["master"] else spark.remote)
    return session(
        options["master"] or spark.master or default,
        app_name=f"clinker: {plan.file.settings.name}",
        conf=conf,
        verbose=options["verbose"],
        remote=remote,
    )


def stop_on_sigterm() -> None:
    """A polite request to end is handled like Ctrl-C: jobs are cancelled, attempts removed, exit 130."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
