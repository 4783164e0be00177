"""Binding analytic windows: over the records of the transform, or over those of another node."""

from __future__ import annotations

from clinker_spark.config.model.transform import AnalyticWindow
from clinker_spark.core.span import NO_SPAN
from clinker_spark.core.types import Kind, Type, unify
from clinker_spark.cxl import ir
from clinker_spark.cxl.check.infer.overloads import widen
from clinker_spark.cxl.conditions import as_program
from clinker_spark.cxl.hidden import lookup_column
from clinker_spark.cxl.program import Program
from clinker_spark.plan.bind.node import NodeBinder
from clinker_spark.plan.columns import LOOKUP_KEY_PREFIX
from clinker_spark.plan.nodes.base import Schema
from clinker_spark.plan.nodes.transform import WindowLookup, WindowPlan

_AT = ("config", "analytic_window")


def bind_window(
    binder: NodeBinder, spec: AnalyticWindow, schema: Schema, other: Schema | None, program: Program
) -> WindowPlan | None:
    """The window of a transform; None when it is wrong, which is noted then. `other` are the columns of the records
    that it looks into, if these are not its own."""
    keys = binder.binder.known.keys[binder.inputs[0].ref.node].columns  # $ck.aggregate.x, which users may name
    seen = {**schema, **keys} if other is None else other
    known = binder.known(seen, spec.group_by, *_AT, "group_by")
    known &= binder.known(seen, [item.field for item in spec.sort_by], *_AT, "sort_by")
    if not known:
        return None
    if spec.frame is not None and spec.frame.range is not None:
        by = spec.sort_by[0].field
        if seen[by].kind not in (Kind.DATE, Kind.DATETIME):
            message = f"'{by}' is {seen[by]}, and 'range' is a duration"
            binder.problem("E200", message, *_AT, "sort_by", 0, help="sort by a Date or DateTime, or use rows")
            return None
    lookup = None
    if other is not None:
        lookup = _bind_lookup(binder, spec, schema, other, program)
        if lookup is None:
            return None
    return WindowPlan(group_by=tuple(spec.group_by), sort_by=tuple(spec.sort_by), lookup=lookup, frame=spec.frame)


def _bind_lookup(
    binder: NodeBinder, spec: AnalyticWindow, schema: Schema, other: Schema, program: Program
) -> WindowLookup | None:
    mine = _keys(binder, spec, schema)
    if mine is None:
        return None
    here, there = [], []
    for i, (value, name) in enumerate(zip(mine, spec.group_by, strict=True)):
        shared = _shared(value.type, other[name])
        if shared is None:
            at = (*_AT, "on") if spec.on is not None else (*_AT, "group_by", i)
            message = f"{value.type} cannot be compared with '{name}' of '{spec.source}', which is {other[name]}"
            binder.problem("E200", message, *at, help="convert one of them in a transform before")
            return None
        column = f"{LOOKUP_KEY_PREFIX}{i}"
        here.append((column, widen(value, shared)))
        there.append((column, widen(ir.Field(NO_SPAN, other[name], False, name), shared)))
    values = [(lookup_column(i), ref) for i, ref in enumerate(program.typed.lookups)]
    return WindowLookup(
        schema=other,
        keys=as_program(schema, here),
        there=as_program(other, there),
        values=as_program(other, values),
    )


def _keys(binder: NodeBinder, spec: AnalyticWindow, schema: Schema) -> list[ir.TExpr] | None:
    """What is looked up: the expression of `on`, or the columns of the same names."""
    if spec.on is None:
        if not binder.known(schema, spec.group_by, *_AT, "group_by"):
            return None
        return [ir.Field(NO_SPAN, schema[name], False, name) for name in spec.group_by]
    key = binder.compile(*_AT, "on", schema=schema, value=True)
    return None if key is None else [key.value]


def _shared(a: Type, b: Type) -> Type | None:
    """A type in which values of both can be compared."""
    found = unify(a, b)
    if found is None or found.is_dynamic or found.kind in (Kind.ARRAY, Kind.MAP):
        return None
    return found.as_nullable()
