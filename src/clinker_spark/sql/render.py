"""The one renderer: nodes as text that Spark's parser reads.

An operator stands in parentheses, except as the left operand of one that binds as tightly: operators of one rank group
to the left, and Spark's parser reads a long chain in a loop, but brackets by recursion.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from clinker_spark.core.span import Span
from clinker_spark.sql import tree
from clinker_spark.sql.quoting import identifier, string

_RANKS = (frozenset("+-"), frozenset(("*", "/", "%", "div")))


@dataclass(frozen=True)
class Printed:
    """Printed SQL: pieces of text, and between them the sources that have no names yet."""

    pieces: tuple[str | tree.Source, ...]
    origins: Mapping[str, Span]
    """Where pieces of it come from: when a value fails, Spark says which text it could not go on with."""
    functions: Mapping[str, Any]
    """The functions that a session has to know, by name, with their definitions."""

    def text(self, name: Callable[[tree.Source], str]) -> str:
        """The text, with these names for the views of its sources."""
        return "".join([piece if isinstance(piece, str) else identifier(name(piece)) for piece in self.pieces])

    def __str__(self) -> str:
        return self.text(lambda source: f"source {source.number}")


def render(node: tree.Query | tree.Expr | tree.As | tree.Sort, depth: int = 0) -> Printed:
    """The text of a query, of an expression, of a column with its name, or of a key to sort by.

    Lines after the first are indented by `depth` levels of two blanks.

    >>> small = tree.Binary("<", tree.Column("a", "t"), tree.Literal("it's"))
    >>> print(render(tree.Query((tree.From(tree.Source(0), "t"), tree.Where((small,))))))
    FROM `source 0` AS t
    |> WHERE (t.`a` < translate('it~s', '~', chr(39)))
    """
    printer = _Printer(depth)
    if isinstance(node, tree.Query):
        printer.query(node)
    elif isinstance(node, tree.As):
        printer.named(node)
    elif isinstance(node, tree.Sort):
        printer.sort(node)
    else:
        printer.expr(node)
    return Printed(printer.merged(), printer.origins, printer.functions)


def type_text(t: tree.Type) -> str:
    """
    >>> type_text(tree.ArrayOf(tree.StructOf((("id", tree.Named("BIGINT")),))))
    'ARRAY<STRUCT<`id`: BIGINT>>'
    """
    match t:
        case tree.Named(name=name):
            return name
        case tree.ArrayOf(element=element):
            return f"ARRAY<{type_text(element)}>"
        case tree.MapOf(key=key, value=value):
            return f"MAP<{type_text(key)}, {type_text(value)}>"
        case tree.StructOf(fields=fields):
            return f"STRUCT<{', '.join(f'{identifier(name)}: {type_text(f)}' for name, f in fields)}>"
    raise TypeError(t)


def columns_text(fields: Iterable[tuple[str, tree.Type]]) -> str:
    """A schema: `name type, ...`."""
    return ", ".join(f"{identifier(name)} {type_text(t)}" for name, t in fields)


def literal_text(value: Any, long: bool = False) -> str:
    """
    >>> literal_text(3), literal_text(3, long=True), literal_text(2**40), literal_text(0.5), literal_text(None)
    ('3', '3L', '1099511627776L', '0.5D', 'NULL')
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"{value}L" if long or not -(2**31) < value < 2**31 else str(value)
        case float():
            return f"{value!r}D" if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
        case Decimal():
            return f"{value:f}BD"
        case str():
            return string(value)
        case dt.datetime():
            return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
    raise TypeError(value)


