"""The inputs of a run, read from copies where clinker.toml asks for that."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.commit.seam import SYSTEM, Files
from clinker_spark.runtime.errors import IoError, PathError
from clinker_spark.runtime.run.report import StagedReport
from clinker_spark.runtime.staging.cache import Cache, Held
from clinker_spark.runtime.staging.entry import Original, places
from clinker_spark.runtime.staging.errors import NotStaged, unusable
from clinker_spark.runtime.staging.purge import purge
from clinker_spark.runtime.staging.settings import StagingSettings, originals
from clinker_spark.spark.scan.files import SourceFile, Stamp

_WRONG_SETTINGS = ("E336", "E337")
_OFTEN = 0.5


@dataclass(frozen=True)
class _Wanted:
    """A file to copy, and the first source and file of the pipeline that it is for."""

    original: Original
    node: SourcePlan
    file: SourceFile


class StagedInputs:
    """The copies that a run reads. Other runs leave them alone until `release`."""

    def __init__(
        self,
        settings: StagingSettings,
        plan: Plan,
        run: str,
        tell: Callable[[str, dict[str, Any]], None],
        files: Files | None = None,
    ) -> None:
        self.settings = settings
        self.plan = plan
        self.tell = tell
        self.files = files or SYSTEM
        self.cache = Cache(self.files, settings.folder, run, settings.policy, self._waiting)
        self.held: dict[str, Held] = {}

    def stage(self, found: Mapping[str, tuple[SourceFile, ...]]) -> dict[str, tuple[SourceFile, ...]]:
        """The files to read instead of those that were found. Raises `IoError` or `PathError`."""
        wanted: dict[str, _Wanted] = {}
        for node in self.plan.sources:
            for file in found.get(node.name, ()):
                if self.settings.why_not(file) is None:
                    for original in originals(file):
                        wanted.setdefault(places(self.settings.folder, original.path).id, _Wanted(original, node, file))
        if wanted:
            self._clean_up(self.plan.sources[0])
        # Every run takes its locks in this order, so that no two wait for each other.
        for source in sorted(wanted):
            self.held[source] = self._hold(wanted[source])
        return {name: tuple(self._copy_of(file) for file in files) for name, files in found.items()}

    def report(self, found: Mapping[str, tuple[SourceFile, ...]]) -> list[StagedReport]:
        """What was done for the files that were found, in their order; a file that two sources read comes once."""
        reports: list[StagedReport] = []
        told: set[str] = set()
        for node in self.plan.sources:
            for file in found.get(node.name, ()):
                for original in originals(file) if self.settings.why_not(file) is None else ():
                    source = places(self.settings.folder, original.path).id
                    if source not in told:
                        told.add(source)
                        held = self.held[source]
                        reports.append(
                            StagedReport(
                                node.name,
                                original.path if len(file.stamps) > 1 else file.name,
                                held.action,
                                original.size,
                                round(held.seconds, 3),
                                str(held.path),
                            )
                        )
        return reports

    def release(self, *, success: bool) -> list[Diagnostic]:
        """Let go of the copies, and remove them as `cleanup` says. Warnings."""
        left = self.cache.release(success=success)
        if not left:
            return []
        message = f"{len(left)} staged file(s) could not be removed, the first is '{left[0]}'"
        help_text = "check the permissions of the folder; 'clinker recover' does not remove whole copies"
        return [self.settings.workspace.diagnostic("W332", message, ("storage", "staging", "dir"), help_text)]

    def _clean_up(self, node: SourcePlan) -> None:
        """Make the folder, and remove what crashed runs left in it."""
        folder = self.settings.folder
        try:
            if self.files.mkdir(folder):
                self.files.adopt(folder, 0o700, None)
            removed = purge(self.files, folder).removed
        except OSError as error:
            raise self._failure(unusable(folder, error), node) from None
        if removed:
            self.tell("staging_purged", {"folder": str(folder), "files": removed})

    def _hold(self, wanted: _Wanted) -> Held:
        original, node, file = wanted.original, wanted.node, wanted.file
        last = 0.0

        def progress(copied: int) -> None:
            nonlocal last
            if time.monotonic() - last >= _OFTEN:
                last = time.monotonic()
                details = {"source": node.name, "file": file.name, "bytes": copied, "bytes_total": original.size}
                self.tell("staging", details)

        try:
            held = self.cache.hold(original, file.name, progress)
        except NotStaged as problem:
            raise self._failure(problem, node) from None
        details = {"source": node.name, "file": file.name, "action": held.action, "bytes": original.size}
        self.tell("staged", {**details, "path": str(held.path)})
        return held

    def _failure(self, problem: NotStaged, node: SourcePlan) -> IoError | PathError:
        kind = PathError if problem.code in _WRONG_SETTINGS else IoError
        return kind([self.settings.diagnostic(problem, node)])

    def _waiting(self, name: str) -> None:
        self.tell("waiting", {"input": name, "holder": f"another run that stages '{name}'"})

    def _copy_of(self, file: SourceFile) -> SourceFile:
        if self.settings.why_not(file) is not None:
            return file
        copies = [self.held[places(self.settings.folder, original.path).id] for original in originals(file)]
        stamps = tuple(_stamp(held) for held in copies)
        path = stamps[0].path if file.stamps[0].path == file.path else file.path
        return replace(file, path=path, uri=file.path, stamps=stamps, staged=True)


def _stamp(held: Held) -> Stamp:
    """The copy when it was made: whatever happens to it from then on is noticed."""
    return replace(Stamp.of(str(held.path)), size=held.entry.size, modified_ns=held.entry.copy_mtime_ns)
