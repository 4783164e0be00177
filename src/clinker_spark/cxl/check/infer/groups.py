"""Typecheck, the expressions over many rows: aggregate functions and `$window` functions."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import ANY, BOOL, FLOAT, NULL, Kind, decimal
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.families.aggregates import AGGREGATES
from clinker_spark.cxl.builtins.families.windows import WINDOWS
from clinker_spark.cxl.check.infer.calls import operate
from clinker_spark.cxl.check.infer.inference import Inference
from clinker_spark.cxl.check.infer.operations import boolean, choose, compare
from clinker_spark.cxl.check.infer.overloads import narrow, widen
from clinker_spark.cxl.hidden import lookup_column
from clinker_spark.cxl.syntax import ast

SCALE_HELP = "say the scale where the column is read: type: decimal(2) in the schema of the source"
"""About decimals that come from texts, such as `to_decimal()`: each value has digits of its own."""


def aggregate_call(inference: Inference, e: ast.Call) -> ir.TExpr:
    """`sum(x)`, `count(*)`, ... Only in aggregate programs, never inside each other."""
    row = AGGREGATES[e.function]
    if inference.env.mode != "aggregate":
        return inference.error(
            f"aggregate function '{e.function}' is not allowed in a row-level transform",
            e.span,
            "use it in an aggregate node",
        )
    if inference.in_aggregate:
        return inference.error(
            f"aggregate function '{e.function}' cannot be nested in another one", e.span, "aggregate once"
        )
    if e.star and e.function != "count":
        return inference.error(f"'{e.function}(*)' is not possible; only count(*) is", e.span, None)
    if not row.arity[0] <= len(e.args) <= row.arity[1]:
        takes = " or ".join(str(n) for n in sorted(set(row.arity)))
        return inference.error(f"'{e.function}' takes {takes} arguments, but got {len(e.args)}", e.span, None)
    inference.in_aggregate = True
    args = tuple(inference.infer(a) for a in e.args)
    inference.in_aggregate = False
    result = row.result([a.type for a in args])
    if isinstance(result, str):
        help_text = "convert the argument to a type that it takes"
        if any(a.type.kind is Kind.DECIMAL and a.type.scale is None for a in args):
            help_text = SCALE_HELP
        return inference.error(result, e.span, help_text)
    if e.function in ("avg", "weighted_avg") and any(a.type.kind is Kind.DECIMAL for a in args):
        return _exact_average(inference, e, args)
    if e.function in ("sum", "avg", "weighted_avg"):
        args = tuple(narrow(a, FLOAT) if a.type.is_dynamic else _numbers(a) for a in args)
    fallible = row.loses_value([a.type for a in args]) or any(a.fallible for a in args)
    return ir.AggregateCall(e.span, result, fallible, e.function, args)


def _numbers(arg: ir.TExpr) -> ir.TExpr:
    return widen(arg, FLOAT) if arg.type.kind is Kind.NULL else arg


def _exact_average(inference: Inference, e: ast.Call, args: tuple[ir.TExpr, ...]) -> ir.TExpr:
    """A mean of decimals is an exact quotient of two aggregates."""
    if any(a.type.kind is Kind.FLOAT for a in args):
        return inference.error(
            f"'{e.function}' cannot mix Decimal and Float", e.span, "use .to_decimal() or .to_float() on one argument"
        )
    span = e.span
    value = args[0]
    if len(args) == 1:
        total = _sum(value, e)
        count = ir.AggregateCall(span, AGGREGATES["count"].result([value.type]), False, "count", args)  # type: ignore[arg-type]
        return operate(inference, "/", (total, count), span)
    weight = args[1]
    product = operate(inference, "*", (value, weight), span)
    is_null = ir.Compare(span, BOOL, False, "==", value, widen(ir.Const(span, NULL, False, None), value.type))
    counted = choose(is_null, ir.Const(span, NULL, False, None), weight, span)
    if product.type.scale is None:
        return inference.error("the product of value and weight has too many digits", span, "round with .round_to(2)")
    total, weights = _sum(product, e), _sum(counted, e)
    zero = compare(inference, "==", weights, ir.Const(span, decimal(0), False, Decimal(0)), span)
    quotient = operate(inference, "/", (total, weights), span)
    return choose(zero, ir.Const(span, NULL, False, None), quotient, span)


def _sum(value: ir.TExpr, e: ast.Call) -> ir.TExpr:
    t = value.type.unwrap().as_nullable()
    return ir.AggregateCall(e.span, t, True, "sum", (value,))


def window_call(inference: Inference, e: ast.WindowCall, field: ast.Member | None = None) -> ir.TExpr:
    """`$window.fn(args)`, with the `.field` that follows it."""
    if inference.env.window_schema is not None:
        return _lookup(inference, e, field)
    row = WINDOWS.get(e.function)
    if row is None:
        help_text = did_you_mean(e.function, WINDOWS) or "functions: " + ", ".join(WINDOWS)
        return inference.error(f"unknown window function $window.{e.function}()", e.name_span, help_text)
    wanted = {"none": 0, "row": 0}.get(row.argument, 1)
    if len(e.args) != wanted:
        return inference.error(f"$window.{e.function}() takes {wanted} arguments, but got {len(e.args)}", e.span, None)
    if row.argument in ("row", "offset"):
        return _row_reference(inference, e, field)
    if inference.window_row and row.argument != "none":
        return inference.error("a $window predicate cannot hold another $window function", e.span, None)
    args: tuple[ir.TExpr, ...] = ()
    if row.argument == "predicate":
        inference.window_row = True
        args = (_predicate(inference, e),)
        inference.window_row = False
    elif row.argument == "value":
        args = (inference.infer(e.args[0]),)
    result = row.result(args[0].type if args else NULL)
    if isinstance(result, str):
        return inference.error(f"$window.{e.function}() {result}", e.span, "convert the argument first")
    if row.argument == "value" and args[0].type.is_dynamic and result.kind is Kind.FLOAT:
        args = (narrow(args[0], FLOAT),)
    # Without an analytic window every record fails, so a window reference is always fallible.
    return ir.WindowRef(e.span, result, True, e.function, args, None)


_NEEDS_A_PLACE = ("row_number", "rank", "dense_rank", "cumulative_sum", "lag", "lead")
"""Functions about the place of a record in its partition. One that is not in it has none."""


def _lookup(inference: Inference, e: ast.WindowCall, field: ast.Member | None) -> ir.TExpr:
    """A function over other records: it sees their columns, and the program sees its value as a column."""
    if e.function in _NEEDS_A_PLACE:
        return inference.error(
            f"$window.{e.function}() needs a place among the records, and in another source this one has none",
            e.span,
            "use sum, avg, min, max, count, first, last, any, every, collect or distinct",
        )
    env = replace(inference.env, schema=inference.env.window_schema, window_schema=None)
    other = Inference(env, inference.rules)
    other.found = inference.found
    typed = window_call(other, e, field)
    if not isinstance(typed, ir.WindowRef):  # complained about already
        return typed
    inside = [part for arg in typed.args for part in arg.walk()]
    if any(part.fallible and not _float_operation(part) for part in inside):
        return inference.error(
            "what is computed for records of another source must not be able to fail here",
            e.span,
            "compute it in a transform after that source, and name that transform as the source",
        )
    if any(isinstance(part, ir.SystemRef) and part.namespace in ("source", "record", "doc") for part in inside):
        return inference.error("$source and $record belong to the records of this node", e.span, "name a column")
    inference.lookups.append(typed)
    return ir.Field(typed.span, typed.type, False, lookup_column(len(inference.lookups) - 1))


def _predicate(inference: Inference, e: ast.WindowCall) -> ir.TExpr:
    typed = inference.infer(e.args[0])
    if typed.type.kind in (Kind.BOOL, Kind.ANY, Kind.NULL):
        return boolean(inference, typed, f"$window.{e.function}")
    return inference.error(
        f"the predicate of $window.{e.function}() must be Bool, but got {typed.type}",
        e.args[0].span,
        "write a comparison",
    )


def window_field(inference: Inference, target: ast.WindowCall, member: ast.Member) -> ir.TExpr:
    """`$window.lag(1).price`."""
    row = WINDOWS.get(target.function)
    if row is not None and row.argument in ("row", "offset"):
        return window_call(inference, target, member)
    typed = window_call(inference, target)
    if typed.type.kind is Kind.ANY:
        return typed
    return inference.error(f"a {typed.type.unwrap()} has no field '{member.name}'", member.name_span, None)


def _row_reference(inference: Inference, e: ast.WindowCall, member: ast.Member | None) -> ir.TExpr:
    offset: tuple[ir.TExpr, ...] = ()
    if e.args:
        typed = inference.infer(e.args[0])
        if not (isinstance(typed, ir.Const) and isinstance(typed.value, int)):
            return inference.error(
                f"$window.{e.function}() needs a literal Int offset", e.args[0].span, "write a number"
            )
        offset = (typed,)
    if member is None:
        # Without a field there is nothing to read from the row.
        return ir.WindowRef(e.span, NULL, True, e.function, offset, None)
    schema = inference.env.schema
    if schema is not None and member.name not in schema:
        help_text = did_you_mean(member.name, schema)
        return inference.error(f"unknown field '{member.name}' in the window's rows", member.name_span, help_text)
    t = ANY if schema is None else schema[member.name]
    return ir.WindowRef(member.span, t.as_nullable(), True, e.function, offset, member.name)


def _float_operation(e: ir.TExpr) -> bool:
    """Arithmetic on floats, which fails only where it leaves their range: then whoever asks for the value fails."""
    return isinstance(e, ir.Call) and e.builtin.name in ("+", "-", "*") and e.type.kind is Kind.FLOAT
