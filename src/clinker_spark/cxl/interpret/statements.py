"""The interpreter, statements: a typed program over one record, a stream, a window partition or groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.core.recursion import deep_recursion
from clinker_spark.core.span import NO_SPAN, Span
from clinker_spark.core.types import Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.text import to_text
from clinker_spark.cxl.check.overloads import shown_as
from clinker_spark.cxl.errors import ErrorKind, EvalError
from clinker_spark.cxl.interpret.expressions import Frame, compile_expr, failure
from clinker_spark.cxl.interpret.keys import bad_key, grouping_key, is_bad_key, partition_key, shown_key
from clinker_spark.cxl.system import Context

NOT_AN_ARRAY = "emit each needs an array to loop over"
Tracer = Callable[[str, str], None]


def expansion_message(limit: int) -> str:
    return f"emit each made more than {limit} records from one"


@dataclass
class Outcome:
    """What became of one record: its output rows, or why it was skipped, and the variables it wrote."""

    rows: list[dict[str, Any]]
    skipped: str | None = None  # "filtered" or "duplicate"
    fanned_out: bool = False
    scoped: dict[str, dict[str, Any]] = field(default_factory=dict)


class _Skip(Exception):
    def __init__(self, reason: str) -> None:
        self.reason = reason


@dataclass
class _Output:
    """The columns emitted so far on one path through the program."""

    columns: dict[str, Any]
    scoped: dict[str, dict[str, Any]]
    leaves: list[dict[str, Any]]
    fanned_out: bool = False


class Execution:
    """A program made ready to run. It remembers what `distinct` has seen, so use one per stream of records."""

    def __init__(self, program: ir.TypedProgram, context: Context, trace: Tracer | None = None) -> None:
        self.program = program
        self.context = context
        self.trace = trace
        self._seen: dict[int, set[Any]] = {}
        self._expanded = 0
        try:
            self._steps = [self._compile(s) for s in program.statements]
            self._deep = False
        except RecursionError:  # making the functions takes more frames than calling them
            with deep_recursion():
                self._steps = [self._compile(s) for s in program.statements]
            self._deep = True

    # ------------------------------------------------------------- running

    def run(self, record: Mapping[str, Any]) -> Outcome:
        """One record. Raises `EvalError` when it fails."""
        return self.run_in(Frame(record, self.context))

    def run_in(self, frame: Frame) -> Outcome:
        """One record whose frame is already filled."""
        if self._deep:
            with deep_recursion():
                return self._finish(frame, _Output({}, {}, []), self._steps)
        return self._finish(frame, _Output({}, {}, []), self._steps)

    def run_window(self, records: Sequence[Mapping[str, Any]], sort_by: Sequence[str]) -> list[Outcome | EvalError]:
        """A whole partition, in order; the records see each other through `$window`."""
        frames = [Frame(r, self.context, sort_key=tuple(partition_key(r.get(k)) for k in sort_by)) for r in records]
        for frame in frames:
            frame.partition = frames
        with deep_recursion() if self._deep else nullcontext():
            return self._run_frames(frames)

    def _run_frames(self, frames: list[Frame]) -> list[Outcome | EvalError]:
        outputs = [_Output({}, {}, []) for _ in frames]
        ended: dict[int, Outcome | EvalError] = {}
        # statement by statement, so that earlier lets are known in every row
        for statement, step in zip(self.program.statements, self._steps, strict=True):
            for i, frame in enumerate(frames):
                if i not in ended:
                    end = self._finish(frame, outputs[i], [step], last=False)
                    if isinstance(end, EvalError) or end.skipped:
                        ended[i] = end
                if isinstance(ended.get(i), EvalError):
                    self._show_in_windows(statement, step, frame)
        return [ended.get(i) or self._outcome(outputs[i]) for i in range(len(frames))]

    def _show_in_windows(self, statement: ir.TStatement, step: _Step, frame: Frame) -> None:
        """A failed record stays in its window: the others see the values it still has, null where it has none."""
        if isinstance(statement, ir.TLet | ir.TEmit):
            try:
                step(frame, _Output({}, {}, []))
            except EvalError:
                frame.slots[statement.slot] = None

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
                row[emit.name] = frame.slots[emit.slot] = _named(emit.name, value, frame)
            rows.append(row)
        return rows

    def group_of(self, record: Mapping[str, Any]) -> tuple[Any, ...]:
        """The key of the record's group; `EvalError` when one of its columns cannot be a key."""
        return tuple(_checked_key(record.get(name), "group_by", NO_SPAN, name) for name in self.program.group_by)

    def _finish(self, frame: Frame, out: _Output, steps: Sequence[_Step], last: bool = True) -> Outcome | Any:
        self._expanded = 0
        try:
            for step in steps:
                step(frame, out)
        except _Skip as skip:
            return Outcome([], skip.reason, out.fanned_out, out.scoped)
        except EvalError as error:
            if last:
                raise
            return error
        return self._outcome(out)

    @staticmethod
    def _outcome(out: _Output) -> Outcome:
        rows = out.leaves if out.fanned_out else [out.columns]
        return Outcome(rows, None, out.fanned_out, out.scoped)

    # ---------------------------------------------------------- statements

    def _compile(self, s: ir.TStatement) -> _Step:
        match s:
            case ir.TLet():
                return _store(s.slot, compile_expr(s.value))
            case ir.TEmit():
                return _scoped(s, compile_expr(s.value)) if s.scope else _emit(s, self.program.output.get(s.name))
            case ir.TFilter():
                return _filter(compile_expr(s.predicate))
            case ir.TDistinct():
                return self._distinct(s)
            case ir.TTrace():
                return self._trace(s)
            case ir.TBare():
                value = compile_expr(s.value)
                return lambda frame, out: value(frame)
            case ir.TEach():
                return self._each(s)
        raise AssertionError(s)

    def _distinct(self, s: ir.TDistinct) -> _Step:
        keys = [compile_expr(k) for k in s.keys]
        seen = self._seen.setdefault(id(s), set())

        def step(frame: Frame, out: _Output) -> None:
            found = [k(frame) for k in keys]
            key = tuple(_checked_key(value, "distinct", s.span) for value in found)
            if key in seen:
                raise _Skip("duplicate")
            seen.add(key)

        return step

    def _trace(self, s: ir.TTrace) -> _Step:
        condition = None if s.condition is None else compile_expr(s.condition)
        message = compile_expr(s.message)

        def step(frame: Frame, out: _Output) -> None:
            if condition is None or condition(frame) is True:
                text = to_text(message(frame))
                if self.trace is not None:
                    self.trace(s.level, text)

        return step

    def _each(self, s: ir.TEach) -> _Step:
        source = compile_expr(s.source)
        body = [self._compile(inner) for inner in s.body]
        nested = any(isinstance(inner, ir.TEach) for inner in s.body)
        limit = self.program.max_expansion

        def step(frame: Frame, out: _Output) -> None:
            out.fanned_out = True
            elements = source(frame)
            if elements is not None and not isinstance(elements, list):
                raise failure(ErrorKind.TYPE_MISMATCH, NOT_AN_ARRAY, s.span, elements)
            for element in (elements or []) or ([None] if s.outer else []):
                if not nested:
                    self._expanded += 1
                    if self._expanded > limit:
                        raise failure(ErrorKind.EXPANSION_LIMIT_EXCEEDED, expansion_message(limit), s.span)
                frame.slots[s.slot] = element
                inner = _Output(dict(out.columns), out.scoped, [])
                with frame.loop():
                    for each in body:
                        each(frame, inner)
                out.leaves.extend(inner.leaves if nested else [inner.columns])

        return step


