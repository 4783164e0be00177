"""Union, intersect, except and distinct of whole relations."""

from __future__ import annotations

from typing import Any

from clinker_spark.cxl import ast as cxl
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.query.literals import ddl
from clinker_spark.plan.query.order import first_of, packed
from clinker_spark.plan.query.values import OrderTerm, Relation, Rendered, columns_of
from clinker_spark.query.types import QType, RecordType, unify

_SIDE = "$side"
_PLACE = "$place"


def distinct_relation(relation: Relation) -> Relation:
    """The first of each that are equal, in order."""

    def build(ordered: bool) -> Rendered:
        rendered = relation.build(ordered)
        return _distinct(rendered, relation.row)

    return Relation(relation.row, build)


def _distinct(rendered: Rendered, row: QType) -> Rendered:
    names = ", ".join(quote(name) for name, _ in columns_of(row))
    if not rendered.order:
        return Rendered(f"{rendered.text}\n|> AGGREGATE GROUP BY {names}")
    step, first = first_of(rendered.order)
    return Rendered(f"{rendered.text}{step}\n|> AGGREGATE {first} AS `$first` GROUP BY {names}", (OrderTerm("$first"),))


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
    sides = [_aligned(side, row, number, ordered) for number, side in enumerate((left, right))]
    order = (OrderTerm(_SIDE), OrderTerm(_PLACE, plain=True)) if ordered else ()
    return Rendered(f"{sides[0]}\n|> UNION ALL ({sides[1]})", order)


def _aligned(side: Relation, row: QType, number: int, ordered: bool) -> str:
    """One side with the columns of both, in one order."""
    rendered = side.build(ordered)
    have = dict(columns_of(side.row))
    listed = []
    for name, t in columns_of(row):
        text = quote(name) if name in have else "NULL"
        listed.append(f"CAST({text} AS {ddl(t)}) AS {quote(name)}" if have.get(name) != t else quote(name))
    step = ""
    if ordered:
        # The sides' places may differ in number and type, so each side has its rows numbered in its own order.
        step, places = packed(rendered.order)
        place = "0L"
        if len(places) == 1 and step:
            place = quote(places[0])
        elif places:
            order = ", ".join(quote(p) for p in places)
            step = f"\n|> EXTEND CAST(row_number() OVER (ORDER BY {order}) AS BIGINT) AS {quote(_PLACE)}"
            place = quote(_PLACE)
        listed += [f"{number} AS {quote(_SIDE)}", f"CAST({place} AS BIGINT) AS {quote(_PLACE)}"]
    return f"{rendered.text}{step}\n|> SELECT {', '.join(listed)}"


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
        f"FROM {rendered.source()} AS {a}\n|> {join} {right.build(False).source()} AS {b} ON {on}", rendered.order
    )
