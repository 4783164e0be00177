"""Which paths are one file, whether or not it is there yet.

Two paths are the same when they lead into the same folder, however that is spelled or linked, under the same name.
Capital letters count, except on file systems where they do not.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_LOOKED_AT = 64


@dataclass(frozen=True, slots=True)
class Identity:
    """An existing folder, and the names that lead on from there; none for the folder itself."""

    device: int
    inode: int
    names: tuple[str, ...]

    @property
    def folded(self) -> tuple[int, int, tuple[str, ...]]:
        """The same for all that may be one file: without capital letters, and with accents in one form."""
        names = tuple(unicodedata.normalize("NFC", name).casefold() for name in self.names)
        return self.device, self.inode, names


class Identities:
    """Looks folders up, each once."""

    def __init__(self) -> None:
        self._folders: dict[str, Identity] = {}
        self._real: dict[str, str] = {}
        self._places: dict[tuple[int, int], str] = {}
        self._folding: dict[tuple[int, int], bool] = {}

    def of(self, path: Path) -> Identity:
        """The identity of a path. A link counts as what it leads to."""
        if os.path.islink(path):
            return self._at(os.path.realpath(path))
        folder, name = os.path.split(os.path.abspath(path) if ".." not in path.parts else path)
        if name in ("", ".", ".."):
            return self._at(os.path.realpath(path))
        if folder not in self._real:
            self._real[folder] = os.path.realpath(folder)
        return self._at(os.path.join(self._real[folder], name))

    def around(self, path: Path) -> Iterator[Identity]:
        """The folders that a path lies in, from the inside out."""
        at = os.path.realpath(path)
        while (above := os.path.dirname(at)) != at:
            yield self._at(above)
            at = above

    def same(self, left: Identity, right: Identity) -> bool:
        """Are they one file?"""
        if left == right:
            return True
        return left.folded == right.folded and self._folds(left.device, left.inode)

    def inside(self, path: Path, folder: Path) -> bool:
        """Does a path lie in a folder?"""
        whole = self.of(folder)
        return any(self.same(found, whole) for found in self.around(path))

    def _at(self, real: str) -> Identity:
        """The identity of a path without links."""
        known = self._folders.get(real)
        if known is not None:
            return known
        try:
            info = os.stat(real)
        except (OSError, ValueError):
            info = None
        if info is not None and stat.S_ISDIR(info.st_mode):
            found = Identity(info.st_dev, info.st_ino, ())
            self._places.setdefault((info.st_dev, info.st_ino), real)
            self._folders[real] = found
            return found
        above, name = os.path.split(real)
        if above == real:
            return Identity(0, 0, (real,))
        outer = self._at(above)
        return Identity(outer.device, outer.inode, (*outer.names, name))

    def _folds(self, device: int, inode: int) -> bool:
        key = device, inode
        if key not in self._folding:
            self._folding[key] = ignores_capitals(self._places.get(key, "/"))
        return self._folding[key]


def ignores_capitals(folder: str) -> bool:
    """Are `a` and `A` one file in a folder? It is found out with the names that are there, nothing is written."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_LOOKED_AT), strict=False)]
        for name in names:
            if name.isascii() and name.swapcase() != name:
                return _one_file(os.path.join(folder, name), os.path.join(folder, name.swapcase()))
        above, name = os.path.split(folder)
        return name.swapcase() != name and _one_file(folder, os.path.join(above, name.swapcase()))
    except OSError:
        return False


def _one_file(path: str, other: str) -> bool:
    info = os.lstat(path)
    # Two names of one file on purpose say nothing.
    return (stat.S_ISDIR(info.st_mode) or info.st_nlink == 1) and os.path.samestat(info, os.lstat(other))
