"""Inputs that were changed while they were read: what a run made of them is of no file that ever was.

Every file is looked at when it is chosen, and once more when all records were read, before anything is published.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.errors import IoError
from clinker_spark.spark.scan.files import SourceFile, Stamp, parquet_parts

if TYPE_CHECKING:
    from clinker_spark.runtime.run.state import RunState
    from clinker_spark.spark.remote_files import RemoteFiles

_MOST = 5
_CONSEQUENCES = ("E229", "E401", "E402", "E434")
"""What the change is behind, or what was told already."""
_HELP = "nothing was published; run again when nobody writes to it, or let writers rename finished files into place"


def check_inputs(state: RunState) -> None:
    """Raises `IoError` when an input is no longer what it was when it was chosen. After that, inputs may change."""
    found = changed_inputs(state.plan, state.files, state.inputs.storage)
    if found:
        raise IoError(found)
    state.inputs.compared = True


@contextmanager
def changes_explained(state: RunState) -> Iterator[None]:
    """When reading fails, and an input was changed or removed meanwhile, then that is what happened."""
    try:
        yield
    except Exception as error:
        found = [] if state.inputs.compared else changed_inputs(state.plan, state.files, state.inputs.storage)
        if not found:
            raise
        more = error.diagnostics if isinstance(error, ClinkerError) else ()
        raise IoError([*found, *(d for d in more if d.code not in _CONSEQUENCES)]) from error


def changed_inputs(
    plan: Plan, files: Mapping[str, tuple[SourceFile, ...]], storage: RemoteFiles | None = None
) -> list[Diagnostic]:
    """One finding for each input that was changed; many have one for the rest of them."""
    found: list[Diagnostic] = []
    more = 0
    for node in plan.sources:
        for file in files.get(node.name, ()):
            what = _remote_change(file, storage) if file.modified else _change(file)
            if what is None:
                continue
            if len(found) < _MOST:
                found.append(_finding(node, f"'{file.name}' {what} while the pipeline read it"))
            else:
                more += 1
    if more:
        found.append(_finding(plan.sources[0], f"{more} more input(s) were changed while the pipeline read them"))
    return found


def _finding(node: SourcePlan, message: str) -> Diagnostic:
    key = next(key for key in ("path", "paths", "glob", "regex") if getattr(node.config, key) is not None)
    return node.diagnostic("E434", message, "config", key, help=_HELP)


def _change(file: SourceFile) -> str | None:
    """What happened to a file of this machine, in words. Of a staged one only the copies count."""
    if file.staged:
        found = [(stamp, what) for stamp in file.stamps if (what := _difference(stamp)) is not None]
        return f"has a staged copy '{found[0][0].path}' that {found[0][1]}" if found else None
    is_folder = bool(file.stamps) and file.stamps[0].path != file.path
    if is_folder:
        try:
            now = parquet_parts(file.path)
        except OSError:
            return "was removed"
        new = sorted(set(now) - {stamp.path for stamp in file.stamps})
        if new:
            return f"got the part '{os.path.basename(new[0])}'"
    for stamp in file.stamps:
        what = _difference(stamp)
        if what is not None:
            return f"has a part '{os.path.basename(stamp.path)}' that {what}" if is_folder else what
    return None


def _difference(stamp: Stamp) -> str | None:
    try:
        now = Stamp.of(stamp.path)
    except FileNotFoundError:
        return "was removed"
    except OSError as error:
        return f"can no longer be read ({(error.strerror or str(error)).lower()})"
    if now.identity != stamp.identity:
        return "was replaced by another file"
    if now.size != stamp.size:
        verb = "grew" if now.size > stamp.size else "was cut"
        return f"{verb} from {stamp.size:,} to {now.size:,} bytes"
    return None if now.modified_ns == stamp.modified_ns else "was written to"


def _remote_change(file: SourceFile, storage: RemoteFiles | None) -> str | None:
    """The same for a file on a remote storage, as far as that tells. A copy does not change any more."""
    if storage is None or file.uri is not None:
        return None
    try:
        now = storage.status(file.path)
    except OSError as error:
        return f"can no longer be read ({error})"
    if now.modified != file.modified:
        return "was written to"
    return None if now.is_folder or now.size == file.size else f"changed from {file.size:,} to {now.size:,} bytes"
