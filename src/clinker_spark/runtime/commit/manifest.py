"""Manifests: what the last run of a pipeline wrote into a folder, and what it read for that.

One hidden file for each pipeline (by its name) and folder, so that several pipelines can write into one folder. The
files of each output stand under the output's own path: a run removes only what an earlier run wrote for the same output
and it no longer writes itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from clinker_spark.runtime.commit.seam import FILE, FOLDER, Files, Info

MANIFEST_PREFIX = ".clinker-manifest-"
MOST_HASHED = 256 << 20
"""Larger files are known by size and time alone: a hash is no reason to wait."""
_MOST_OUTPUTS = 1_000
"""Paths with {timestamp} are another output in every run."""
_MOST_RUNS = 1_000


@dataclass(frozen=True)
class Written:
    """A file as it was written. `source` is the input file that it was made of, where each has its own."""

    size: int
    mtime_ns: int
    hash: str | None = None
    source: str | None = None

    @classmethod
    def of(cls, files: Files, path: Path, info: Info, source: str | None = None) -> Written:
        return cls(info.size, info.mtime_ns, files.digest(path) if info.size <= MOST_HASHED else None, source)

    def is_unchanged(self, files: Files, path: Path, info: Info) -> bool:
        """Is this still the file that was written? One that was copied back has another time and the same content."""
        if info.kind != FILE or info.size != self.size:
            return False
        return info.mtime_ns == self.mtime_ns or (self.hash is not None and files.digest(path) == self.hash)


@dataclass(frozen=True)
class Round:
    """What the files of a replay are made of: a file of dead letters, and the ids of those that were fed."""

    letters: str
    ids: list[str]


@dataclass(frozen=True)
class Read:
    """An input as it was when a run read it; `bad` is one that could not be read."""

    size: int
    mtime_ns: int
    hash: str | None = None
    run: str = ""
    bad: bool = False


@dataclass
class Reading:
    """What outputs are made of when each run reads only new files: all files of all runs, by source and name, and the
    paths of these outputs as they are written in the pipeline."""

    outputs: list[str] = field(default_factory=list)
    files: dict[str, dict[str, Read]] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Any) -> Reading:
        files = {str(s): {str(n): Read(**item) for n, item in found.items()} for s, found in data["files"].items()}
        return cls([str(path) for path in data["outputs"]], files)


@dataclass
class Manifest:
    """`outputs`: for each output, by its path, the files that it had; all paths start from the manifest's folder."""

    pipeline: str
    run: str = ""
    outputs: dict[str, dict[str, Written]] = field(default_factory=dict)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    replayed: list[str] = field(default_factory=list)
    rounds: dict[str, Round] = field(default_factory=dict)
    """The replays since the last whole run, by the number in the names of their files."""
    reading: Reading = field(default_factory=Reading)
    runs: list[dict[str, Any]] = field(default_factory=list)
    """What each run that published did, in numbers, the newest last."""

    def encode(self) -> bytes:
        kept = dict(list(self.outputs.items())[-_MOST_OUTPUTS:])
        self.runs = self.runs[-_MOST_RUNS:]
        data = {
            "version": 1,
            **asdict(self),
            "outputs": {k: {n: asdict(w) for n, w in v.items()} for k, v in kept.items()},
        }
        return (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode()

    def note(self, output: str, written: Mapping[str, Written]) -> None:
        """The newest comes last."""
        self.outputs.pop(output, None)
        if written:
            self.outputs[output] = dict(written)


_NOTHING: Any = {"outputs": [], "files": {}}


def manifest_path(folder: Path, pipeline: str) -> Path:
    """Where the manifest of a pipeline is. The name is readable, and differs also where that part does not."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", pipeline)[:40].strip("-")
    return folder / f"{MANIFEST_PREFIX}{readable}-{hashlib.sha256(pipeline.encode()).hexdigest()[:8]}.json"


def load(files: Files, folder: Path, pipeline: str) -> Manifest:
    """What is known; nothing, when there is no manifest or it cannot be understood."""
    try:
        return read(files, folder, pipeline)
    except Unreadable:
        return Manifest(pipeline)


def read(files: Files, folder: Path, pipeline: str) -> Manifest:
    """What is known; nothing, when there is no manifest. Raises `Unreadable`."""
    path = manifest_path(folder, pipeline)
    if files.stat(path) is None:
        return Manifest(pipeline)
    try:
        data: Any = json.loads(files.read(path))
        outputs = {
            str(key): {str(name): Written(**item) for name, item in found.items()}
            for key, found in data["outputs"].items()
        }
        rounds = {str(int(number)): Round(**item) for number, item in data.get("rounds", {}).items()}
        replayed = [str(i) for i in data["replayed"]]
        reading, runs = Reading.of(data.get("reading", _NOTHING)), list(data.get("runs", []))
        return Manifest(pipeline, str(data["run"]), outputs, list(data["inputs"]), replayed, rounds, reading, runs)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(path, error) from None


def writer_of(files: Files, place: Path, but: str) -> str | None:
    """Another pipeline than `but` that wrote a file, as the manifests beside it say."""
    for name in files.names(place.parent):
        if name.startswith(MANIFEST_PREFIX):
            with suppress(FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
                data: Any = json.loads(files.read(place.parent / name))
                if data["pipeline"] != but and any(place.name in written for written in data["outputs"].values()):
                    return str(data["pipeline"])
    return None


class Unreadable(Exception):
    """A manifest that cannot be understood."""

    def __init__(self, path: Path, error: Exception) -> None:
        self.path = path
        super().__init__(f"'{path}' does not say what earlier runs did: {error}")


def replayed_ids(files: Files, folder: Path, pipeline: str) -> frozenset[str]:
    """The dead letters that were replayed into the outputs of this folder since their last whole run. Raises
    `Unreadable`."""
    return frozenset(read(files, folder, pipeline).replayed)


def foreign(files: Files, folder: Path, known: Mapping[str, Written]) -> str | None:
    """Something in a folder that clinker did not write, or that changed since; `known` are paths inside of it."""
    for path in _everything(files, folder):
        info = files.stat(path)
        name = str(path.relative_to(folder))
        if info is None:
            continue
        if info.kind != FILE or name not in known or not known[name].is_unchanged(files, path, info):
            return name
    return None


def _everything(files: Files, folder: Path) -> Iterable[Path]:
    """All files of a folder, and its empty folders."""
    for name in files.names(folder):
        path = folder / name
        info = files.stat(path)
        inside = list(_everything(files, path)) if info is not None and info.kind == FOLDER else []
        yield from inside or [path]
