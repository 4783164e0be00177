"""`clinker state`: what a stream holds, and whether a pipeline still fits it."""

from __future__ import annotations

import click


@click.group("state")
def command() -> None:
    """Look at the state of a stream."""


@command.command("show")
@click.argument("checkpoint", type=click.Path())
@click.option("--top", default=5, show_default=True, type=click.IntRange(1, 1000), help="So many keys of each side.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(checkpoint: str, top: int, as_json: bool) -> int:
    """Show how far the stream of a CHECKPOINT is, how many records wait on each side of its joins, and the keys of
    which most wait."""
    from clinker_spark.cli.clinker.actions.state_session import show_state  # pyspark: a second, not for --help

    return show_state(checkpoint, top, as_json=as_json)


@command.command("check")
@click.argument("pipeline", type=click.Path())
@click.option("--checkpoint", type=click.Path(), help="The folder of the checkpoint.  [default: as the pipeline says]")
@click.option("--base-dir", type=click.Path(), help="What relative paths start from.  [default: the pipeline's folder]")
def check(pipeline: str, checkpoint: str | None, base_dir: str | None) -> int:
    """Say whether a PIPELINE can go on from its checkpoint: all differences, and the way out. Starts no Java."""
    from clinker_spark.cli.clinker.actions.state_session import check_state  # other commands start without it

    return check_state(pipeline, checkpoint, base_dir)
