"""`clinker recover`: finish, or undo, what a crash left half published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clinker_spark.runtime.commit.recovery import recover
from clinker_spark.runtime.commit.seam import SYSTEM

if TYPE_CHECKING:
    from clinker_spark.plan.graph import Plan


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
    letters are looked at, and the staging folder, where interrupted copies are removed; with a folder, only
    that one. Runs that go on are not touched.
    """
    path = Path(place)
    plan = None if path.is_dir() else _plan(place)
    folders = [path] if plan is None else _folders(plan, base_dir)
    found = recover(SYSTEM, [SYSTEM.resolve(folder) for folder in folders], force=force)
    for item in found:
        click.echo(f"{item.folder.parent}: {item.sentence() or _other(item.what)}")
    purged = plan is not None and _purge_staging(plan)
    if not found and not purged:
        click.echo(f"{place}: nothing to recover")
    return 4 if any(item.what == "left" for item in found) else 0


def _other(what: str) -> str:
    if what == "cleaned":
        return "removed what a run left that had published everything"
    return "removed what a run left that had published nothing"


def _plan(place: str) -> Plan:
    from clinker_spark.plan.prepare import prepare  # half a second, which a folder and --help do not need

    return prepare(place)


def _folders(plan: Plan, base_dir: str | None) -> list[Path]:
    """Where the outputs and dead letters of a pipeline lie, as far as that is the same in every run."""
    from clinker_spark.runtime.paths.outputs import output_folders  # other commands start without it

    return output_folders(plan, Path(base_dir) if base_dir else plan.file.folder)


def _purge_staging(plan: Plan) -> bool:
    """Remove what crashed runs left in the staging folder. Was there anything?"""
    from clinker_spark.runtime.staging.purge import GRACE, purge  # other commands start without it
    from clinker_spark.runtime.staging.settings import settings_of

    settings = settings_of(plan)
    if settings is None or not settings.folder.is_dir():
        return False
    done = purge(SYSTEM, settings.folder)
    if done.removed:
        click.echo(f"{settings.folder}: removed {len(done.removed)} file(s) of interrupted copies")
    if done.left:
        why = f"a run uses them, they are less than {GRACE:.0f} seconds old, or the system refuses it"
        click.echo(f"{settings.folder}: left {len(done.left)} file(s): {why}")
    return bool(done.removed or done.left)
