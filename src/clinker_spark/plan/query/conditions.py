"""Lowering conditions: two-valued, and left open to Catalyst's push-down where only rows are selected."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from clinker_spark.core.types import Kind
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.plan.query.base import Env, LoweringBase
from clinker_spark.plan.query.literals import literal
from clinker_spark.plan.query.pieces import nested
from clinker_spark.plan.query.values import (
    Column,
    Local,
    Record,
    Rows,
    Value,
)
from clinker_spark.query.types import (
    ListType,
    MapType,
    Scalar,
    is_kind,
    is_null,
    is_number,
)

_ORDERINGS = ("<", ">", "<=", ">=")


class ConditionLowering(LoweringBase):
    # ------------------------------------------------------------- conditions

    def condition(self, e: cxl.Expr, scope: Env, *, exact: bool) -> str:
        """A condition as SQL. With `exact` it is never null."""
        if isinstance(e, cxl.Binary):
            if e.op in ("and", "or"):
                left = self.condition(e.left, scope, exact=exact)
                with self.branch(left if e.op == "and" else f"NOT coalesce({left}, FALSE)"):
                    right = self.condition(e.right, scope, exact=exact)
                if isinstance(e.left, cxl.Binary) and e.left.op == e.op:
                    left = left[1:-1]  # Spark's parser reads a flat list in a loop, and brackets by recursion
                return f"({left} {e.op.upper()} {right})"
            if e.op in ("==", "!="):
                return self._equal(e, scope)
            if e.op in _ORDERINGS:
                return self._ordered(e, scope, exact)
            if e.op == "in":
                return self._in(e, scope, exact)
        if isinstance(e, cxl.Unary) and e.op == "not":
            return f"(NOT {self.condition(e.operand, scope, exact=True)})"
        return self.truth(self.lower(e, scope), exact)

    def truth(self, value: Value, exact: bool) -> str:
        """Is a value true? A row is when it is there, a list when it has elements."""
        match value:
            case Record(presence=None):
                return "TRUE"
            case Record(presence=presence):
                assert presence is not None
                return presence.text()
            case Rows(relation=relation):
                return f"EXISTS {nested(relation.build(False).text)}"
        column = self.to_column(value)
        t = column.type
        if is_null(t):
            return "FALSE"
        if is_kind(t, Kind.BOOL):
            return f"coalesce({column.text}, FALSE)" if exact and t.nullable else column.text
        if is_number(t):
            text = f"({column.text} != 0)"
        elif is_kind(t, Kind.STRING):
            text = f"({column.text} != '')"
        elif isinstance(t, ListType):
            text = f"(size({column.text}) > 0)"
        else:
            return f"({column.text} IS NOT NULL)"
        return f"coalesce({text}, FALSE)" if exact and t.nullable else text

    def _equal(self, e: cxl.Binary, scope: Env) -> str:
        negated = "NOT " if e.op == "!=" else ""
        a, b = self.lower(e.left, scope), self.lower(e.right, scope)
        for one, other in ((a, b), (b, a)):
            if isinstance(other, Local) and other.value is None:
                if isinstance(one, Record):
                    return f"({'' if negated else 'NOT '}{self.truth(one, True)})"
                return f"({self.to_column(one).text} IS {negated}NULL)"
        left, right = self._paired(self.to_column(a), self.to_column(b))
        if left.type.nullable or right.type.nullable:
            return f"({negated}{left.text} <=> {right.text})"
        return f"({left.text} {'!=' if negated else '='} {right.text})"

    def _ordered(self, e: cxl.Binary, scope: Env, exact: bool) -> str:
        left, right = self._paired(self.column(e.left, scope), self.column(e.right, scope))
        text = f"({left.text} {e.op} {right.text})"
        nullable = left.type.nullable or right.type.nullable
        return f"coalesce({text}, FALSE)" if exact and nullable else text

    def _paired(self, left: Column, right: Column) -> tuple[Column, Column]:
        """Two sides of a comparison. A written 0.05 beside a decimal is that decimal, not the float next to it."""
        for one, other in ((left, right), (right, left)):
            if is_kind(one.type, Kind.DECIMAL) and isinstance(other.number, float) and math.isfinite(other.number):
                exact = Column(f"{Decimal(repr(other.number)):f}BD", Scalar(Kind.DECIMAL))
                return (left, exact) if other is right else (exact, right)
        return left, right

    def _in(self, e: cxl.Binary, scope: Env, exact: bool) -> str:
        target = self.lower(e.right, scope)
        value = self.lower(e.left, scope)
        if isinstance(target, Rows):
            return self.contains_row(target.relation, value, exact=exact).text
        if isinstance(target, Local) and isinstance(target.value, list):
            return self._in_list(value, target.value)
        column = self.to_column(target)
        needle = self.to_column(value)
        if is_kind(column.type, Kind.STRING):
            return f"coalesce(contains({column.text}, {needle.text}), FALSE)"
        if isinstance(column.type, MapType):
            return f"coalesce(map_contains_key({column.text}, {needle.text}), FALSE)"
        if isinstance(column.type, ListType):
            return f"coalesce(exists({column.text}, cq_i -> cq_i <=> {needle.text}), FALSE)"
        self.no_form(e.span, f"'in' over {column.type} has no Spark form")

    def _in_list(self, value: Value, wanted: list[Any]) -> str:
        needle = self.to_column(value)
        there = [literal(v)[0] for v in wanted if v is not None]
        parts = [f"({needle.text} IN ({', '.join(there)}))"] if there else []
        if None in wanted:
            parts.append(f"({needle.text} IS NULL)")
        text = " OR ".join(parts) or "FALSE"
        return f"coalesce({text}, FALSE)" if needle.type.nullable else f"({text})"
