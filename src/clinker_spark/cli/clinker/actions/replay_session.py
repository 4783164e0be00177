"""`clinker dlq replay` on Spark."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from clinker_spark.cli.clinker.actions.run_session import open_session, stop_on_sigterm
from clinker_spark.cli.warm.fitting import wanted
from clinker_spark.cli.warm.start import handed_over
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.progress import reporter
from clinker_spark.runtime.paths.reservations import replayed_before
from clinker_spark.runtime.reject.letter_files import read_letters
from clinker_spark.runtime.reject.replay import replay_plan
from clinker_spark.runtime.reject.replay_files import replay_files
from clinker_spark.runtime.reject.replay_rounds import free_round
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run


def replay_letters(pipeline: str, file: str, options: dict[str, Any]) -> int:
    """Run the records of a dead-letter file through the pipeline again."""
    code = handed_over(pipeline, lambda: wanted({"pipeline": pipeline, **options}))
    if code is not None:
        return code
    stop_on_sigterm()
    original = prepare(pipeline, overrides=tuple(options["settings"]), rules_path=options["rules_path"])
    known = replayed_before(original, original.file.folder) if options["append"] else frozenset()
    with tempfile.TemporaryDirectory(prefix="clinker-replay-") as folder:
        feed = replay_files(original, read_letters(file), Path(folder), known, Path(file), once=options["append"])
        if not feed.fed:
            click.echo(f"nothing to replay: {feed.skipped} dead letter(s) were added before, {feed.left} are not fed")
            return 0
        plan = replay_plan(original, feed.files)
        run_options = Options(files=feed.files, replay="append" if options["append"] else "beside", feed=feed)
        run_options.round = free_round(plan, run_options, plan.file.folder)
        with reporter(pipeline, run_options, machine=None, quiet=options["quiet"]) as listener:
            spark = open_session(plan, pipeline, {**options, "verbose": False})
            report = run(plan, spark, run_options, listener)
            listener("finished", {"report": report})
    sys.stdout.flush()
    return report.exit_code
