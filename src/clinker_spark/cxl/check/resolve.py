"""Resolve: does every name mean something?

Binds nothing itself (the typechecker does, under the same rules of scope); it reports every unknown field,
method, function, system variable and module member, each with the nearest known word.
"""

from __future__ import annotations

from collections.abc import Iterable

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean, nearest
from clinker_spark.core.span import Source, Span
from clinker_spark.cxl.builtins import methods
from clinker_spark.cxl.builtins.families.aggregates import AGGREGATES
from clinker_spark.cxl.builtins.families.collections import HIGHER_ORDER
from clinker_spark.cxl.check.environment import Environment
from clinker_spark.cxl.check.modules import Module
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.system import META_MEMBERS, NAMESPACES, PIPELINE_MEMBERS, RUNNING_TOTALS, SCOPES, SOURCE_MEMBERS


def resolve(program: ast.ProgramSyntax, env: Environment) -> list[Diagnostic]:
    """All names that mean nothing. An empty list: every name resolves."""
    resolver = _Resolver(env)
    for module in _all_modules(env.modules.values()):
        resolver.check_module(module)
    resolver.statements(program.statements)
    return resolver.found


_STEPS = (ast.MethodCall, ast.Member, ast.Index)


def known_methods() -> list[str]:
    """Every word that may follow a dot and stand before a parenthesis."""
    return sorted({*methods(), *HIGHER_ORDER, "catch"})


def _all_modules(roots: Iterable[Module]) -> Iterable[Module]:
    seen: dict[str, Module] = {}
    stack = list(roots)
    while stack:
        module = stack.pop()
        if module.name not in seen:
            seen[module.name] = module
            stack.extend(module.imports.values())
    return seen.values()


