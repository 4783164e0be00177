"""Typecheck, the statements: from a resolved syntax tree to a `TypedProgram`."""

from __future__ import annotations

from clinker_spark.core.diagnostics import Diagnostic, Severity
from clinker_spark.core.types import ANY, ARRAY, Kind, Type, unify
from clinker_spark.cxl import ir
from clinker_spark.cxl.check.environment import Environment
from clinker_spark.cxl.check.infer.inference import Inference
from clinker_spark.cxl.check.infer.names import field
from clinker_spark.cxl.check.infer.operations import boolean
from clinker_spark.cxl.check.infer.overloads import narrow, widen
from clinker_spark.cxl.check.infer.rules import RULES
from clinker_spark.cxl.syntax import ast


def typecheck(program: ast.ProgramSyntax, env: Environment) -> tuple[ir.TypedProgram, list[Diagnostic]]:
    """The typed program and everything that is wrong with it (warnings included)."""
    checker = _Checker(env)
    statements = checker.statements(program.statements)
    found = checker.inference.found
    wrong = any(d.severity is Severity.ERROR for d in found)
    if env.mode == "row" and not wrong and not _emits(program.statements):  # beside an error it helps nobody
        end = program.statements[-1].span if program.statements else None
        found.append(
            Diagnostic(
                "W200",
                "the program emits nothing",
                env.source,
                end,
                "add an emit statement: emit name = expression",
                Severity.WARNING,
                "typecheck",
            )
        )
    typed = ir.TypedProgram(
        source=env.source,
        schema=_read_schema(env, checker),
        statements=tuple(statements),
        output=checker.output,
        mode=env.mode,
        group_by=env.group_by,
        max_expansion=env.max_expansion,
        let_types=checker.let_types,
        lookups=tuple(checker.inference.lookups),
    )
    return typed, found


def _emits(statements: tuple[ast.Statement, ...]) -> bool:
    return any(isinstance(s, ast.Emit) or (isinstance(s, ast.EmitEach) and _emits(s.body)) for s in statements)


def _read_schema(env: Environment, checker: _Checker) -> dict[str, Type]:
    if env.schema is not None:
        return dict(env.schema)
    return dict.fromkeys(checker.inference.seen_fields, ANY)


