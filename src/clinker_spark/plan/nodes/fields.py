"""Which columns and system variables programs read."""

from __future__ import annotations

from collections.abc import Iterator

from clinker_spark.cxl import ir
from clinker_spark.cxl.program import Program


def fields_of(expression: ir.TExpr) -> set[str]:
    """The columns that an expression reads, those of other records in a window included."""
    names = {node.name for node in expression.walk() if isinstance(node, ir.Field)}
    return names | {n.field for n in expression.walk() if isinstance(n, ir.WindowRef) and n.field is not None}


def program_fields(*programs: Program) -> set[str]:
    """The columns that programs read or group by."""
    names: set[str] = set()
    for program in programs:
        names |= set(program.typed.group_by)
        for expression in program.typed.expressions():
            names |= fields_of(expression)
    return names


def copies(program: Program, name: str) -> bool:
    """Does a program emit a column as it is? `emit id = id` rewrites nothing."""
    emits = [s for s in program.typed.statements if isinstance(s, ir.TEmit) and s.name == name]
    return len(emits) == 1 and isinstance(emits[0].value, ir.Field) and emits[0].value.name == name


def written_variables(statements: tuple[ir.TStatement, ...]) -> Iterator[tuple[str, str]]:
    """The scoped variables that statements write: scope and name."""
    for statement in statements:
        if isinstance(statement, ir.TEmit) and statement.scope is not None:
            yield statement.scope, statement.name
        elif isinstance(statement, ir.TEach):
            yield from written_variables(statement.body)
