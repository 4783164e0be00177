"""`clinker metrics`: the numbers that runs left in a spool folder."""

from __future__ import annotations

from pathlib import Path

import click


@click.group("metrics")
def command() -> None:
    """Collect the numbers of runs."""


@command.command("collect")
@click.option("--spool-dir", required=True, type=click.Path(), help="The folder into which runs wrote their files.")
@click.option("--output-file", required=True, type=click.Path(), help="A file that gets one line of JSON for each run.")
@click.option("--delete-after-collect", is_flag=True, help="Remove the files that are collected.")
@click.option("--dry-run", is_flag=True, help="Say what would be collected, and change nothing.")
def collect_command(spool_dir: str, output_file: str, delete_after_collect: bool, dry_run: bool) -> int:
    """Append the runs of a spool folder to a file.

    \b
    clinker run pipeline.yaml --metrics-spool-dir spool/
    clinker metrics collect --spool-dir spool/ --output-file runs.ndjson --delete-after-collect

    Runs that are in the file already are not added again.
    """
    from clinker_spark.runtime.measure.spool import collect  # pyarrow and others: not for --help

    found = collect(Path(spool_dir), Path(output_file), delete=delete_after_collect, dry_run=dry_run)
    would = "would be " if dry_run else ""
    click.echo(f"{len(found.runs)} run(s) {would}added to {output_file}")
    if found.known:
        click.echo(f"{len(found.known)} run(s) were there already")
    for name in found.skipped:
        click.echo(f"skipped: {name} is no run of this version")
    return 0
