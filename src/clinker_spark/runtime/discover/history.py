"""The runs of a pipeline, put together from the manifests of all folders that it writes to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.commit.manifest import Manifest, Unreadable, read
from clinker_spark.runtime.commit.recovery import recover
from clinker_spark.runtime.commit.seam import SYSTEM
from clinker_spark.runtime.paths.outputs import output_folders


def runs_of(plan: Plan, base: Path) -> list[dict[str, Any]]:
    """What each run did that published, the newest last; with the new files that it read, by source. Finishes what a
    crash left half published: only then it is known whether that run published. Raises `InputError`."""
    folders = [SYSTEM.resolve(folder) for folder in output_folders(plan, base)]
    recover(SYSTEM, folders)
    found: dict[str, dict[str, Any]] = {}
    for folder in folders:
        manifest = _manifest(folder, plan)
        for run in manifest.runs:
            found.setdefault(run["run"], {**run, "new_files": {}})
        for source, files in manifest.reading.files.items():
            for name, was in files.items():
                if was.run in found and name not in (mine := found[was.run]["new_files"].setdefault(source, [])):
                    mine.append(name)
    return sorted(found.values(), key=lambda run: (run["started"], run["run"]))


def _manifest(folder: Path, plan: Plan) -> Manifest:
    try:
        return read(SYSTEM, folder, plan.file.settings.name)
    except Unreadable as problem:
        raise InputError([Diagnostic("E442", str(problem), help="restore that file")]) from None