class _Printer:
    def __init__(self, depth: int) -> None:
        self.pieces: list[str | tree.Source] = []
        self.origins: dict[str, Span] = {}
        self.functions: dict[str, Any] = {}
        self._depth = depth

    def merged(self) -> tuple[str | tree.Source, ...]:
        """The pieces, with one text between two sources."""
        made: list[str | tree.Source] = []
        texts: list[str] = []
        for piece in self.pieces:
            if isinstance(piece, str):
                texts.append(piece)
                continue
            made += ["".join(texts), piece]
            texts = []
        return (*made, "".join(texts))

    def _put(self, text: str) -> None:
        self.pieces.append(text)

    def _list(self, items: Iterable[Any], put: Callable[[Any], None], separator: str = ", ") -> None:
        for i, item in enumerate(items):
            if i:
                self._put(separator)
            put(item)

    def _note(self, start: int, span: Span | None) -> None:
        """What was printed since `start` comes from this place."""
        if span is not None:
            self.origins["".join(piece for piece in self.pieces[start:] if isinstance(piece, str))] = span

    # ------------------------------------------------------------ expressions

    def expr(self, e: tree.Expr) -> None:
        _EXPRESSIONS[type(e)](self, e)

    def column(self, e: tree.Column) -> None:
        self._put(f"{e.of}.{identifier(e.name)}" if e.of else identifier(e.name))

    def variable(self, e: tree.Variable) -> None:
        self._put(e.name)

    def literal(self, e: tree.Literal) -> None:
        self._put(literal_text(e.value, e.long))

    def field(self, e: tree.Field) -> None:
        bare = isinstance(e.target, tree.Case | tree.Literal | tree.Fragment | tree.Lambda)
        self._put("(" if bare else "")
        self.expr(e.target)
        self._put(f"{')' if bare else ''}.{identifier(e.name)}")

    def call(self, e: tree.Call) -> None:
        if e.definition is not None:
            self.functions[e.function] = e.definition
        self._put(f"{e.function}({'DISTINCT ' if e.distinct else ''}")
        self._list(e.args, self.expr)
        self._put(")")
        if e.where is not None:
            self._put(" FILTER (WHERE ")
            self.expr(e.where)
            self._put(")")

    def unary(self, e: tree.Unary) -> None:
        self._put(f"({e.op} ")
        self.expr(e.operand)
        self._put(")")

    def binary(self, e: tree.Binary) -> None:
        chain = [e]
        while isinstance(left := chain[-1].left, tree.Binary) and _same_rank(left.op, chain[-1].op):
            chain.append(left)
        self._put("(")
        start = len(self.pieces)
        self.expr(chain[-1].left)
        for part in reversed(chain):
            self._put(f" {part.op} ")
            self.expr(part.right)
            self._note(start, part.span)
        self._put(")")

    def logic(self, e: tree.Logic) -> None:
        self._put("(")
        self._list(e.parts, self.expr, f" {e.op} ")
        self._put(")")

    def is_null(self, e: tree.IsNull) -> None:
        self._put("(")
        self.expr(e.operand)
        self._put(" IS NOT NULL)" if e.negated else " IS NULL)")

    def case(self, e: tree.Case) -> None:
        self._put("CASE")
        for condition, value in e.arms:
            self._put(" WHEN ")
            self.expr(condition)
            self._put(" THEN ")
            self.expr(value)
        if e.otherwise is not None:
            self._put(" ELSE ")
            self.expr(e.otherwise)
        self._put(" END")

    def cast(self, e: tree.Cast) -> None:
        start = len(self.pieces)
        self._put("try_cast(" if e.tries else "CAST(")
        self.expr(e.value)
        self._put(f" AS {type_text(e.type)})")
        self._note(start, e.span)

    def function(self, e: tree.Lambda) -> None:
        self._put(f"{e.params[0] if len(e.params) == 1 else '(' + ', '.join(e.params) + ')'} -> ")
        self.expr(e.body)

    def fragment(self, e: tree.Fragment) -> None:
        for part in e.parts:
            if isinstance(part, str):
                self._put(part)
            else:
                self.expr(part)

    def subquery(self, e: tree.Subquery) -> None:
        self._nested(e.query)

    def exists(self, e: tree.Exists) -> None:
        self._put("EXISTS ")
        self._nested(e.query)

    def inside(self, e: tree.In) -> None:
        self._put("((" if len(e.values) > 1 else "(")
        self._list(e.values, self.expr)
        self._put(") IN " if len(e.values) > 1 else " IN ")
        if isinstance(e.among, tree.Query):
            self._nested(e.among)
        else:
            self._put("(")
            self._list(e.among, self.expr)
            self._put(")")
        self._put(")")

    # ---------------------------------------------------------------- queries

    def query(self, q: tree.Query) -> None:
        for i, step in enumerate(q.steps):
            if i:
                self._break()
                self._put("|> ")
            _STEPS[type(step)](self, step)

    def _break(self) -> None:
        self._put("\n" + "  " * self._depth)

    def _nested(self, q: tree.Query) -> None:
        """A query inside of another text, in parentheses and on lines of its own."""
        self._put("(")
        self._depth += 1
        self._break()
        self.query(q)
        self._depth -= 1
        self._break()
        self._put(")")

    def _relation(self, relation: tree.Source | tree.Query, alias: str) -> None:
        if isinstance(relation, tree.Source):
            self.pieces.append(relation)
        else:
            self._nested(relation)
        if alias:
            self._put(f" AS {alias}")

    def named(self, c: tree.As) -> None:
        if c.value != tree.Column(c.name):
            self.expr(c.value)
            self._put(" AS ")
        self._put(identifier(c.name))
        if c.span is not None:
            self.origins[identifier(c.name)] = c.span

    def from_(self, s: tree.From) -> None:
        self._put("FROM ")
        self._relation(s.relation, s.alias)

    def join(self, s: tree.Join) -> None:
        self._put(f"{s.kind} ")
        self._relation(s.relation, s.alias)
        if s.on:
            self._put(" ON ")
            self._list(s.on, self.expr, " AND ")

    def explode(self, s: tree.Explode) -> None:
        self._put("JOIN LATERAL posexplode(")
        self.expr(s.array)
        self._put(f") AS {s.alias}({identifier(s.position)}, {identifier(s.element)})")

    def where(self, s: tree.Where) -> None:
        self._put("WHERE ")
        self._list(s.conditions, self.expr, " AND ")

    def select(self, s: tree.Select) -> None:
        self._put("SELECT ")
        self._list(s.columns, self.named)

    def extend(self, s: tree.Extend) -> None:
        self._put("EXTEND ")
        self._list(s.columns, self.named)

    def aggregate(self, s: tree.Aggregate) -> None:
        self._put("AGGREGATE ")
        self._list(s.columns, self.named)
        if s.keys:
            self._put(" GROUP BY " if s.columns else "GROUP BY ")
            self._list(s.keys, self.named)

    def order_by(self, s: tree.OrderBy) -> None:
        self._put("ORDER BY ")
        self._list(s.keys, self.sort)

    def sort(self, key: tree.Sort) -> None:
        self.expr(key.value)
        self._put(f" {key.direction} NULLS LAST" if key.direction else "")

    def limit(self, s: tree.Limit) -> None:
        take = [f"LIMIT {s.take}"] if s.take is not None else []
        self._put(" ".join([*take, *([f"OFFSET {s.skip}"] if s.skip else [])]))

    def union_all(self, s: tree.UnionAll) -> None:
        self._put("UNION ALL ")
        self._nested(s.query)


