"""Typing rules of loops over arrays: methods with a closure, and comprehensions."""

from __future__ import annotations

from clinker_spark.core.types import ANY, Kind, Type, array_of
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.families.collections import HIGHER_ORDER
from clinker_spark.cxl.builtins.physical import narrow_value
from clinker_spark.cxl.check.infer.inference import Inference
from clinker_spark.cxl.check.infer.operations import boolean
from clinker_spark.cxl.check.infer.overloads import narrow, widen
from clinker_spark.cxl.syntax import ast


def infer_higher_order(inference: Inference, e: ast.MethodCall, receiver: ir.TExpr) -> ir.TExpr:
    """`items.map(it => ...)` and its kin."""
    row = HIGHER_ORDER[e.method]
    if len(e.args) != 1 or not isinstance(e.args[0], ast.Closure):
        return inference.error(f"method '{e.method}' takes one closure", e.span, f"write .{e.method}(it => ...)")
    t = receiver.type
    if t.kind not in (Kind.ARRAY, Kind.ANY, Kind.NULL):
        return inference.error(f"method '{e.method}' expects an Array receiver, but got {t}", e.receiver.span, None)
    source, element = _elements(inference, receiver, f"'{e.method}'")
    slot = inference.new_slot("it")
    with inference.bound("it", ir.Slot(e.args[0].span, element, False, slot)):
        body = inference.infer(e.args[0].body)
        if row.predicate:
            body = boolean(inference, body, e.method)
    result = row.result_type(element, body.type)
    if source.type.nullable or source.type.kind is Kind.NULL:
        result = result.as_nullable()
    return ir.HigherOrder(e.span, result, source.fallible or body.fallible, e.method, source, slot, element, body)


def infer_comprehension(inference: Inference, e: ast.Comprehension) -> ir.TExpr:
    source, element = _elements(inference, inference.infer(e.source), "a comprehension")
    slot = inference.new_slot(e.binding)
    with inference.bound(e.binding, ir.Slot(e.binding_span, element, False, slot)):
        condition = None if e.condition is None else boolean(inference, inference.infer(e.condition), "if")
        value = inference.infer(e.value)
    return ir.Comprehend(e.span, array_of(value.type), True, source, slot, element, condition, value)


def infer_closure(inference: Inference, e: ast.Closure) -> ir.TExpr:
    message = "a closure can only be an argument of filter, map, find, any or flat_map"
    return inference.error(message, e.span, "remove `it =>`")


def _elements(inference: Inference, source: ir.TExpr, what: str) -> tuple[ir.TExpr, Type]:
    """A source to loop over, as an array, and its element type."""
    t = source.type
    if t.kind is Kind.NULL:
        return widen(source, array_of(ANY)), ANY
    if t.is_dynamic and isinstance(source, ir.Const):
        value = narrow_value(source.value, array_of(ANY))
        return ir.Const(source.span, array_of(ANY).as_nullable(), False, value), ANY
    if t.is_dynamic and t.kind in (Kind.ANY, Kind.ARRAY):
        inference.use_as(source, array_of(ANY), source.span)
        return narrow(source, array_of(ANY)), ANY
    if t.kind is Kind.ARRAY:
        return source, (t.element or ANY).as_nullable()
    return inference.error(f"{what} needs an Array, but got {t}", source.span, "loop over an array"), ANY