class _Checker:
    def __init__(self, env: Environment) -> None:
        self.env = env
        self.inference = Inference(env, RULES)
        self.output: dict[str, Type] = {}
        self.let_types: dict[str, Type] = {}
        self.depth = 0
        # Emits after a block reach no record unless another block follows. None: there was no block yet.
        self.waiting: dict[str, Type] | None = None
        if env.mode == "aggregate":
            for name in env.group_by:
                self.output[name] = (env.schema or {}).get(name, ANY)

    def statements(self, body: tuple[ast.Statement, ...]) -> list[ir.TStatement]:
        result: list[ir.TStatement] = []
        for statement in body:
            typed = self.statement(statement)
            if typed is not None:
                result.append(typed)
        return result

    def statement(self, s: ast.Statement) -> ir.TStatement | None:
        match s:
            case ast.Let():
                return self.let(s)
            case ast.Emit():
                return self.emit(s)
            case ast.Filter():
                return self.filter(s)
            case ast.Distinct():
                return self.distinct(s)
            case ast.Trace():
                condition = None
                if s.condition is not None:
                    condition = boolean(self.inference, self.inference.infer(s.condition), "trace if")
                return ir.TTrace(s.span, s.level, condition, self.inference.infer(s.message))
            case ast.EmitEach():
                return self.each(s)
            case ast.Bare():
                return ir.TBare(s.span, self.inference.infer(s.value))
        return None  # use, fn

    def let(self, s: ast.Let) -> ir.TStatement | None:
        inference = self.inference
        if self.env.mode == "aggregate":
            if any(isinstance(n, ast.Call) for n in s.value.walk()):
                inference.error(
                    f"let '{s.name}' holds an aggregate", s.span, "emit the aggregate instead, later emits can read it"
                )
            inference.scope.macros[s.name] = s.value
            return None
        value = self.inference.infer(s.value)
        slot = inference.new_slot(s.name)
        self.let_types[s.name] = value.type
        if isinstance(value, ir.Const):
            inference.scope.names[s.name] = value
        else:
            inference.scope.names[s.name] = ir.Slot(s.name_span, value.type, False, slot)
        return ir.TLet(s.span, s.name, slot, value)

    def emit(self, s: ast.Emit) -> ir.TStatement:
        inference = self.inference
        value = self.inference.infer(s.value)
        slot = inference.new_slot(s.name)
        visible: ir.TExpr = ir.Slot(s.name_span, value.type, False, slot)
        if self.env.mode == "aggregate":
            inference.group_values.add(slot)
        if s.scope is None:
            inference.scope.macros.pop(s.name, None)
            inference.scope.names[s.name] = value if isinstance(value, ir.Const) and not self.depth else visible
            if self.waiting is not None:
                self.waiting[s.name] = value.type
            elif self.depth:
                self.join_output(s.name, value.type)
            else:
                self.output[s.name] = value.type
            return ir.TEmit(s.span, None, s.name, slot, value)
        if self.env.mode == "aggregate":
            inference.error("scoped variables cannot be written in an aggregate", s.span, "emit a column instead")
        declared = (self.env.declares or {}).get(s.scope, {}).get(s.name)
        if declared is not None:
            merged = unify(declared, value.type)
            if merged is None or merged.kind is not declared.kind:
                inference.error(
                    f"'${s.scope}.{s.name}' is declared as {declared} but gets {value.type}",
                    s.value.span,
                    "change the declaration or convert the value",
                )
            elif value.type.is_dynamic:
                value = narrow(value, declared)
            else:
                value = widen(value, declared)
        inference.scoped[(s.scope, s.name)] = ir.Slot(s.name_span, value.type, False, slot)
        return ir.TEmit(s.span, s.scope, s.name, slot, value)

    def join_output(self, name: str, t: Type) -> None:
        """A column that has another type in other records is of both."""
        known = self.output.get(name)
        self.output[name] = t if known is None else unify(known, t) or ANY

    def filter(self, s: ast.Filter) -> ir.TStatement | None:
        inference = self.inference
        if self.depth:
            inference.error(
                "filter is not possible inside emit each", s.span, "filter the array: items.filter(it => ...)"
            )
            return None
        if self.env.mode == "aggregate":
            if any(isinstance(n, ast.Call) for n in s.predicate.walk()):
                inference.error(
                    "filter runs before grouping and cannot hold an aggregate", s.span, "filter in a later transform"
                )
                return None
            inference.in_aggregate = True
        predicate = self.inference.infer(s.predicate)
        inference.in_aggregate = False
        t = predicate.type
        if t.kind not in (Kind.BOOL, Kind.ANY, Kind.NULL):
            inference.error(
                f"filter predicate must be type Bool, got {t}",
                s.predicate.span,
                "write a comparison, for example x > 0",
            )
            return None
        return ir.TFilter(s.span, boolean(inference, predicate, "filter"))

    def distinct(self, s: ast.Distinct) -> ir.TStatement | None:
        inference = self.inference
        if self.depth or self.env.mode == "aggregate":
            where = "inside emit each" if self.depth else "in an aggregate"
            inference.error(f"distinct is not possible {where}", s.span, "use it in a transform of its own")
            return None
        if s.by is not None:
            key = self.inference.infer(ast.Name(s.by_span or s.span, s.by))
            return ir.TDistinct(s.span, (key,), (s.by,))
        names = tuple(self.env.schema or ())
        keys = tuple(field(inference, name, s.span) for name in names)
        return ir.TDistinct(s.span, keys, names)

    def each(self, s: ast.EmitEach) -> ir.TStatement | None:
        inference = self.inference
        if self.env.mode == "aggregate":
            inference.error("emit each is not possible in an aggregate", s.span, "fan out in a transform before it")
            return None
        source = self.inference.infer(s.source)
        t = source.type
        allowed = (Kind.ARRAY, Kind.ANY, Kind.NULL)
        if t.kind not in allowed:
            inference.error(
                f"emit each needs an Array to loop over, but got {t}", s.source.span, "emit each x in [value] { ... }"
            )
        element = ANY if t.is_dynamic or t.kind is not Kind.ARRAY else (t.element or ANY).as_nullable()
        if t.kind is Kind.NULL:
            source = widen(source, ARRAY)
        saved_names, saved_macros = dict(inference.scope.names), dict(inference.scope.macros)
        slot = inference.new_slot(s.binding)
        inference.scope.names[s.binding] = ir.Slot(s.binding_span, element, False, slot)
        for name, emitted in (self.waiting or {}).items():
            self.join_output(name, emitted)
        self.waiting = None
        self.depth += 1
        body = tuple(self.statements(s.body))
        self.depth -= 1
        self.waiting = {}
        inference.scope.names, inference.scope.macros = saved_names, saved_macros
        return ir.TEach(s.span, slot, element, source, s.outer, body)
