"""Lowering comparisons: `==` that is never null, orderings in which NaN is never greater."""

from __future__ import annotations

from clinker_spark.core.types import ANY, Kind, Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins import physical as ph
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.lower.lowering import Lowering
from clinker_spark.cxl.lower.plan import Sql, combine
from clinker_spark.cxl.values import DECIMAL_DIGITS

_ORDERED = (Kind.FLOAT, Kind.STRING, Kind.DATE, Kind.DATETIME)


def lower_compare(lowering: Lowering, e: ir.Compare) -> Sql:
    left, right = lowering.lower(e.left), lowering.lower(e.right)
    dynamic = e.left.type.is_dynamic or e.right.type.is_dynamic
    if dynamic and Kind.NULL not in (e.left.type.kind, e.right.type.kind):
        left, right = lowering.builder.bind(left), lowering.builder.bind(right)
        test = _dynamic_equal if e.op in ("==", "!=") else _dynamic_order
        text = test(e.op, left.text, e.left.type, right.text, e.right.type)
    elif e.op in ("==", "!="):
        return _equal(lowering, e, left, right)
    elif Kind.NULL in (e.left.type.kind, e.right.type.kind):
        text = "CAST(NULL AS BOOLEAN)"
    else:
        text, left, right = _order(lowering, e, left, right)
    return combine(text, [left, right])


def _is_null(e: ir.TExpr) -> bool:
    return e.type.kind is Kind.NULL or (isinstance(e, ir.Const) and e.value is None)


def _negated(op: str, text: str) -> str:
    return f"(NOT {text})" if op == "!=" else text


def _equal(lowering: Lowering, e: ir.Compare, left: Sql, right: Sql) -> Sql:
    a, b = e.left.type, e.right.type
    if _is_null(e.left) or _is_null(e.right):  # `x == null` is a null test
        sides = []
        for side, typed in ((left, e.left), (right, e.right)):
            if not _is_null(typed):
                sides.append((lowering.builder.bind(side) if typed.type.is_dynamic else side, typed.type))
        text = " AND ".join(ph.is_null_sql(s.text, t) for s, t in sides) or "TRUE"
        return combine(_negated(e.op, text), [left, right] if not sides else [s for s, _ in sides])
    if a.kind in (Kind.ARRAY, Kind.MAP):  # containers never equal each other
        return combine(_negated(e.op, f"({left.text} IS NULL AND {right.text} IS NULL)"), [left, right])
    if a.kind is Kind.FLOAT:
        left = lowering.builder.bind(left)
        return combine(_negated(e.op, f"({left.text} <=> {right.text} AND NOT isnan({left.text}))"), [left, right])
    if a.kind is Kind.DECIMAL:
        left, right = _exact_sides(lowering, left, a, right, b)
    return combine(_negated(e.op, f"({left.text} <=> {right.text})"), [left, right])


def _order(lowering: Lowering, e: ir.Compare, left: Sql, right: Sql) -> tuple[str, Sql, Sql]:
    if e.left.type.kind is Kind.DECIMAL:
        left, right = _exact_sides(lowering, left, e.left.type, right, e.right.type)
    if e.left.type.kind is not Kind.FLOAT:
        return f"({left.text} {e.op} {right.text})", left, right
    # Spark puts NaN above everything, so only the side that would be the greater one needs a guard.
    greater_left = e.op in (">", ">=")
    if isinstance(e.left if greater_left else e.right, ir.Const):
        return f"({left.text} {e.op} {right.text})", left, right
    # With a null on the other side the answer is null, NaN or not.
    if greater_left:
        left = lowering.builder.bind(left)
        return f"({left.text} {e.op} {right.text} AND NOT {_nan_meets(left, e.right, right)})", left, right
    right = lowering.builder.bind(right)
    return f"({left.text} {e.op} {right.text} AND NOT {_nan_meets(right, e.left, left)})", left, right


def _nan_meets(side: Sql, other: ir.TExpr, other_sql: Sql) -> str:
    """Is one side NaN and the other one there?"""
    there = isinstance(other, ir.Const) and other.value is not None
    return f"isnan({side.text})" if there else f"(isnan({side.text}) AND {other_sql.text} IS NOT NULL)"


