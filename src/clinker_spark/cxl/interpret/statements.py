"""The interpreter, statements: each becomes a step, a function over a record and what it has emitted so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.core.span import Span
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.keys import bad_key, grouping_key, is_bad_key
from clinker_spark.cxl.builtins.text import to_text
from clinker_spark.cxl.check.infer.overloads import shown_as
from clinker_spark.cxl.errors import NOT_AN_ARRAY, ErrorKind, EvalError, expansion_message
from clinker_spark.cxl.interpret.frame import Compiler, Evaluator, Frame, failure

Tracer = Callable[[str, str], None]


@dataclass
class Outcome:
    """What became of one record: its output rows, or why it was skipped, and the variables it wrote."""

    rows: list[dict[str, Any]]
    skipped: str | None = None  # "filtered" or "duplicate"
    fanned_out: bool = False
    scoped: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass
class Output:
    """The columns emitted so far on one path through the program."""

    columns: dict[str, Any] = field(default_factory=dict)
    scoped: dict[str, dict[str, Any]] = field(default_factory=dict)
    leaves: list[dict[str, Any]] = field(default_factory=list)
    fanned_out: bool = False

    def outcome(self) -> Outcome:
        return Outcome(self.leaves if self.fanned_out else [self.columns], None, self.fanned_out, self.scoped)


Step = Callable[[Frame, Output], Any]


class _Skip(Exception):
    def __init__(self, reason: str) -> None:
        self.reason = reason


class Statements:
    """The statements of a program made ready to run, their expressions by `compile`.

    They remember what `distinct` has seen, so use one per stream of records."""

    def __init__(self, program: ir.TypedProgram, compile: Compiler, trace: Tracer | None = None) -> None:
        self.program = program
        self.compile = compile
        self.trace = trace
        self._seen: dict[int, set[Any]] = {}
        self._expanded = 0
        self.steps = [self._step(s) for s in program.statements]

    def run(self, frame: Frame, steps: Sequence[Step] | None = None, out: Output | None = None) -> Outcome:
        """Some of the steps (all of them by default) on one record. Raises `EvalError` when it fails."""
        out = out or Output()
        self._expanded = 0
        try:
            for step in self.steps if steps is None else steps:
                step(frame, out)
        except _Skip as skip:
            return Outcome([], skip.reason, out.fanned_out, out.scoped)
        return out.outcome()

    def _step(self, s: ir.TStatement) -> Step:
        match s:
            case ir.TLet():
                return _store(s.slot, self.compile(s.value))
            case ir.TEmit():
                return _scoped(s, self.compile(s.value)) if s.scope else self._emit(s)
            case ir.TFilter():
                return _filter(self.compile(s.predicate))
            case ir.TDistinct():
                return self._distinct(s)
            case ir.TTrace():
                return self._trace(s)
            case ir.TBare():
                value = self.compile(s.value)
                return lambda frame, out: value(frame)
            case ir.TEach():
                return self._each(s)
        raise AssertionError(s)

    def _distinct(self, s: ir.TDistinct) -> Step:
        keys = [self.compile(k) for k in s.keys]
        seen = self._seen.setdefault(id(s), set())

        def step(frame: Frame, out: Output) -> None:
            found = [k(frame) for k in keys]
            key = tuple(checked_key(value, "distinct", s.span) for value in found)
            if key in seen:
                raise _Skip("duplicate")
            seen.add(key)

        return step

    def _trace(self, s: ir.TTrace) -> Step:
        condition = None if s.condition is None else self.compile(s.condition)
        message = self.compile(s.message)

        def step(frame: Frame, out: Output) -> None:
            if condition is None or condition(frame) is True:
                text = to_text(message(frame))
                if self.trace is not None:
                    self.trace(s.level, text)

        return step

    def _each(self, s: ir.TEach) -> Step:
        source = self.compile(s.source)
        body = [self._step(inner) for inner in s.body]
        nested = any(isinstance(inner, ir.TEach) for inner in s.body)
        limit = self.program.max_expansion

        def step(frame: Frame, out: Output) -> None:
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
                inner = Output(dict(out.columns), out.scoped)
                with frame.loop():
                    for each in body:
                        each(frame, inner)
                out.leaves.extend(inner.leaves if nested else [inner.columns])

        return step

    def _emit(self, s: ir.TEmit) -> Step:
        """Later statements read the value as it is; its column may be of a wider type, if blocks emit others."""
        value, slot, column = self.compile(s.value), s.slot, s.name
        shown = self.compile(shown_as(s.value, slot, self.program.output.get(column) or s.value.type))

        def step(frame: Frame, out: Output) -> None:
            frame.slots[slot] = computed(column, value, frame)
            out.columns[column] = computed(column, shown, frame)

        return step


def computed(name: str, value: Evaluator, frame: Frame) -> Any:
    """A value for the column `name`, which its failure will tell."""
    try:
        return value(frame)
    except EvalError as error:
        error.field = error.field or name
        raise


def checked_key(value: Any, statement: str, span: Span, field: str | None = None) -> Any:
    """A value as a key of `statement`; `EvalError` when it cannot be one."""
    if is_bad_key(value):
        error = failure(ErrorKind.TYPE_MISMATCH, bad_key(statement), span, value)
        error.field = field
        raise error
    return grouping_key(value)


def _store(slot: str, value: Evaluator) -> Step:
    def step(frame: Frame, out: Output) -> None:
        frame.slots[slot] = value(frame)

    return step


def _scoped(s: ir.TEmit, value: Evaluator) -> Step:
    scope = s.scope or ""

    def step(frame: Frame, out: Output) -> None:
        result = computed(f"${scope}.{s.name}", value, frame)
        frame.slots[s.slot] = result
        out.scoped.setdefault(scope, {})[s.name] = result

    return step


def _filter(predicate: Evaluator) -> Step:
    def step(frame: Frame, out: Output) -> None:
        if predicate(frame) is not True:
            raise _Skip("filtered")

    return step