class _Resolver:
    def __init__(self, env: Environment) -> None:
        self.env = env
        self.found: list[Diagnostic] = []
        self.source: Source = env.source
        self.names: set[str] | None = None if env.schema is None else set(env.schema)
        self.modules = dict(env.modules)
        self.functions: set[str] = set()
        self.it_depth = 0
        self.written: dict[str, set[str]] = {scope: set() for scope in SCOPES}

    def error(self, message: str, span: Span, help_text: str | None = None, code: str = "E203") -> None:
        self.found.append(Diagnostic(code, message, self.source, span, help_text, phase="resolve"))

    # ------------------------------------------------------------ modules

    def check_module(self, module: Module) -> None:
        saved = self.source, self.names, self.modules, self.functions
        self.source, self.modules, self.functions = module.source, dict(module.imports), set(module.functions)
        for value in module.constants.values():
            self.names = set(module.constants)
            self.expr(value)
        for function in module.functions.values():
            self.names = {*module.constants, *function.params}
            self.expr(function.body)
        self.source, self.names, self.modules, self.functions = saved

    # --------------------------------------------------------- statements

    def statements(self, body: tuple[ast.Statement, ...]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, s: ast.Statement) -> None:
        match s:
            case ast.Let(name=name, value=value):
                self.expr(value)
                self.define(name)
            case ast.Emit():
                self.emit(s)
            case ast.Filter(predicate=value) | ast.Bare(value=value):
                self.expr(value)
            case ast.Distinct(by=by, by_span=span):
                if by is not None:
                    self.name(by, span or s.span)
            case ast.Trace(condition=condition, message=message):
                if condition is not None:
                    self.expr(condition)
                self.expr(message)
            case ast.EmitEach():
                self.expr(s.source)
                saved = None if self.names is None else set(self.names)
                self.define(s.binding)
                if s.binding == "it":
                    self.it_depth += 1
                self.statements(s.body)
                self.it_depth -= s.binding == "it"
                self.names = saved
            case ast.FunctionDef() | ast.Use():
                pass
            case _:
                raise AssertionError(s)

    def emit(self, s: ast.Emit) -> None:
        self.expr(s.value)
        if s.scope is None:
            self.define(s.name)
            return
        declared = None if self.env.declares is None else self.env.declares.get(s.scope, {})
        if declared is not None and s.name not in declared:
            help_text = did_you_mean(s.name, declared) or f"add it under declares: {s.scope}: of this node"
            self.error(f"undeclared variable '${s.scope}.{s.name}'", s.name_span, help_text)
        self.written[s.scope].add(s.name)

    def define(self, name: str) -> None:
        if self.names is not None:
            self.names.add(name)

    # -------------------------------------------------------- expressions

    def expr(self, e: ast.Expr) -> None:
        if not isinstance(e, _STEPS):
            self.operand(e)
            return
        steps: list[ast.Expr] = []
        while (target := self.target(e)) is not None:
            steps.append(e)
            e = target
        self.operand(e)
        for step in reversed(steps):
            self.step(step)

    def target(self, e: ast.Expr) -> ast.Expr | None:
        """What a call or a step into a value is applied to; None where something else begins."""
        match e:
            case ast.MethodCall(receiver=receiver):
                return None if isinstance(receiver, ast.Name) and receiver.name in self.modules else receiver
            case ast.Member(target=target):
                return None if isinstance(target, ast.Name) else target
            case ast.Index(target=target):
                return target
        return None

    def step(self, e: ast.Expr) -> None:
        match e:
            case ast.MethodCall():
                if e.method not in methods() and e.method not in HIGHER_ORDER and e.method != "catch":
                    help_text = did_you_mean(e.method, known_methods()) or "see docs/cxl-reference.md for all methods"
                    self.error(f"unknown method '{e.method}'", e.name_span, help_text)
                self.all(e.args)
            case ast.Index(index=index):
                self.expr(index)

    def operand(self, e: ast.Expr) -> None:
        match e:
            case ast.Name(name=name, span=span):
                self.name(name, span)
            case ast.Member():
                self.member(e)
            case ast.MethodCall():
                self.module_function(e)
            case ast.Call():
                self.call(e)
            case ast.SystemVar():
                self.system_var(e)
            case ast.WindowCall(args=args):
                saved = self.names
                if self.env.window_schema is not None:
                    self.names = set(self.env.window_schema)
                self.it_depth += 1  # a predicate may call the row `it`
                self.all(args)
                self.it_depth -= 1
                self.names = saved
            case ast.Comprehension():
                self.comprehension(e)
            case ast.Closure(body=body):
                self.it_depth += 1
                self.expr(body)
                self.it_depth -= 1
            case ast.Binary() | ast.If():
                self.all(_chain(e))
            case _:
                self.all(e.children())

    def all(self, parts: Iterable[ast.Expr]) -> None:
        for part in parts:
            self.expr(part)

    def name(self, name: str, span: Span) -> None:
        if name == "it" and self.it_depth:
            return
        if name == "it":
            self.error("'it' is only known inside a closure", span, "write it in a closure: items.map(it => ...)")
        elif self.names is None or name in self.names:
            return
        elif name in self.modules:
            self.error(f"'{name}' is a module, not a value", span, f"use one of its members: {name}.<member>")
        elif name in AGGREGATES:
            self.error(f"unresolved identifier '{name}'", span, f"to call the aggregate function write {name}(...)")
        else:
            self.error(f"unresolved identifier '{name}'", span, did_you_mean(name, self.names) or self._known())

    def _known(self) -> str | None:
        if not self.names:
            return "this program has no input fields; a name must be defined by let or emit first"
        shown = sorted(self.names)
        more = ", ..." if len(shown) > 12 else ""
        return f"known names: {', '.join(shown[:12])}{more}"

    def member(self, e: ast.Member) -> None:
        if isinstance(e.target, ast.Name):
            name = e.target.name
            if name in self.modules and not (self.names and name in self.names):
                module = self.modules[name]
                if e.name not in module.constants:
                    kind = "function; call it with parentheses" if e.name in module.functions else "constant"
                    help_text = did_you_mean(e.name, module.members)
                    self.error(f"module '{module.name}' has no constant '{e.name}'", e.name_span, help_text or kind)
                return
            if self.env.dotted_field(name, e.name):
                return
            if self.names is not None and name not in self.names and self.env.is_qualifier(name):
                columns = [c.partition(".")[2] for c in self.env.schema or () if c.startswith(f"{name}.")]
                self.error(f"input '{name}' has no field '{e.name}'", e.name_span, did_you_mean(e.name, columns))
                return
        self.expr(e.target)

    def module_function(self, e: ast.MethodCall) -> None:
        assert isinstance(e.receiver, ast.Name)
        module = self.modules[e.receiver.name]
        if e.method not in module.functions:
            help_text = did_you_mean(e.method, module.functions)
            self.error(f"module '{module.name}' has no function '{e.method}'", e.name_span, help_text)
        self.all(e.args)

    def call(self, e: ast.Call) -> None:
        if e.function not in AGGREGATES and e.function not in self.functions:
            if e.function in methods():
                help_text: str | None = f"'{e.function}' is a method: write value.{e.function}(...)"
            else:
                help_text = did_you_mean(e.function, [*AGGREGATES, *self.functions])
            self.error(f"unknown function '{e.function}'", e.name_span, help_text)
        self.all(e.args)

    def comprehension(self, e: ast.Comprehension) -> None:
        self.expr(e.source)
        if self.names is not None and e.binding in self.names:
            self.error(f"'{e.binding}' is already the name of a value", e.binding_span, "choose another binding name")
        saved = None if self.names is None else set(self.names)
        self.define(e.binding)
        if e.condition is not None:
            self.expr(e.condition)
        self.expr(e.value)
        self.names = saved

    def system_var(self, e: ast.SystemVar) -> None:
        full, first = f"${e.namespace}.{'.'.join(e.path)}", e.path[0] if e.path else ""
        match e.namespace:
            case "pipeline" if first in RUNNING_TOTALS:
                message = f"'{full}' is a running total and has no meaning in a parallel run"
                self.error(message, e.span, "read the total from the run report instead", code="E204")
            case "pipeline":
                self._scoped(e, "pipeline", PIPELINE_MEMBERS)
            case "source":
                self._scoped(e, "source", SOURCE_MEMBERS)
            case "record":
                self._scoped(e, "record", ())
            case "vars":
                if first not in self.env.vars:
                    help_text = did_you_mean(first, self.env.vars) or "declare it under vars: of the pipeline"
                    self.error(f"unknown vars key '{first}'", e.span, help_text)
            case "config":
                self._parameter(e, full, first)
            case "meta":
                if first not in META_MEMBERS or len(e.path) > 1:
                    listed = "there is " + ", ".join(f"$meta.{name}" for name in META_MEMBERS)
                    self.error(f"unknown member '{full}'", e.span, did_you_mean(first, META_MEMBERS) or listed)
            case "doc":
                self._of_document(e, full)
            case unknown:
                found = nearest(unknown, NAMESPACES)
                listed = "namespaces: " + ", ".join(f"${n}" for n in NAMESPACES)
                self.error(f"unknown namespace '${unknown}'", e.span, f"did you mean '${found}'?" if found else listed)

    def _parameter(self, e: ast.SystemVar, full: str, name: str) -> None:
        if self.env.config is None:
            self.error(f"'{full}' is only known inside a composition", e.span, "use $vars for pipeline variables")
        elif name not in self.env.config:
            self.error(f"unknown config key '{name}'", e.span, did_you_mean(name, self.env.config))

    def _of_document(self, e: ast.SystemVar, full: str) -> None:
        declared = None if self.env.declares is None else self.env.declares.get("doc", {})
        name = ".".join(e.path)
        if declared is None or name in declared:
            return
        there = f"there is {', '.join(f'$doc.{n}' for n in declared)}"
        other = there if declared else "declare it under envelope: { sections: ... } of the source"
        self.error(f"no envelope declares '{full}'", e.span, did_you_mean(name, declared) or other, code="E341")

    def _scoped(self, e: ast.SystemVar, scope: str, members: Iterable[str]) -> None:
        declared = set((self.env.declares or {}).get(scope, {})) | self.written[scope]
        known = {*members, *declared}
        # `$source.<input>.<var>` names the source whose variable is meant.
        name = e.path[1] if scope == "source" and len(e.path) == 2 else e.path[0]
        if name not in known:
            help_text = did_you_mean(name, known) or f"known members: {', '.join(sorted(known)) or 'none declared'}"
            self.error(f"unknown {scope} member '{name}'", e.span, help_text)


def _chain(e: ast.Expr) -> Iterable[ast.Expr]:
    """The operands of a chain of operators, or of `else if`, in order: however long it is, without recursion."""
    found: list[ast.Expr] = []
    waiting = [e]
    while waiting:
        match waiting.pop():
            case ast.Binary(left=left, right=right):
                waiting += (right, left)
            case ast.If(condition=c, then=t, otherwise=o):
                waiting += (t, c) if o is None else (o, t, c)
            case other:
                found.append(other)
    return found
