"""What the typing rules share: the names in scope, the findings so far, and the way to the rule of another node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic, Label
from clinker_spark.core.span import Source, Span
from clinker_spark.core.types import ANY, NUMERIC, Kind, Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.check.environment import Environment
from clinker_spark.cxl.check.modules import Module
from clinker_spark.cxl.syntax import ast


@dataclass
class Scope:
    """What is visible in one text: a program, or a module that it uses."""

    source: Source
    names: dict[str, ir.TExpr] = field(default_factory=dict)
    """The expression that each name stands for."""
    macros: dict[str, ast.Expr] = field(default_factory=dict)
    """Lets of an aggregate program and constants of a module: expanded where they are used."""
    modules: dict[str, Module] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    """Those of the module itself."""


class Inference:
    """Infers expressions in one program.

    A rule types one kind of syntax node. Rules type what is inside their node by `infer`, so that none has to know
    the others; `rules.RULES` has them all."""

    def __init__(self, env: Environment, rules: Rules) -> None:
        self.env = env
        self.rules = rules
        self.scope = Scope(env.source, modules=dict(env.modules))
        self.found: list[Diagnostic] = []
        self.scoped: dict[tuple[str, str], ir.TExpr] = {}
        self.uses: dict[str, tuple[Type, Span]] = {}
        self.seen_fields: dict[str, None] = {}
        self.in_aggregate = False
        self.group_values: set[str] = set()  # slots of what an aggregate program has emitted
        self.window_row = False
        self.lookups: list[ir.WindowRef] = []
        self._slots = 0

    def infer(self, e: ast.Expr) -> ir.TExpr:
        """The typed form of an expression. Never raises; trouble goes to `found`."""
        return self.rules[type(e)](self, e)

    def error(self, message: str, span: Span, help_text: str | None = None, labels: tuple[Label, ...] = ()) -> ir.TExpr:
        """A finding, and what stands for the expression it is about: it fits everywhere, so nothing else is said."""
        self.found.append(
            Diagnostic("E200", message, self.scope.source, span, help_text, phase="typecheck", labels=labels)
        )
        return ir.Const(span, ANY, False, None)

    def new_slot(self, name: str) -> str:
        self._slots += 1
        return f"{name}#{self._slots}"

    @contextmanager
    def bound(self, name: str, value: ir.TExpr) -> Iterator[None]:
        """A name visible for a while."""
        saved = self.scope.names
        self.scope.names = {**saved, name: value}
        yield
        self.scope.names = saved

    def use_as(self, arg: ir.TExpr, t: Type, span: Span) -> None:
        """Remember how a column of unknown type is used; two uses that cannot both hold are an error."""
        if not isinstance(arg, ir.Field) or arg.type.kind is not Kind.ANY:
            return
        wanted = NUMERIC if t.is_numeric else t.unwrap().as_static()
        if wanted.kind in (Kind.ANY, Kind.NULL):
            return
        known = self.uses.setdefault(arg.name, (wanted, span))
        if known[0].kind is not wanted.kind:
            self.error(
                f"field '{arg.name}' is used as {wanted} here but as {known[0]} elsewhere",
                span,
                f"declare the type of '{arg.name}' in the schema, or convert one use (.to_string(), .to_int(), ...)",
                (Label(known[1], f"used as {known[0]} here"),),
            )


Rule = Callable[[Inference, Any], ir.TExpr]
Rules = Mapping[type[ast.Expr], Rule]


def with_lets(lets: Sequence[tuple[str, ir.TExpr]], body: ir.TExpr, span: Span) -> ir.TExpr:
    """`body` with slots that are filled before it. A constant needs none, except where filling it can fail."""
    for slot, value in reversed(lets):
        if value.fallible or not isinstance(body, ir.Const):
            body = ir.LetIn(span, body.type, value.fallible or body.fallible, slot, value, body)
    return body
