"""`clinker runs`: the runs of a pipeline that published, as the manifests beside its outputs tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click


@click.command("runs")
@click.argument("pipeline", type=click.Path())
@click.option("--base-dir", type=click.Path(), help="What relative paths start from.  [default: the pipeline's folder]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, with the files that each run read.")
def command(pipeline: str, base_dir: str | None, as_json: bool) -> int:
    """List the runs of a pipeline, the newest last.

    \b
    clinker runs pipeline.yaml
    clinker runs pipeline.yaml --json

    A run is listed when it has published what it made. With files: { only_new: true } a source reads only what
    no listed run read; `clinker run --full` starts over.
    """
    from clinker_spark.plan.prepare import prepare  # half a second, which --help does not need
    from clinker_spark.runtime.discover.history import runs_of

    plan = prepare(pipeline)
    found = runs_of(plan, Path(base_dir) if base_dir else plan.file.folder)
    for run in found if as_json else ():
        click.echo(json.dumps(run, ensure_ascii=False))
    if not found:
        click.echo(f"{pipeline}: no run has published anything", err=as_json)
    elif not as_json:
        click.echo(_table(found))
    return 0


def _table(runs: list[dict[str, Any]]) -> str:
    keys = ("started", "run", "kind", "files", "read")
    rows = [["started", "run", "of", "files", "records read", "records written", "dead letters"]]
    for run in runs:
        written = ", ".join(f"{name} {count:,}" for name, count in run["written"].items())
        rows.append([*(_text(run[key]) for key in keys), written, _text(run["dead_letters"])])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
