"""Aggregate programs in Polars: what is added up of each record, and which totals are made of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from clinker_spark.core.span import NO_SPAN
from clinker_spark.core.types import Kind
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.keys import bad_key
from clinker_spark.cxl.errors import ErrorKind
from clinker_spark.cxl.system import Context
from clinker_spark.cxl.vector.lowering import Failing
from clinker_spark.cxl.vector.program import Statements, VectorProgram

KEY, ARG = "k", "a"
"""What the columns of keys and arguments begin with; their numbers follow."""


@dataclass(frozen=True)
class Total:
    """One call: its function, and the column of its argument with the kind of its values; `count(*)` has none."""

    function: str
    arg: int | None = None
    kind: Kind = Kind.NULL


@dataclass(frozen=True)
class VectorTotals:
    """`rows` sets aside and filters records, and gives the columns of keys and arguments of the others."""

    rows: VectorProgram
    keys: int
    args: int
    totals: tuple[Total, ...]

    @property
    def columns(self) -> list[str]:
        """The columns of keys and arguments."""
        return [*(f"{KEY}{i}" for i in range(self.keys)), *(f"{ARG}{i}" for i in range(self.args))]


def lower_totals(program: ir.TypedProgram, context: Context) -> VectorTotals:
    """An aggregate program that has a vector form (`reasons.totals_reason`)."""
    args, totals = totals_of(program)
    rows = _Rows(program, args, context).run()
    return VectorTotals(rows, len(program.group_by), len(args), totals)


def one_zero(value: pl.Expr) -> pl.Expr:
    """The same with 0.0 for -0.0: to add 0.0 changes nothing in Polars."""
    return pl.when(value == 0.0).then(0.0).otherwise(value)


def totals_of(program: ir.TypedProgram) -> tuple[list[ir.TExpr], tuple[Total, ...]]:
    """The arguments of all calls, columns of the records once, and the calls."""
    args: list[ir.TExpr] = []
    fields: dict[str, int] = {}
    totals = []
    for call in ir.aggregate_calls(program):
        if not call.args:
            totals.append(Total(call.function))
            continue
        [arg] = call.args
        number = fields.get(arg.name) if isinstance(arg, ir.Field) else None
        if number is None:
            number = len(args)
            args.append(arg)
            if isinstance(arg, ir.Field):
                fields[arg.name] = number
        totals.append(Total(call.function, number, arg.type.kind))
    return args, tuple(totals)


class _Rows(Statements):
    """What happens to a record before it is added up."""

    def __init__(self, program: ir.TypedProgram, args: Sequence[ir.TExpr], context: Context) -> None:
        super().__init__(program, context, texts=False)
        self.args = args

    def statements(self) -> None:
        for statement in self.program.statements:
            if isinstance(statement, ir.TFilter):
                self.statement(statement)
        for i, name in enumerate(self.program.group_by):
            t = self.program.schema[name]
            value = self.lowering.bound(ir.Field(NO_SPAN, t, False, name))
            key = value.expr
            if t.kind is Kind.FLOAT:
                key = one_zero(key)
                bad = value.expr.is_nan().fill_null(False)
                self.failures.append(
                    Failing(bad, ErrorKind.TYPE_MISMATCH.value, bad_key("group_by"), None, value.level)
                )
            self.outputs[f"{KEY}{i}"] = key
        for i, arg in enumerate(self.args):
            value = self.lowering.column(self.lowering.lower(arg))
            self.failures += value.failures
            self.outputs[f"{ARG}{i}"] = value.expr

    def output_names(self) -> list[str]:
        return list(self.outputs)
