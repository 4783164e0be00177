"""A fragment at work: batches of a reader become lines, and everything that leaves on the way is counted."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.cxl.hidden import ERROR_COLUMN
from clinker_spark.cxl.ir import TypedProgram
from clinker_spark.cxl.system import Context
from clinker_spark.cxl.vector.call import dtype_of, uniform
from clinker_spark.cxl.vector.program import Batch, VectorProgram, lower_program
from clinker_spark.plan.columns import FAILED_COLUMN, OK_COLUMN, PORT_COLUMN, PORT_PREFIX, WIDENED_COLUMN
from clinker_spark.spark.fragments.joins.index import TooMany
from clinker_spark.spark.fragments.joins.lookup import MOST_PAIRS, Rules, joined, with_keys
from clinker_spark.spark.fragments.lines import lines_of, with_members
from clinker_spark.spark.fragments.part_files import PartFiles, while_foreseen
from clinker_spark.spark.fragments.task import (
    COUNTS,
    LINE_END,
    LINES,
    OUTPUT,
    PLACE,
    TOTALS,
    CheckStep,
    FragmentTask,
    JoinStep,
    MergeStep,
    RouteStep,
    Settle,
    TotalsStep,
    TransformStep,
    WriteStep,
)
from clinker_spark.spark.fragments.totals.parts import Part, Parts
from clinker_spark.spark.fragments.undeclared import columns_of

_SCHEMA = pa.schema(
    [
        (OUTPUT, pa.int32()),
        (PLACE, pa.int64()),
        (LINES, pa.string()),
        (COUNTS, pa.list_(pa.int64())),
        (TOTALS, pa.binary()),
    ]
)


_RANK_BITS = 40
"""Texts of a later source have a later place, also where one task reads several sources."""


class Runner:
    """Runs a task over the batches of its splits."""

    def __init__(self, task: FragmentTask) -> None:
        self.task = task
        self.counts = [0] * task.counts
        self.place = task.rank << _RANK_BITS
        self.files: PartFiles | None = None
        self.most_rows = sys.maxsize
        self.most_pairs: int | None = None
        self.programs: dict[int, VectorProgram] = {}
        self.totals = {i: Parts(step, task.rank) for i, step in enumerate(task.steps) if isinstance(step, TotalsStep)}
        self.ready: list[Part] = []
        self.last_reader = {step.takes: i for i, step in enumerate(task.steps)}
        outputs = [step for step in task.steps if isinstance(step, WriteStep)]
        self.sizes = {step.number: step.size for step in outputs}
        cells = [cell for step in outputs for cell in step.lines.cells]
        self.undeclared = {cell.column: cell.undeclared for cell in cells if cell.undeclared is not None}

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if self.task.parts is None:
            yield from self._run(batches)
        else:
            foreseen = while_foreseen(self.task.parts, batches)
            with PartFiles(self.task.parts, self.task.rank, self.sizes) as self.files:
                yield from self._run(foreseen)  # no lines, only parts of totals
        yield pa.RecordBatch.from_pylist([{COUNTS: self.counts}], _SCHEMA)

    def _run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in _merged(batches, self.task.together):
            for made in filter(None, self._parts(batch)):
                if self.files is not None:
                    for number, lines in made:
                        self.counts[self.sizes[number]] += self.files.write(number, lines)
                    continue
                numbers, texts = zip(*made, strict=True)
                places = range(self.place, self.place + len(made))
                self.place += len(made)
                lines = pa.concat_arrays(texts)
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array(numbers, pa.int32()),
                        pa.array(places, pa.int64()),
                        lines,
                        pa.nulls(len(made), _SCHEMA.field(COUNTS).type),
                        pa.nulls(len(made), _SCHEMA.field(TOTALS).type),
                    ],
                    schema=_SCHEMA,
                )
            yield from self._totals_so_far()
        for parts in self.totals.values():
            self.ready += parts.rest()
            yield from self._totals_so_far()

    def _totals_so_far(self) -> Iterator[pa.RecordBatch]:
        if self.ready:
            rows = [{OUTPUT: number, PLACE: place, TOTALS: part} for number, place, part in self.ready]
            yield pa.RecordBatch.from_pylist(rows, _SCHEMA)
        self.ready = []

    def _parts(self, batch: pa.RecordBatch) -> Iterator[list[tuple[int, pa.Array]]]:
        """What becomes of a batch; of one whose records have too many matches, half by half."""
        todo = [batch]
        while todo:
            part = todo.pop()
            half = part.num_rows // 2
            if part.num_rows > self.most_rows:
                todo += [part.slice(half), part.slice(0, half)]
                continue
            before, self.most_pairs = list(self.counts), MOST_PAIRS if half else None
            try:
                yield self._batch(part)
            except TooMany:
                self.counts, self.most_rows = before, half
                todo.append(part)

    def _batch(self, batch: pa.RecordBatch) -> list[tuple[int, pa.Array]]:
        """For each output that gets lines of the batch, one text with all of them; or the lines, for a file."""
        self.counts[self.task.given] += batch.num_rows
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        errors, flags = arrays.pop(ERROR_COLUMN, None), arrays.pop(FAILED_COLUMN, None)
        widened = arrays.pop(WIDENED_COLUMN, None)
        if widened is None:  # other sources of the fragment have them
            arrays |= dict.fromkeys(self.undeclared, pa.nulls(batch.num_rows, pa.string()))
        else:
            found = columns_of(widened, self.undeclared.values())
            arrays |= {column: found[name] for column, name in self.undeclared.items()}
        frame = uniform(pl.DataFrame({name: pl.from_arrow(array) for name, array in arrays.items()}))
        if not arrays:
            frame = pl.DataFrame({FAILED_COLUMN: pl.repeat(False, batch.num_rows, eager=True)})
        bad = errors.is_valid() if errors is not None else flags
        failed = 0 if bad is None else pc.sum(pc.cast(bad, pa.int64())).as_py() or 0
        if failed:
            frame = frame.filter(~pl.Series(pl.from_arrow(bad)))
        frame = with_members(frame, self.task.members, self.task.unread)
        return self._steps(*self._settled(self.task.settle, frame, failed))

    def _settled(self, settle: Settle | None, frame: pl.DataFrame, failed: int) -> tuple[pl.DataFrame, int]:
        if settle is None:
            return frame, failed
        self.counts[settle.rows] += frame.height + failed
        self.counts[settle.failed] += failed
        return frame, 0

    def _steps(self, frame: pl.DataFrame, failed: int) -> list[tuple[int, pa.Array]]:
        """`failed` records go along without their values until somebody diverts them."""
        streams: dict[int, tuple[pl.DataFrame, int]] = {0: (frame, failed)}
        found: list[tuple[int, pa.Array]] = []
        for i, step in enumerate(self.task.steps):
            came = streams[step.takes] if self.last_reader[step.takes] > i else streams.pop(step.takes)
            match step:
                case TransformStep():
                    streams[step.gives] = self._transform(step, *came)
                case RouteStep():
                    streams.update(self._route(step, *came))
                case JoinStep():
                    streams[step.gives] = self._join(step, *came)
                case MergeStep():
                    streams[step.gives] = self._merge(step, *came)
                case TotalsStep():
                    self._gathered(step, self.totals[i], *came)
                case WriteStep():
                    found += self._write(step, *came)
        return found

    def _transform(self, step: TransformStep, frame: pl.DataFrame, failed: int) -> tuple[pl.DataFrame, int]:
        batch = self._program(step).run(frame, failed)
        self._filtered(step, batch)
        checked, gone = self._checked(step, batch.frame, batch.failed)
        return self._settled(step.settle, checked, gone)

    def _filtered(self, step: TransformStep | TotalsStep | JoinStep, batch: Batch) -> None:
        for (rows, kept), (came, went) in zip(step.filters, batch.filters, strict=True):
            self.counts[rows] += came
            self.counts[kept] += went

    def _checked(self, step: TransformStep, frame: pl.DataFrame, failed: int) -> tuple[pl.DataFrame, int]:
        """The records that meet the conditions of a transform, and how many have failed so far."""
        for check in step.checks:
            before = frame.height
            met = self._program(check).run(frame).frame.filter(pl.col(OK_COLUMN)).drop(OK_COLUMN)
            if check.warned is not None:
                self.counts[check.warned] += before - met.height
            else:
                frame, failed = met, failed + before - met.height
        return frame, failed

    def _program(self, step: TransformStep | RouteStep | CheckStep) -> VectorProgram:
        return self._lowered(step.program, step.context)

    def _lowered(self, program: TypedProgram, context: Context) -> VectorProgram:
        if id(program) not in self.programs:
            self.programs[id(program)] = lower_program(program, context)
        return self.programs[id(program)]

    def _route(
        self, step: RouteStep, frame: pl.DataFrame, failed: int
    ) -> Iterator[tuple[int, tuple[pl.DataFrame, int]]]:
        """The streams of the ports that are read."""
        if step.came is not None:
            self.counts[step.came] += frame.height + failed
        batch: Batch = self._program(step).run(frame, failed)
        decided, _ = self._settled(step.settle, batch.frame, batch.failed)
        kept = [name for name in decided.columns if not name.startswith(PORT_COLUMN)]
        matches = []
        if step.inclusive:
            matches = [decided[f"{PORT_PREFIX}{i}"].fill_null(False) for i in range(len(step.ports) - 1)]
        rest = decided.select(kept)
        for i, stream in enumerate(step.ports):
            if stream is None:
                continue
            if not step.inclusive:
                taken = decided[PORT_COLUMN] == i
            elif i < len(matches):
                taken = matches[i]
            else:
                taken = pl.Series([True] * decided.height, dtype=pl.Boolean)
                for match in matches:
                    taken = taken & ~match
            yield stream, (rest.filter(taken), 0)

    def _join(self, step: JoinStep, frame: pl.DataFrame, failed: int) -> tuple[pl.DataFrame, int]:
        rules = Rules(step.first, step.on_miss)
        frame = frame.rename({name: f"{step.driver}.{name}" for name in frame.columns if name[0] != "$"})

        def lowered(program: TypedProgram) -> VectorProgram:
            return self._lowered(program, step.context)

        for lookup in step.lookups:
            frame, failed = self._settled(lookup.settle, *with_keys(lookup, frame, failed, lowered))
            frame, gone = joined(lookup, frame, rules, lowered, self.most_pairs)
            failed += gone
        batch = lowered(step.program).run(frame, failed)
        self._filtered(step, batch)
        kept = [name for name in batch.frame.columns if name[0] == "$" or name in step.columns]
        if step.pairs is not None:
            self.counts[step.pairs] += batch.frame.height + batch.failed
        return self._settled(step.settle, batch.frame.select(kept), batch.failed)

    def _merge(self, step: MergeStep, frame: pl.DataFrame, failed: int) -> tuple[pl.DataFrame, int]:
        if step.came is not None:
            self.counts[step.came] += frame.height + failed
        columns = [pl.col(name).cast(dtype_of(t)) for name, t in step.types if name in frame.columns]
        return frame.with_columns(columns), failed

    def _gathered(self, step: TotalsStep, parts: Parts, frame: pl.DataFrame, failed: int) -> None:
        if step.came is not None:
            self.counts[step.came] += frame.height + failed
        batch = parts.totals.rows.run(frame, failed)
        self._filtered(step, batch)
        frame, _ = self._settled(step.settle, batch.frame, batch.failed)
        self.ready += parts.add(frame)

    def _write(self, step: WriteStep, frame: pl.DataFrame, failed: int) -> list[tuple[int, pa.Array]]:
        lines, unfit = lines_of(frame, step.lines, "" if self.files is None else step.lines.separator)
        self.counts[step.ends.rows] += len(lines)
        self.counts[step.ends.failed] += failed + unfit
        if not len(lines):
            return []
        if self.files is not None:
            return [(step.number, lines)]
        text = lines.str.join(step.lines.separator)
        if before := step.lines.separator.removesuffix(LINE_END):
            text = text + before
        arrow = text.to_arrow(compat_level=pl.CompatLevel.oldest())
        return [(step.number, pc.cast(arrow, pa.string()))]


def _merged(batches: Iterable[pa.RecordBatch], enough: int) -> Iterator[pa.RecordBatch]:
    """Batches of a size that is worth the steps of a program."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= enough:
            yield pa.concat_batches(waiting) if len(waiting) > 1 else waiting[0]
            waiting = []
    if waiting:
        yield pa.concat_batches(waiting)
