"""A stream on Spark, as the command line asks for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from clinker_spark.cli.clinker.actions.planning import plan_of, short_form, show_warnings
from clinker_spark.plan.streams import queries
from clinker_spark.runtime.run.options import Listener
from clinker_spark.streaming.watch.progress import StreamReport


def stream(pipeline: str, options: dict[str, Any]) -> int:
    """Plan, then explain or run."""
    plan = plan_of(pipeline, options, short_form(pipeline))
    queries(plan)  # what cannot be a stream is said before Java starts
    if options["explain"]:
        from clinker_spark.streaming.explain import explain_stream

        click.echo(explain_stream(plan), nl=False)
        return 0
    from clinker_spark.cli.clinker.actions.run_session import open_session
    from clinker_spark.spark.streaming.state import FLAT
    from clinker_spark.streaming.run import StreamOptions, run_stream

    base = None if options["base_dir"] is None else Path(options["base_dir"])
    told = bool(options["machine"] or options["report"])
    given = StreamOptions(options["once"], options["flush_at_end"], base, options["checkpoint"], sides=told)
    spark = open_session(plan, pipeline, {**options, "remote": None}, FLAT)
    report = run_stream(plan, spark, given, _teller(options))
    if options["report"]:
        from clinker_spark.report.page.stream import write_stream_page  # only with --report

        write_stream_page(Path(options["report"]), plan, report)
    show_warnings(report.warnings)
    if not options["quiet"] and not options["machine"]:
        for line in _summary(report):
            click.echo(line, err=True)
    return report.exit_code(once=options["once"])


def _teller(options: dict[str, Any]) -> Listener:
    def tell(event: str, details: dict[str, Any]) -> None:
        if options["machine"]:
            sys.stdout.write(json.dumps({"event": event, **details}, default=str) + "\n")
            sys.stdout.flush()
        elif event == "batch" and not options["quiet"] and not options["once"]:
            read = sum(details["records"].values())
            shown = f"batch {details['number']} of {details['query']}: {read} records in {details['milliseconds']} ms"
            click.echo(shown, err=True)

    return tell


def _summary(report: StreamReport) -> list[str]:
    read = ", ".join(f"{name} {count}" for name, count in sorted(report.records.items()) if count) or "nothing new"
    lines = [f"{report.finished} batches, read: {read}"]
    if report.letters:
        lines.append(f"{report.letters} dead letters: {', '.join(report.letter_paths) or 'written nowhere'}")
    if report.interrupted:
        lines.append("stopped; the next call goes on from here")
    return lines
