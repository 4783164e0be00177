"""Which inputs a run would copy first, and where to. It lists files, and reads none."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.commit.seam import SYSTEM
from clinker_spark.runtime.discover.sources import discover
from clinker_spark.runtime.staging.entry import Original, places, trusted
from clinker_spark.runtime.staging.settings import StagingSettings, originals, settings_of


@dataclass(frozen=True)
class StagedFile:
    """A file: why it is read where it is, or the copy that is read instead and whether one can be reused."""

    path: str
    why_not: str | None = None
    copy: str | None = None
    reuse: str | None = None


@dataclass(frozen=True)
class StagedSource:
    """The files of a source; `problem` when they could not be listed."""

    name: str
    files: tuple[StagedFile, ...] = ()
    problem: str | None = None


@dataclass(frozen=True)
class StagingPlan:
    """What would be staged, and how."""

    settings: StagingSettings
    sources: tuple[StagedSource, ...]


def staging_plan(plan: Plan, base: Path) -> StagingPlan | None:
    """What a run that began now would stage; None when nothing is staged in this workspace."""
    settings = settings_of(plan)
    if settings is None:
        return None
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    return StagingPlan(settings, tuple(_source(settings, node, base, now) for node in plan.sources))


def _source(settings: StagingSettings, node: SourcePlan, base: Path, now: dt.datetime) -> StagedSource:
    try:
        files = discover(node, base, now).files
    except ClinkerError as error:
        return StagedSource(node.name, problem=error.diagnostics[0].message)
    found: list[StagedFile] = []
    for file in files:
        why = settings.why_not(file)
        found += [StagedFile(file.path, why)] if why else [_file(settings, original) for original in originals(file)]
    return StagedSource(node.name, tuple(found))


def _file(settings: StagingSettings, original: Original) -> StagedFile:
    at = places(settings.folder, original.path)
    try:
        entry = trusted(SYSTEM, at) if settings.config.on_existing == "reuse" else None
    except OSError:
        entry = None
    hit = entry is not None and entry.is_of(original)
    return StagedFile(original.path, None, str(at.copy), "hit" if hit else "miss")


def staging_lines(staging: StagingPlan | None) -> list[str]:
    """The section of the text."""
    if staging is None:
        return []
    config = staging.settings.config
    cap = "none" if config.disk_cap_bytes is None else f"{config.disk_cap_bytes:,} bytes"
    lines = [f"folder: {staging.settings.folder}"]
    rules = f"on_existing={config.on_existing}, verify={config.verify}, cleanup={config.cleanup}, disk cap: {cap}"
    lines.append(f"  [{rules}]")
    for source in staging.sources:
        lines.append(f"source.{source.name}:{'' if source.files or source.problem else ' no files'}")
        if source.problem is not None:
            lines.append(f"  files are not known: {source.problem}")
        for file in source.files:
            lines.append(f"  {file.path}")
            how = f"yes, path: {file.copy}, reuse: {file.reuse}" if file.why_not is None else f"no ({file.why_not})"
            lines.append(f"    staged: {how}")
    return lines


def staging_json(staging: StagingPlan | None) -> dict[str, Any]:
    """The same for programs."""
    if staging is None:
        return {"enabled": False, "sources": []}
    sources = [_source_json(source) for source in staging.sources]
    return {"enabled": True, "dir": str(staging.settings.folder), "sources": sources}


def _source_json(source: StagedSource) -> dict[str, Any]:
    files: list[dict[str, Any]] = []
    for file in source.files:
        how = {"reason": file.why_not} if file.why_not else {"staged_path": file.copy, "reuse": file.reuse}
        files.append({"source_path": file.path, "staged": file.why_not is None, **how})
    far = [file for file in source.files if file.why_not == "on remote storage"]
    found: dict[str, Any] = {"name": source.name, "stagable": not far, "files": files}
    return found if source.problem is None else {**found, "discovery_error": source.problem}
