"""Where records of streams come from and where they go: two tables, and what stands behind a row of them.

A row is `type: ...` of a source or an output, and `module:class`, which is loaded when a pipeline has such a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from clinker_spark.config.node_types import resolve
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.source import SourcePlan

if TYPE_CHECKING:
    from clinker_spark.spark.scan.files import SourceFile
    from clinker_spark.spark.scan.request import ReadRequest, Scan
    from clinker_spark.spark.session.sessions import SparkSession
    from clinker_spark.spark.streaming.batches import Staged
    from clinker_spark.spark.streaming.query import DataFrame

_FILES = "clinker_spark.streaming.file_source:FileSource"
_FILE_SINK = "clinker_spark.streaming.file_sink:FileSink"

SOURCES: dict[str, str] = {
    **dict.fromkeys(("csv", "json", "xml", "fixed_width", "parquet"), _FILES),
    "kafka": "clinker_spark.streaming.connectors.topics:TopicSource",
    "rate": "clinker_spark.streaming.connectors.demo:MadeUp",
}
SINKS: dict[str, str] = {
    **dict.fromkeys(("csv", "json", "xml", "fixed_width", "parquet"), _FILE_SINK),
    "kafka": "clinker_spark.streaming.connectors.topics:TopicOutput",
    "console": "clinker_spark.streaming.connectors.demo:Console",
    "postgres": "clinker_spark.streaming.connectors.tables:TableOutput",
}


@dataclass(frozen=True)
class SourceOptions:
    """What the stream says to a source."""

    folder: Path
    """A folder in the checkpoint that is this source's own, made when it is needed: what offsets refer to."""
    base: Path
    """What relative paths start from."""
    max_files: int
    tasks: int
    """How many tasks run at the same time."""

    @property
    def beats(self) -> str:
        """The file of the source's beats (`spark.streaming.reader.BeatFile`)."""
        return str(self.folder / "beat")


class StreamSource(Protocol):
    """A source of a stream, made as `cls(node, options)`. Everything that can be wrong with its settings is said by the
    constructor, as a `ClinkerError`."""

    def __init__(self, node: SourcePlan, options: SourceOptions) -> None: ...

    def open(self, spark: SparkSession, request: ReadRequest) -> Scan:
        """The records as they come: a `Scan` whose `frame` is a streaming DataFrame with

        - the wanted columns of the request in declared order, in their physical types (`spark.scan.request`);
        - `$error`, if a record can fail (then `fallible` is true): null, or a struct of kind (a category such as
          type_coercion_failure), field, value and message. Such a record has null in the columns it could not fill. It
          is counted, diverted, and brought again by `again`;
        - `$beat` last: null for records. A reader that extends `spark.streaming.reader.SourceReader` has it, and its
          offsets say which source they are of, which is how a batch finds its records again.

        The columns of a stream never change: `request.files` is empty, and undeclared columns are left out."""

    def again(
        self, spark: SparkSession, request: ReadRequest, start: Any, end: Any
    ) -> tuple[Scan, tuple[SourceFile, ...]]:
        """The same records once more, from position to position (None: where a stream without a checkpoint began, which
        the source has to remember in its folder if that is not always the same), as a DataFrame that ends: for the
        dead letters of a batch in which some failed. Besides the columns of `open` (without `$beat`) it has what the
        request asks for: `$file` (a position in the second result: what a letter names as the record's file), `$row`,
        `$record` (a struct of the texts of all declared columns) and `$line` (null, or as `spark.scan.lines` writes
        it)."""


class StreamSink(Protocol):
    """An output of a stream, made as `cls(node, base)`."""

    def __init__(self, node: OutputPlan, base: Path) -> None: ...

    def check(self, pipeline_id: str) -> None:
        """Before the stream starts: can be written there, and is what is there ours? Raises `ClinkerError`."""

    def stage(self, batch: DataFrame, batch_id: int, pipeline_id: str) -> Staged | None:
        """Bring the records of a batch here, so that nobody sees them before `publish` of the result, and then all of
        them: the batch may still fail at another output. Called by one `foreachBatch` of a query, with the columns
        that the output writes, in their order and under the names they have there (file formats: with one column, the
        lines). After a crash the last batch comes again, with the same number and the same records in another order:
        what was published already must not be published twice (None). `pipeline_id` is the same for all runs over one
        checkpoint, and of no other; batches are numbered for each query, and an output belongs to one of them."""

    def close(self) -> None:
        """The stream ends."""


def source_of(node: SourcePlan, options: SourceOptions) -> StreamSource:
    made: StreamSource = resolve(SOURCES[node.config.type])(node, options)
    return made


def sink_of(node: OutputPlan, base: Path) -> StreamSink:
    made: StreamSink = resolve(SINKS[node.config.type])(node, base)
    return made
