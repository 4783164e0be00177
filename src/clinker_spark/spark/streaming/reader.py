"""What all readers of streams share: offsets that name their source, and beats.

A beat is no record: it says that nothing older than its time is to be expected, so that a source which is silent, or at
its end, does not hold back the watermark of a join. Whoever runs the stream writes it to a file (`BeatFile`); the
offset holds its time, so that a batch which is repeated repeats it. A batch of records has `$beat` as its last column,
null in each of them.
"""

from __future__ import annotations

import contextlib
import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.columns import BEAT_COLUMN

BEAT_TYPE = "TIMESTAMP_LTZ"
_ARROW_BEAT = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class BeatFile:
    """Where the last beat of a source stands, in milliseconds since 1970."""

    path: str

    def read(self) -> int | None:
        try:
            with open(self.path) as file:
                return int(file.read())
        except (OSError, ValueError):
            return None

    def write(self, time: int) -> None:
        """Only ever later."""
        before = self.read()
        if before is None or before < time:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(self.path + ".new", "w") as file:
                file.write(str(time))
            os.replace(self.path + ".new", self.path)


@contextlib.contextmanager
def told_as_text() -> Iterator[None]:
    """Of an error only its text gets out of a process of Spark: the code has to stand in it."""
    try:
        yield
    except ClinkerError as error:
        found = error.diagnostics[0]
        error.args = (f"{found.code}: {' '.join(found.message.split())}",)
        raise


@dataclass
class BeatPartition(InputPartition):
    """A task that gives one beat."""

    time: int


class SourceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A reader of one source. Who extends it gives positions as JSON objects; offsets are made of them:
    `{"source": name, "at": position, "beat": milliseconds or null}`."""

    def __init__(self, source: str, beats: str, schema: pa.Schema) -> None:
        self.source = source
        self.beats = BeatFile(beats)
        self.schema = schema
        """Of the records, without `$beat`."""
        self.drains = False
        """Is only what is there now to be read?"""

    # ------------------------------------------------------------ what a source says about itself

    @abstractmethod
    def first(self) -> Any:
        """Where a stream begins that has no checkpoint."""

    @abstractmethod
    def latest(self, start: Any) -> Any:
        """How far the next batch after `start` can read; `start` itself when there is nothing new."""

    @abstractmethod
    def parts(self, start: Any, end: Any) -> Sequence[InputPartition]:
        """The tasks of a batch. The same positions always mean the same records."""

    @abstractmethod
    def batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a task, in the columns of `schema`."""

    def drain(self) -> None:
        """`latest` must not go further from now on than what is there at this moment."""

    def done(self, end: Any) -> None:
        """All batches up to here are finished, and will not be asked for again."""

    # ------------------------------------------------------------ what Spark asks

    def initialOffset(self) -> dict[str, Any]:
        with told_as_text():
            return self._offset(self.first(), None)

    def prepareForTriggerAvailableNow(self) -> None:
        self.drains = True
        with told_as_text():
            self.drain()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        beats = [time for time in (start["beat"], self.beats.read()) if time is not None]
        with told_as_text():
            return self._offset(self.latest(start["at"]), max(beats, default=None))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with told_as_text():
            found = list(self.parts(start["at"], end["at"])) if start["at"] != end["at"] else []
        if end["beat"] is not None and end["beat"] != start["beat"]:
            found.append(BeatPartition(end["beat"]))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        schema = self.schema.append(pa.field(BEAT_COLUMN, _ARROW_BEAT))
        if isinstance(partition, BeatPartition):
            nulls = [pa.nulls(1, field.type) for field in self.schema]
            yield pa.RecordBatch.from_arrays([*nulls, pa.array([partition.time * 1000], _ARROW_BEAT)], schema=schema)
            return
        with told_as_text():
            yield from self._records(partition, schema)

    def _records(self, partition: InputPartition, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in self.batches(partition):
            yield pa.RecordBatch.from_arrays([*batch.columns, pa.nulls(batch.num_rows, _ARROW_BEAT)], schema=schema)

    def commit(self, end: dict[str, Any]) -> None:
        with contextlib.suppress(Exception):
            self.done(end["at"])

    def stop(self) -> None:
        pass

    def _offset(self, at: Any, beat: int | None) -> dict[str, Any]:
        return {"source": self.source, "at": at, "beat": beat}
