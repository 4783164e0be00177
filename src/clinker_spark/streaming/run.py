"""Running a pipeline as a stream: its queries, batch by batch, until they are drained or somebody stops them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.streams import StreamQuery, operators, queries
from clinker_spark.runtime.errors import DataError
from clinker_spark.runtime.paths.checks import check_not_read
from clinker_spark.runtime.run.engine_failures import explained
from clinker_spark.runtime.run.options import Listener, Options, contexts
from clinker_spark.spark.build.metrics import STREAMED
from clinker_spark.spark.build.passes import RunContext
from clinker_spark.spark.build.stream import ENDED
from clinker_spark.spark.session.jvm import while_it_lives
from clinker_spark.spark.session.sessions import SparkSession
from clinker_spark.spark.streaming.batches import Open, Root, Staged, opened, read_letters, root_of
from clinker_spark.spark.streaming.query import RunningQuery
from clinker_spark.spark.streaming.state import stream_session
from clinker_spark.spark.streaming.waiting import held
from clinker_spark.spark.streaming.watermark import NEWEST
from clinker_spark.streaming.beats import Idleness, beat_file, flush_beat, newest_times
from clinker_spark.streaming.checkpoint import Checkpoint, Positions, checkpoint_folder
from clinker_spark.streaming.connectors.letters import check_letters
from clinker_spark.streaming.ends import SourceOptions, StreamSink, StreamSource, sink_of, source_of
from clinker_spark.streaming.file_sink import FileSink
from clinker_spark.streaming.hot_keys import SHOWN, HotKeys, waiting
from clinker_spark.streaming.letters import BatchLetters, Files, Found, failed_in, letter_places
from clinker_spark.streaming.progress import StreamReport, note_batch, positions, spooled
from clinker_spark.streaming.shape import check_shape, shape_of, shapes

if TYPE_CHECKING:
    from clinker_spark.spark.scan.request import ReadRequest, Scan
    from clinker_spark.spark.streaming.query import DataFrame

_POLL = 0.1
_STARTS = 20
"""So often a query is started again, one time after the other, whose Python processes did not come up..."""
_BUSY = 3.0
"""...while the machine has not more than so many times the work that it can do. Else it is ten times as often."""
_PATIENCE = 30.0
"""So many seconds a batch may take to end when the stream is stopped."""


@dataclass
class StreamOptions:
    """What the command line adds to a plan."""

    once: bool = False
    """Stop when all is read that was there at the start."""
    flush: bool = False
    """Then close all windows: records of outer joins that still wait for others come out."""
    base: Path | None = None
    checkpoint: str | None = None
    sides: bool = False
    """Look at what waits side by side, every five minutes and at the end: Spark's own numbers are those of a join."""


def run_stream(plan: Plan, spark: SparkSession, options: StreamOptions, tell: Listener) -> StreamReport:
    """Run a pipeline as a stream. Raises `ClinkerError`; what was written is complete up to a batch then."""
    return StreamRun(plan, spark, options, tell).run()


