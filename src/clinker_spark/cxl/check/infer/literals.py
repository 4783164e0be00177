"""Typing rules of what is written out: constants, arrays and maps."""

from __future__ import annotations

from collections.abc import Sequence

from clinker_spark.core.types import ANY, STRING, Kind, Type, array_of, map_of, unify
from clinker_spark.cxl import ir
from clinker_spark.cxl.check.infer.inference import Inference
from clinker_spark.cxl.check.infer.overloads import narrow, widen
from clinker_spark.cxl.construction import is_limited
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.values import type_of


def infer_literal(inference: Inference, e: ast.Literal) -> ir.TExpr:
    return ir.Const(e.span, type_of(e.value), False, e.value)


def infer_array(inference: Inference, e: ast.ArrayLiteral) -> ir.TExpr:
    items = [inference.infer(item) for item in e.items]
    element = _common(items)
    widened = tuple(widen(item, element) for item in items)
    t = array_of(element)
    made = ir.MakeArray(e.span, t, any(i.fallible for i in widened), widened)
    if is_limited(made):
        made.fallible = True
    elif all(isinstance(item, ir.Const) for item in widened):
        return ir.Const(e.span, t, False, [item.value for item in widened if isinstance(item, ir.Const)])
    return made


def infer_map(inference: Inference, e: ast.MapLiteral) -> ir.TExpr:
    keys = [_key(inference, entry.key) for entry in e.entries]
    values = [inference.infer(entry.value) for entry in e.entries]
    element = _common(values)
    widened = tuple(widen(value, element) for value in values)
    t = map_of(element)
    computed = any(entry.computed for entry in e.entries)
    fallible = computed or any(x.fallible for x in (*keys, *widened))
    made = ir.MakeMap(e.span, t, fallible, tuple(keys), widened)
    if is_limited(made):
        made.fallible = True
    elif not computed and all(isinstance(v, ir.Const) for v in widened):
        pairs = zip(keys, widened, strict=True)
        return ir.Const(e.span, t, False, {k.value: v.value for k, v in pairs})  # type: ignore[attr-defined]
    return made


def _key(inference: Inference, e: ast.Expr) -> ir.TExpr:
    key = inference.infer(e)
    if key.type.kind is Kind.ANY and key.type.is_dynamic:
        return narrow(key, STRING)
    if key.type.kind is not Kind.STRING:
        return inference.error(f"a map key must be a String, but got {key.type}", e.span, "use .to_string()")
    return key


def _common(items: Sequence[ir.TExpr]) -> Type:
    """One element type for the items of a literal: theirs when all are of one kind, else Any."""
    merged: Type | None = None
    for item in items:
        t = item.type
        if merged is None:
            merged = t
        elif merged.kind is t.kind or Kind.NULL in (merged.kind, t.kind):
            merged = unify(merged, t) or ANY
        else:
            return ANY
    return ANY if merged is None or merged.kind is Kind.NULL or merged.is_dynamic else merged
