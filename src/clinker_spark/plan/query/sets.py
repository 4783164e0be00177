"""Union, intersect, except and distinct of whole relations."""

from __future__ import annotations

from typing import Any

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.plan.query.literals import ddl
from clinker_spark.plan.query.order import aggregate_step, first_places, united
from clinker_spark.plan.query.pieces import STEP, nested
from clinker_spark.plan.query.values import Relation, Rendered, columns_of
from clinker_spark.query.types import QType, RecordType, unify


def distinct_relation(relation: Relation) -> Relation:
    """The first of each that are equal, in order."""

    def build(ordered: bool) -> Rendered:
        rendered = relation.build(ordered)
        return _distinct(rendered, relation.row)

    return Relation(relation.row, build)


def _distinct(rendered: Rendered, row: QType) -> Rendered:
    names = [quote(name) for name, _ in columns_of(row)]
    step, first, order = first_places(rendered.order, {name: name for name in names})
    return Rendered(STEP.join([rendered.text, *step, aggregate_step(first, ", ".join(names))]), order)


def set_relation(lowering: Any, e: cxl.Binary, left: Relation, right: Relation) -> Relation:
    """Left then right for a union; the left rows that are (or are not) on the right for the others."""
    if isinstance(left.row, RecordType) != isinstance(right.row, RecordType):
        lowering.no_form(e.span, f"'{e.op}' of {left.row} and {right.row} has no Spark form")
    row = unify(left.row, right.row)
    if e.op in ("union", "union all"):
        union = Relation(row, lambda ordered: _union(left, right, row, ordered))
        return union if e.op == "union all" else distinct_relation(union)
    kept = Relation(left.row, lambda ordered: _filtered(lowering, e.op, left, right, ordered))
    return kept if e.op == "except" else distinct_relation(kept)


def _union(left: Relation, right: Relation, row: QType, ordered: bool) -> Rendered:
    """One after the other: neither side is sorted or numbered for it, the order stays a list of terms."""
    first, second = left.build(ordered), right.build(ordered)
    order, *hidden = united(first.order, second.order) if ordered else ((), [], [])
    texts = [
        _aligned(text, side.row, row, places)
        for text, side, places in zip((first.text, second.text), (left, right), hidden, strict=True)
    ]
    return Rendered(f"{texts[0]}{STEP}UNION ALL {nested(texts[1])}", order)


def _aligned(text: str, own: QType, row: QType, places: list[str]) -> str:
    """One side with the columns of both, and with those that order it."""
    have = dict(columns_of(own))
    listed = []
    for name, t in columns_of(row):
        value = quote(name) if name in have else "NULL"
        listed.append(f"CAST({value} AS {ddl(t)}) AS {quote(name)}" if have.get(name) != t else quote(name))
    return f"{text}{STEP}SELECT {', '.join([*listed, *places])}"


def _filtered(lowering: Any, op: str, left: Relation, right: Relation, ordered: bool) -> Rendered:
    rendered = left.build(ordered)
    a, b = lowering.fresh("l") + "_", lowering.fresh("r") + "_"
    theirs = dict(columns_of(right.row))
    tests = []
    for name, t in columns_of(left.row):
        other = f"{b}.{quote(name)}" if name in theirs else "NULL"
        safe = t.nullable or name not in theirs or theirs[name].nullable
        tests.append(f"{a}.{quote(name)} {'<=>' if safe else '='} {other}")
    join = "LEFT ANTI JOIN" if op == "except" else "LEFT SEMI JOIN"
    on = " AND ".join(tests)
    return Rendered(
        f"FROM {rendered.source()} AS {a}{STEP}{join} {right.build(False).source()} AS {b} ON {on}", rendered.order
    )
