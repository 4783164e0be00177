"""`clinker dlq`: look at dead letters, and run them again after a fix."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click


@click.group("dlq")
def command() -> None:
    """Look at dead letters, and run them again."""


@command.command("inspect")
@click.argument("file", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def inspect(file: str, as_json: bool) -> int:
    """Show why records failed: grouped by reason, node and field, with samples."""
    from clinker_spark.runtime.reject.letter_files import read_letters, reasons

    found = reasons(read_letters(file))
    if as_json:
        rows = [
            {
                "category": r.category,
                "stage": r.stage,
                "field": r.field,
                "count": r.count,
                "sources": dict(r.sources),
                "samples": [{**s.engine, "record": s.record} for s in r.samples],
            }
            for r in found
        ]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    total = sum(r.count for r in found)
    click.echo(f"{file}: {total} dead letter{'' if total == 1 else 's'}")
    for reason in found:
        where = f"{reason.stage}, field '{reason.field}'" if reason.field else reason.stage
        click.echo(f"\n{reason.count} x {reason.category or 'unknown reason'} at {where}")
        for detail, count in reason.details.most_common(3):
            click.echo(f"    {count} x {detail}")
        for sample in reason.samples:
            engine = sample.engine
            row = f" row {engine['source_row']}" if engine["source_row"] else ""
            shown = ", ".join(f"{k}={v}" for k, v in list(sample.record.items())[:6])
            click.echo(f"  - {engine['source_file']}{row}: {shown}")
    return 0


@command.command("replay")
@click.argument("pipeline", type=click.Path())
@click.argument("file", type=click.Path())
@click.option("--append", is_flag=True, help="Add the records to the outputs, instead of writing <name>-replay files.")
@click.option("--set", "settings", multiple=True, metavar="vars.NAME=VALUE", help="Set a variable of the pipeline.")
@click.option("--rules-path", type=click.Path(), help="The folder of the CXL modules.")
@click.option("--master", help="Where Spark runs.")
@click.option("--remote", help="A Spark Connect server.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
def replay(pipeline: str, file: str, **options: Any) -> int:
    """Run the records of a dead-letter FILE through the PIPELINE again, and only those.

    Correct the pipeline, or the values in the file, first. Outputs are written beside the old ones as
    <name>-replay.<ext>; with --append their records are added to the old ones, each letter once. Records that
    fail again are in <dead letters>-replay.csv, which can be replayed as well: then files are called
    <name>-replay-2.<ext>.
    """
    import tempfile

    from clinker_spark.cli.clinker.run_session import open_session, stop_on_sigterm
    from clinker_spark.plan.prepare import prepare
    from clinker_spark.report.progress import reporter
    from clinker_spark.runtime.paths.reservations import replayed_before
    from clinker_spark.runtime.reject.letter_files import read_letters
    from clinker_spark.runtime.reject.replay import replay_plan
    from clinker_spark.runtime.reject.replay_files import replay_files
    from clinker_spark.runtime.reject.replay_rounds import free_round
    from clinker_spark.runtime.run.options import Options
    from clinker_spark.runtime.run.pipeline import run

    stop_on_sigterm()
    original = prepare(pipeline, overrides=tuple(options["settings"]), rules_path=options["rules_path"])
    known = replayed_before(original, original.file.folder) if options["append"] else frozenset()
    with tempfile.TemporaryDirectory(prefix="clinker-replay-") as folder:
        feed = replay_files(original, read_letters(file), Path(folder), known, Path(file))
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
