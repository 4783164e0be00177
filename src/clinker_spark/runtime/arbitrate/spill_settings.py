"""What clinker.toml says about data that does not fit in memory: where it goes, how much of it, and can that work?

Spark has its own words for this; only a Spark that a run starts on this machine is told. Asked before it starts, and by
`--dry-run`: nothing is made or written here.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clinker_spark.config.model.documents.workspace import Spill
from clinker_spark.config.workspace import Workspace, find_workspace
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.budget import default_limit, estimated_spill
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import shown_size
from clinker_spark.runtime.errors import IoError, PathError
from clinker_spark.runtime.paths.file_systems import file_system, is_over_network, mounts
from clinker_spark.runtime.staging.settings import settings_of

_IN_MEMORY = ("tmpfs", "ramfs")
NEAR = 0.80
"""The share of the limit that an estimate may take without a warning."""
MUCH = 0.10
"""The share of the memory that may be spilled to a folder in memory that nobody chose."""
_ELSEWHERE = "name a folder on a larger disk: dir of [storage.spill] in clinker.toml"


@dataclass(frozen=True)
class SpillSettings:
    """[storage.spill] of a workspace."""

    workspace: Workspace
    config: Spill

    @property
    def folder(self) -> Path | None:
        """The folder that is named; None: Spark takes that of the system for temporary files."""
        return None if self.config.dir is None else Path(os.path.realpath(self.workspace.root / self.config.dir))

    @property
    def compression(self) -> dict[str, str]:
        """In Spark's words. `auto` is what Spark does by itself: it compresses all of it."""
        if self.config.compress == "auto":
            return {}
        names = ("spark.shuffle.compress", "spark.shuffle.spill.compress", "spark.rdd.compress")
        return dict.fromkeys(names, str(self.config.compress == "on").lower())

    def of_folder(self, code: str, message: str, help_text: str) -> Diagnostic:
        """About the folder that is used, whether it is named or not."""
        if self.folder is None:
            return Diagnostic(code, message, help=help_text)
        return self.finding(code, message, help_text)

    def finding(self, code: str, message: str, help_text: str, key: str = "dir") -> Diagnostic:
        return self.workspace.diagnostic(code, message, ("storage", "spill", key), help_text)


def spill_settings(plan: Plan) -> SpillSettings:
    """Of the workspace that a pipeline is in."""
    workspace = find_workspace(plan.file.path)
    return SpillSettings(workspace, workspace.config.storage.spill)


def usual_folder() -> Path:
    """Where Spark spills when no folder is named: where the system has its temporary files."""
    return Path(os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir())


def check_spill(plan: Plan) -> SpillSettings:
    """The settings. Raises `PathError` or `IoError` with all that is wrong with the folder."""
    settings = spill_settings(plan)
    folder = settings.folder
    if folder is not None:
        found = [*_unusable(settings, folder), *_shared(settings, folder, plan)]
        if found:
            raise (IoError if any(d.code == "E426" for d in found) else PathError)(found)
    return settings


def spill_warnings(plan: Plan) -> Iterator[Diagnostic]:
    """What is likely to go wrong, by the sizes of the files that are there before the run."""
    settings = spill_settings(plan)
    cap, folder = settings.config.disk_cap_bytes, settings.folder or usual_folder()
    likely = sum(estimated_spill(plan).values())
    if folder.is_dir():
        free = shutil.disk_usage(folder).free
        kind = file_system(str(folder), mounts())
        if free < likely:
            message = f"'{folder}' has {shown_size(free)} free, and up to {shown_size(likely)} may be spilled"
            yield settings.of_folder("W330", message, f"free some space, or {_ELSEWHERE}")
        elif kind in _IN_MEMORY and likely > MUCH * (plan.memory_limit or default_limit()):
            message = f"'{folder}' is kept in memory ({kind}), and up to {shown_size(likely)} may be spilled"
            yield settings.of_folder("W330", message, _ELSEWHERE)
    if cap is not None and likely >= NEAR * cap:
        message = f"up to {shown_size(likely)} may be spilled, and 'disk_cap_bytes' allows {cap:,} bytes"
        yield settings.finding(
            "W331", message, "raise it, or raise memory.limit: less is spilled then", "disk_cap_bytes"
        )


def _unusable(settings: SpillSettings, folder: Path) -> Iterator[Diagnostic]:
    if not folder.is_dir():
        what = "it is no folder" if os.path.lexists(folder) else "there is no such folder"
        yield settings.finding("E426", f"cannot spill to '{folder}': {what}", "make it, or name another folder")
        return
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        message = f"cannot spill to '{folder}': permission denied"
        yield settings.finding("E426", message, "give it permissions, or name another folder")
    kind = file_system(str(folder), mounts())
    if kind in _IN_MEMORY:
        message = f"'{folder}' is kept in memory ({kind}): to spill there frees nothing"
        yield settings.finding("E330", message, "name a folder on a disk")
    elif is_over_network(kind):
        message = f"'{folder}' is on a network file system ({kind})"
        yield settings.finding("E331", message, "name a folder on a local disk")


def _shared(settings: SpillSettings, folder: Path, plan: Plan) -> Iterator[Diagnostic]:
    staging = settings_of(plan)
    if staging is None:
        return
    if folder == staging.folder or folder in staging.folder.parents or staging.folder in folder.parents:
        message = f"data is spilled to '{folder}', where files are staged, too"
        yield settings.finding("E334", message, "name two folders, neither inside the other")