class StreamRun:
    """One call of `clinker stream`."""

    def __init__(self, plan: Plan, spark: SparkSession, options: StreamOptions, tell: Listener) -> None:
        with explained(plan):
            self._prepare(plan, spark, options, tell)

    def _prepare(self, plan: Plan, spark: SparkSession, options: StreamOptions, tell: Listener) -> None:
        self.plan = plan
        self.options = options
        self.tell = tell
        self.base = options.base or plan.file.folder
        self.queries = queries(plan)
        self.sinks: dict[str, StreamSink] = {o.name: sink_of(o, self.base) for o in plan.outputs}
        written = {name: sink.place(0) for name, sink in self.sinks.items() if isinstance(sink, FileSink)}
        places = letter_places(plan, self.base, self.queries)
        check_not_read(plan, self.base, written, [(each.key, path) for each in places for path in each.each()])
        settings = plan.file.stream
        self.checkpoint = Checkpoint(checkpoint_folder(plan, self.base, options.checkpoint))
        partitions = settings.partitions or os.cpu_count() or 1
        self.about = self.checkpoint.begin({"partitions": partitions, "shape": shape_of(plan, self.queries)})
        check_shape(plan, self.queries, self.checkpoint, self.about)
        self.spark = stream_session(spark, self.about["partitions"], settings.restarts)
        self.report = StreamReport(warnings=[])
        given = Options(execution_id=self.about["id"], base=self.base)
        self.now = given.now
        self.contexts = contexts(plan, given)
        self.strict = plan.file.error_handling.strategy == "fail_fast"
        self.letters = BatchLetters(plan, places, self.checkpoint, given.now)
        self.sources: dict[tuple[str, str], StreamSource] = {}
        self.idle = {query.name: Idleness(query) for query in self.queries if query.stateful}
        self.running: list[RunningQuery] = []
        self.starts: Counter[str] = Counter()
        self.hot = HotKeys(plan, self.checkpoint, settings.hot_key)

    def run(self) -> StreamReport:
        """All of it, from the lock to the last letter. Raises `ClinkerError`."""
        with spooled(self.plan, self.about["id"], self.report, once=self.options.once):
            return self._run()

    def _run(self) -> StreamReport:
        with explained(self.plan), self.checkpoint.locked(), self._stoppable():
            for query in self.queries:
                self.checkpoint.check(query)
            with self._places():
                for query in self.queries:
                    self._catch_up(query, self.checkpoint.committed(query))
                self._drive(self.queries)
                if self.options.flush and not self.report.interrupted:
                    self._flush()
            self._look()
        if self.report.late:
            message = f"{self.report.late} record(s) came behind the watermark, and were dropped"
            self.report.warnings.append(
                Diagnostic("W501", message, help="give the sources a larger delay, or the join late_data: reopen")
            )
        return self.report

    @contextmanager
    def _places(self) -> Iterator[None]:
        """Everything that is written to is there, and ours."""
        with ExitStack() as ends:
            for sink in self.sinks.values():
                ends.callback(sink.close)
                sink.check(self.about["id"])
            ends.enter_context(self.letters.claimed())
            check_letters(self.plan)
            yield

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        """SIGTERM and the first Ctrl-C end the stream after its batch; a second one ends it at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: object) -> None:
            if self.report.interrupted and number == signal.SIGINT:
                raise KeyboardInterrupt
            self.report.interrupted = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _look(self) -> None:
        """What waits, and for which keys. A look that fails is left out: Spark writes and removes files of the state
        meanwhile, and if more is the matter than that, the queries tell."""
        with while_it_lives():
            self._look_at_state()

    def _look_at_state(self) -> None:
        self._warn(self.hot.look(self.spark, self.queries))
        if not self.options.sides:
            return
        known = shapes(self.about)
        names = [query.name for query in self.queries if query.name in known]
        found = [each for name in names for each in waiting(self.spark, self.checkpoint, known[name], name, SHOWN)]
        self.report.waiting = found
        for each in found:
            self.tell("state", asdict(each))

    def _warn(self, warnings: Sequence[Diagnostic]) -> None:
        known = {warning.message for warning in self.report.warnings}
        self.report.warnings += [warning for warning in warnings if warning.message not in known]

    # ------------------------------------------------------------ queries

    def _start(self, query: StreamQuery) -> RunningQuery:
        own: dict[str, Open] = {}
        for node in query.sources:
            source = self._source(query, node.name)
            own[node.name] = lambda request, source=source: source.open(self.spark, request)  # type: ignore[misc]
        root = root_of(self._context(opened(query, own)), query, strict=self.strict)
        every = self.plan.file.stream.trigger.total_seconds()

        def each(batch: DataFrame, number: int) -> None:
            self._batch(root, batch, number)

        place = self.checkpoint.spark(query)
        return RunningQuery(root.stream.frame, query.name, place, each, once=self.options.once, every=every)

    def _source(self, query: StreamQuery, name: str) -> StreamSource:
        key = query.name, name
        if key not in self.sources:
            node = next(source for source in query.sources if source.name == name)
            folder = self.checkpoint.source(query, name)
            most = self.plan.file.stream.max_files
            self.sources[key] = source_of(node, SourceOptions(folder, self.base, most, os.cpu_count() or 1))
        return self.sources[key]

    def _context(self, ways: dict[str, Open], files: Files | None = None) -> RunContext:
        none: Files = {source.name: () for source in self.plan.sources}
        return RunContext(self.spark, self.plan, self.contexts, {**none, **(files or {})}, local=False, opened=ways)

    def _drive(self, wanted: Sequence[StreamQuery]) -> None:
        """Until all queries are done, or one of them fails, or somebody interrupts."""
        running = self.running = []
        try:
            for query in wanted:
                running.append(self._start(query))
                while running[-1].begins:  # one after the other: each starts processes of its own
                    time.sleep(_POLL)
            while True:
                for each in running:
                    self._hear(each)
                    self._wake(each.name)
                if self.hot.due():
                    self._look()
                active = any(each.active for each in running)  # before the errors: what ends meanwhile is seen then
                failed = any(each.error() is not None for each in running)
                if self.report.interrupted or not (self._go_on(running) if failed else active):
                    break
                time.sleep(_POLL)
        finally:
            for each in running:
                each.stop(_PATIENCE)
        for each in running:
            self._hear(each)
            if (error := each.error()) is not None:
                raise error

    def _go_on(self, running: list[RunningQuery]) -> bool:
        """Start what failed once more, if all of it failed because a Python process was not there in time, as on a
        machine that is very busy. Can the stream go on?"""
        failed = [each for each in running if each.error() is not None]
        for each in failed:
            if each.batches:
                self.starts[each.name] = 0
            self.starts[each.name] += 1
        most = _STARTS * (10 if os.getloadavg()[0] > _BUSY * (os.cpu_count() or 1) else 1)
        if not all(each.lost_process() and self.starts[each.name] <= most for each in failed):
            return False
        for each in failed:
            self._hear(each)
        running[:] = [self._start(self._query(each.name)) if each in failed else each for each in running]
        return True

    def _query(self, name: str) -> StreamQuery:
        return next(query for query in self.queries if query.name == name)

    def _hear(self, running: RunningQuery) -> None:
        """What Spark says about the batches that were finished meanwhile."""
        query = self._query(running.name)
        for told in running.progress():
            batch = note_batch(self.report, query, operators(self.plan, query.root), told)
            self.hot.note(query, batch.waiting)
            if query.name in self.idle:
                newest = newest_times(told, NEWEST)
                for name, count in batch.records.items():
                    if count:
                        self.idle[query.name].note(name, newest.get(name))
            self._catch_up(query, batch.number - 1)  # Spark does not tell for ever what it has done
            if failed_in(told, STREAMED):
                self._write_read_letters(query, batch.number, positions(told))
            self.letters.check(query, batch.number)
            self.tell("batch", batch.as_json())

    def _wake(self, name: str) -> None:
        """Silent sources must not hold back the others."""
        if name in self.idle and not self.options.once:
            for source, time_ in self.idle[name].beats().items():
                beat_file(self.checkpoint, self._query(name), source).write(time_)

    def _flush(self) -> None:
        """Close all windows: everything that waits comes out, and the watermark stands behind it."""
        again = []
        for query in self.queries:
            times = [side.newest() for side in held(self.spark, self.checkpoint.spark(query))] if query.stateful else []
            known = [found for found in times if found is not None]
            if not known:
                continue
            for node in query.sources:
                beat_file(self.checkpoint, query, node.name).write(flush_beat(query, max(known)))
            again.append(query)
        self._drive(again)

    # ------------------------------------------------------------ batches

    def _batch(self, root: Root, batch: DataFrame, number: int) -> None:
        """The records of one batch to all outputs, and what fails on the way to the dead letters."""
        query = root.query

        def stage(node: Any, frame: DataFrame) -> Staged | None:
            return self.sinks[node.name].stage(frame, number, self.about["id"])

        later = bool(query.stateful) and root.fails_later and not self.strict
        kept = len(query.outputs) > 1 or later
        if kept:
            batch = batch.persist()
        try:
            if root.write(batch, stage) and not self.strict:
                if query.stateful:
                    self._write_made_letters(root, batch, number)
                else:
                    self._write_read_letters(query, number)
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

    def _catch_up(self, query: StreamQuery, last: int) -> None:
        """The letters of batches that are finished, as before a crash, and were not looked at."""
        for batch in range(self.letters.checked(query) + 1, last + 1):
            if not self.strict:
                self._write_read_letters(query, batch)
            self.letters.check(query, batch)

    def _stop_at_first(self, root: Root, batch: DataFrame, number: int) -> None:
        found = self._read(root.query, number)
        if found is None and root.query.stateful and (frame := root.find(batch)) is not None:
            found = self.letters.kept(frame, f"{root.query.name}-{number}", {}, {})
        if found is not None:
            raise DataError([self.letters.first(found)])

    def _write_read_letters(self, query: StreamQuery, batch: int, told: Positions | None = None) -> None:
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
        starts, ends = told if told is not None and known else self.checkpoint.positions(query, batch)
        if all(starts.get(name, {}).get("at") == e["at"] for name, e in ends.items()):
            return None
        files: Files = {}
        scans: dict[str, Scan] = {}

        def again(name: str) -> Open:
            def read(request: ReadRequest) -> Scan:
                start = starts.get(name, {}).get("at")
                scans[name], files[name] = self._source(query, name).again(self.spark, request, start, ends[name]["at"])
                return scans[name]

            return read

        frame = read_letters(self._context({node.name: again(node.name) for node in query.sources}), query)
        if frame is None:
            return None
        headers = {name: scan.headers for name, scan in scans.items() if scan.headers}
        return self.letters.kept(frame, f"{query.name}-{batch}-read", files, headers)
