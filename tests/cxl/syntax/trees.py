"""Syntax trees as short text, for tests: `(+ a (* b 2))`. Spans are left out."""

from __future__ import annotations

import datetime
from typing import Any

from clinker_spark.core.span import Source
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.syntax.parser import parse, parse_expression


def tree(text: str) -> str:
    """The statements of a program that must parse, joined with ` ; `."""
    program, problems = parse(Source("test", text))
    assert not problems, [problem.message for problem in problems]
    return " ; ".join(show(statement) for statement in program.statements)


def expression(text: str) -> str:
    node, problems = parse_expression(Source("test", text))
    assert node is not None and not problems, [problem.message for problem in problems]
    return show(node)


def messages(text: str, kind: str = "program") -> list[str]:
    return [problem.message for problem in parse(Source("test", text), kind=kind)[1]]


def show(node: Any) -> str:
    # These two make the deepest trees; they get by with one stack frame a level.
    if isinstance(node, ast.Binary):
        return f"({node.op} {show(node.left)} {show(node.right)})"
    if isinstance(node, ast.Unary):
        return f"({node.op} {show(node.operand)})"
    return str(_SHOW[type(node)](node))


def _form(head: str, *parts: Any) -> str:
    shown = [part if isinstance(part, str) else show(part) for part in parts if part is not None]
    return f"({' '.join([head, *shown])})"


def _literal(node: ast.Literal) -> str:
    if isinstance(node.value, str):
        return repr(node.value)
    if isinstance(node.value, datetime.date):
        return f"#{node.value.isoformat()}"
    if node.value is None or isinstance(node.value, bool):
        return str(node.value).lower().replace("none", "null")
    return repr(node.value)


def _map(node: ast.MapLiteral) -> str:
    return _form("map", *(f"{'=' if e.computed else ''}{show(e.key)}:{show(e.value)}" for e in node.entries))


def _match(node: ast.Match) -> str:
    arms = [f"[{show(a.pattern) if a.pattern else '_'} {show(a.value)}]" for a in node.arms]
    return _form("match", node.subject or "-", *arms)


_SHOW: dict[type, Any] = {
    ast.Literal: _literal,
    ast.Now: lambda n: "now",
    ast.Name: lambda n: n.name,
    ast.Member: lambda n: f"{show(n.target)}.{n.name}",
    ast.SystemVar: lambda n: f"${n.namespace}:{'.'.join(n.path)}",
    ast.WindowCall: lambda n: _form(f"$window.{n.function}", *n.args),
    ast.If: lambda n: _form("if", n.condition, n.then, n.otherwise),
    ast.Match: _match,
    ast.Call: lambda n: _form(f"call {n.function}", *(["*"] if n.star else n.args)),
    ast.MethodCall: lambda n: _form(f".{n.method}", n.receiver, *n.args),
    ast.Closure: lambda n: _form("it=>", n.body),
    ast.Index: lambda n: _form("at", n.target, n.index),
    ast.ArrayLiteral: lambda n: _form("array", *n.items),
    ast.MapLiteral: _map,
    ast.Comprehension: lambda n: _form(f"for {n.binding}", n.source, n.value, n.condition),
    ast.Use: lambda n: _form("use", ".".join(n.path), n.alias),
    ast.Let: lambda n: _form(f"let {n.name}", n.value),
    ast.Emit: lambda n: _form(f"emit {f'${n.scope}.' if n.scope else ''}{n.name}", n.value),
    ast.EmitEach: lambda n: _form(f"each {n.binding}", n.source, "outer" if n.outer else None, *n.body),
    ast.Filter: lambda n: _form("filter", n.predicate),
    ast.Distinct: lambda n: _form("distinct", n.by),
    ast.Trace: lambda n: _form(f"trace {n.level}", _form("if", n.condition) if n.condition else None, n.message),
    ast.FunctionDef: lambda n: _form(f"fn {n.name}", f"[{' '.join(n.params)}]", n.body),
    ast.Bare: lambda n: _form("bare", n.value),
}
