"""`clinker recover`: finish, or undo, what a crash left half published."""

from __future__ import annotations

from pathlib import Path

import click

from clinker_spark.runtime.commit.recovery import recover
from clinker_spark.runtime.commit.seam import SYSTEM


@click.command("recover")
@click.argument("place", metavar="PIPELINE|FOLDER", type=click.Path())
@click.option("--base-dir", type=click.Path(), help="What relative paths start from.  [default: the pipeline's folder]")
@click.option("--force", is_flag=True, help="Also what was made on another machine. Make sure that nothing runs there.")
def command(place: str, base_dir: str | None, force: bool) -> int:
    """Finish what a crash left half published.

    \b
    clinker recover pipeline.yaml
    clinker recover out/

    The next run of the pipeline does the same by itself. With a pipeline, the folders of its outputs and dead
    letters are looked at; with a folder, only that one. Runs that go on are not touched.
    """
    path = Path(place)
    folders = [path] if path.is_dir() else _folders(place, base_dir)
    found = recover(SYSTEM, [SYSTEM.resolve(folder) for folder in folders], force=force)
    for item in found:
        click.echo(f"{item.folder.parent}: {item.sentence() or _other(item.what)}")
    if not found:
        click.echo(f"{place}: nothing to recover")
    return 4 if any(item.what == "left" for item in found) else 0


def _other(what: str) -> str:
    if what == "cleaned":
        return "removed what a run left that had published everything"
    return "removed what a run left that had published nothing"


def _folders(place: str, base_dir: str | None) -> list[Path]:
    """Where the outputs and dead letters of a pipeline lie, as far as that is the same in every run."""
    from clinker_spark.plan.prepare import prepare  # half a second, which a folder and --help do not need
    from clinker_spark.runtime.paths.outputs import output_folders

    plan = prepare(place)
    return output_folders(plan, Path(base_dir) if base_dir else plan.file.folder)
