"""`files.only_new`: what earlier runs read, as the manifests beside the outputs say, and what is left for this one.

Outputs and manifests are published by one journal: a file is noted if, and only if, what was made of it is in the
outputs. So a run that was killed has either done both or nothing, and the next one reads what it left.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.bind.increments import incremental_outputs
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.commit import manifest as manifests
from clinker_spark.runtime.commit.manifest import MOST_HASHED, Manifest, Read, Reading, Unreadable
from clinker_spark.runtime.commit.seam import SYSTEM
from clinker_spark.runtime.errors import IoError
from clinker_spark.runtime.paths.outputs import local_path, settled, static_folder
from clinker_spark.spark.scan.files import SourceFile

if TYPE_CHECKING:
    from clinker_spark.runtime.run.options import Options

_MOST = 5
_FULL = "run with --full: all files are read, and the outputs are written anew"
_CHANGED = "its records are in the outputs already: put new ones into new files, or run with --full"


@dataclass
class Earlier:
    """What earlier runs read, by source and name. `runs` says which run was the last one in each folder of outputs."""

    files: Mapping[str, Mapping[str, Read]] = field(default_factory=dict)
    runs: Mapping[Path, str] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)
    """Files that were read by sources which the pipeline no longer has, and who they were."""
    found: dict[str, dict[str, Read]] = field(default_factory=dict)
    """What this run reads, as it was found."""

    @property
    def any(self) -> bool:
        """Has an earlier run read something, to which this one adds?"""
        return bool(self.files)

    def left(self, node: SourcePlan, files: list[SourceFile]) -> list[SourceFile]:
        """Those that no run has read. Raises `IoError` for those that changed after one did."""
        known = self.files.get(node.name, {})
        new, problems = [], []
        for file in files:
            was, now = known.get(file.name), _read(file)
            if was is None and file.name in self.gone:
                message = f"'{file.name}' was read by an earlier run, for a source '{self.gone[file.name]}'"
                help_text = "give the source its old name again, or run with --full to start over"
                problems.append(_finding(node, "E442", message, help_text))
            elif was is None or (was.bad and not _is_same(was, now, file)):
                new.append(file)
            elif not _is_same(was, now, file):
                message = f"'{file.name}' changed after an earlier run had read it: {_difference(was, now)}"
                problems.append(_finding(node, "E441", message, _CHANGED))
        if problems:
            raise IoError(problems[:_MOST])
        self.found[node.name] = {file.name: _read(file) for file in new}
        return new


def _finding(node: SourcePlan, code: str, message: str, help_text: str) -> Diagnostic:
    return node.diagnostic(code, message, "config", "files", "only_new", help=help_text)


def _read(file: SourceFile) -> Read:
    times = [stamp.modified_ns for stamp in file.stamps] or [int(file.modified * 1e9)]
    return Read(file.size, max(times))


def _is_same(was: Read, now: Read, file: SourceFile) -> bool:
    """Is it still what was read? A file that was copied or touched has another time, and the same content."""
    if was.size != now.size:
        return False
    return was.mtime_ns == now.mtime_ns or (was.hash is not None and was.hash == _digest(file))


def _digest(file: SourceFile) -> str | None:
    """A hash of a file that is here as a whole, and not too large for that."""
    is_one = len(file.stamps) == 1 and file.size <= MOST_HASHED and os.path.isfile(file.path)
    return SYSTEM.digest(Path(file.path)) if is_one else None


def _difference(was: Read, now: Read) -> str:
    if was.size == now.size:
        return "it has the same size, and another content"
    return f"it {'grew' if now.size > was.size else 'shrank'} from {was.size:,} to {now.size:,} bytes"


# ---------------------------------------------------------------- what manifests say


def earlier_runs(plan: Plan, options: Options, base: Path) -> Earlier:
    """What runs before this one read. Nothing, for a run that starts over. Raises `IoError` when the outputs are not
    what those runs left."""
    outputs = incremental_outputs(plan)
    if not outputs or options.files is not None:
        return Earlier()
    found = {home: _manifest(output, home, plan) for home, output in _homes(outputs, base).items()}
    runs = {home: manifest.run for home, manifest in found.items()}
    if options.full:
        return Earlier(runs=runs)
    readings = [manifest.reading for manifest in found.values()]
    problems = list(_unknown(outputs, base) if not any(r.files for r in readings) else _differing(outputs, base, found))
    if problems:
        raise IoError(problems)
    mine = {node.name for node in plan.sources if node.only_new}
    files = readings[0].files
    gone = {name: source for source, read in files.items() if source not in mine for name in read}
    return Earlier(files, runs, gone)


def check_meanwhile(plan: Plan, earlier: Earlier) -> None:
    """The outputs are ours now. Raises `IoError` when a run published between the look at the manifests and that."""
    for home, run in earlier.runs.items():
        if manifests.load(SYSTEM, home, plan.file.settings.name).run != run:
            message = "another run published while this one looked for new files"
            raise IoError([Diagnostic("E442", message, help="run again; nothing was published by this run")])


def _homes(outputs: list[OutputPlan], base: Path) -> dict[Path, OutputPlan]:
    """The folders with manifests that matter, each with one of its outputs."""
    return {SYSTEM.resolve(static_folder(base, node.config.path)): node for node in reversed(outputs)}


def _manifest(output: OutputPlan, home: Path, plan: Plan) -> Manifest:
    try:
        return manifests.read(SYSTEM, home, plan.file.settings.name)
    except Unreadable as problem:
        finding = output.diagnostic("E442", str(problem), "config", "path", help=f"restore that file, or {_FULL}")
        raise IoError([finding]) from None


def _unknown(outputs: list[OutputPlan], base: Path) -> Iterator[Diagnostic]:
    """Nothing was read yet: what is there is made of files that nobody knows."""
    for node in outputs:
        place = _place(node, base)
        if place is not None and _holds(place):
            message = f"'{node.config.path}' is there, and nothing says which files its records were read from"
            yield node.diagnostic("E442", message, "config", "path", help=f"move it away, or {_FULL}")


def _differing(outputs: list[OutputPlan], base: Path, found: Mapping[Path, Manifest]) -> Iterator[Diagnostic]:
    """All outputs must be made of the same files, and be there."""
    first = next(manifest.reading for manifest in found.values() if manifest.reading.files)
    for node in outputs:
        reading = found[SYSTEM.resolve(static_folder(base, node.config.path))].reading
        place = _place(node, base)
        if node.config.path not in reading.outputs or reading.files != first.files:
            message = f"'{node.config.path}' was not written by all the runs that the other outputs come from"
            yield node.diagnostic("E442", message, "config", "path", help=_FULL)
        elif place is not None and not place.exists():
            message = f"'{node.config.path}' is gone: the records of the files that earlier runs read would be missing"
            yield node.diagnostic("E442", message, "config", "path", help=f"restore it, or {_FULL}")


def _place(node: OutputPlan, base: Path) -> Path | None:
    """What records are added to; None for outputs that are new files in each run."""
    if node.config.if_exists != "append" or "{" in node.config.path:
        return None
    return settled(base / local_path(node.config.path))


def _holds(place: Path) -> bool:
    return any(place.iterdir()) if place.is_dir() else place.exists() and place.stat().st_size > 0


def reading(
    plan: Plan, earlier: Earlier, files: Mapping[str, Sequence[SourceFile]], bad: Mapping[str, Sequence[str]], run: str
) -> Reading:
    """What the outputs are made of after a run that read `files`, and passed over `bad` ones, for the manifest."""
    known = {source: dict(read) for source, read in earlier.files.items()}
    for name, found in earlier.found.items():
        mine = known.setdefault(name, {})
        mine |= {file: replace(found[file], run=run, bad=True) for file in bad.get(name, ())}
        for file in files[name]:
            far = file.uri is not None and not file.staged
            was = replace(found[file.name], run=run)
            mine[file.name] = was if far else replace(was, hash=_digest(file))
    return Reading([node.config.path for node in incremental_outputs(plan)], known) if known else Reading()
