"""Lowering expressions inside queries to SQL text.

Comparisons are two-valued: `==` is null-safe where a null can meet it, `<` with a null is false. A condition that only
selects rows may leave a null where a false belongs (`exact=False`), which keeps it open to Catalyst's push-down.
What SQL cannot say is an error at its place, before anything runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from clinker_spark.core.span import Span
from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins import methods
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.plan.query.base import Env, local_scope
from clinker_spark.plan.query.calls import call_method, call_template
from clinker_spark.plan.query.conditions import ConditionLowering
from clinker_spark.plan.query.guards import at_least_one
from clinker_spark.plan.query.literals import ddl, literal
from clinker_spark.plan.query.values import (
    Column,
    GroupRef,
    Local,
    Record,
    Rows,
    Value,
    wide,
    widened,
)
from clinker_spark.query.check.declared import TypeTable
from clinker_spark.query.evaluate.expressions import FunctionValue
from clinker_spark.query.failures import Failed
from clinker_spark.query.functions import FUNCTIONS
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import (
    ANY,
    BOOL,
    STRING,
    ListType,
    MapType,
    QType,
    RecordType,
    Scalar,
    is_any,
    is_kind,
    is_null,
    is_number,
    unify,
)
from clinker_spark.query.values import Dataset

_SUMS = ("+", "-", "*")


class ExpressionLowering(ConditionLowering):
    """Lowers expressions. Queries and aggregates are added by the classes below it."""

    def __init__(self, types: TypeTable) -> None:
        super().__init__(types)
        self._inlined: list[str] = []
        self._is_part = False
        """Is the sum or product that is lowered next a part of another one?"""
        self._terms: dict[str, list[Column]] = {}
        """What such parts were made of."""
        self.handlers |= {
            cxl.Literal: lambda e, s: Local(e.value),
            cxl.Name: self._name,
            cxl.Member: self._member,
            cxl.Unary: self._unary,
            cxl.Binary: self._binary,
            cxl.If: self._if,
            cxl.Match: self._match,
            cxl.Call: self._call,
            cxl.MethodCall: self._method,
            cxl.Index: self._index,
            cxl.ArrayLiteral: self._list,
            cxl.MapLiteral: self._map,
            ast.Cast: self._cast,
            ast.RecordLiteral: self._record,
            ast.Query: self.query,
            ast.Slice: self._slice,
            ast.Apply: self._apply,
        }

    # ------------------------------------------------------------------ names

    def _name(self, e: cxl.Name, scope: Env) -> Value:
        try:
            found = scope.get(e.name)
        except KeyError:
            raise Failed(f"unknown name '{e.name}'", span=e.span, code="E701") from None
        if isinstance(found, Local) and isinstance(found.value, Dataset):
            return Rows(found.value.relation)  # type: ignore[attr-defined]
        return found

    def _member(self, e: cxl.Member, scope: Env) -> Value:
        return self.member(self.lower(e.target, scope), e.name, e.name_span)

    def member(self, target: Value, name: str, span: Span) -> Value:
        if isinstance(target, Record):
            found = target.field(name)
            if found is None:
                raise Failed(f"unknown field '{name}'", span=span, code="E701")
            return found
        if isinstance(target, GroupRef):
            found = target.context.member(name)
            if found is not None:
                return found  # type: ignore[no-any-return]
            raise Failed(f"unknown field '{name}' of a group", span=span, code="E701")
        if isinstance(target, Local) and isinstance(target.value, dict):
            return Local(target.value.get(name))
        column = self.to_column(target)
        if isinstance(column.type, RecordType):
            t = column.type.field(name)
            if t is not None:
                nullable = t.as_nullable() if column.type.nullable else t
                return Column(f"{_postfix(column.text)}.{quote(name)}", nullable)
            raise Failed(f"unknown field '{name}'", span=span, code="E701")
        if isinstance(column.type, MapType):
            return Column(f"try_element_at({column.text}, {sql_string(name)})", column.type.value.as_nullable())
        return call_method(name, [column], [target], span, self)

    # -------------------------------------------------------------- operators

    def _unary(self, e: cxl.Unary, scope: Env) -> Value:
        if e.op == "not":
            return Column(f"(NOT {self.condition(e.operand, scope, exact=True)})", BOOL)
        operand = self.column(e.operand, scope)
        if operand.number is not None:
            return Local(-operand.number)
        if self.guard is not None and is_kind(operand.type, Kind.INT):
            text = self.guard.arithmetic("-", "0", wide(operand), operand.type, self.shown(e.span))
            return Column(text, widened(operand.type))
        return Column(f"(- {wide(operand)})", widened(operand.type))

    def _binary(self, e: cxl.Binary, scope: Env) -> Value:
        if e.op in ("and", "or", "==", "!=", "<", "<=", ">", ">=", "in"):
            return Column(self.condition(e, scope, exact=True), BOOL)
        if e.op in ("union", "union all", "except", "intersect"):
            return self.set_operator(e, scope)
        if e.op in _SUMS:
            return self._sum(e, scope)
        left = self.column(e.left, scope)
        if e.op == "??":
            with self.branch(f"{left.text} IS NULL"):
                right = self.column(e.right, scope)
            t = unify(left.type.present(), right.type)
            others = wide(right)
            if isinstance(e.right, cxl.Binary) and e.right.op == "??" and others.startswith("coalesce("):
                others = others[len("coalesce(") : -1]
            return Column(f"coalesce({wide(left)}, {others})", widened(t))
        right = self.column(e.right, scope)
        return self._or_stop(e, self._arithmetic(e, left, right), [left, right])

    def _sum(self, e: cxl.Binary, scope: Env) -> Value:
        """Sums and products of floats are looked at once, at the end: what has become infinite on the way stays so."""
        is_part, self._is_part = self._is_part, False
        sides: list[Column] = []
        terms: list[Column] = []
        for side in (e.left, e.right):
            self._is_part = inner = isinstance(side, cxl.Binary) and side.op in _SUMS
            sides.append(self.column(side, scope))
            terms += self._terms.get(sides[-1].text, [sides[-1]]) if inner else [sides[-1]]
            self._is_part = False
        made = self._arithmetic(e, *sides)
        if not is_part:
            return self._or_stop(e, made, terms)
        if isinstance(made, Column):
            self._terms[made.text] = terms
        return made

    def _or_stop(self, e: cxl.Binary, made: Value, terms: list[Column]) -> Value:
        """Without a guard the query stops where finite floats have an infinite result."""
        if self.guard is not None or not isinstance(made, Column) or not is_kind(made.type, Kind.FLOAT):
            return made
        if e.op == "%" or (e.op == "/" and at_least_one(terms[1].number)):
            return made
        infinity = "double('Infinity')"
        finite = dict.fromkeys(f"abs({term.text}) < {infinity}" for term in terms if term.number is None)
        beyond = " AND ".join([f"NOT abs({made.text}) < {infinity}", *finite])
        shown = self.shown(e.span)
        message = sql_string(f"float overflow: {shown}" if shown else "float overflow")
        return Column(f"CASE WHEN {beyond} THEN raise_error({message}) ELSE {made.text} END", made.type)

    def _arithmetic(self, e: cxl.Binary, left: Column, right: Column) -> Value:
        nullable = left.type.nullable or right.type.nullable
        if e.op == "+" and isinstance(left.type, ListType) and isinstance(right.type, ListType):
            return Column(f"concat({left.text}, {right.text})", ListType(unify(left.type.element, right.type.element)))
        if is_null(left.type) or is_null(right.type):
            other = right if is_null(left.type) else left
            return Column(f"CAST(NULL AS {ddl(widened(other.type))})", widened(other.type).as_nullable())
        if e.op == "+" and is_kind(left.type, Kind.STRING) and is_kind(right.type, Kind.STRING):
            return Column(f"({left.text} || {right.text})", STRING.as_nullable() if nullable else STRING)
        if not (is_number(left.type) and is_number(right.type)):
            self.no_form(e.span, f"'{e.op}' of {left.type} and {right.type} has no Spark form")
        whole = is_kind(left.type, Kind.INT) and is_kind(right.type, Kind.INT)
        op = "div" if e.op == "/" and whole else e.op
        a, b = wide(left), wide(right)
        if self.guard is None and a.startswith("(") and _same_rank(e, e.left):
            a = a[1:-1]  # operators of one rank group to the left: a long chain needs no brackets in brackets
        if whole and op != "div" and left.number is not None and right.number is not None:
            a = f"CAST({a} AS BIGINT)"  # two short constants would be computed in 32 bits
        merged = unify(left.type.present(), right.type.present())
        t = Scalar(merged.kind) if isinstance(merged, Scalar) else ANY
        if self.guard is not None:
            text = self.guard.arithmetic(op, a, b, t, self.shown(e.span), right.number)
            return Column(text, t.as_nullable() if nullable else t)
        self.origins[f"{a} {op} {b}"] = e.span
        return Column(f"({a} {op} {b})", t.as_nullable() if nullable else t)

    # ---------------------------------------------------------------- choices

    def _if(self, e: cxl.If, scope: Env) -> Value:
        arms, last, t = self._arms(e, scope)
        return Column(f"CASE {' '.join(arms)} ELSE {last} END", t)

    def _arms(self, e: cxl.If, scope: Env) -> tuple[list[str], str, QType]:
        """The branches of a chain of `else if`, what is true of none of them, and their common type."""
        condition = self.condition(e.condition, scope, exact=False)
        with self.branch(condition):
            then = self.column(e.then, scope)
        more: list[str] = []
        with self.branch(f"NOT coalesce({condition}, FALSE)"):
            if isinstance(e.otherwise, cxl.If):
                more, last, t = self._arms(e.otherwise, scope)
            else:
                otherwise = self.column(e.otherwise, scope) if e.otherwise is not None else Column(*literal(None))
                last, t = wide(otherwise), otherwise.type
        return [f"WHEN {condition} THEN {wide(then)}", *more], last, widened(unify(then.type, t))

    def _match(self, e: cxl.Match, scope: Env) -> Value:
        arms: list[str] = []
        otherwise: str | None = None
        made: QType | None = None
        with ExitStack() as others:
            for arm in e.arms:
                test = self._test(e, arm, scope)
                with self.branch(test):
                    value = self.column(arm.value, scope)
                made = value.type if made is None else unify(made, value.type)
                if arm.pattern is None:
                    otherwise = wide(value)
                    break
                arms.append(f"WHEN {test} THEN {wide(value)}")
                others.enter_context(self.branch(f"NOT coalesce({test}, FALSE)"))
        if made is None:
            self.no_form(e.span, "a match without arms has no value")
        if otherwise is None:
            return Column(f"CASE {' '.join(arms)} END", widened(made.as_nullable()))
        return Column(f"CASE {' '.join(arms)} ELSE {otherwise} END" if arms else otherwise, widened(made))

    def _test(self, e: cxl.Match, arm: cxl.MatchArm, scope: Env) -> str:
        if arm.pattern is None:
            return "TRUE"
        if e.subject is None:
            return self.condition(arm.pattern, scope, exact=False)
        return self._equal(cxl.Binary(arm.span, "==", e.subject, arm.pattern, arm.span), scope)

    # ------------------------------------------------------ lists and records

    def _list(self, e: cxl.ArrayLiteral, scope: Env) -> Value:
        items = [self.lower(item, scope) for item in e.items]
        if all(isinstance(item, Local) for item in items):
            return Local([item.value for item in items if isinstance(item, Local)])
        columns = [self.to_column(item) for item in items]
        t: QType = columns[0].type
        for c in columns[1:]:
            t = unify(t, c.type)
        if is_any(t):
            self.no_form(e.span, "a list of different kinds of values has no Spark form")
        return Column(f"array({', '.join(wide(c) for c in columns)})", ListType(widened(t)))

    def _map(self, e: cxl.MapLiteral, scope: Env) -> Value:
        if not any(entry.computed for entry in e.entries):
            fields = {
                entry.key.value: self.lower(entry.value, scope)
                for entry in e.entries
                if isinstance(entry.key, cxl.Literal)
            }
            if fields and all(isinstance(v, Local) for v in fields.values()):
                return Record(fields)
            return Record(fields)
        keys = [self.column(entry.key, scope) for entry in e.entries]
        values = [self.column(entry.value, scope) for entry in e.entries]
        parts = ", ".join(f"{k.text}, {v.text}" for k, v in zip(keys, values, strict=True))
        t: QType = values[0].type
        for v in values[1:]:
            t = unify(t, v.type)
        return Column(f"map({parts})", MapType(keys[0].type, t))

    def _record(self, e: ast.RecordLiteral, scope: Env) -> Value:
        return self._map(cxl.MapLiteral(e.span, e.entries), scope)

    def _index(self, e: cxl.Index, scope: Env) -> Value:
        target = self.lower(e.target, scope)
        if isinstance(e.index, cxl.Literal) and isinstance(e.index.value, str):
            return self.member(target, e.index.value, e.index.span)
        column, index = self.to_column(target), self.column(e.index, scope)
        if isinstance(column.type, ListType):
            place = f"CAST(IF({index.text} < 0, {index.text}, {index.text} + 1) AS INT)"
            text = f"element_at({column.text}, {place})"
            if self.guard is not None:
                size = f"size({column.text})"
                when = f"({index.text} >= {size} OR {index.text} < - {size})"
                message = f"an index is out of range: {self.shown(e.span)}"
                text = self.guard.checked(f"try_{text}", when, message, index.text)
            return Column(text, column.type.element)
        if isinstance(column.type, MapType):
            return Column(f"try_element_at({column.text}, {index.text})", column.type.value.as_nullable())
        if is_kind(column.type, Kind.STRING):
            return Column(f"substring({column.text}, CAST({index.text} AS INT) + 1, 1)", column.type)
        self.no_form(e.span, f"an element of {column.type} has no Spark form")

    def _slice(self, e: ast.Slice, scope: Env) -> Value:
        target = self.column(e.target, scope)
        bounds = [b.value if isinstance(b, cxl.Literal) else (None if b is None else -1) for b in (e.start, e.end)]
        if any(b is not None and (not isinstance(b, int) or b < 0) for b in bounds):
            self.no_form(e.span, "a slice on Spark needs written bounds from 0 up")
        start, end = bounds[0] or 0, bounds[1]
        length = "2147483647" if end is None else str(max(0, end - start))
        function = "substring" if is_kind(target.type, Kind.STRING) else "slice"
        if function == "slice" and end is None:
            length = f"greatest(size({target.text}) - {start}, 0)"
        return Column(f"{function}({target.text}, {start + 1}, {length})", target.type)

    def _cast(self, e: ast.Cast, scope: Env) -> Value:
        value = self.column(e.value, scope)
        to = self.types.resolve(e.type)
        made = to.as_nullable() if value.type.nullable else to
        text = f"CAST({value.text} AS {ddl(to)})"
        if self.guard is not None and isinstance(to, Scalar) and _may_fail(value.type, to):
            return Column(self.guard.converted(value, ddl(to), self.shown(e.span)), made)
        self.origins[text] = e.span
        return Column(text, made)

    # ------------------------------------------------------------------ calls

    def _call(self, e: cxl.Call, scope: Env) -> Value:
        if e.function in scope:
            return self._call_value(scope.get(e.function), e.function, e.args, scope, e)
        row = FUNCTIONS.get(e.function)
        if row is not None and e.args and (row.aggregate or row.name == "len"):
            found = self.aggregate(e, scope)
            if found is not None:
                return found
        args = [self.lower(a, scope) for a in e.args]
        if all(isinstance(a, Local) for a in args) and row is not None:
            return Local(row.run(*[a.value for a in args if isinstance(a, Local)]))
        columns = [self.to_column(a) for a in args]
        if row is not None and not (row.name in ("min", "max") and len(args) == 2):
            return call_template(row, columns, e.span, self)
        if e.function in methods() and columns:
            return call_method(e.function, columns, args, e.span, self)
        self.no_form(
            e.span, f"{e.function}() cannot run on Spark", "only values can be computed there, nothing printed"
        )

    def _apply(self, e: ast.Apply, scope: Env) -> Value:
        return self._call_value(self.lower(e.function, scope), "function", e.args, scope, e)

    def _call_value(self, function: Value, name: str, args: Sequence[cxl.Expr], scope: Env, e: cxl.Expr) -> Value:
        """A function of the program, written out in place."""
        if not (isinstance(function, Local) and isinstance(function.value, FunctionValue)):
            self.no_form(e.span, f"'{name}' is not a function that Spark can run")
        node = function.value.node
        if name in self._inlined:
            self.no_form(e.span, f"'{name}' calls itself, which Spark cannot")
        if len(args) != len(node.params):
            self.no_form(e.span, f"'{name}' needs {len(node.params)} arguments here")
        inner: Env = local_scope(function.value.scope)
        inner = Scope(inner, {p.name: self.lower(a, scope) for p, a in zip(node.params, args, strict=True)})
        self._inlined.append(name)
        try:
            return self._body(node, inner, name, e.span)
        finally:
            self._inlined.pop()

    def _body(self, node: ast.Lambda, scope: Env, name: str, span: Span) -> Value:
        if isinstance(node.body, cxl.Expr):
            return self.lower(node.body, scope)
        for s in node.body:
            if isinstance(s, ast.Let) and s.value is not None and not s.mutable:
                scope.define(s.name, self.lower(s.value, scope))
            elif isinstance(s, ast.Return) and s.value is not None:
                return self.lower(s.value, scope)
            else:
                break
        help_text = f"write it as one expression: fun {name}(…) => …"
        self.no_form(span, f"'{name}' is more than one expression, which Spark cannot run", help_text)

    def _method(self, e: cxl.MethodCall, scope: Env) -> Value:
        target = self.lower(e.receiver, scope)
        if e.args and isinstance(e.args[0], ast.Lambda):
            return self._closure(e, self.to_column(target), e.args[0], scope)
        values = [target, *(self.lower(a, scope) for a in e.args)]
        columns = [self.to_column(v) for v in values]
        return call_method(e.method, columns, values, e.name_span, self)

    def _closure(self, e: cxl.MethodCall, target: Column, closure: ast.Lambda, scope: Env) -> Value:
        if not isinstance(target.type, ListType) or not isinstance(closure.body, cxl.Expr):
            self.no_form(e.span, f".{e.method}() has no Spark form here")
        variable = self.fresh("cq_v")
        inner: Env = Scope(scope, {closure.params[0].name: Column(variable, target.type.element)})
        with self.guarded_by(None):  # what fails for an element of a list cannot be asked outside of the list
            body = self.column(closure.body, inner) if e.method == "map" else None
            condition = "" if body is not None else self.condition(closure.body, inner, exact=True)
        if body is not None:
            return Column(f"transform({target.text}, {variable} -> {body.text})", ListType(body.type))
        if e.method == "filter":
            return Column(f"filter({target.text}, {variable} -> {condition})", target.type)
        if e.method == "any":
            return Column(f"exists({target.text}, {variable} -> {condition})", BOOL)
        if e.method == "find":
            found = f"get(filter({target.text}, {variable} -> {condition}), 0)"
            return Column(found, target.type.element.as_nullable())
        self.no_form(e.span, f".{e.method}() has no Spark form")


def _may_fail(t: QType, to: Scalar) -> bool:
    """Can a value of this type be no value of the other?"""
    return not (to.kind is Kind.STRING or is_kind(t, to.kind) or (to.kind is Kind.FLOAT and is_number(t)))


def _postfix(text: str) -> str:
    return text if text.endswith(("`", ")")) or text.isidentifier() else f"({text})"


def _same_rank(e: cxl.Binary, operand: cxl.Expr) -> bool:
    """Is the operand an operator that binds as tightly as the one it belongs to?"""
    return isinstance(operand, cxl.Binary) and any(e.op in rank and operand.op in rank for rank in ("+-", "*/%"))
