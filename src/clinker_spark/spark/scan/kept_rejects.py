"""Records that a reader cannot use, kept by the reader itself while it reads.

A second read of the files, only to find the few bad records again, would cost as much as the first. So each task
writes those of its split to a file of its own, which is there under its name only when it is complete. The name says
how many records the split has: with the counts of all splits, places in splits become rows of files.

Tasks on other machines may have no such folder. They keep nothing then, the driver sees that files are missing, and
the records are read again.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pyarrow as pa

KEPT = "letters-"
_NAME = re.compile(r"(\d+)-(\d+)\.arrow")
ERROR_FIELDS = ("kind", "field", "value", "message")


class LetterKeeper:
    """Keeps the bad records of one split. As a context manager: what is written counts only if all went well."""

    def __init__(self, prefix: str, split: int, width: int) -> None:
        self._prefix = prefix
        self._split = split
        names = ["place", *ERROR_FIELDS, "line", *(f"c{i}" for i in range(width))]
        self._schema = pa.schema([(name, pa.int64() if name == "place" else pa.string()) for name in names])
        self._rows = 0
        self._path = f"{prefix}{KEPT}{split}.{os.getpid()}"
        self._writer: pa.RecordBatchFileWriter | None = None

    def __enter__(self) -> LetterKeeper:
        with contextlib.suppress(OSError):
            self._writer = pa.ipc.new_file(self._path, self._schema)
        return self

    def add(
        self,
        rows: int,
        errors: Mapping[int, Mapping[str, str | None]] | None = None,
        record: pa.StructArray | None = None,
        lines: pa.Array | None = None,
    ) -> None:
        """The next records of the split; `record` has the texts of those in `errors`, and `lines` their bytes in the
        form of `source_lines`, in their order."""
        first, self._rows = self._rows, self._rows + rows
        if self._writer is None or not errors or record is None or lines is None:
            return
        places = sorted(errors)
        arrays = [pa.array([first + place for place in places], pa.int64())]
        arrays += [pa.array([errors[place][name] for place in places], pa.string()) for name in ERROR_FIELDS]
        try:
            self._writer.write(pa.RecordBatch.from_arrays([*arrays, lines, *record.flatten()], schema=self._schema))
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        self._writer = None
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._writer is None:
            return
        try:
            self._writer.close()
            if kind is None:
                os.replace(self._path, f"{self._prefix}{KEPT}{self._split}-{self._rows}.arrow")
                return
        except OSError:
            pass
        self._give_up()


def kept_files(prefix: str, splits: int) -> list[tuple[Path, int]] | None:
    """For each split its file and how many records it has; None when one is missing."""
    folder, start = Path(prefix).parent, Path(prefix).name + KEPT
    found: dict[int, tuple[Path, int]] = {}
    for path in folder.iterdir():
        match = _NAME.fullmatch(path.name.removeprefix(start)) if path.name.startswith(start) else None
        if match is not None:
            found[int(match[1])] = (path, int(match[2]))
    return [found[i] for i in range(splits)] if len(found) == splits else None


def read_kept(path: Path) -> pa.RecordBatch:
    """The bad records of a split: their place in it, the error, the bytes, and the texts of the declared columns."""
    with pa.OSFile(str(path), "rb") as file:
        found = pa.ipc.open_file(file).read_all()
    batches = found.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=found.schema)


def first_rows(counts: Sequence[int], files: Sequence[int]) -> list[int]:
    """The row of the first record of each split, given how many records each has and which file it is of."""
    seen: dict[int, int] = {}
    rows = []
    for count, file in zip(counts, files, strict=True):
        rows.append(seen.get(file, 0) + 1)
        seen[file] = seen.get(file, 0) + count
    return rows
