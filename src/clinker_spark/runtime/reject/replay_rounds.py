"""Which files a replay writes: `out-replay.csv`, or `out-replay-2.csv` where the first are still needed.

Letters of a replay can be replayed themselves. That must not replace what the first replay made: records that went
through it are nowhere else. So a replay writes the files of a *round*, and replaces those of an earlier replay only if
it reads the same file of letters, with all the letters that those were made of. A file of letters is never replaced
while it is fed, nor after somebody edited it.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from dataclasses import dataclass
from pathlib import Path

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.commit import manifest as manifests
from clinker_spark.runtime.commit.manifest import Round, Written
from clinker_spark.runtime.commit.seam import SYSTEM
from clinker_spark.runtime.errors import IoError
from clinker_spark.runtime.paths.outputs import output_folders
from clinker_spark.runtime.paths.place import Place
from clinker_spark.runtime.paths.places import places
from clinker_spark.runtime.run.options import Options


@dataclass(frozen=True)
class _Known:
    """What the manifests beside the outputs say."""

    files: dict[str, Written]
    rounds: dict[int, list[Round]]

    @classmethod
    def of(cls, plan: Plan, base: Path) -> _Known:
        files: dict[str, Written] = {}
        rounds: dict[int, list[Round]] = {}
        for folder in dict.fromkeys(SYSTEM.resolve(folder) for folder in output_folders(plan, base)):
            found = manifests.load(SYSTEM, folder, plan.file.settings.name)
            for written in found.outputs.values():
                files |= {os.path.normpath(folder / name): item for name, item in written.items()}
            for number, made in found.rounds.items():
                path = os.path.normpath(folder / made.letters) if made.letters else ""
                rounds.setdefault(int(number), []).append(Round(path, made.ids))
        return cls(files, rounds)


def free_round(plan: Plan, options: Options, base: Path) -> int:
    """The round of a replay: the first one whose files are not there, or are made again by it as a whole."""
    assert options.feed is not None
    known = _Known.of(plan, base)
    fed = options.feed.ids | options.feed.known
    letters = "" if options.feed.path is None else os.path.realpath(options.feed.path)
    for number in itertools.count(1):
        if all(made.letters == letters and fed.issuperset(made.ids) for made in known.rounds.get(number, [])):
            # What `if_exists` says about names that are taken comes later: here all names are the plain ones.
            found, _ = places(plan, dataclasses.replace(options, round=number, force=True), base, options.feed.files)
            if all(_may_replace(place, known, options) for place in found):
                return number
    raise AssertionError  # there is always one more number


def check_round(plan: Plan, options: Options, base: Path) -> None:
    """Raises `IoError` when another replay took the round meanwhile."""
    if options.feed is not None and free_round(plan, options, base) != options.round:
        message = "another replay wrote its files meanwhile"
        raise IoError([Diagnostic("E406", message, help="nothing was published: replay the dead letters again")])


def _may_replace(place: Place, known: _Known, options: Options) -> bool:
    assert options.feed is not None
    is_letters = place.at is not None and place.at[0] == "error_handling"
    if options.replay == "append" and not is_letters:
        return True  # it is added to
    path = SYSTEM.resolve(place.path)
    info = SYSTEM.stat(path)
    if info is None:
        return True
    fed = options.feed.path
    if fed is not None and fed.exists() and os.path.samefile(path, fed):
        return False
    if place.folder:
        return any(Path(name).is_relative_to(path) for name in known.files)
    written = known.files.get(str(path))
    if written is None:  # nobody asked for this name: whatever it is, it stays
        return False
    return not is_letters or written.is_unchanged(SYSTEM, path, info)
