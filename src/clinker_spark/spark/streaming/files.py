"""Files as a stream: a folder that is watched, read file by file in the order in which they are taken up.

Spark starts half a dozen processes of Python for each query, and most of them only ask for the names of the columns.
They import this module: so it loads the readers of files, and all that pipelines are made of, only where these work.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from clinker_spark.cxl.hidden import ERROR_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import BEAT_COLUMN, FAILED_COLUMN
from clinker_spark.spark.streaming.file_log import FileLog
from clinker_spark.spark.streaming.reader import BEAT_TYPE, SourceReader

if TYPE_CHECKING:
    from clinker_spark.spark.scan.request import ReadRequest, Scan

FORMAT = "clinker_files"
PIECE = 16 << 20
"""Of about so many bytes of a file there is a task."""


@dataclass(frozen=True)
class FileFeed:
    """Everything that the reader of a source must know; it goes to other processes."""

    source: str
    kind: str
    schema: str
    """Names and types of the records."""
    listing: tuple[str, str]
    """The module and the name of a function that lists the files of `watched`."""
    log: str
    beats: str
    max_files: int
    tasks: int
    request: bytes
    """The pickled `ReadRequest`, without files: for those who read records."""
    watched: bytes
    """Pickled, too: for the one who looks for files."""


@dataclass
class FilePartition(InputPartition):
    """A part of a file: `piece` of `pieces`."""

    path: str
    name: str
    size: int
    piece: int
    pieces: int


class FileStream(DataSource):
    """Spark's name for it: `spark.readStream.format("clinker_files")`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return f"{self._feed.schema}, {quote(BEAT_COLUMN)} {BEAT_TYPE}"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return FileStreamReader(self._feed, StructType(schema.fields[:-1]))

    @property
    def _feed(self) -> FileFeed:
        with open(self.options["feed"], "rb") as file:
            found: FileFeed = pickle.load(file)
        return found


class FileStreamReader(SourceReader):
    """Positions are numbers of files in the log."""

    def __init__(self, feed: FileFeed, schema: StructType) -> None:
        super().__init__(feed.source, feed.beats, to_arrow_schema(schema, timezone="UTC"))
        self.feed = feed
        self._log: FileLog | None = None
        self.last: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_log": None}

    @property
    def log(self) -> FileLog:
        """Of the process that plans; tasks have none."""
        if self._log is None:
            self._log = FileLog(self.feed.log)
        return self._log

    def first(self) -> int:
        return 0

    def latest(self, start: int) -> int:
        if not self.drains and len(self.log.files) - start < self.feed.max_files:
            self._look()
        there = len(self.log.files) if self.last is None else self.last
        return max(start, min(start + self.feed.max_files, there))

    def drain(self) -> None:
        self._look()
        self.last = len(self.log.files)

    def _look(self) -> None:
        module, function = self.feed.listing
        self.log.take(getattr(import_module(module), function)(pickle.loads(self.feed.watched)))

    def parts(self, start: int, end: int) -> Sequence[InputPartition]:
        found = []
        for taken in self.log.files[start:end]:
            pieces = min(max(1, taken.size // PIECE), self.feed.tasks)
            found += [FilePartition(taken.path, taken.name, taken.size, i, pieces) for i in range(pieces)]
        return found

    def batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        from clinker_spark.spark.streaming.file_batches import open_files, with_file  # only tasks read files

        assert isinstance(part, FilePartition)
        request = with_file(pickle.loads(self.feed.request), part.path, part.name, part.size)
        opened = open_files(self.feed.kind, request, part.pieces)
        for i in range(part.piece, opened.parts, part.pieces):
            for batch in opened.read(i):
                yield _as_declared(batch, self.schema)


def _as_declared(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Parquet files may hold narrower numbers, or times in other units."""
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def schema_text(kind: str, request: ReadRequest) -> str:
    """Names and types of the records that a source gives."""
    from clinker_spark.spark.streaming.file_batches import open_files  # only the driver asks

    fields = open_files(kind, request, 1).fields
    return ", ".join(f"{quote(name)} {type_}" for name, type_ in fields)


def open_files_stream(spark: SparkSession, feed: FileFeed) -> Scan:
    """The records of a source, `$beat` last."""
    from clinker_spark.spark.scan.csv.source import with_short_errors  # only the driver opens it
    from clinker_spark.spark.scan.request import Scan

    spark.dataSource.register(FileStream)
    # As a file, not as an option: Spark shows options wherever it shows a plan.
    path = os.path.join(os.path.dirname(feed.log), "feed")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        pickle.dump(feed, file)
    frame = spark.readStream.format(FORMAT).option("feed", path).load()
    if FAILED_COLUMN in frame.columns:
        frame = with_short_errors(frame)
    # A run over files lets Spark read Parquet, and the plan says so.
    return Scan(frame, fallible=ERROR_COLUMN in frame.columns, in_python=feed.kind != "parquet")
