"""Conditions outside of programs: the branches of a route, validations, joins.

>>> condition = compile_condition("price > 10", schema={"price": "float"})
>>> str(condition.value.type)
'Bool'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.span import Source
from clinker_spark.core.types import BOOL, INT, Kind
from clinker_spark.cxl import ir
from clinker_spark.cxl.check.infer.overloads import narrow, widen
from clinker_spark.cxl.errors import CxlError
from clinker_spark.cxl.program import Program, SchemaLike, compile

MAYBE = BOOL.as_nullable()


@dataclass(frozen=True)
class Condition:
    """A checked expression. That of a condition is a Bool, or null."""

    value: ir.TExpr
    program: Program


def compile_condition(
    source: str | Source, schema: SchemaLike | None = None, *, code: str = "E200", **options: Any
) -> Condition:
    """Compile a text that is one boolean expression. Raises `CxlError`; `code` is for one that is not boolean."""
    program = compile(source, schema, **options)
    text = program.typed.source
    value = only_expression(program, "a condition is one expression", "amount > 100")
    if value.type.kind not in (Kind.BOOL, Kind.ANY, Kind.NULL):
        message = f"a condition must be type Bool, got {value.type}"
        help_text = "write a comparison, for example amount > 100"
        raise CxlError("typecheck", [Diagnostic(code, message, text, value.span, help_text, phase="typecheck")])
    value = narrow(value, MAYBE) if value.type.is_dynamic else widen(value, MAYBE)
    return Condition(value, program)


def compile_value(source: str | Source, schema: SchemaLike | None = None, **options: Any) -> Condition:
    """Compile a text that is one expression, of any type. Raises `CxlError`."""
    program = compile(source, schema, **options)
    return Condition(only_expression(program, "a value is one expression", "price * 2"), program)


def only_expression(program: Program, message: str, example: str) -> ir.TExpr:
    """The expression that a program consists of. Raises `CxlError` when it is more, or none."""
    statements = program.typed.statements
    if len(statements) == 1 and isinstance(statements[0], ir.TBare):
        return statements[0].value
    span = statements[0].span if statements else None
    help_text = f"write only an expression, such as {example}"
    raise CxlError("parse", [Diagnostic("E202", message, program.typed.source, span, help_text)])


def as_program(schema: SchemaLike, columns: Sequence[tuple[str, ir.TExpr]]) -> Program:
    """A program that emits the given expressions, for the engine's own columns."""
    source = Source("<engine>", "")
    emits = tuple(ir.TEmit(value.span, None, name, f"engine{i}", value) for i, (name, value) in enumerate(columns))
    typed = ir.TypedProgram(source, dict(schema), emits, {name: value.type for name, value in columns})  # type: ignore[arg-type]
    return Program(typed)


def first_true(conditions: Sequence[Condition], otherwise: int) -> ir.TExpr:
    """The position of the first condition that is true, or `otherwise`. Later ones are not evaluated then."""
    values = tuple(condition.value for condition in conditions)
    places = tuple(ir.Const(value.span, INT, False, i) for i, value in enumerate(values))
    none = ir.Const(values[-1].span, INT, False, otherwise)
    return ir.If(values[0].span, INT, any(value.fallible for value in values), values, places, none)
