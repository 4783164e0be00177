"""A stream on Spark, as the command line asks for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from clinker_spark.cli.clinker.actions.planning import plan_of
from clinker_spark.plan.streams import queries


def stream(pipeline: str, options: dict[str, Any]) -> int:
    """Plan, then explain or run."""
    plan = plan_of(pipeline, options)
    queries(plan)  # what cannot be a stream is said before Java starts
    if options["explain"]:
        from clinker_spark.streaming.explain import explain_stream

        click.echo(explain_stream(plan), nl=False)
        return 0
    from clinker_spark.cli.clinker.actions.run_session import open_session, stop_on_sigterm
    from clinker_spark.streaming.run import StreamOptions, run_stream

    stop_on_sigterm()
    base = None if options["base_dir"] is None else Path(options["base_dir"])
    given = StreamOptions(options["once"], options["flush_at_end"], base, options["checkpoint"])
    spark = open_session(plan, pipeline, {**options, "remote": None})
    report = run_stream(plan, spark, given, _teller(options))
    if not options["quiet"] and not options["machine"]:
        click.echo(f"{report.batches} batches", err=True)
    return 0


def _teller(options: dict[str, Any]) -> Any:
    def tell(event: str, details: dict[str, Any]) -> None:
        if options["machine"]:
            sys.stdout.write(json.dumps({"event": event, **details}, default=str) + "\n")
            sys.stdout.flush()

    return tell
