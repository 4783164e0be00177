"""Union, intersect, except and distinct of whole relations."""

from __future__ import annotations

from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.lower.base import LoweringBase
from clinker_spark.query.lower.order import first_places, united
from clinker_spark.query.lower.spelling import spark_type
from clinker_spark.query.lower.values import Lowered, Relation, columns_of
from clinker_spark.query.types import QType, RecordType, unify
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import NULL, equals, own_columns


def distinct_relation(relation: Relation) -> Relation:
    """The first of each that are equal, in order."""
    return Relation(relation.row, lambda ordered: _distinct(relation.build(ordered), relation.row))


def _distinct(rows: Lowered, row: QType) -> Lowered:
    names = [name for name, _ in columns_of(row)]
    step, first, order = first_places(rows.order, {sql.Column(name): name for name in names})
    return Lowered(rows.query.then(*step, sql.Aggregate(first, own_columns(names))), order)


def set_relation(lowering: LoweringBase, e: cxl.Binary, left: Relation, right: Relation) -> Relation:
    """Left then right for a union; the left rows that are (or are not) on the right for the others."""
    if isinstance(left.row, RecordType) != isinstance(right.row, RecordType):
        lowering.no_form(e.span, f"'{e.op}' of {left.row:?} and {right.row:?} has no Spark form")
    row = unify(left.row, right.row)
    if e.op in ("union", "union all"):
        union = Relation(row, lambda ordered: _union(left, right, row, ordered))
        return union if e.op == "union all" else distinct_relation(union)
    kept = Relation(left.row, lambda ordered: _filtered(lowering, e.op, left, right, ordered))
    return kept if e.op == "except" else distinct_relation(kept)


def _union(left: Relation, right: Relation, row: QType, ordered: bool) -> Lowered:
    """One after the other: neither side is sorted or numbered for it, the order stays a list of terms."""
    first, second = left.build(ordered), right.build(ordered)
    order, *hidden = united(first.order, second.order) if ordered else ((), [], [])
    sides = [
        _aligned(rows.query, side.row, row, places)
        for rows, side, places in zip((first, second), (left, right), hidden, strict=True)
    ]
    return Lowered(sides[0].then(sql.UnionAll(sides[1])), order)


def _aligned(query: sql.Query, own: QType, row: QType, places: list[sql.As]) -> sql.Query:
    """One side with the columns of both, and with those that order it."""
    have = dict(columns_of(own))
    listed = []
    for name, t in columns_of(row):
        value: sql.Expr = sql.Column(name) if name in have else NULL
        listed.append(sql.As(value if have.get(name) == t else sql.Cast(value, spark_type(t)), name))
    return query.then(sql.Select((*listed, *places)))


def _filtered(lowering: LoweringBase, op: str, left: Relation, right: Relation, ordered: bool) -> Lowered:
    rows = left.build(ordered)
    a, b = lowering.fresh("l") + "_", lowering.fresh("r") + "_"
    theirs = dict(columns_of(right.row))
    tests = []
    for name, t in columns_of(left.row):
        other: sql.Expr = sql.Column(name, b) if name in theirs else NULL
        nulls = t.nullable or name not in theirs or theirs[name].nullable
        tests.append(equals(sql.Column(name, a), other, nulls=nulls))
    kind = "LEFT ANTI JOIN" if op == "except" else "LEFT SEMI JOIN"
    join = sql.Join(kind, right.build(False).relation, b, tuple(tests))
    return Lowered(sql.Query((sql.From(rows.relation, a), join)), rows.order)
