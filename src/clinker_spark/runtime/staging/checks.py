"""Can the staging folder be used? Asked before anything is copied, and by `--dry-run`: nothing is made or written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.discover.searches import search_of
from clinker_spark.runtime.discover.sources import is_remote
from clinker_spark.runtime.errors import IoError, PathError
from clinker_spark.runtime.paths.file_systems import file_system, is_over_network, mounts
from clinker_spark.runtime.staging.settings import StagingSettings, settings_of
from clinker_spark.spark.scan.files import SourceFile

_EXAMPLES = [f"{'0' * 32}{end}" for end in (".staged", ".manifest.json", ".lock", ".x.partial")]


def check_staging(plan: Plan, files: Mapping[str, tuple[SourceFile, ...]], base: Path) -> StagingSettings | None:
    """The settings, or None when nothing is staged. Raises `PathError` or `IoError` with all that is wrong."""
    settings = settings_of(plan)
    if settings is None:
        return None
    found = list(_unusable(settings)) or [*_network(settings), *_one_disk(settings, plan, files)]
    found += _found_again(settings, plan, base)
    if found:
        raise (IoError if any(d.code == "E426" for d in found) else PathError)(found)
    return settings


def _finding(settings: StagingSettings, code: str, message: str, help_text: str) -> Diagnostic:
    return settings.workspace.diagnostic(code, message, ("storage", "staging", "dir"), help_text)


def _unusable(settings: StagingSettings) -> Iterator[Diagnostic]:
    """The folder is made by the first run, but not the one above it: that may be a disk that is not mounted."""
    folder = settings.folder
    if folder.is_dir():
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            message = f"cannot stage files in '{folder}': permission denied"
            yield _finding(settings, "E426", message, "give it permissions, or name another folder")
    elif os.path.lexists(folder):
        yield _finding(settings, "E426", f"cannot stage files in '{folder}': it is no folder", "name a folder")
    elif not folder.parent.is_dir():
        message = f"cannot stage files in '{folder}': there is no folder '{folder.parent}'"
        yield _finding(settings, "E426", message, "make that folder, mount its disk, or name another one")
    elif not os.access(folder.parent, os.W_OK | os.X_OK):
        message = f"cannot make the folder '{folder}': permission denied"
        yield _finding(settings, "E426", message, "make it, or name another folder")


def _there(folder: Path) -> Path:
    return folder if folder.is_dir() else folder.parent


def _network(settings: StagingSettings) -> Iterator[Diagnostic]:
    kind = file_system(str(_there(settings.folder)), mounts())
    if is_over_network(kind):
        message = f"'{settings.folder}' is on a network file system ({kind})"
        help_text = "name a folder on a local disk: copies are made to need no network while records are read"
        yield _finding(settings, "E332", message, help_text)


def _one_disk(
    settings: StagingSettings, plan: Plan, files: Mapping[str, tuple[SourceFile, ...]]
) -> Iterator[Diagnostic]:
    device = os.stat(_there(settings.folder)).st_dev
    same = [
        file.name
        for node in plan.sources
        for file in files.get(node.name, ())
        if settings.why_not(file) is None and any(stamp.device == device for stamp in file.stamps)
    ]
    if same:
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        message = f"'{settings.folder}' is on the same device as '{same[0]}'{more}: a copy there would gain nothing"
        yield _finding(
            settings, "E333", message, "name a folder on another disk, or change 'patterns' to leave the file out"
        )


def _found_again(settings: StagingSettings, plan: Plan, base: Path) -> Iterator[Diagnostic]:
    """Would a source take the copies for its input?"""
    for node in plan.sources:
        config = node.config
        if (config.glob is None and config.regex is None) or is_remote(config.glob or ""):
            continue
        search = search_of(config, base)
        if any(search.would_find(str(settings.folder / name)) for name in _EXAMPLES):
            message = f"'{node.name}' looks for files in '{settings.folder}': it would read the copies"
            yield _finding(settings, "E426", message, "name another folder, or leave it out with 'exclude'")
