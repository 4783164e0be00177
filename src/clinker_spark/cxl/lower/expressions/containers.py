"""Lowering array and map literals, and the bound on what a record may build."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from clinker_spark.cxl import ir
from clinker_spark.cxl.construction import ENTRY_BYTES, TOO_LARGE, is_limited, size_sql
from clinker_spark.cxl.errors import DUPLICATE_KEY, NULL_KEY, ErrorKind
from clinker_spark.cxl.limits import MAX_CONSTRUCTED_BYTES
from clinker_spark.cxl.lower.errors import failing
from clinker_spark.cxl.lower.lowering import Lowering
from clinker_spark.cxl.lower.plan import Failing, Sql, combine


def lower_array(lowering: Lowering, e: ir.MakeArray) -> Sql:
    items = [lowering.lower(item) for item in e.items]
    if is_limited(e):
        items = [lowering.builder.bind(item) for item in items]
    made = combine(f"array({', '.join(i.text for i in items)})", items)
    return _limited(made, e, len(items), zip(items, e.items, strict=True))


def lower_map(lowering: Lowering, e: ir.MakeMap) -> Sql:
    keys = [lowering.bound(k) for k in e.keys]
    limited = is_limited(e)
    values = [lowering.bound(v) if limited else lowering.lower(v) for v in e.values]
    computed = [k for k, typed in zip(keys, e.keys, strict=True) if not isinstance(typed, ir.Const)]
    parts = [part for pair in zip(keys, values, strict=True) for part in pair]
    made = f"map({', '.join(p.text for p in parts)})"
    typed = zip((*keys, *values), (*e.keys, *e.values), strict=True)
    if not computed:
        return _limited(combine(made, parts), e, len(values), typed)
    array = lowering.builder.bind(combine(f"array({', '.join(k.text for k in keys)})", [k.bare() for k in keys]))
    null_key = " OR ".join(f"{k.text} IS NULL" for k in computed)
    duplicate = f"size(array_distinct({array.text})) < {len(keys)}"
    failures = (
        failing(null_key, ErrorKind.TYPE_MISMATCH, NULL_KEY, array.level),
        failing(duplicate, ErrorKind.DUPLICATE_MAP_KEY, DUPLICATE_KEY, array.level, _first_repeated(array.text)),
    )
    # A null or repeated key would throw in map(), so it is not built then.
    guarded = f"CASE WHEN {null_key} OR {duplicate} THEN NULL ELSE {made} END"
    return _limited(combine(guarded, [array, *parts], failures), e, len(values), typed)


def _limited(made: Sql, e: ir.TExpr, entries: int, parts: Iterable[tuple[Sql, ir.TExpr]]) -> Sql:
    """A literal with its bound: the sizes of its parts, which are bound to columns, and its entries."""
    if not is_limited(e):
        return made
    sizes = [size for sql, part in parts if (size := size_sql(sql.text, part.type)) is not None]
    return combine(made.text, [made], [too_large(" + ".join([str(ENTRY_BYTES * entries), *sizes]), made.level)])


def too_large(size: str, level: int) -> Failing:
    """The failure of building more than a record may."""
    when = f"{size} > {MAX_CONSTRUCTED_BYTES}"
    return replace(failing(when, ErrorKind.CONSTRUCTION_LIMIT_EXCEEDED, TOO_LARGE, level), size=size)


def _first_repeated(array: str) -> str:
    """The first element of an array of strings that stands in it twice."""
    return f"get(filter({array}, cxl_e -> size(filter({array}, cxl_f -> cxl_f = cxl_e)) > 1), 0)"