def _exact_sides(lowering: Lowering, left: Sql, a: Type, right: Sql, b: Type) -> tuple[Sql, Sql]:
    """Two decimals as texts that Spark compares without losing a digit."""
    if a.scale is not None and b.scale is not None and abs(a.scale - b.scale) <= 38 - DECIMAL_DIGITS:
        return left, right  # one DECIMAL(38, s) holds both
    left, right = lowering.builder.bind(left), lowering.builder.bind(right)
    return combine(_digits(left.text, a), [left]), combine(_digits(right.text, b), [right])


def _digits(text: str, t: Type) -> str:
    """A decimal as a struct of its whole part and its fraction, which both have its sign: structs compare in order."""
    shown = sql_text(text, t)
    fraction = f"IF(contains({shown}, '.'), substring_index({shown}, '.', -1), '0')"
    signed = f"concat(IF(startswith({shown}, '-'), '-0.', '0.'), {fraction})"
    parts = f"'w', CAST(substring_index({shown}, '.', 1) AS DECIMAL(38, 0)), 'f', CAST({signed} AS DECIMAL(38, 28))"
    return f"CASE WHEN {text} IS NOT NULL THEN named_struct({parts}) END"


def _side(text: str, t: Type) -> tuple[str, Type]:
    """A side as a VARIANT, so that both sides can be asked for their kind."""
    return (text, t) if t.is_dynamic else (ph.widen_sql(text, t, ANY), ANY)


def _dynamic_equal(op: str, left: str, a: Type, right: str, b: Type) -> str:
    if not a.is_dynamic:
        left, a, right, b = right, b, left, a
    if not b.is_dynamic and b.kind in (Kind.BOOL, Kind.STRING, Kind.DATE, Kind.DATETIME):
        same = f"coalesce({ph.narrow_sql(left, b)} = {right}, FALSE)"
    elif not b.is_dynamic and b.kind in (Kind.ARRAY, Kind.MAP):
        same = "FALSE"
    else:
        same = _same_variants(left, _side(right, b)[0])
    both_null = f"{ph.is_null_sql(left, a)} AND {ph.is_null_sql(right, b)}"
    return _negated(op, f"CASE WHEN {both_null} THEN TRUE ELSE {same} END")


def _same_variants(left: str, right: str) -> str:
    k, j = ph.kind_sql(left), ph.kind_sql(right)
    whole = f"{ph.variant_is(k, Kind.INT)} AND {ph.variant_is(j, Kind.INT)}"
    numbers = f"{ph.variant_is(k, Kind.FLOAT)} AND {ph.variant_is(j, Kind.FLOAT)}"
    as_int = [ph.get_sql(s, Type(Kind.INT)) for s in (left, right)]
    as_float = [ph.get_sql(s, Type(Kind.FLOAT)) for s in (left, right)]
    scalar = f"{k} = {j} AND {k} IN ('STRING', 'BOOLEAN', 'DATE', 'TIMESTAMP_NTZ')"
    as_text = [f"try_variant_get({s}, '$', 'string')" for s in (left, right)]
    return (
        f"CASE WHEN {whole} THEN {as_int[0]} = {as_int[1]} "
        f"WHEN {numbers} THEN {as_float[0]} = {as_float[1]} AND NOT isnan({as_float[0]}) "
        f"WHEN {scalar} THEN {as_text[0]} = {as_text[1]} ELSE FALSE END"
    )


def _dynamic_order(op: str, left: str, a: Type, right: str, b: Type) -> str:
    missing = f"{ph.is_null_sql(left, a)} OR {ph.is_null_sql(right, b)}"
    left, right = _side(left, a)[0], _side(right, b)[0]
    k, j = ph.kind_sql(left), ph.kind_sql(right)
    arms = [_ordered_arm(op, k, j, left, right, Kind.INT)]
    arms += [_ordered_arm(op, k, j, left, right, kind) for kind in _ORDERED]
    return f"CASE WHEN {missing} THEN NULL {' '.join(arms)} ELSE FALSE END"


def _ordered_arm(op: str, k: str, j: str, left: str, right: str, kind: Kind) -> str:
    x, y = (ph.get_sql(side, Type(kind)) for side in (left, right))
    no_nan = f" AND NOT isnan({x if op in ('>', '>=') else y})" if kind is Kind.FLOAT else ""
    return f"WHEN {ph.variant_is(k, kind)} AND {ph.variant_is(j, kind)} THEN {x} {op} {y}{no_nan}"
