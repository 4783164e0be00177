"""The parts of outputs, written by the workers of a fragment themselves, where they and the run see the same folders.

Lines that go through Spark are copied some five times in the JVM, which costs as much as to make them. Spark still
decides which task runs where and how often: a part has its name only when it is complete, and a task that runs twice
makes the same part again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator
from itertools import pairwise
from types import TracebackType
from typing import IO

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark import TaskContext

from clinker_spark.cxl.vector.call import text_view
from clinker_spark.spark.fragments.part_names import UNFORESEEN, part_name
from clinker_spark.spark.scan.request import Unforeseen

_WITHIN = 12

__all__ = ["PartFiles", "folder_of_output", "fresh_folders", "number_of_task", "while_foreseen"]


def folder_of_output(folder: str, number: int) -> str:
    """Where the parts of an output lie."""
    return os.path.join(folder, f"output={number}")


def fresh_folders(folder: str, outputs: int) -> list[str]:
    """Empty folders for the parts of so many outputs."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
    made = [folder_of_output(folder, number) for number in range(outputs)]
    for each in made:
        os.makedirs(each)
    return made


def while_foreseen(folder: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of a reader that took something for granted (`ReadRequest.guess`), until one of all readers sees that
    it was wrong. The mark that it leaves says that all parts are worth nothing."""
    mark = os.path.join(folder, UNFORESEEN)
    try:
        for batch in batches:
            if os.path.exists(mark):
                return
            yield batch
    except Unforeseen:
        with open(mark, "wb"):
            pass


def number_of_task(rank: int) -> int:
    """The place of the task that runs here among those of all sources of a fragment; `rank` is that of its source.

    The tasks of a later source have higher numbers. But Spark may put sources of one task each into a single task, one
    after the other: then only the rank tells them apart."""
    context = TaskContext.get()
    return rank + (0 if context is None else context.partitionId())


def _contents(lines: pl.Series) -> list[memoryview]:
    """The bytes of all lines: as Polars put them side by side, where it did."""
    array = lines.to_arrow(compat_level=pl.CompatLevel.newest())
    if not len(array) or not pa.types.is_string_view(array.type):
        return [text_view(lines)]
    _, views, *blocks = array.buffers()
    # Size, first bytes, block and place; a text of up to twelve bytes stands there itself.
    table = np.frombuffer(views, dtype=np.int32).reshape(-1, 4)[array.offset : array.offset + len(array)]
    sizes, numbers, places = table[:, 0], table[:, 2], table[:, 3]
    if int(sizes.min()) <= _WITHIN:
        return [text_view(lines)]
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(table)]
    found = []
    for start, end in pairwise(edges):
        if (places[start : end - 1] + sizes[start : end - 1] != places[start + 1 : end]).any():
            return [text_view(lines)]
        last = int(places[end - 1]) + int(sizes[end - 1])
        found.append(memoryview(blocks[int(numbers[start])])[int(places[start]) : last])
    return found


class PartFiles:
    """The parts that one task makes of one source. As a context manager: they are there only if all went well.

    `rank` is the place of the source among those of its fragment. Each of `outputs` gets a part, be it empty: whoever
    waits for parts in their order would else wait for it."""

    def __init__(self, folder: str, rank: int = 0, outputs: Iterable[int] = ()) -> None:
        self._folder = folder
        self._outputs = list(outputs)
        self._number = number_of_task(rank)
        self._files: dict[int, tuple[str, IO[bytes]]] = {}

    def __enter__(self) -> PartFiles:
        return self

    def write(self, output: int, lines: pl.Series) -> int:
        """The next lines of an output, with what ends them. Gives their bytes."""
        file, size = self._file(output), 0
        for content in _contents(lines):
            size += len(content)
            while content:  # what is written to a file without a buffer may be less
                content = content[file.write(content) :]
        return size

    def _file(self, output: int) -> IO[bytes]:
        if output not in self._files:
            folder = folder_of_output(self._folder, output)
            os.makedirs(folder, exist_ok=True)  # a job that only counts again may find its parts taken away
            path = os.path.join(folder, f".{self._number}.{os.getpid()}")
            self._files[output] = path, open(path, "wb", buffering=0)  # noqa: SIM115
        return self._files[output][1]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for output in self._outputs if kind is None else ():
            self._file(output)
        for path, file in self._files.values():
            file.close()
            if kind is None:
                os.replace(path, os.path.join(os.path.dirname(path), part_name(self._number)))
            else:
                with contextlib.suppress(OSError):
                    os.unlink(path)
