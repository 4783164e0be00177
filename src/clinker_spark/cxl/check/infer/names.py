"""Typing rules of names: fields, lets, system variables, and the names that a dot follows."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.core.span import Span
from clinker_spark.core.types import ANY, DATETIME, STRING, Kind
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins import methods
from clinker_spark.cxl.check.infer.calls import operate
from clinker_spark.cxl.check.infer.groups import window_field
from clinker_spark.cxl.check.infer.inference import Inference
from clinker_spark.cxl.check.infer.module_members import module_constant
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.system import META_MEMBERS, PIPELINE_MEMBERS, SOURCE_MEMBERS
from clinker_spark.cxl.values import type_of


def infer_name(inference: Inference, e: ast.Name) -> ir.TExpr:
    if e.name in inference.scope.macros:
        return _expand_macro(inference, e)
    known = inference.scope.names.get(e.name)
    if known is not None and not (inference.in_aggregate and getattr(known, "slot", None) in inference.group_values):
        return replace(known, span=e.span)
    schema = inference.env.schema
    if known is not None and schema is not None and e.name not in schema:
        return inference.error(
            f"'{e.name}' is a value of the whole group, which does not exist for a single record",
            e.span,
            "inside an aggregate function, name fields of the records",
        )
    return field(inference, e.name, e.span)


def _expand_macro(inference: Inference, e: ast.Name) -> ir.TExpr:
    macro = inference.scope.macros.pop(e.name)  # a let may not see itself
    typed = inference.infer(macro)
    inference.scope.macros[e.name] = macro
    return typed


def field(inference: Inference, name: str, span: Span) -> ir.TExpr:
    """A column of the record."""
    env = inference.env
    inference.seen_fields.setdefault(name)
    if env.mode == "aggregate" and not inference.in_aggregate and name not in env.group_by:
        return inference.error(
            f"field '{name}' must appear in the GROUP BY list or inside an aggregate function",
            span,
            f"add '{name}' to group_by, or write sum({name}), min({name}), collect({name}), ...",
        )
    return ir.Field(span, ANY if env.schema is None else env.schema.get(name, ANY), False, name)


def is_special(inference: Inference, e: ast.Member) -> bool:
    """Is this something else than a step into the value of its target?"""
    target = e.target
    if isinstance(target, ast.WindowCall):
        return True
    if not isinstance(target, ast.Name):
        return False
    if inference.env.dotted_field(target.name, e.name) is not None:
        return True
    if target.name in inference.scope.names or target.name in inference.scope.macros:
        return False
    return target.name in inference.scope.modules or (target.name == "it" and inference.window_row)


def infer_special(inference: Inference, e: ast.Member) -> ir.TExpr:
    """A member that `is_special`: of a window's row, an input of a combine, a module, or `it` in a window."""
    target = e.target
    if isinstance(target, ast.WindowCall):
        return window_field(inference, target, e)
    assert isinstance(target, ast.Name)
    # An input of a combine keeps its name, whatever the program emits under it.
    dotted = inference.env.dotted_field(target.name, e.name)
    if dotted is not None:
        return field(inference, dotted, e.span)
    if target.name in inference.scope.modules:
        return module_constant(inference, inference.scope.modules[target.name], e)
    return field(inference, e.name, e.span)


def infer_step(inference: Inference, e: ast.Member, target: ir.TExpr) -> ir.TExpr:
    """`target.name`, a step into a map."""
    if target.type.kind not in (Kind.MAP, Kind.ANY, Kind.NULL):
        t = target.type.unwrap()
        if e.name in methods():
            return inference.error(f"'{e.name}' is a method of {t}", e.name_span, f"call it: .{e.name}()")
        return inference.error(f"a {t} has no field '{e.name}'", e.name_span, "only maps have fields to step into")
    key = ir.Const(e.name_span, STRING, False, e.name)
    return operate(inference, "[]", (target, key), e.span)


def infer_now(inference: Inference, e: ast.Now) -> ir.TExpr:
    return ir.SystemRef(e.span, DATETIME, False, "now", ())


def infer_system(inference: Inference, e: ast.SystemVar) -> ir.TExpr:
    """`$vars.x`, `$source.row`, ..."""
    namespace, path, env = e.namespace, e.path, inference.env
    if namespace in ("vars", "config"):
        values = env.vars if namespace == "vars" else env.config or {}
        value = values.get(path[0])
        typed: ir.TExpr = ir.Const(e.span, type_of(value), False, value)
        for step in path[1:]:
            typed = operate(inference, "[]", (typed, ir.Const(e.span, STRING, False, step)), e.span)
        return typed
    written = inference.scoped.get((namespace, path[-1]))
    if written is not None and len(path) == 1:
        return replace(written, span=e.span)
    members = {"pipeline": PIPELINE_MEMBERS, "source": SOURCE_MEMBERS, "meta": META_MEMBERS}.get(namespace, {})
    declared = (env.declares or {}).get(namespace, {})
    t = members.get(path[-1]) or declared.get(".".join(path) if namespace == "doc" else path[-1]) or ANY
    of_record = ir.SystemRef(e.span, t.as_nullable(), False, namespace, path)
    if env.mode == "aggregate" and namespace in ("source", "meta", "doc") and not inference.in_aggregate:
        if namespace == "doc" and env.least_of_documents:
            return ir.AggregateCall(e.span, t.as_nullable(), False, "min", (of_record,))
        return inference.error(
            f"'${namespace}.{'.'.join(path)}' differs from row to row and has no value for a group",
            e.span,
            f"put it inside an aggregate function, for example min(${namespace}.{'.'.join(path)})",
        )
    return of_record
