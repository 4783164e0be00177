"""Lowering operators that compute: sums, products, `??`.

What Spark would carry on with although it is no value (an infinite sum of finite floats) stops the query, or sets the
record aside where somebody watches over it.
"""

from __future__ import annotations

from clinker_spark.core.types import BOOL, STRING, Kind, Type
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.lower.base import Env, failing_at
from clinker_spark.query.lower.expressions.conditions import ConditionLowering
from clinker_spark.query.lower.guards import at_least_one, finite
from clinker_spark.query.lower.spelling import spark_type
from clinker_spark.query.lower.values import Column, Local, Value, wide, widened
from clinker_spark.query.types import ANY, ListType, is_kind, is_null, is_number, unify
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import NULL, all_of, call, negated, or_else, when

_SUMS = ("+", "-", "*")


class ArithmeticLowering(ConditionLowering):
    def unary(self, e: cxl.Unary, scope: Env) -> Value:
        if e.op == "not":
            return Column(negated(self.condition(e.operand, scope, exact=True)), BOOL)
        operand = self.column(e.operand, scope)
        if operand.number is not None:
            return Local(-operand.number)
        made: sql.Expr = sql.Unary("-", wide(operand))
        if self.guard is not None and is_kind(operand.type, Kind.INT):
            made = self.guard.arithmetic("-", sql.Literal(0), wide(operand), operand.type, self.shown(e.span))
        return Column(made, widened(operand.type))

    def binary(self, e: cxl.Binary, scope: Env) -> Value:
        if e.op in ("and", "or", "==", "!=", "<", "<=", ">", ">=", "in"):
            return Column(self.condition(e, scope, exact=True), BOOL)
        if e.op in ("union", "union all", "except", "intersect"):
            return self.set_operator(e, scope)
        if e.op in _SUMS:
            return self._or_stop(e, *self._sum(e, scope))
        left = self.column(e.left, scope)
        if e.op == "??":
            with self.branch(sql.IsNull(left.sql)):
                right = self.column(e.right, scope)
            return Column(or_else(wide(left), wide(right)), widened(unify(left.type.unwrap(), right.type)))
        right = self.column(e.right, scope)
        return self._or_stop(e, self._arithmetic(e, left, right), [left, right])

    def _sum(self, e: cxl.Binary, scope: Env) -> tuple[Column, list[Column]]:
        """A sum or product, and what it is made of.

        Those of floats are looked at once, at the end: what has become infinite on the way stays so.
        """
        sides: list[Column] = []
        terms: list[Column] = []
        for side in (e.left, e.right):
            if isinstance(side, cxl.Binary) and side.op in _SUMS:
                with failing_at(side.span):
                    made, inner = self._sum(side, scope)
            else:
                made = self.column(side, scope)
                inner = [made]
            sides.append(made)
            terms += inner
        return self._arithmetic(e, *sides), terms

    def _or_stop(self, e: cxl.Binary, made: Column, terms: list[Column]) -> Column:
        """Without a guard the query stops where finite floats have an infinite result."""
        if self.guard is not None or not is_kind(made.type, Kind.FLOAT):
            return made
        if e.op == "%" or (e.op == "/" and at_least_one(terms[1].number)):
            return made
        bounded = dict.fromkeys(finite(term.sql) for term in terms if term.number is None)
        beyond = all_of([negated(finite(made.sql)), *bounded])
        shown = self.shown(e.span)
        stop = call("raise_error", sql.Literal(f"float overflow: {shown}" if shown else "float overflow"))
        return Column(when(beyond, stop, made.sql), made.type)

    def _arithmetic(self, e: cxl.Binary, left: Column, right: Column) -> Column:
        nullable = left.type.nullable or right.type.nullable
        if e.op == "+" and isinstance(left.type, ListType) and isinstance(right.type, ListType):
            return Column(call("concat", left.sql, right.sql), ListType(unify(left.type.element, right.type.element)))
        if is_null(left.type) or is_null(right.type):
            other = widened(right.type if is_null(left.type) else left.type)
            return Column(sql.Cast(NULL, spark_type(other)), other.as_nullable())
        if e.op == "+" and is_kind(left.type, Kind.STRING) and is_kind(right.type, Kind.STRING):
            return Column(sql.Binary("||", left.sql, right.sql), STRING.as_nullable() if nullable else STRING)
        if not (is_number(left.type) and is_number(right.type)):
            self.no_form(e.span, f"'{e.op}' of {left.type:?} and {right.type:?} has no Spark form")
        whole = is_kind(left.type, Kind.INT) and is_kind(right.type, Kind.INT)
        op = "div" if e.op == "/" and whole else e.op
        a, b = wide(left), wide(right)
        merged = unify(left.type.unwrap(), right.type.unwrap())
        t = Type(merged.kind) if isinstance(merged, Type) else ANY
        made: sql.Expr = sql.Binary(op, a, b, e.span)
        if self.guard is not None:
            made = self.guard.arithmetic(op, a, b, t, self.shown(e.span), right.number)
        return Column(made, t.as_nullable() if nullable else t)
