"""Dead letters that somebody corrected and nobody replayed yet: a run would replace them by its own."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from clinker_spark.core.errors import InputError
from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.commit import manifest as manifests
from clinker_spark.runtime.commit.manifest import Manifest
from clinker_spark.runtime.commit.seam import FILE, SYSTEM
from clinker_spark.runtime.errors import IoError
from clinker_spark.runtime.paths.outputs import output_folders


def check_edited(plan: Plan, base: Path, places: Iterable[tuple[str, Path]]) -> None:
    """Raises `IoError` for the first file of letters, by its path as it is written, with work of somebody in it."""
    name = plan.file.settings.name
    folders = dict.fromkeys(SYSTEM.resolve(folder) for folder in output_folders(plan, base))
    known = {folder: manifests.load(SYSTEM, folder, name) for folder in folders}
    fed = {letter for found in known.values() for letter in _fed(found)}
    for text, path in places:
        place = SYSTEM.resolve(path)
        if _as_written(known, place) or not (letters := _edited(place, fed)):
            continue
        what = f"{letters} dead letter(s) in '{text}' were edited and not replayed: they would be lost"
        help_text = "replay them (clinker dlq replay), move the file away, or run with --force"
        dlq = plan.file.error_handling.dlq
        own = next((name for name, one in dlq.per_source.items() if one.path == text and text != dlq.path), None)
        at = ("error_handling", "dlq", *(() if own is None else ("per_source", own)), "path")
        raise IoError([plan.file.diagnostic("E445", what, at, help_text)])


def _fed(manifest: Manifest) -> Iterable[str]:
    """The letters that replays have fed since the last whole run, by their ids."""
    yield from manifest.replayed
    for made in manifest.rounds.values():
        yield from made.ids


def _as_written(known: dict[Path, Manifest], place: Path) -> bool:
    """Is nothing there, or the very file that a run wrote? That is known without reading it."""
    info = SYSTEM.stat(place)
    if info is None or info.kind != FILE:
        return True
    for folder, manifest in known.items():
        for files in manifest.outputs.values():
            written = files.get(os.path.relpath(place, folder))
            if written is not None and written.is_unchanged(SYSTEM, place, info):
                return True
    return False


def _edited(place: Path, fed: set[str]) -> int:
    """How many letters of a file have other values than they were written with, and were never fed. Letters of a
    version that noted no hash cannot be told apart."""
    from clinker_spark.runtime.reject.letter_files import read_letters  # Spark: not for every dry run

    try:
        return sum(
            any(letter.edited) and letter.engine.get("id") not in fed
            for letter in read_letters(place)
            if letter.engine.get("source_hash")
        )
    except InputError:  # no letters: what may become of the file is another matter
        return 0
