"""Which names an expression reads from outside itself, and other questions about trees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clinker_spark.core.tree import field_names
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.syntax import ast


def children(node: Any) -> Iterator[Any]:
    """The nodes directly inside a node."""
    for name in field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, cxl.Node):
            yield value
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, cxl.Node):
                    yield item
                elif isinstance(item, tuple):
                    yield from (x for x in item if isinstance(x, cxl.Node))


def walk(node: Any) -> Iterator[Any]:
    yield node
    for child in children(node):
        yield from walk(child)


def free_names(node: Any) -> frozenset[str]:
    """The variables that `node` reads and does not bind itself. Names of called functions are among them.

    >>> from clinker_spark.core.span import Source
    >>> from clinker_spark.query.syntax.parser import parse
    >>> program, _ = parse(Source("q", "from x in xs where x.a == y select f(x)"))
    >>> sorted(free_names(program[0]))
    ['f', 'xs', 'y']
    """
    match node:
        case cxl.Name(name=name):
            return frozenset((name,))
        case cxl.Call(function=function, args=args):
            return frozenset((function,)).union(*(free_names(a) for a in args))
        case ast.Query():
            return _free_in_query(node)
        case ast.Lambda(params=params, body=body):
            inner = free_names(body) if isinstance(body, cxl.Node) else _union(body)
            return inner - {p.name for p in params}
        case cxl.Comprehension(binding=binding):
            own = free_names(node.value) | (free_names(node.condition) if node.condition else frozenset())
            return free_names(node.source) | (own - {binding})
        case ast.TypeName():
            return frozenset()
    return _union(children(node))


def _union(nodes: Any) -> frozenset[str]:
    return frozenset().union(*(free_names(n) for n in nodes))


def _free_in_query(q: ast.Query) -> frozenset[str]:
    found: set[str] = set()
    bound: set[str] = set()
    for source in q.sources:
        found |= free_names(source.source) - bound
        bound.add(source.name)
    for join in q.joins:
        found |= free_names(join.source) - bound
        bound.add(join.name)
        found |= free_names(join.on) - bound
    for let in q.lets:
        found |= free_names(let.value) - bound
        bound.add(let.name)
    for where in q.wheres:
        found |= free_names(where) - bound
    if q.group is not None:
        found |= _union(q.group.keys) - bound
        bound = {q.group.name}
        if q.group.having is not None:
            found |= free_names(q.group.having) - bound
    rest = [k.value for k in q.orders] + [e for e in (q.skip, q.take, q.select) if e is not None]
    return frozenset(found | (_union(rest) - bound))


def conjuncts(e: cxl.Expr) -> list[cxl.Expr]:
    """The parts of `a and b and c`."""
    if isinstance(e, cxl.Binary) and e.op == "and":
        return conjuncts(e.left) + conjuncts(e.right)
    return [e]


def key_name(e: cxl.Expr, position: int) -> str:
    """What a key of several is called: its last field, or k1, k2 ..."""
    if isinstance(e, cxl.Member):
        return e.name
    if isinstance(e, cxl.Name):
        return e.name
    return f"k{position + 1}"


SCALAR_AGGREGATES = ("sum", "avg", "min", "max", "count")


def scalar_aggregate(q: ast.Query) -> cxl.Call | None:
    """The aggregate that makes a whole query one value: `from x in xs select sum(x.n)`.

    Only the shape is looked at here; when the argument turns out to be a list, each row has its own total.
    """
    call = q.select
    if q.group is None and not q.distinct and isinstance(call, cxl.Call) and call.function in SCALAR_AGGREGATES:
        bound = {s.name for s in q.sources} | {j.name for j in q.joins} | {v.name for v in q.lets}
        if len(call.args) == 1 and not isinstance(call.args[0], ast.Query) and free_names(call.args[0]) & bound:
            return call
    return None


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
