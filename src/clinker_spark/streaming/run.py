"""Running a pipeline as a stream: its queries, batch by batch, until they are drained or somebody stops them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.streams import StreamQuery, operators, queries
from clinker_spark.runtime.paths.checks import check_not_read
from clinker_spark.runtime.run.engine_failures import explained
from clinker_spark.runtime.run.options import Listener, Options, contexts
from clinker_spark.spark.build.metrics import STREAMED
from clinker_spark.spark.session.jvm import while_it_lives
from clinker_spark.spark.session.sessions import SparkSession
from clinker_spark.spark.streaming.batches import Open, opened, root_of
from clinker_spark.spark.streaming.query import RunningQuery
from clinker_spark.spark.streaming.state import stream_session
from clinker_spark.spark.streaming.waiting import held
from clinker_spark.spark.streaming.watermark import NEWEST
from clinker_spark.streaming.batches import Batches, Inputs
from clinker_spark.streaming.checkpoint import Checkpoint, checkpoint_folder
from clinker_spark.streaming.ends import StreamSink, sink_of
from clinker_spark.streaming.file_sink import FileSink
from clinker_spark.streaming.letters import BatchLetters, failed_in, letter_places
from clinker_spark.streaming.shape import check_shape, shape_of, shapes
from clinker_spark.streaming.watch.beats import Idleness, beat_file, flush_beat, newest_times
from clinker_spark.streaming.watch.hot_keys import SHOWN, HotKeys, waiting
from clinker_spark.streaming.watch.progress import StreamReport, note_batch, positions, spooled

if TYPE_CHECKING:
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
        base = options.base or plan.file.folder
        self.queries = queries(plan)
        sinks: dict[str, StreamSink] = {o.name: sink_of(o, base) for o in plan.outputs}
        written = {name: sink.place(0) for name, sink in sinks.items() if isinstance(sink, FileSink)}
        places = letter_places(plan, base, self.queries)
        check_not_read(plan, base, written, [(each.key, path) for each in places for path in each.each()])
        settings = plan.file.stream
        self.checkpoint = Checkpoint(checkpoint_folder(plan, base, options.checkpoint))
        partitions = settings.partitions or os.cpu_count() or 1
        self.about = self.checkpoint.begin({"partitions": partitions, "shape": shape_of(plan, self.queries)})
        check_shape(plan, self.queries, self.checkpoint, self.about)
        started = stream_session(spark, self.about["partitions"], settings.restarts)
        self.report = StreamReport(warnings=[])
        given = Options(execution_id=self.about["id"], base=base)
        self.inputs = Inputs(plan, started, self.checkpoint, base, contexts(plan, given))
        letters = BatchLetters(plan, places, self.checkpoint, given.now)
        self.batches = Batches(self.inputs, sinks, letters, self.report, self.about["id"])
        self.idle = {query.name: Idleness(query) for query in self.queries if query.stateful}
        self.running: list[RunningQuery] = []
        self.hot = HotKeys(plan, self.checkpoint, settings.hot_key)

    def run(self) -> StreamReport:
        """All of it, from the lock to the last letter. Raises `ClinkerError`."""
        with spooled(self.plan, self.about["id"], self.report, once=self.options.once):
            return self._run()

    def _run(self) -> StreamReport:
        with explained(self.plan), self.checkpoint.locked(), self._stoppable():
            for query in self.queries:
                self.checkpoint.check(query)
            with self.batches.claimed():
                for query in self.queries:
                    self.batches.catch_up(query, self.checkpoint.committed(query))
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
        self._warn(self.hot.look(self.inputs.spark, self.queries))
        if not self.options.sides:
            return
        known = shapes(self.about)
        names = [query.name for query in self.queries if query.name in known]
        spark = self.inputs.spark
        found = [each for name in names for each in waiting(spark, self.checkpoint, known[name], name, SHOWN)]
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
            source = self.inputs.source(query, node.name)
            own[node.name] = lambda request, source=source: source.open(self.inputs.spark, request)  # type: ignore[misc]
        root = root_of(self.inputs.context(opened(query, own)), query, strict=self.batches.strict)
        every = self.plan.file.stream.trigger.total_seconds()

        def each(batch: DataFrame, number: int) -> None:
            self.batches.write(root, batch, number)

        place = self.checkpoint.spark(query)
        return RunningQuery(root.stream.frame, query.name, place, each, once=self.options.once, every=every)

    def _drive(self, wanted: Sequence[StreamQuery]) -> None:
        """Until all queries are done, or one of them fails, or somebody interrupts."""
        running = self.running = []
        starts: Counter[str] = Counter()
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
                if self.report.interrupted or not (self._go_on(running, starts) if failed else active):
                    break
                time.sleep(_POLL)
        finally:
            for each in running:
                each.stop(_PATIENCE)
        for each in running:
            self._hear(each)
            if (error := each.error()) is not None:
                raise error

    def _go_on(self, running: list[RunningQuery], starts: Counter[str]) -> bool:
        """Start what failed once more, if all of it failed because a Python process was not there in time, as on a
        machine that is very busy. Can the stream go on?"""
        failed = [each for each in running if each.error() is not None]
        for each in failed:
            if each.batches:
                starts[each.name] = 0
            starts[each.name] += 1
        most = _STARTS * (10 if os.getloadavg()[0] > _BUSY * (os.cpu_count() or 1) else 1)
        if not all(each.lost_process() and starts[each.name] <= most for each in failed):
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
            self.batches.catch_up(query, batch.number - 1)  # Spark does not tell for ever what it has done
            if failed_in(told, STREAMED):
                self.batches.write_read_letters(query, batch.number, positions(told))
            self.batches.letters.check(query, batch.number)
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
            sides = held(self.inputs.spark, self.checkpoint.spark(query)) if query.stateful else []
            known = [newest for side in sides if (newest := side.newest()) is not None]
            if not known:
                continue
            for node in query.sources:
                beat_file(self.checkpoint, query, node.name).write(flush_beat(query, max(known)))
            again.append(query)
        self._drive(again)
