"""What is done with the batches of a stream: their records go to the outputs, what fails to the dead letters."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.streams import StreamQuery
from clinker_spark.runtime.errors import DataError
from clinker_spark.spark.build.passes import RunContext
from clinker_spark.spark.build.stream import ENDED
from clinker_spark.spark.session.sessions import SparkSession
from clinker_spark.spark.streaming.batches import Open, Root, Staged, read_letters
from clinker_spark.streaming.checkpoint import Checkpoint, Positions
from clinker_spark.streaming.connectors.letters import check_letters
from clinker_spark.streaming.ends import SourceOptions, StreamSink, StreamSource, source_of
from clinker_spark.streaming.letters import BatchLetters, Files, Found
from clinker_spark.streaming.watch.progress import StreamReport

if TYPE_CHECKING:
    from clinker_spark.spark.scan.request import ReadRequest, Scan
    from clinker_spark.spark.streaming.query import DataFrame


@dataclass(frozen=True)
class Inputs:
    """What a stream reads from, and what its nodes know of the run."""

    plan: Plan
    spark: SparkSession
    checkpoint: Checkpoint
    base: Path
    contexts: Mapping[str, Any]
    _sources: dict[tuple[str, str], StreamSource] = field(default_factory=dict)

    def source(self, query: StreamQuery, name: str) -> StreamSource:
        key = query.name, name
        if key not in self._sources:
            node = next(source for source in query.sources if source.name == name)
            folder = self.checkpoint.source(query, name)
            most = self.plan.file.stream.max_files
            self._sources[key] = source_of(node, SourceOptions(folder, self.base, most, os.cpu_count() or 1))
        return self._sources[key]

    def context(self, ways: dict[str, Open], files: Files | None = None) -> RunContext:
        none: Files = {source.name: () for source in self.plan.sources}
        return RunContext(self.spark, self.plan, self.contexts, {**none, **(files or {})}, local=False, opened=ways)


@dataclass(frozen=True)
class Batches:
    """The batches of one stream, which has a name of its own."""

    inputs: Inputs
    sinks: Mapping[str, StreamSink]
    letters: BatchLetters
    report: StreamReport
    stream: str

    @property
    def strict(self) -> bool:
        """Does the first failure end the stream?"""
        return self.inputs.plan.file.error_handling.strategy == "fail_fast"

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Everything that is written to is there, and ours."""
        with ExitStack() as ends:
            for sink in self.sinks.values():
                ends.callback(sink.close)
                sink.check(self.stream)
            ends.enter_context(self.letters.claimed())
            check_letters(self.inputs.plan)
            yield

    def write(self, root: Root, batch: DataFrame, number: int) -> None:
        """The records of one batch to all outputs, and what fails on the way to the dead letters."""
        query = root.query

        def stage(node: Any, frame: DataFrame) -> Staged | None:
            return self.sinks[node.name].stage(frame, number, self.stream)

        later = bool(query.stateful) and root.fails_later and not self.strict
        kept = len(query.outputs) > 1 or later
        if kept:
            batch = batch.persist()
        try:
            if root.write(batch, stage) and not self.strict:
                if query.stateful:
                    self._write_made_letters(root, batch, number)
                else:
                    self.write_read_letters(query, number)
        except ClinkerError:
            raise
        except Exception as error:
            if ENDED in str(error):
                self._stop_at_first(root, batch, number)
            raise
        finally:
            if kept:
                batch.unpersist()

    # ------------------------------------------------------------ dead letters

    def catch_up(self, query: StreamQuery, last: int) -> None:
        """The letters of batches that are finished, as before a crash, and were not looked at."""
        for batch in range(self.letters.checked(query) + 1, last + 1):
            if not self.strict:
                self.write_read_letters(query, batch)
            self.letters.check(query, batch)

    def _stop_at_first(self, root: Root, batch: DataFrame, number: int) -> None:
        found = self._read(root.query, number)
        if found is None and root.query.stateful and (frame := root.find(batch)) is not None:
            found = self.letters.kept(frame, f"{root.query.name}-{number}", {}, {})
        if found is not None:
            raise DataError([self.letters.first(found)])

    def write_read_letters(self, query: StreamQuery, batch: int, told: Positions | None = None) -> None:
        found = None if self.letters.has(query, batch) else self._read(query, batch, told)
        if found is not None:
            self._note(query, batch, found)

    def _write_made_letters(self, root: Root, batch: DataFrame, number: int) -> None:
        frame = root.find(batch)
        found = None if frame is None else self.letters.kept(frame, f"{root.query.name}-{number}-made", {}, {})
        if found is not None:
            self._note(root.query, number, found, root.query.name)

    def _note(self, query: StreamQuery, batch: int, found: Found, made: str = "") -> None:
        paths = self.letters.publish(query, batch, found, made)
        if paths is not None:
            self.report.note_letters(found.number, paths)

    def _read(self, query: StreamQuery, batch: int, told: Positions | None = None) -> Found | None:
        """The failures among the records that a batch read; Spark may have told from where to where."""
        known = told is not None and told[1].keys() == {node.name for node in query.sources}
        starts, ends = told if told is not None and known else self.inputs.checkpoint.positions(query, batch)
        if all(starts.get(name, {}).get("at") == e["at"] for name, e in ends.items()):
            return None
        files: Files = {}
        scans: dict[str, Scan] = {}

        def again(name: str) -> Open:
            def read(request: ReadRequest) -> Scan:
                start = starts.get(name, {}).get("at")
                scans[name], files[name] = self.inputs.source(query, name).again(
                    self.inputs.spark, request, start, ends[name]["at"]
                )
                return scans[name]

            return read

        frame = read_letters(self.inputs.context({node.name: again(node.name) for node in query.sources}), query)
        if frame is None:
            return None
        headers = {name: scan.headers for name, scan in scans.items() if scan.headers}
        return self.letters.kept(frame, f"{query.name}-{batch}-read", files, headers)
