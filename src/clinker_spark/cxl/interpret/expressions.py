"""The interpreter, expressions: a typed tree becomes nested Python functions over one record.

It serves `cxl eval`, the REPL, constant folding, previews without a JVM and the few operations that have no
Spark expression; and it is the second voice in the tests. Statements are in `statements.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from clinker_spark.core.span import Source, Span
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.calls import run_dynamic, run_overload
from clinker_spark.cxl.builtins.families.aggregates import AGGREGATES
from clinker_spark.cxl.builtins.families.windows import WINDOWS, Partition, overflow_message
from clinker_spark.cxl.builtins.physical import narrow_value, to_dynamic, widen_value
from clinker_spark.cxl.builtins.table import Builtin, Failure, Nulls, Overload
from clinker_spark.cxl.check.infer.overloads import may_overflow
from clinker_spark.cxl.construction import is_limited
from clinker_spark.cxl.errors import (
    DUPLICATE_KEY,
    NO_WINDOW,
    NULL_CONDITION,
    NULL_KEY,
    NULL_SOURCE,
    ErrorKind,
    EvalError,
    Fail,
)
from clinker_spark.cxl.interpret.frame import Evaluator, Frame, failure
from clinker_spark.cxl.interpret.statements import Statements
from clinker_spark.cxl.values import DECIMAL_OVERFLOW, decimal_fit, holds


def _explain(builtin: Builtin, overloads: Sequence[Overload], fail: Fail, span: Span) -> EvalError:
    rows: list[Failure] = [f for o in overloads for f in o.failures if f.kind is fail.kind]
    message = fail.message or (rows[0].message if rows else f"'{builtin.name}' failed: {fail.kind.value}")
    return failure(fail.kind, message, span, fail.value)


def compile_expr(e: ir.TExpr) -> Evaluator:
    """A function from a frame to the value of `e`; it raises `EvalError` when the record fails."""
    return _COMPILERS[type(e)](e)


def _const(e: ir.Const) -> Evaluator:
    value = e.value
    return lambda frame: value


def _field(e: ir.Field) -> Evaluator:
    name = e.name
    return lambda frame: frame.record.get(name)


def _slot(e: ir.Slot) -> Evaluator:
    slot = e.slot
    return lambda frame: frame.slots[slot]


def _system(e: ir.SystemRef) -> Evaluator:
    namespace, path = e.namespace, e.path
    return lambda frame: frame.context.get(namespace, path)


def _call(e: ir.Call) -> Evaluator:
    builtin, overload, span = e.builtin, e.overload, e.span
    args = [compile_expr(a) for a in e.args]

    def run(frame: Frame) -> Any:
        values_ = [a(frame) for a in args]
        try:
            return run_overload(builtin, overload, values_)
        except Fail as fail:
            raise _explain(builtin, (overload,), fail, span) from None

    scale = e.type.scale
    if builtin.nulls is Nulls.PROPAGATE or e.type.is_dynamic or scale is None:
        return run

    def at_scale(frame: Frame) -> Any:
        """What is null has no scale, and counts all the same."""
        value = run(frame)
        try:
            return None if value is None else decimal_fit(value, scale)
        except Fail as fail:
            offending = args[0](frame)
            raise _explain(builtin, (overload,), Fail(fail.kind, offending), span) from None

    return at_scale


def _dynamic_call(e: ir.DynamicCall) -> Evaluator:
    builtin, overloads, span, result = e.builtin, e.overloads, e.span, e.type
    args = [compile_expr(a) for a in e.args]

    def run(frame: Frame) -> Any:
        values_ = [a(frame) for a in args]
        try:
            value = run_dynamic(builtin, overloads, values_)
        except Fail as fail:
            raise _explain(builtin, overloads, fail, span) from None
        return to_dynamic(value) if result.is_dynamic else value

    return run


def _widen(e: ir.Widen) -> Evaluator:
    arg, a, b, span = compile_expr(e.arg), e.arg.type, e.type, e.span
    if not may_overflow(a, b):
        return lambda frame: widen_value(arg(frame), a, b)

    def run(frame: Frame) -> Any:
        value = arg(frame)
        try:
            return widen_value(value, a, b)
        except Fail as fail:
            raise failure(fail.kind, DECIMAL_OVERFLOW, span, value) from None

    return run


def _narrow(e: ir.Narrow) -> Evaluator:
    arg, to = compile_expr(e.arg), e.type
    return lambda frame: narrow_value(arg(frame), to)


def _compare(e: ir.Compare) -> Evaluator:
    op, left, right = e.op, compile_expr(e.left), compile_expr(e.right)
    return lambda frame: holds(op, left(frame), right(frame))


def _logic(e: ir.Logic) -> Evaluator:
    left, right = compile_expr(e.left), compile_expr(e.right)
    decides = e.op == "or"

    def run(frame: Frame) -> Any:
        a = left(frame)
        if a is decides:
            return decides
        b = right(frame)
        if b is decides:
            return decides
        return None if a is None or b is None else not decides

    return run


def _not(e: ir.Not) -> Evaluator:
    arg = compile_expr(e.arg)

    def run(frame: Frame) -> bool | None:
        value = arg(frame)
        return None if value is None else not value

    return run


def _coalesce(e: ir.Coalesce) -> Evaluator:
    left, right = compile_expr(e.left), compile_expr(e.right)

    def run(frame: Frame) -> Any:
        value = left(frame)
        return right(frame) if value is None else value

    return run


def _if(e: ir.If) -> Evaluator:
    branches = [(compile_expr(c), compile_expr(v)) for c, v in zip(e.conditions, e.values, strict=True)]
    otherwise = compile_expr(e.otherwise)
    if len(branches) == 1:
        first, then = branches[0]
        return lambda frame: then(frame) if first(frame) is True else otherwise(frame)

    def run(frame: Frame) -> Any:
        for condition, value in branches:
            if condition(frame) is True:
                return value(frame)
        return otherwise(frame)

    return run


def _let_in(e: ir.LetIn) -> Evaluator:
    slot, value, body = e.slot, compile_expr(e.value), compile_expr(e.body)

    def run(frame: Frame) -> Any:
        frame.slots[slot] = value(frame)
        return body(frame)

    return run


def _higher_order(e: ir.HigherOrder) -> Evaluator:
    method, slot = e.method, e.slot
    source, body = compile_expr(e.source), compile_expr(e.body)
    flatten_dynamic = e.body.type.is_dynamic

    def run(frame: Frame) -> Any:
        elements = source(frame)
        if elements is None:
            return None
        result: list[Any] = []
        with frame.loop():
            for element in elements:
                frame.slots[slot] = element
                value = body(frame)
                if method == "map":
                    result.append(value)
                elif method == "flat_map":
                    result.extend(value if isinstance(value, list) else [] if value is None else [value])
                elif value is True:
                    if method == "find":
                        return element
                    if method == "any":
                        return True
                    result.append(element)
        if method in ("find", "any"):
            return None if method == "find" else False
        return to_dynamic(result) if method == "flat_map" and flatten_dynamic else result

    return run


def _comprehend(e: ir.Comprehend) -> Evaluator:
    slot, span = e.slot, e.span
    source, value = compile_expr(e.source), compile_expr(e.value)
    condition = None if e.condition is None else compile_expr(e.condition)

    def run(frame: Frame) -> list[Any]:
        elements = source(frame)
        if elements is None:
            raise failure(ErrorKind.TYPE_MISMATCH, NULL_SOURCE, span)
        result: list[Any] = []
        with frame.loop():
            for element in elements:
                frame.slots[slot] = element
                if condition is not None:
                    keep = condition(frame)
                    if keep is None:
                        raise failure(ErrorKind.TYPE_MISMATCH, NULL_CONDITION, span)
                    if not keep:
                        continue
                result.append(value(frame))
        frame.charge(result, e)
        return result

    return run


def _make_array(e: ir.MakeArray) -> Evaluator:
    items = [compile_expr(item) for item in e.items]
    limited = is_limited(e)

    def run(frame: Frame) -> list[Any]:
        result = [item(frame) for item in items]
        if limited:
            frame.charge(result, e)
        return result

    return run


def _make_map(e: ir.MakeMap) -> Evaluator:
    entries = [(compile_expr(k), compile_expr(v)) for k, v in zip(e.keys, e.values, strict=True)]
    span, limited = e.span, is_limited(e)

    def run(frame: Frame) -> dict[str, Any]:
        pairs = [(k(frame), v(frame)) for k, v in entries]
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key is None:
                raise failure(ErrorKind.TYPE_MISMATCH, NULL_KEY, span)
            if key in result:
                raise failure(ErrorKind.DUPLICATE_MAP_KEY, DUPLICATE_KEY, span, key)
            result[key] = value
        if limited:
            frame.charge(result, e)
        return result

    return run


def _aggregate(e: ir.AggregateCall) -> Evaluator:
    row, span = AGGREGATES[e.function], e.span
    args = [compile_expr(a) for a in e.args]
    message = row.failure_for([a.type for a in e.args]).message if row.failures else ""

    def run(frame: Frame) -> Any:
        assert frame.group is not None
        rows = [tuple(a(member) for a in args) for member in frame.group]
        try:
            return row.run(rows)
        except Fail as fail:
            raise failure(fail.kind, message, span, fail.value) from None

    return run


def _window(e: ir.WindowRef) -> Evaluator:
    row, span, name = WINDOWS[e.function], e.span, e.field
    value: Evaluator
    if row.argument in ("row", "offset"):
        value = (lambda frame: None) if name is None else (lambda frame: frame.record.get(name))
    else:
        value = compile_expr(e.args[0]) if e.args else (lambda frame: None)
    offset = compile_expr(e.args[0]) if row.argument == "offset" else (lambda frame: 0)
    reads = ir.free_slots(e)

    def value_of(member: Frame, frame: Frame) -> Any:
        try:
            with member.loop():
                return value(member)
        except EvalError:
            if member is frame:
                raise
            return None  # another record's failure is its own; here it only has no value

    def run(frame: Frame) -> Any:
        if frame.partition is None:
            raise failure(ErrorKind.TYPE_MISMATCH, NO_WINDOW, span)
        # A record that was filtered before a let has no value for it to show.
        members = [m for m in frame.partition if reads <= m.slots.keys()]
        current = next(i for i, member in enumerate(members) if member is frame)
        partition = Partition([value_of(m, frame) for m in members], current, [m.sort_key for m in members])
        try:
            return row.run(partition, offset(frame))
        except Fail as fail:
            raise failure(fail.kind, overflow_message(row.name), span) from None

    return run


def _fan_out(e: ir.FanOut) -> Evaluator:
    program = ir.TypedProgram(Source("", ""), {}, (e.block,), e.output, max_expansion=e.max_expansion)
    block = Statements(program, compile_expr)

    def run(frame: Frame) -> list[dict[str, Any]]:
        rows = block.run(frame).rows
        # Exact digits survive the way through a dynamic value only as text.
        return [{k: str(v) if isinstance(v, Decimal) else v for k, v in row.items()} for row in rows]

    return run


_COMPILERS: dict[type[ir.TExpr], Callable[[Any], Evaluator]] = {
    ir.Const: _const,
    ir.Field: _field,
    ir.Slot: _slot,
    ir.SystemRef: _system,
    ir.Call: _call,
    ir.DynamicCall: _dynamic_call,
    ir.Widen: _widen,
    ir.Narrow: _narrow,
    ir.Compare: _compare,
    ir.Logic: _logic,
    ir.Not: _not,
    ir.Coalesce: _coalesce,
    ir.If: _if,
    ir.LetIn: _let_in,
    ir.HigherOrder: _higher_order,
    ir.Comprehend: _comprehend,
    ir.MakeArray: _make_array,
    ir.MakeMap: _make_map,
    ir.FanOut: _fan_out,
    ir.AggregateCall: _aggregate,
    ir.WindowRef: _window,
}
