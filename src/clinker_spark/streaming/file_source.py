"""Files that come into a folder, as a source of streams."""

from __future__ import annotations

import datetime as dt
import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.discover.sources import NoFiles, discover
from clinker_spark.spark.scan.files import SourceFile
from clinker_spark.spark.streaming.file_log import FileLog
from clinker_spark.streaming.ends import SourceOptions

if TYPE_CHECKING:
    from clinker_spark.spark.scan.request import ReadRequest, Scan
    from clinker_spark.spark.session.sessions import SparkSession


@dataclass(frozen=True)
class Watched:
    """What a reader watches."""

    node: SourcePlan
    base: Path


def list_files(watched: Watched) -> list[SourceFile]:
    """The files that are there now, in the order of the source."""
    try:
        return list(discover(watched.node, watched.base, dt.datetime.now(dt.UTC).replace(tzinfo=None)).files)
    except NoFiles:  # not yet
        return []


class FileSource:
    """See `ends.StreamSource`."""

    def __init__(self, node: SourcePlan, options: SourceOptions) -> None:
        self.node = node
        self.options = options
        self.log = str(options.folder / "files")

    def open(self, spark: SparkSession, request: ReadRequest) -> Scan:
        # What needs Spark is loaded when the stream runs: a plan is checked, and a state shown, without it.
        from clinker_spark.spark.streaming.files import FileFeed, open_files_stream, schema_text

        asked = _constant(request)
        feed = FileFeed(
            source=self.node.name,
            kind=self.node.config.type,
            schema=schema_text(self.node.config.type, asked),
            listing=(__name__, list_files.__name__),
            log=self.log,
            beats=self.options.beats,
            max_files=self.options.max_files,
            tasks=self.options.tasks,
            request=pickle.dumps(asked),
            watched=pickle.dumps(Watched(self.node, self.options.base)),
        )
        return open_files_stream(spark, feed)

    def again(
        self, spark: SparkSession, request: ReadRequest, start: int | None, end: int
    ) -> tuple[Scan, tuple[SourceFile, ...]]:
        from clinker_spark.spark.scan.formats import read  # as above

        files = tuple(taken.file for taken in FileLog(self.log).files[start or 0 : end])
        return read(spark, self.node.config.type, replace(_constant(request), files=files)), files


def _constant(request: ReadRequest) -> ReadRequest:
    """The columns of a stream are those of its schema, whatever else stands in a file."""
    mode = "reject" if request.conventions.on_unmapped == "reject" else "drop"
    return replace(request, conventions=replace(request.conventions, on_unmapped=mode), files=(), arrival=False)
