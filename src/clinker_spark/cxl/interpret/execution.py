"""The interpreter, programs: a typed program over a stream of records, a window partition or groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from clinker_spark.core.recursion import deep_recursion
from clinker_spark.core.span import NO_SPAN
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.keys import partition_key, shown_key
from clinker_spark.cxl.errors import EvalError
from clinker_spark.cxl.interpret.expressions import compile_expr
from clinker_spark.cxl.interpret.frame import Frame
from clinker_spark.cxl.interpret.statements import Outcome, Output, Statements, Step, Tracer, checked_key, computed
from clinker_spark.cxl.system import Context


class Execution:
    """A program made ready to run. It remembers what `distinct` has seen, so use one per stream of records."""

    def __init__(self, program: ir.TypedProgram, context: Context, trace: Tracer | None = None) -> None:
        self.program = program
        self.context = context
        try:
            self._statements = Statements(program, compile_expr, trace)
            self._deep = False
        except RecursionError:  # making the functions takes more frames than calling them
            with deep_recursion():
                self._statements = Statements(program, compile_expr, trace)
            self._deep = True

    def run(self, record: Mapping[str, Any]) -> Outcome:
        """One record. Raises `EvalError` when it fails."""
        with deep_recursion() if self._deep else nullcontext():
            return self._statements.run(Frame(record, self.context))

    def run_window(self, records: Sequence[Mapping[str, Any]], sort_by: Sequence[str]) -> list[Outcome | EvalError]:
        """A whole partition, in order; the records see each other through `$window`."""
        frames = [Frame(r, self.context, sort_key=tuple(partition_key(r.get(k)) for k in sort_by)) for r in records]
        for frame in frames:
            frame.partition = frames
        with deep_recursion() if self._deep else nullcontext():
            return self._run_frames(frames)

    def _run_frames(self, frames: list[Frame]) -> list[Outcome | EvalError]:
        outputs = [Output() for _ in frames]
        ended: dict[int, Outcome | EvalError] = {}
        # statement by statement, so that earlier lets are known in every row
        for statement, step in zip(self.program.statements, self._statements.steps, strict=True):
            for i, frame in enumerate(frames):
                if i not in ended:
                    try:
                        outcome = self._statements.run(frame, [step], outputs[i])
                        if outcome.skipped:
                            ended[i] = outcome
                    except EvalError as error:
                        ended[i] = error
                if isinstance(ended.get(i), EvalError):
                    _show_in_windows(statement, step, frame)
        return [ended.get(i) or outputs[i].outcome() for i in range(len(frames))]

    def run_groups(self, records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """An aggregate program: one row per group, in order of first appearance."""
        with deep_recursion():
            return self._run_groups(records)

    def _run_groups(self, records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        filters = [compile_expr(s.predicate) for s in self.program.statements if isinstance(s, ir.TFilter)]
        emits = [(s, compile_expr(s.value)) for s in self.program.statements if isinstance(s, ir.TEmit)]
        groups: dict[Any, list[Frame]] = {}
        for record in records:
            frame = Frame(record, self.context, inside=1)
            if all(keep(frame) is True for keep in filters):
                groups.setdefault(self.group_of(record), []).append(frame)
        if not self.program.group_by and not groups:
            groups[()] = []
        rows = []
        for members in groups.values():
            first: Mapping[str, Any] = members[0].record if members else {}
            row = {name: shown_key(first.get(name)) for name in self.program.group_by}
            frame = Frame({**first, **row}, self.context, group=members, inside=1)
            for emit, value in emits:
                row[emit.name] = frame.slots[emit.slot] = computed(emit.name, value, frame)
            rows.append(row)
        return rows

    def group_of(self, record: Mapping[str, Any]) -> tuple[Any, ...]:
        """The key of the record's group; `EvalError` when one of its columns cannot be a key."""
        return tuple(checked_key(record.get(name), "group_by", NO_SPAN, name) for name in self.program.group_by)


def _show_in_windows(statement: ir.TStatement, step: Step, frame: Frame) -> None:
    """A failed record stays in its window: the others see the values it still has, null where it has none."""
    if isinstance(statement, ir.TLet | ir.TEmit):
        try:
            step(frame, Output())
        except EvalError:
            frame.slots[statement.slot] = None
