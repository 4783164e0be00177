"""A run on Spark. Its session: the command line, then clinker.toml, then the embedded default."""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib
import logging
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from clinker_spark.cli.clinker.actions.planning import plan_of, show_warnings
from clinker_spark.cli.clinker.actions.session_settings import remote_of, wanted_conf, wanted_session
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError, InputError
from clinker_spark.plan.graph import Plan
from clinker_spark.report.progress import reporter
from clinker_spark.runtime.commit.small_files import replace_file
from clinker_spark.runtime.discover.sources import discover
from clinker_spark.runtime.run.memory import few_arenas, options_of_jvm, with_spill_folder
from clinker_spark.runtime.run.options import Listener, Options
from clinker_spark.runtime.run.report import RunReport
from clinker_spark.spark.session.sessions import SparkSession, session

_SHORT_RUN = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Without the JVM's optimising compiler, but with the room for compiled code that it has with it: else that is a fifth
of it, which the plan of a large pipeline fills however few its records are."""
AFTER_THE_START = ("clinker_spark.runtime.run.pipeline", "clinker_spark.runtime.run.preview")
"""What is needed when Spark is there: a second of imports, which a thread does while we wait for Java."""
_SHORT_BYTES = 8 << 20
"""Input that is read in less time than it takes to compile Spark twice (compressed files grow by a few times)."""


def run_on_spark(pipeline: str, plan: Plan | None, run_options: Options, options: dict[str, Any]) -> int:
    """A run, or a preview. Without a plan, planning is part of what the events tell."""
    stop_on_sigterm()
    with reporter(pipeline, run_options, machine=options["machine"], quiet=options["quiet"]) as listener:
        if plan is None:
            plan = plan_of(pipeline, options)
            warnings = [{"code": found.code, "message": found.message} for found in plan.warnings]
            outputs = [node.name for node in plan.outputs]
            listener("planned", {"nodes": len(plan.nodes), "outputs": outputs, "warnings": warnings})
        spark = open_session(plan, pipeline, options)
        if options["dry_run"]:
            from clinker_spark.runtime.run.preview import preview  # see `AFTER_THE_START`

            _put(preview(plan, spark, run_options, options["preview"]), options["dry_run_output"])
            return 0
        report = run_with_page(plan, spark, run_options, listener, options["report"])
        listener("finished", {"report": report})
    show_warnings(report.warnings)
    if options["report"] is not None:
        from clinker_spark.report.page.run_page import write_page  # for runs with a page

        write_page(Path(options["report"]), plan, report)
    return report.exit_code


def run_with_page(
    plan: Plan, spark: SparkSession, run_options: Options, listener: Listener, page: str | None
) -> RunReport:
    """The run. If it fails, its page is written here: it says why."""
    from clinker_spark.runtime.run.pipeline import run  # see `AFTER_THE_START`

    begun: list[RunReport] = []
    run_options.begun = begun.append
    try:
        return run(plan, spark, run_options, listener)
    except ClinkerError as error:
        if page is not None and begun:
            from clinker_spark.report.page.run_page import write_page  # for runs with a page

            with contextlib.suppress(ClinkerError):  # the run has failed already: that is what is told
                write_page(Path(page), plan, begun[0], error.diagnostics)
        raise


def _put(text: str, path: str | None) -> None:
    if path is None:
        click.echo(text, nl=False)
        return
    try:
        replace_file(Path(path), text.encode())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError([Diagnostic("E401", f"cannot write '{path}': {reason}", help="check the path")]) from None


def open_session(
    plan: Plan, pipeline: str, options: dict[str, Any], usual: Mapping[str, str] = MappingProxyType({})
) -> SparkSession:
    """A session as the options ask for it; `usual` are settings that they may say otherwise. Raises `ClinkerError` when
    Spark cannot start."""
    conf, remote, master = wanted_conf(pipeline, options), remote_of(pipeline, options), "local[*]"
    start = [_SHORT_RUN] if _is_short(plan, options) else []
    if remote is None:
        wanted = wanted_session(plan, pipeline, options)
        master, conf = wanted.master, with_spill_folder({**usual, **wanted.conf})
        start.append(options_of_jvm(wanted))
        few_arenas()
    threading.Thread(target=_load, daemon=True).start()
    if not options["verbose"]:
        logging.disable(logging.CRITICAL)  # Py4J would tell of every call that a lost JVM does not answer
    return session(
        master,
        app_name=f"clinker: {plan.file.settings.name}",
        conf=conf,
        verbose=options["verbose"],
        remote=remote,
        java_options=" ".join(start),
    )


def _load() -> None:
    with contextlib.suppress(Exception):  # who needs it imports it again, and says why that fails
        for name in AFTER_THE_START:
            importlib.import_module(name)


def _is_short(plan: Plan, options: dict[str, Any]) -> bool:
    """Is there so little to read that the JVM's optimising compiler would cost more than it saves?"""
    if options.get("once") is False or any(source.config.stream_only for source in plan.sources):
        return False  # a stream that goes on, or of which nobody knows how much there is
    base = Path(options.get("base_dir") or plan.file.folder)
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    try:
        files = [file for source in plan.sources for file in discover(source, base, now).files]
    except (ClinkerError, OSError):  # the run will say what is wrong
        return False
    return all("://" not in file.path for file in files) and sum(file.size for file in files) <= _SHORT_BYTES


def stop_on_sigterm() -> None:
    """A polite request to end is handled like Ctrl-C: jobs are cancelled, attempts removed, exit 130."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
