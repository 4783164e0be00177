"""Python readers as DataFrames: the partitions of the DataFrame are the splits, in order; small ones share one.

Not a Python data source: Spark would start Python twice more before the first task, to register it and to ask for
its partitions (measured: 5 s of 14 s for a first small run). A range with one number per task, and a function over
Arrow batches, does the same.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import _parse_datatype_string

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.spark.arrow_batches import over_batches
from clinker_spark.spark.scan.gate import gated
from clinker_spark.spark.scan.meter import read_so_far
from clinker_spark.spark.scan.request import NOTHING_TOLD, Readers

ReadSplit = Callable[[int], Iterable[pa.RecordBatch]]
Then = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


_EVERY = 0.5
_END = ".end"
_MOST_HERE = 64 << 20
MOST_TOGETHER = 8 << 20
"""A task takes further splits as long as it reads no more bytes than this."""
_TASKS_PER_CORE = 3


def scan(
    spark: SparkSession,
    splits: int,
    fields: Sequence[tuple[str, str]],
    read: ReadSplit,
    readers: Readers = NOTHING_TOLD,
    then: Then | None = None,
    tasks: Sequence[range] | None = None,
) -> tuple[DataFrame, bool]:
    """The batches of all splits, in order. `fields` are names and SQL types; `read` runs on the workers, or, for inputs
    that are small, `here` and at once: every job over them starts with rows then, and no file is read twice. Was that
    possible?

    `progress` is a path to which the number of a split is added: a file there says how many records it gave so far.
    A split that runs twice writes the same again. `meter` is such a path for the bytes that were read; between two
    batches readers look beside it whether they shall wait (`gate`). What is made of the batches of a task in the same
    place is `then`'s to say; `fields` are of what it gives. `tasks` are the splits of each task, by default one
    (`tasks_of`).
    """
    progress, meter, most = readers.progress, readers.meter, readers.batch_size
    packed = [range(i, i + 1) for i in range(splits)] if tasks is None else tasks
    schema = ", ".join(f"{quote(name)} {kind}" for name, kind in fields)

    def of_split(number: int) -> Iterator[pa.RecordBatch]:
        found = read(number) if most is None else sliced(read(number), most)
        if meter is not None:
            found = gated(_metered(found, f"{meter}{number}"), os.path.dirname(meter))
        yield from found if progress is None else _counted(found, f"{progress}{number}")

    def batches(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for task in batch.column(0).to_pylist():
                if task < len(packed):
                    found = chain.from_iterable(map(of_split, packed[task]))
                    yield from found if then is None else then(found)

    # A range of nothing would have no partition to run in; the one number that is no split gives no record.
    number = max(len(packed), 1)
    if readers.here and (rows := _rows_here(batches, number)) is not None:
        kind: Any = _parse_datatype_string(schema)
        return spark.createDataFrame(rows, kind), True
    return over_batches(spark.range(0, number, 1, number), batches, schema), False


def tasks_of(sizes: Sequence[int], parallelism: int) -> list[range]:
    """Splits that follow each other, for each task; `sizes` are the bytes of the splits. Many small files are not as
    many tasks: to start one costs as much as to read some megabytes.

    Small ones come together, but never so many that some cores have nothing to do.

    >>> tasks_of([10, 10, 10, 10_000_000, 10], 1)
    [range(0, 3), range(3, 4), range(4, 5)]
    """
    most = min(MOST_TOGETHER, sum(sizes) // max(parallelism * _TASKS_PER_CORE, 1))
    found: list[range] = []
    start = taken = 0
    for i, size in enumerate(sizes):
        if i > start and taken + size > most:
            found.append(range(start, i))
            start, taken = i, 0
        taken += size
    if start < len(sizes):
        found.append(range(start, len(sizes)))
    return found


def _rows_here(read: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], tasks: int) -> pa.Table | None:
    """All batches, read by this process; None where that is not possible, or where they are much more than files of
    this size should hold."""
    numbers = pa.record_batch([pa.array(range(tasks), pa.int64())], ["id"])
    found: list[pa.RecordBatch] = []
    size = 0
    try:
        for batch in read(iter([numbers])):
            found.append(batch)
            size += batch.nbytes
            if size > _MOST_HERE:
                return None
    except Exception:  # what is wrong with a file is said by the job that reads it
        return None
    # Spark takes an empty batch for the end, and what comes after it would be lost.
    return pa.Table.from_batches([batch for batch in found if batch.num_rows] or found[:1]) if found else None


def sliced(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """The same records in batches of at most so many."""
    for batch in batches:
        for start in range(0, max(batch.num_rows, 1), most):
            yield batch.slice(start, most)


def _counted(batches: Iterable[pa.RecordBatch], path: str) -> Iterator[pa.RecordBatch]:
    rows, told = 0, 0.0
    for batch in batches:
        yield batch
        rows += batch.num_rows
        if time.monotonic() - told > _EVERY:
            told = time.monotonic()
            _say(path, rows)
    _say(path, rows)
    # Only a split that was read to its end gets here; that number is compared with others.
    own = f"{path}.{os.getpid()}"
    _say(own, rows)
    with contextlib.suppress(OSError):
        os.replace(own, f"{path}{_END}")


def _metered(batches: Iterable[pa.RecordBatch], path: str) -> Iterator[pa.RecordBatch]:
    before, told = read_so_far(), 0.0
    for batch in batches:
        if time.monotonic() - told > _EVERY:
            told = time.monotonic()
            _say(path, read_so_far() - before)
        yield batch
    _say(path, read_so_far() - before)


def _say(path: str, rows: int) -> None:
    # Nobody waits for these numbers, and a run must not fail because the folder is gone or out of reach.
    with contextlib.suppress(OSError), open(path, "w") as file:
        file.write(str(rows))


def final_count(folder: Path, source: str, splits: int) -> int | None:
    """How many records the readers of a source gave, if all of them have read to the end and said so."""
    prefix = progress_path(folder, source)
    found = 0
    for number in range(splits):
        try:
            text = Path(f"{prefix}{number}{_END}").read_text()
        except OSError:
            return None
        if not text.isdigit():
            return None
        found += int(text)
    return found


def forget_counts(folder: Path, source: str) -> None:
    """Before a source is read again: what is there then is of that read."""
    prefix = Path(progress_path(folder, source)).name
    for path in folder.iterdir():
        if path.name.startswith(prefix) and path.name.endswith(_END):
            path.unlink(missing_ok=True)


def progress_path(folder: Path, source: str) -> str:
    """Where the readers of a source say how far they are."""
    return str(folder / (source.replace("/", "~") + "@"))


def meter_path(folder: Path, source: str) -> str:
    """Where they say how many bytes they have read in this pass."""
    return str(folder / (source.replace("/", "~") + "@bytes-"))


def progress_counts(folder: Path, source: str) -> list[int]:
    """The records they have given, split by split."""
    return list(_numbers(progress_path(folder, source)).values())


def metered_bytes(folder: Path, source: str) -> int:
    """The bytes they have read in this pass."""
    return sum(_numbers(meter_path(folder, source)).values())


def reset_meter(folder: Path, source: str) -> None:
    """A new pass begins."""
    for path in _numbers(meter_path(folder, source)):
        path.unlink(missing_ok=True)


def _numbers(prefix: str) -> dict[Path, int]:
    """What stands in the files of the splits."""
    start = Path(prefix)
    found = {}
    for path in start.parent.glob("*"):
        if path.name.startswith(start.name) and path.name[len(start.name) :].isdigit():
            with contextlib.suppress(OSError, ValueError):  # just being written, or removed
                found[path] = int(path.read_text())
    return found
