"""The files of a staged copy, and the manifest that makes a copy one.

`<id>.staged` is the copy, `<id>.manifest.json` what it was copied of, `<id>.lock` what is locked, and
`<id>.<run>.partial` what is not finished. The id comes from the path of the source, so that every run finds the same.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from blake3 import blake3

from clinker_spark.runtime.commit.seam import FILE, Files, Info

PRIVATE = 0o600
"""The permissions of all that is staged: records of others are nobody's business."""
_VERSION = 1
_ID_LENGTH = 32
_NAME = re.compile(rf"([0-9a-f]{{{_ID_LENGTH}}})\.(?:(staged)|(manifest)\.json|(lock)|[^/]+\.(partial))")


@dataclass(frozen=True)
class Places:
    """Where the files of one source are."""

    folder: Path
    id: str

    @property
    def copy(self) -> Path:
        return self.folder / f"{self.id}.staged"

    @property
    def manifest(self) -> Path:
        return self.folder / f"{self.id}.manifest.json"

    @property
    def lock(self) -> Path:
        return self.folder / f"{self.id}.lock"

    def partial(self, run: str, what: str = "copy") -> Path:
        """A name that no other run uses."""
        return self.folder / f"{self.id}.{run}.{what}.partial"


@dataclass(frozen=True)
class Original:
    """A source file when it was chosen: what a copy must be a copy of."""

    path: str
    """Behind all links."""
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Entry:
    """What a manifest says: the original when it was copied, and the copy."""

    source: str
    size: int
    mtime_ns: int
    blake3: str
    staged_at: str
    copy_mtime_ns: int
    """When the copy was finished: a copy that was written to later is none."""

    def text(self) -> bytes:
        return (json.dumps({"version": _VERSION, **asdict(self)}, indent=2, ensure_ascii=True) + "\n").encode()

    def is_of(self, original: Original) -> bool:
        """Is it a copy of the file as it is now?"""
        return (self.source, self.size, self.mtime_ns) == (original.path, original.size, original.mtime_ns)


def places(folder: Path, source: str) -> Places:
    """The files of a source, by its path behind all links."""
    return Places(folder, blake3(os.fsencode(source)).hexdigest()[:_ID_LENGTH])


def kind_of(name: str) -> tuple[str, str] | None:
    """The id and the kind (`staged`, `manifest`, `lock`, `partial`) of a file in a staging folder; None for others.

    >>> kind_of("0" * 32 + ".manifest.json")
    ('00000000000000000000000000000000', 'manifest')
    >>> kind_of("notes.lock") is None
    True
    """
    found = _NAME.fullmatch(name)
    return None if found is None else (found[1], next(kind for kind in found.groups()[1:] if kind))


def mark_of(info: Info | None) -> tuple[int, int, int] | None:
    """What tells a file from the one that replaces it."""
    return None if info is None else (info.device, info.inode, info.mtime_ns)


def trusted(files: Files, at: Places) -> Entry | None:
    """The entry of a copy that is complete: its manifest is there, and it is the very file that the manifest is about.
    Somebody must hold the lock."""
    manifest = files.stat(at.manifest)
    if manifest is None or manifest.kind != FILE:
        return None
    entry = _read(files.read(at.manifest))
    copy = files.stat(at.copy)
    if entry is None or copy is None or copy.kind != FILE:
        return None
    same = (copy.size, copy.mtime_ns) == (entry.size, entry.copy_mtime_ns)
    return entry if same else None


def _read(content: bytes) -> Entry | None:
    try:
        data: Any = json.loads(content)
        if data.pop("version") != _VERSION:
            return None
        entry = Entry(**data)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    texts = (entry.source, entry.blake3, entry.staged_at)
    numbers = (entry.size, entry.mtime_ns, entry.copy_mtime_ns)
    fine = all(isinstance(text, str) for text in texts) and all(type(number) is int for number in numbers)
    return entry if fine else None
