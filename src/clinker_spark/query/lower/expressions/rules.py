"""Lowering expressions inside queries to SQL.

What SQL cannot say is an error at its place, before anything runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from clinker_spark.core.span import Span
from clinker_spark.core.types import BOOL, Kind, Type
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.check.declared import TypeTable
from clinker_spark.query.evaluate.expressions import FunctionValue
from clinker_spark.query.failures import Failed
from clinker_spark.query.functions import function
from clinker_spark.query.lower.base import Env, local_scope
from clinker_spark.query.lower.expressions.arithmetic import ArithmeticLowering
from clinker_spark.query.lower.expressions.calls import call_method, call_template, text_of
from clinker_spark.query.lower.spelling import literal, spark_type
from clinker_spark.query.lower.values import Column, GroupRef, Local, Record, Rows, SparkDataset, Value, wide, widened
from clinker_spark.query.methods import method
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import ListType, MapType, QType, RecordType, is_any, is_kind, is_number, unified
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import INT, NULL, TRUE, any_of, call, negated, never_null, struct, there, when

Arms = list[tuple[sql.Expr, Column]]
"""Conditions, and the values where they are the first to hold."""


class ExpressionLowering(ArithmeticLowering):
    """Lowers expressions. Queries and aggregates are added by the classes below it."""

    def __init__(self, types: TypeTable) -> None:
        super().__init__(types)
        self._inlined: list[str] = []
        self.handlers |= {
            cxl.Literal: lambda e, s: Local(e.value),
            cxl.Name: self._name,
            cxl.Member: self._member,
            cxl.Unary: self.unary,
            cxl.Binary: self.binary,
            cxl.If: self._if,
            cxl.Match: self._match,
            cxl.Call: self._call,
            cxl.MethodCall: self._method,
            cxl.Index: self._index,
            cxl.ArrayLiteral: self._list,
            cxl.MapLiteral: self._map,
            ast.Cast: self._cast,
            ast.RecordLiteral: self._map,
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
        if isinstance(found, Local) and isinstance(found.value, SparkDataset):
            return Rows(found.value.relation)
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
            of_group: Value | None = target.context.member(name)
            if of_group is not None:
                return of_group
            raise Failed(f"unknown field '{name}' of a group", span=span, code="E701")
        if isinstance(target, Local) and isinstance(target.value, dict):
            return Local(target.value.get(name))
        column = self.to_column(target)
        if isinstance(column.type, RecordType):
            t = column.type.field(name)
            if t is not None:
                return Column(sql.Field(column.sql, name), t.as_nullable() if column.type.nullable else t)
            raise Failed(f"unknown field '{name}'", span=span, code="E701")
        if isinstance(column.type, MapType):
            return _entry(column, column.type, sql.Literal(name))
        return call_method(name, [column], [target], span, self)

    # ---------------------------------------------------------------- choices

    def _if(self, e: cxl.If, scope: Env) -> Value:
        return _choice(*self._arms(e, scope))

    def _arms(self, e: cxl.If, scope: Env) -> tuple[Arms, Column]:
        """The branches of a chain of `else if`, and what is true of none of them."""
        condition = self.condition(e.condition, scope, exact=False)
        with self.branch(condition):
            then = self.column(e.then, scope)
        more: Arms = []
        with self.branch(negated(never_null(condition))):
            if isinstance(e.otherwise, cxl.If):
                more, last = self._arms(e.otherwise, scope)
            else:
                last = self.column(e.otherwise, scope) if e.otherwise is not None else Column(*literal(None))
        return [(condition, then), *more], last

    def _match(self, e: cxl.Match, scope: Env) -> Value:
        arms: Arms = []
        with ExitStack() as others:
            for arm in e.arms:
                test = self._test(e, arm, scope)
                with self.branch(test):
                    value = self.column(arm.value, scope)
                if arm.pattern is None:
                    return _choice(arms, value)
                arms.append((test, value))
                others.enter_context(self.branch(negated(never_null(test))))
        if not arms:
            self.no_form(e.span, "a match without arms has no value")
        return _choice(arms, None)

    def _test(self, e: cxl.Match, arm: cxl.MatchArm, scope: Env) -> sql.Expr:
        if arm.pattern is None:
            return TRUE
        if e.subject is None:
            return self.condition(arm.pattern, scope, exact=False)
        return self.equal(cxl.Binary(arm.span, "==", e.subject, arm.pattern, arm.span), scope)

    # ------------------------------------------------------ lists and records

    def _list(self, e: cxl.ArrayLiteral, scope: Env) -> Value:
        items = [self.lower(item, scope) for item in e.items]
        if all(isinstance(item, Local) for item in items):
            return Local([item.value for item in items if isinstance(item, Local)])
        columns = [self.to_column(item) for item in items]
        t = unified(c.type for c in columns)
        if is_any(t):
            self.no_form(e.span, "a list of different kinds of values has no Spark form")
        return Column(call("array", *(_fitted(c, t) for c in columns)), ListType(widened(t)))

    def _map(self, e: cxl.MapLiteral | ast.RecordLiteral, scope: Env) -> Value:
        if not any(entry.computed for entry in e.entries):
            keyed = [(entry.key, entry.value) for entry in e.entries]
            return Record({k.value: self.lower(v, scope) for k, v in keyed if isinstance(k, cxl.Literal)})
        keys = [self.column(entry.key, scope) for entry in e.entries]
        values = [self.column(entry.value, scope) for entry in e.entries]
        t = unified(v.type for v in values)
        parts = [c.sql for pair in zip(keys, values, strict=True) for c in pair]
        return Column(call("map", *parts), MapType(keys[0].type, t))

    def _index(self, e: cxl.Index, scope: Env) -> Value:
        target = self.lower(e.target, scope)
        if isinstance(e.index, cxl.Literal) and isinstance(e.index.value, str):
            return self.member(target, e.index.value, e.index.span)
        column, index = self.to_column(target), self.column(e.index, scope).sql
        if isinstance(column.type, ListType):
            return Column(self._element(e, column.sql, index), column.type.element)
        if isinstance(column.type, MapType):
            return _entry(column, column.type, index)
        if is_kind(column.type, Kind.STRING):
            return Column(call("substring", column.sql, _one_more(sql.Cast(index, INT)), sql.Literal(1)), column.type)
        self.no_form(e.span, f"an element of {column.type:?} has no Spark form")

    def _element(self, e: cxl.Index, array: sql.Expr, index: sql.Expr) -> sql.Expr:
        negative = sql.Binary("<", index, sql.Literal(0))
        place = sql.Cast(call("IF", negative, index, _one_more(index)), INT)
        if self.guard is None:
            return call("element_at", array, place)
        size = call("size", array)
        outside = any_of((sql.Binary(">=", index, size), sql.Binary("<", index, sql.Unary("-", size))))
        message = f"an index is out of range: {self.shown(e.span)}"
        return self.guard.checked(call("try_element_at", array, place), outside, message, index)

    def _slice(self, e: ast.Slice, scope: Env) -> Value:
        target = self.column(e.target, scope)
        bounds = [b.value if isinstance(b, cxl.Literal) else (None if b is None else -1) for b in (e.start, e.end)]
        if any(b is not None and (not isinstance(b, int) or b < 0) for b in bounds):
            self.no_form(e.span, "a slice on Spark needs written bounds from 0 up")
        start, end = bounds[0] or 0, bounds[1]
        length: sql.Expr = sql.Literal(2**31 - 1 if end is None else max(0, end - start))
        function = "substring" if is_kind(target.type, Kind.STRING) else "slice"
        if function == "slice" and end is None:
            length = rest_from(target.sql, start)
        return Column(call(function, target.sql, sql.Literal(start + 1), length), target.type)

    def _cast(self, e: ast.Cast, scope: Env) -> Value:
        value = self.column(e.value, scope)
        to = self.types.resolve(e.type)
        made = to.as_nullable() if value.type.nullable else to
        if self.guard is not None and isinstance(to, Type) and _may_fail(value.type, to):
            return Column(self.guard.converted(value, spark_type(to), self.shown(e.span)), made)
        if is_kind(to, Kind.STRING) and is_kind(value.type, Kind.FLOAT):
            return Column(text_of(value), made)
        return Column(sql.Cast(value.sql, spark_type(to), span=e.span), made)

    # ------------------------------------------------------------------ calls

    def _call(self, e: cxl.Call, scope: Env) -> Value:
        if e.function in scope:
            return self._call_value(scope.get(e.function), e.function, e.args, scope, e)
        row = function(e.function, len(e.args))
        if row is not None and e.args and (row.aggregate or row.name == "len"):
            found = self.aggregate(e, scope)
            if found is not None:
                return found
        args = [self.lower(a, scope) for a in e.args]
        if row is not None and all(isinstance(a, Local) for a in args):
            return Local(row.run(*[a.value for a in args if isinstance(a, Local)]))
        columns = [self.to_column(a) for a in args]
        if row is not None:
            return call_template(row, columns, e.span, self)
        if columns and method(e.function) is not None:
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
        element = Column(sql.Variable(variable), target.type.element)
        inner: Env = Scope(scope, {closure.params[0].name: element})
        with self.guarded_by(None):  # what fails for an element of a list cannot be asked outside of the list
            if e.method == "map":
                body = self.column(closure.body, inner)
                return Column(over_elements("transform", target.sql, variable, body.sql), ListType(body.type))
            condition = self.condition(closure.body, inner, exact=True)
        if e.method == "filter":
            return Column(over_elements("filter", target.sql, variable, condition), target.type)
        if e.method == "any":
            return Column(over_elements("exists", target.sql, variable, condition), BOOL)
        if e.method == "find":
            found = call("get", over_elements("filter", target.sql, variable, condition), sql.Literal(0))
            return Column(found, target.type.element.as_nullable())
        self.no_form(e.span, f".{e.method}() has no Spark form")


def _choice(arms: Arms, otherwise: Column | None) -> Column:
    """The value of the first condition that holds, else the other one, or null."""
    t = unified(c.type for c in (*(value for _, value in arms), *((otherwise,) if otherwise is not None else ())))
    last = None if otherwise is None else _fitted(otherwise, t)
    if last is not None and not arms:
        return Column(last, widened(t))
    made = sql.Case(tuple((test, _fitted(value, t)) for test, value in arms), last)
    return Column(made, widened(t.as_nullable() if last is None else t))


def _fitted(column: Column, t: QType) -> sql.Expr:
    """A value beside others of one type: a record has all fields of it, in its order."""
    own = column.type
    if not isinstance(own, RecordType) or not isinstance(t, RecordType) or _alike(own, t):
        return wide(column)
    have = {name: Column(sql.Field(column.sql, name), field) for name, field in own.fields}
    parts = ((n, _fitted(have[n], f) if n in have else sql.Cast(NULL, spark_type(f))) for n, f in t.fields)
    return when(there(column.sql), struct(parts)) if own.nullable else struct(parts)


def _alike(a: QType, b: QType) -> bool:
    """Have two records the same fields in the same order, and the records in them?"""
    if not isinstance(a, RecordType) or not isinstance(b, RecordType):
        return True
    return a.names == b.names and all(_alike(x, y) for (_, x), (_, y) in zip(a.fields, b.fields, strict=True))


def over_elements(function: str, array: sql.Expr, variable: str, body: sql.Expr) -> sql.Expr:
    """`function(array, variable -> body)`."""
    return call(function, array, sql.Lambda((variable,), body))


def rest_from(array: sql.Expr, start: int) -> sql.Expr:
    """How many elements of an array follow a position."""
    return call("greatest", sql.Binary("-", call("size", array), sql.Literal(start)), sql.Literal(0))


def _one_more(index: sql.Expr) -> sql.Expr:
    return sql.Binary("+", index, sql.Literal(1))


def _entry(column: Column, t: MapType, key: sql.Expr) -> Column:
    return Column(call("try_element_at", column.sql, key), t.value.as_nullable())


def _may_fail(t: QType, to: Type) -> bool:
    """Can a value of this type be no value of the other?"""
    return not (to.kind is Kind.STRING or is_kind(t, to.kind) or (to.kind is Kind.FLOAT and is_number(t)))
