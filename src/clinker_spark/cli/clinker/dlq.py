"""`clinker dlq`: look at dead letters, and run them again after a fix."""

from __future__ import annotations

import json
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
    from clinker_spark.runtime.reject.letter_files import read_letters, reasons  # pyarrow: not for --help

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
    from clinker_spark.cli.clinker.actions.replay_session import replay_letters  # pyspark: a second, not for --help

    return replay_letters(pipeline, file, options)
