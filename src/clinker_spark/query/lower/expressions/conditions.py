"""Lowering conditions: two-valued, and left open to Catalyst's push-down where only rows are selected.

`==` is null-safe where a null can meet it, `<` with a null is false. A condition that only selects rows may leave a
null where a false belongs (`exact=False`), which keeps it open to Catalyst's push-down.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.lower.base import Env, LoweringBase
from clinker_spark.query.lower.spelling import literal
from clinker_spark.query.lower.values import Column, Local, Record, Rows, Value
from clinker_spark.query.types import ListType, MapType, is_kind, is_null, is_number
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import FALSE, TRUE, all_of, any_of, call, equals, negated, never_null, there

_ORDERINGS = ("<", ">", "<=", ">=")


class ConditionLowering(LoweringBase):
    def condition(self, e: cxl.Expr, scope: Env, *, exact: bool) -> sql.Expr:
        """A condition as SQL. With `exact` it is never null."""
        if isinstance(e, cxl.Binary):
            if e.op in ("and", "or"):
                left = self.condition(e.left, scope, exact=exact)
                with self.branch(left if e.op == "and" else negated(never_null(left))):
                    right = self.condition(e.right, scope, exact=exact)
                return (all_of if e.op == "and" else any_of)((left, right))
            if e.op in ("==", "!="):
                return self.equal(e, scope)
            if e.op in _ORDERINGS:
                return self._ordered(e, scope, exact)
            if e.op == "in":
                return self._in(e, scope, exact)
        if isinstance(e, cxl.Unary) and e.op == "not":
            return negated(self.condition(e.operand, scope, exact=True))
        return self.truth(self.lower(e, scope), exact)

    def truth(self, value: Value, exact: bool) -> sql.Expr:
        """Is a value true? A row is when it is there, a list when it has elements."""
        match value:
            case Record(presence=None):
                return TRUE
            case Record(presence=presence):
                assert presence is not None
                return presence.sql()
            case Rows(relation=relation):
                return sql.Exists(relation.build(False).query)
        column = self.to_column(value)
        t = column.type
        if is_null(t):
            return FALSE
        if is_kind(t, Kind.BOOL):
            made = column.sql
        elif is_number(t):
            made = sql.Binary("!=", column.sql, sql.Literal(0))
        elif is_kind(t, Kind.STRING):
            made = sql.Binary("!=", column.sql, sql.Literal(""))
        elif isinstance(t, ListType):
            made = sql.Binary(">", call("size", column.sql), sql.Literal(0))
        else:
            return there(column.sql)
        return never_null(made) if exact and t.nullable else made

    def equal(self, e: cxl.Binary, scope: Env) -> sql.Expr:
        a, b = self.lower(e.left, scope), self.lower(e.right, scope)
        unequal = e.op == "!="
        for one, other in ((a, b), (b, a)):
            if isinstance(other, Local) and other.value is None:
                if isinstance(one, Record):
                    found = self.truth(one, True)
                    return found if unequal else negated(found)
                return sql.IsNull(self.to_column(one).sql, negated=unequal)
        left, right = self._paired(self.to_column(a), self.to_column(b))
        if left.type.nullable or right.type.nullable:
            same = equals(left.sql, right.sql, nulls=True)
            return negated(same) if unequal else same
        return sql.Binary("!=" if unequal else "=", left.sql, right.sql)

    def _ordered(self, e: cxl.Binary, scope: Env, exact: bool) -> sql.Expr:
        left, right = self._paired(self.column(e.left, scope), self.column(e.right, scope))
        made = sql.Binary(e.op, left.sql, right.sql)
        return never_null(made) if exact and (left.type.nullable or right.type.nullable) else made

    def _paired(self, left: Column, right: Column) -> tuple[Column, Column]:
        """Two sides of a comparison. A written 0.05 beside a decimal is that decimal, not the float next to it."""
        for one, other in ((left, right), (right, left)):
            if is_kind(one.type, Kind.DECIMAL) and isinstance(other.number, float) and math.isfinite(other.number):
                exact = Column(sql.Literal(Decimal(repr(other.number))), Type(Kind.DECIMAL))
                return (left, exact) if other is right else (exact, right)
        return left, right

    def _in(self, e: cxl.Binary, scope: Env, exact: bool) -> sql.Expr:
        target = self.lower(e.right, scope)
        value = self.lower(e.left, scope)
        if isinstance(target, Rows):
            return self.contains_row(target.relation, value, exact=exact).sql
        if isinstance(target, Local) and isinstance(target.value, list):
            return self._in_list(value, target.value)
        column = self.to_column(target)
        needle = self.to_column(value).sql
        if is_kind(column.type, Kind.STRING):
            return never_null(call("contains", column.sql, needle))
        if isinstance(column.type, MapType):
            return never_null(call("map_contains_key", column.sql, needle))
        if isinstance(column.type, ListType):
            return has_element(column.sql, needle)
        self.no_form(e.span, f"'in' over {column.type:?} has no Spark form")

    def _in_list(self, value: Value, wanted: list[Any]) -> sql.Expr:
        needle = self.to_column(value)
        present = tuple(literal(v)[0] for v in wanted if v is not None)
        parts: list[sql.Expr] = [sql.In((needle.sql,), present)] if present else []
        if None in wanted:
            parts.append(sql.IsNull(needle.sql))
        made = any_of(parts)
        return never_null(made) if needle.type.nullable else made


def has_element(array: sql.Expr, needle: sql.Expr) -> sql.Expr:
    """Is a value an element of an array? Two nulls are equal."""
    same = sql.Lambda(("cq_i",), equals(sql.Variable("cq_i"), needle, nulls=True))
    return never_null(call("exists", array, same))