def _same_rank(one: str, other: str) -> bool:
    return any(one in rank and other in rank for rank in _RANKS)


_EXPRESSIONS: dict[type, Callable[[_Printer, Any], None]] = {
    tree.Column: _Printer.column,
    tree.Variable: _Printer.variable,
    tree.Literal: _Printer.literal,
    tree.Field: _Printer.field,
    tree.Call: _Printer.call,
    tree.Unary: _Printer.unary,
    tree.Binary: _Printer.binary,
    tree.Logic: _Printer.logic,
    tree.IsNull: _Printer.is_null,
    tree.Case: _Printer.case,
    tree.Cast: _Printer.cast,
    tree.Lambda: _Printer.function,
    tree.Fragment: _Printer.fragment,
    tree.Subquery: _Printer.subquery,
    tree.Exists: _Printer.exists,
    tree.In: _Printer.inside,
}
_STEPS: dict[type, Callable[[_Printer, Any], None]] = {
    tree.From: _Printer.from_,
    tree.Join: _Printer.join,
    tree.Explode: _Printer.explode,
    tree.Where: _Printer.where,
    tree.Select: _Printer.select,
    tree.Extend: _Printer.extend,
    tree.Aggregate: _Printer.aggregate,
    tree.OrderBy: _Printer.order_by,
    tree.Limit: _Printer.limit,
    tree.UnionAll: _Printer.union_all,
}
