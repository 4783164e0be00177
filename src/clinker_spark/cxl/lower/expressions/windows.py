"""Lowering `$window` functions to OVER expressions."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.core.types import Kind
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.families.windows import WINDOWS, overflow_message
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.errors import NO_WINDOW, ErrorKind
from clinker_spark.cxl.lower.errors import failing
from clinker_spark.cxl.lower.lowering import Lowering
from clinker_spark.cxl.lower.plan import Sql


def lower_window(lowering: Lowering, e: ir.WindowRef) -> Sql:
    row = WINDOWS[e.function]
    nothing = f"CAST(NULL AS {physical(e.type)})"
    if lowering.window is None:
        return Sql(nothing, failures=(failing("TRUE", ErrorKind.TYPE_MISMATCH, NO_WINDOW),), simple=True)
    clauses = lowering.window.clauses()
    if row.argument in ("row", "offset"):
        if e.field is None:
            return Sql(nothing, simple=True)
        x = lowering.bound(ir.Field(e.span, e.type, False, e.field))
    elif e.args:
        x = lowering.bound(e.args[0])
        x = replace(x, text=row.prepare(x.text, e.args[0].type))
    else:
        x = Sql("")
    if x.text and "{whole}" in row.sql and lowering.window.frame.by_values:
        x = _in_full_order(lowering, x, clauses["ranked"])
    offset = e.args[0].value if row.argument == "offset" and isinstance(e.args[0], ir.Const) else 0
    is_double = bool(e.args) and e.args[0].type.kind is Kind.FLOAT and not e.args[0].type.is_dynamic
    double = x.text if is_double else f"CAST({x.text} AS DOUBLE)"
    text = row.sql.format(x=x.text, double=double, n=offset, **clauses)
    # A window expression ends a projection of its own; nothing else may be fused into it.
    result = lowering.builder.bind(Sql(text, x.level, 2, x.failures))
    if not row.finite or e.args[0].type.kind is not Kind.FLOAT:
        return result
    finite = lowering.builder.bind(Sql(row.finite.format(x=x.text, **clauses), x.level, 2))
    beyond = failing(
        f"abs({result.text}) = double('Infinity') AND {finite.text}",
        ErrorKind.INTEGER_OVERFLOW,
        overflow_message(row.name),
        max(result.level, finite.level),
    )
    return replace(result, failures=(*result.failures, beyond))


def _in_full_order(lowering: Lowering, x: Sql, ranked: str) -> Sql:
    """The same value, after a window that sorts ties by their arrival. What sorts by less than that finds its rows in
    order and leaves them so; sums of floats and lists would else depend on how ties happen to lie."""
    number = lowering.builder.bind(Sql(f"row_number() OVER {ranked}", x.level, 2))
    text = f"IF({number.text} > 0, {x.text}, NULL)"
    return lowering.builder.bind(Sql(text, max(x.level, number.level), 2, x.failures))
