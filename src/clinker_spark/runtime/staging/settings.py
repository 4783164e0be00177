"""What clinker.toml says about staging, for the sources of a plan: which files are copied, and where to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from clinker_spark.config.model.documents.workspace import Staging
from clinker_spark.config.paths.patterns import glob_matches
from clinker_spark.config.workspace import Workspace, find_workspace
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.discover.sources import is_remote
from clinker_spark.runtime.staging.cache import Policy
from clinker_spark.runtime.staging.entry import Original
from clinker_spark.runtime.staging.errors import NotStaged
from clinker_spark.spark.scan.files import SourceFile


@dataclass(frozen=True)
class StagingSettings:
    """[storage.staging] of a workspace where it is enabled."""

    workspace: Workspace
    config: Staging
    folder: Path

    @property
    def policy(self) -> Policy:
        config = self.config
        return Policy(config.on_existing, config.cleanup, config.verify == "blake3", config.disk_cap_bytes)

    def why_not(self, file: SourceFile) -> str | None:
        """Why a file is read where it is; None for one that is staged."""
        if not file.stamps:
            return "on remote storage" if is_remote(file.origin) else "nothing to copy"
        spellings = (file.name, os.path.basename(file.path), os.path.abspath(file.path), os.path.realpath(file.path))
        if any(glob_matches(pattern, text) for pattern in self.config.patterns for text in spellings):
            return None
        return "no pattern matches"

    def diagnostic(self, problem: NotStaged, node: SourcePlan) -> Diagnostic:
        """A finding at the key that it is about."""
        if problem.about == "source":
            return node.diagnostic(problem.code, problem.message, "config", matcher(node), help=problem.help)
        path = ("storage", "staging", problem.about)
        return self.workspace.diagnostic(problem.code, problem.message, path, problem.help)


def settings_of(plan: Plan) -> StagingSettings | None:
    """The settings of the workspace that a pipeline is in; None when nothing is staged there."""
    workspace = find_workspace(plan.file.path)
    config = workspace.config.storage.staging
    if not config.enabled or config.dir is None:
        return None
    return StagingSettings(workspace, config, Path(os.path.realpath(workspace.root / config.dir)))


def originals(file: SourceFile) -> list[Original]:
    """The files to copy: one, or all parts of a folder of Parquet files."""
    return [Original(os.path.realpath(stamp.path), stamp.size, stamp.modified_ns) for stamp in file.stamps]


def matcher(node: SourcePlan) -> str:
    """The key that names the files of a source."""
    return next(key for key in ("path", "paths", "glob", "regex") if getattr(node.config, key) is not None)
