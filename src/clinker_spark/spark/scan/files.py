"""The files of a source, and what they looked like when they were chosen. Needs no Spark: listing files is planning."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells a file from the one that somebody put in its place, and from itself after a change."""

    path: str
    size: int
    modified_ns: int
    inode: int
    device: int

    @classmethod
    def of(cls, path: str, info: os.stat_result | None = None) -> Stamp:
        """The stamp of a file as it is now. Raises OSError."""
        found = info or os.stat(path)
        return cls(path, found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev)

    @property
    def identity(self) -> tuple[int, int]:
        """The same for all names of one file."""
        return self.device, self.inode


@dataclass(frozen=True)
class SourceFile:
    """A file to read. `path` is what the system opens, `name` what $source.file says."""

    path: str
    name: str
    size: int = 0
    modified: float = 0.0
    """When a remote file was changed, in seconds since 1970."""
    uri: str | None = None
    """Where it came from, if `path` is a copy."""
    stamps: tuple[Stamp, ...] = ()
    """The file when it was chosen; all files of a folder of Parquet files. Empty where nobody could look."""
    staged: bool = False
    """Is it read from copies in a staging folder? `stamps` are those of the copies then, in the order of the parts."""

    @property
    def origin(self) -> str:
        """Where it came from. Its ending says how the file is compressed; that of a copy says nothing."""
        return self.uri or self.path


def parquet_parts(folder: str) -> list[str]:
    """The files of a folder of Parquet files, in order."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".parquet") and name[0] not in "._")
    return [os.path.join(folder, name) for name in names]


def hadoop_path(path: str) -> str:
    """A path that Hadoop does not take for a pattern, and that is local whatever the default file system is."""
    absolute = os.path.abspath(path)
    escaped = "".join(f"\\{char}" if char in "{}[]*?\\" else char for char in absolute)
    return f"file://{escaped}"
