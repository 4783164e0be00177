"""`clinker guess`: a pipeline that reads some files, guessed from them; or a check of one that is there."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("guess")
@click.argument("files", nargs=-1, type=click.Path())
@click.option("--check", "pipeline", type=click.Path(), help="How well do the schemas of this pipeline fit its files?")
@click.option("--node", "node_only", is_flag=True, help="Print the source nodes alone, to be put into a pipeline.")
@click.option("--base-dir", type=click.Path(), help="With --check: what relative paths start from.")
def command(files: tuple[str, ...], pipeline: str | None, node_only: bool, base_dir: str | None) -> int:
    """Guess how files are to be read.

    \b
    clinker guess orders.csv > orders.yaml
    clinker guess in/*.json --node
    clinker guess --check pipeline.yaml

    Format, delimiter, encoding, types, date formats and words for nothing come from the first 10,000 records of
    each file. Comments say how much of them each choice covers. A choice covers everything that was looked at, by
    the rules of a run; what is further down may still be different.
    """
    if bool(files) == (pipeline is not None):
        raise click.UsageError("name files to guess from, or a pipeline with --check")
    if pipeline is not None:
        from clinker_spark.cli.clinker.feeds.drift import show_coverage  # only with --check

        return show_coverage(pipeline, base_dir)
    from clinker_spark.runtime.profile.proposals import node_lines, pipeline_text, propose  # Arrow: --help needs none

    proposals = propose([Path(file) for file in files])
    if node_only:
        click.echo("\n".join(line for item in proposals for line in node_lines(item)))
    else:
        click.echo(pipeline_text(proposals), nl=False)
    return 0
