"""Questions about the keys of a group that the tree alone can answer."""

from __future__ import annotations

from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.names import key_name
from clinker_spark.query.syntax import ast


def groups_in_order(q: ast.Query) -> bool:
    """Is the order of the groups known without their first appearances? It is with one group, or when no two tie."""
    if q.group is None:
        return False
    return all(isinstance(key, cxl.Literal) for key in q.group.keys) or sorts_by_whole_key(q)


def sorts_by_whole_key(q: ast.Query) -> bool:
    """Do the sort keys name every part of the group key? Then no two groups tie, and first appearances are not needed.

    >>> from clinker_spark.core.span import Source
    >>> from clinker_spark.query.syntax.parser import parse
    >>> def example(sort):
    ...     return parse(Source("q", f"from x in xs group by x.a, x.b into g {sort} select g.key"))[0][0].value
    >>> sorts_by_whole_key(example("sort by g.key.b desc, g.key.a")), sorts_by_whole_key(example("sort by g.key.a"))
    (True, False)
    """
    if q.group is None or not q.orders:
        return False
    group = q.group
    found: set[str] = set()
    for order in q.orders:
        e = order.value.operand if isinstance(order.value, cxl.Unary) else order.value
        for part in e.items if isinstance(e, cxl.ArrayLiteral) else (e,):
            found |= _key_parts(part.operand if isinstance(part, cxl.Unary) else part, group.name)
    if len(group.keys) == 1 and not isinstance(group.keys[0], cxl.MapLiteral):
        return "key" in found
    if len(group.keys) == 1 and isinstance(group.keys[0], cxl.MapLiteral):
        return {entry.key.value for entry in group.keys[0].entries if isinstance(entry.key, cxl.Literal)} <= found
    return {key_name(e, i) for i, e in enumerate(group.keys)} <= found


def _key_parts(e: cxl.Expr, group: str) -> set[str]:
    match e:
        case cxl.Member(target=cxl.Name(name=name), name=part) if name == group:
            return {part}
        case cxl.Member(target=cxl.Member(target=cxl.Name(name=name), name="key"), name=part) if name == group:
            return {part}
        case cxl.Name(name=name):
            return {name}
    return set()
