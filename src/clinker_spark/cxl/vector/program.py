"""A program over a batch of records, in steps of Polars: what fails is diverted, what is filtered is counted."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from clinker_spark.core.recursion import deep_recursion
from clinker_spark.cxl import ir
from clinker_spark.cxl.check.infer.overloads import shown_as, traced
from clinker_spark.cxl.hidden import BOUND_PREFIX, ERROR_COLUMN
from clinker_spark.cxl.system import Context
from clinker_spark.cxl.vector.lowering import Failing, Lowering, Value

_NO_TEXT = pl.lit(None, dtype=pl.String)


@dataclass(frozen=True)
class Columns:
    """Add columns, all computed from those that are there."""

    exprs: tuple[pl.Expr, ...]


@dataclass(frozen=True)
class Divert:
    """Records for which the flag is true go no further."""

    flag: str


@dataclass(frozen=True)
class Keep:
    """Only records for which the condition is true."""

    condition: pl.Expr


Step = Columns | Divert | Keep


@dataclass
class Batch:
    """What became of the records of a batch."""

    frame: pl.DataFrame
    failed: int = 0
    filters: list[tuple[int, int]] = field(default_factory=list)
    """For each filter: the records that came there, failed ones included, and those that went on."""
    rejected: list[pl.DataFrame] = field(default_factory=list)
    """The records that failed, with `$error` where it was asked for."""


@dataclass(frozen=True)
class VectorProgram:
    """A lowered program: steps, and the emitted columns by name."""

    steps: tuple[Step, ...]
    outputs: Mapping[str, pl.Expr]

    def run(self, frame: pl.DataFrame, failed: int = 0) -> Batch:
        """The records with what is emitted added or replaced. `failed` have failed before and are only counted."""
        batch = Batch(frame, failed)
        frame = batch.frame
        for step in self.steps:
            match step:
                case Columns(exprs=exprs):
                    frame = frame.with_columns(exprs)
                case Divert(flag=flag):
                    bad = frame[flag]
                    if bad.any():
                        batch.rejected.append(frame.filter(bad))
                        batch.failed += batch.rejected[-1].height
                        frame = frame.filter(~bad)
                case Keep(condition=condition):
                    before = frame.height
                    frame = frame.filter(condition)
                    batch.filters.append((before + batch.failed, frame.height + batch.failed))
        if self.outputs:
            frame = frame.with_columns(**self.outputs)
        batch.frame = frame.drop([name for name in frame.columns if name.startswith(BOUND_PREFIX)])
        return batch


def lower_program(program: ir.TypedProgram, context: Context, *, texts: bool = False) -> VectorProgram:
    """A program that has a vector form (`reasons`). With `texts`, errors say what they are; runs only count them."""
    return Statements(program, context, texts).run()


class Statements:
    """The statements of a program, one after the other."""

    def __init__(self, program: ir.TypedProgram, context: Context, texts: bool) -> None:
        self.program = program
        self.texts = texts
        numbers = itertools.count()
        self.lowering = Lowering(context, lambda: f"{BOUND_PREFIX}{next(numbers)}")
        self.steps: list[Step] = []
        self.outputs: dict[str, pl.Expr] = {}
        self.failures: list[Failing] = []
        self._flags = 0

    def run(self) -> VectorProgram:
        with deep_recursion():
            self.statements()
            self._divert()
        self._flush()
        outputs = {name: self.outputs[name] for name in self.output_names() if name in self.outputs}
        return VectorProgram(tuple(self.steps), outputs)

    def statements(self) -> None:
        for statement in self.program.statements:
            self.statement(statement)

    def output_names(self) -> Iterable[str]:
        return self.program.output

    def statement(self, s: ir.TStatement) -> None:
        match s:
            case ir.TLet():
                self.lowering.slots[s.slot] = self._value(s.value, None)
            case ir.TEmit():
                self.lowering.slots[s.slot] = self._value(s.value, s.name)
                shown = shown_as(s.value, s.slot, self.program.output[s.name])
                self.outputs[s.name] = self._value(shown, s.name).expr
            case ir.TFilter():
                predicate = self._value(s.predicate, None)
                self._divert()
                self._flush()
                self.steps.append(Keep(predicate.expr))
            case ir.TTrace():
                if (message := traced(s)).fallible:
                    self._value(message, None)
            case ir.TBare():
                if s.value.fallible:
                    self._value(s.value, None)
            case _:
                raise TypeError(f"{type(s).__name__} has no vector form")

    def _value(self, e: ir.TExpr, name: str | None) -> Value:
        value = self.lowering.bound(e)
        self.failures += [replace(f, field=name) for f in value.failures]
        return value.bare()

    def _flush(self) -> None:
        self.steps += [Columns(tuple(exprs)) for exprs in self.lowering.taken_levels()]

    def _divert(self) -> None:
        """Divert what has failed so far."""
        if not self.failures:
            return
        flag = f"{BOUND_PREFIX}f{self._flags}"
        self._flags += 1
        level = max(f.level for f in self.failures)
        found = pl.any_horizontal([f.when for f in self.failures]).alias(flag)
        self._flush()
        columns = [found]
        if self.texts:
            columns.append(_first(self.failures).alias(ERROR_COLUMN))
        self.steps += [Columns(tuple(columns)), Divert(flag)]
        assert level <= self.lowering.first
        self.failures = []


def _first(failures: Sequence[Failing]) -> pl.Expr:
    """The first failure that holds, as a struct."""
    found: pl.Expr = pl.lit(None)
    for f in reversed(failures):
        value = _NO_TEXT if f.value is None else f.value
        field_ = pl.lit(f.field, dtype=pl.String)
        error = pl.struct(kind=pl.lit(f.kind), field=field_, value=value, message=pl.lit(f.message))
        found = pl.when(f.when).then(error).otherwise(found)
    return found