_Step = Callable[[Frame, _Output], Any]


def _named(name: str, value: Callable[[Frame], Any], frame: Frame) -> Any:
    try:
        return value(frame)
    except EvalError as error:
        error.field = error.field or name
        raise


def _checked_key(value: Any, statement: str, span: Span, field: str | None = None) -> Any:
    if is_bad_key(value):
        error = failure(ErrorKind.TYPE_MISMATCH, bad_key(statement), span, value)
        error.field = field
        raise error
    return grouping_key(value)


def _store(slot: str, value: Callable[[Frame], Any]) -> _Step:
    def step(frame: Frame, out: _Output) -> None:
        frame.slots[slot] = value(frame)

    return step


def _emit(s: ir.TEmit, to: Type | None) -> _Step:
    """Later statements read the value as it is; its column may be of a wider type, if blocks emit others."""
    value, slot, column = compile_expr(s.value), s.slot, s.name
    shown = compile_expr(shown_as(s.value, slot, to or s.value.type))

    def step(frame: Frame, out: _Output) -> None:
        frame.slots[slot] = _named(column, value, frame)
        out.columns[column] = _named(column, shown, frame)

    return step


def _scoped(s: ir.TEmit, value: Callable[[Frame], Any]) -> _Step:
    scope = s.scope or ""

    def step(frame: Frame, out: _Output) -> None:
        result = _named(f"${scope}.{s.name}", value, frame)
        frame.slots[s.slot] = result
        out.scoped.setdefault(scope, {})[s.name] = result

    return step


def _filter(predicate: Callable[[Frame], Any]) -> _Step:
    def step(frame: Frame, out: _Output) -> None:
        if predicate(frame) is not True:
            raise _Skip("filtered")

    return step
