"""Lowering queries: each becomes one chain of SQL pipe steps, with hidden columns for the order if it is needed.

`sort by` sorts nothing by itself: it puts its keys in front of the hidden order columns. Rows are sorted once, by
whoever needs them in order: `take`, or the one who prints them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from clinker_spark.core.types import INT
from clinker_spark.cxl.hidden import GROUP_KEY_PREFIX
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.check.declared import TypeTable
from clinker_spark.query.failures import Failed
from clinker_spark.query.hidden import ORDER_PREFIX, POSITION_COLUMN, ROWS_COLUMN
from clinker_spark.query.lower.arrays import ArrayLowering
from clinker_spark.query.lower.base import Env, failing_at
from clinker_spark.query.lower.bindings import Binding, Block
from clinker_spark.query.lower.groups import GroupContext
from clinker_spark.query.lower.guards import Diversions
from clinker_spark.query.lower.order import first_places
from clinker_spark.query.lower.sets import set_relation
from clinker_spark.query.lower.values import (
    VALUE,
    Column,
    GroupRef,
    Local,
    Lowered,
    OrderTerm,
    Presence,
    Record,
    Relation,
    Rows,
    SparkDataset,
    Value,
    columns_of,
    sorted_by,
    wide,
)
from clinker_spark.query.names import groups_in_order, key_name, scalar_aggregate
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import GroupType, ListType, MapType, QType, RecordType, is_any, is_null
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import NULL, ROWS, STRING, call, columns, own_columns

Inline = Callable[[list[Any]], Relation]
"""A list of the program as rows on Spark."""

_JOINS = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "outer": "FULL JOIN"}


class QueryLowering(ArrayLowering):
    """Lowers whole expressions over rows on Spark."""

    def __init__(
        self,
        types: TypeTable,
        inline: Inline,
        per_row: frozenset[int] = frozenset(),
        diversions: Diversions | None = None,
    ) -> None:
        super().__init__(types)
        self.diversions = diversions or self.diversions
        self._inline = inline
        self._per_row = per_row

    # ---------------------------------------------------------------- queries

    def query(self, q: ast.Query, scope: Env) -> Value:
        first = self.lower(q.sources[0].source, scope)
        if isinstance(first, Column | GroupRef) and len(q.sources) == 1 and not q.joins:
            array = self.to_column(first)
            with self.guarded_by(None):  # what fails for an element of a list cannot be asked outside of the list
                return self.array_query(q, array, scope)
        total = scalar_aggregate(q)
        if total is not None and id(q) not in self._per_row and total.function not in scope:
            rows = replace(q, select=total.args[0])
            return self.aggregate_rows(total.function, self.relation(rows, scope), False, total.span)
        return Rows(self.relation(q, scope))

    def relation(self, q: ast.Query, scope: Env) -> Relation:
        """The rows of a query. It is lowered at once, so that what has no Spark form is found now."""
        found: dict[bool, Lowered] = {}
        found[False], row = self._block(q, scope, False)

        def build(ordered: bool) -> Lowered:
            if ordered not in found:
                found[ordered], _ = self._block(q, scope, ordered)
            return found[ordered]

        return Relation(row, build)

    def as_relation(self, value: Value, e: cxl.Expr) -> Relation | None:
        if isinstance(value, Rows):
            return value.relation
        if isinstance(value, Local) and isinstance(value.value, SparkDataset):
            return value.value.relation
        if isinstance(value, Local) and isinstance(value.value, list):
            with failing_at(e.span):
                return self._inline(value.value)
        return None

    def _block(self, q: ast.Query, scope: Env, ordered: bool) -> tuple[Lowered, QType]:
        limited = q.skip is not None or q.take is not None
        wanted = (ordered or limited) and not q.unordered and not groups_in_order(q)
        made = self._attempt(q, scope, ordered, wanted)
        # Lists of the rows of a group, and first(g), need the order of the rows even if nobody else does.
        return made if made is not None else self._attempt(q, scope, ordered, True) or self._unreachable()

    def _unreachable(self) -> tuple[Lowered, QType]:
        raise AssertionError("order was asked for twice")

    def _attempt(self, q: ast.Query, scope: Env, ordered: bool, source_order: bool) -> tuple[Lowered, QType] | None:
        block = Block()
        env: Env = Scope(scope)
        with self.guarded_by(None):
            self._sources(q, block, env, source_order)
        sources = [(b.rows.relation if b.rows is not None else None, b.alias) for b in block.bindings]
        guard = self.guard_of(q, sources)
        with self.guarded_by(guard), self.row_by_row(), ExitStack() as passed:
            made = self._clauses(q, scope, env, block, (ordered, source_order), passed)
        if guard is None or made is None or self.note(q, sources[0][0], guard, ordered):
            return made
        return self._attempt(q, scope, ordered, source_order)

    def _clauses(
        self, q: ast.Query, scope: Env, env: Env, block: Block, wanted: tuple[bool, bool], passed: ExitStack
    ) -> tuple[Lowered, QType] | None:
        """All that follows the sources. None when groups need the order of rows, and rows have none."""
        ordered, source_order = wanted
        for let in q.lets:
            env.define(let.name, self.lower(let.value, env))
        conditions = []
        for where in q.wheres:
            conditions.append(self.condition(where, env, exact=False))
            passed.enter_context(self.branch(conditions[-1]))
        limited = q.skip is not None or q.take is not None
        keep_order = (ordered or limited) and not q.unordered
        context: GroupContext | None = None
        if q.group is not None:
            context = self._group_context(q, q.group, block, env, source_order)
            parts = dict(context.key.fields) if isinstance(context.key, Record) else {}
            env = Scope(scope, {**parts, q.group.name: GroupRef(context, context.type)})
            passed.enter_context(self.guarded_by(None))  # groups are no rows
        having = None
        if q.group is not None and q.group.having is not None:
            having = self.condition(q.group.having, env, exact=False)
        sorts = self._sort_keys(q, env) if ordered or limited else []
        selected, row = self._selected(q.select, env)
        if context is not None and context.asked_for_order and not source_order:
            return None
        if conditions:
            block.steps.append(sql.Where(tuple(conditions)))
        place = list(block.order) if keep_order and not groups_in_order(q) else []
        if context is not None:
            place = self._aggregate_step(block, context, place)
        if having is not None:
            block.steps.append(sql.Where((having,)))
        return self._ended(q, block, selected, row, [*sorts, *place], scope, ordered=ordered), row

    def _ended(
        self,
        q: ast.Query,
        block: Block,
        selected: tuple[sql.As, ...],
        row: QType,
        places: list[OrderTerm],
        scope: Env,
        *,
        ordered: bool,
    ) -> Lowered:
        """The steps that come last: what is selected, each row once, so many of them, and no columns besides."""
        limited = q.skip is not None or q.take is not None
        terms, hidden = self._places(places, selected)
        block.steps.append(sql.Select((*selected, *hidden)))
        names = [c.name for c in selected]
        if q.distinct:
            terms = self._distinct(block, names, row, terms, q.select)
        if limited:
            self._limit(q, block, terms, scope)
        if not ordered:
            if any(t.sql not in [sql.Column(name) for name in names] for t in terms):
                block.steps.append(sql.Select(own_columns(names)))
            terms = []
        return Lowered(block.query(), tuple(terms), in_order=limited and bool(terms))

    # ---------------------------------------------------------------- sources

    def _sources(self, q: ast.Query, block: Block, env: Env, source_order: bool) -> None:
        for source in q.sources:
            self._bind(source.name, source.source, "CROSS JOIN" if block.bindings else "", block, env, source_order)
        for join in q.joins:
            before = list(block.bindings)
            earlier = list(block.order)
            block.order.clear()
            made = self._bind(join.name, join.source, _JOINS[join.kind], block, env, source_order)
            if made.lateral is not None and join.kind != "inner":
                self.no_form(join.source.span, f"a {join.kind} join with a list of each row has no Spark form")
            with self.row_by_row():
                condition = self.condition(join.on, env, exact=False)
            if made.lateral is None:
                made.on = (condition,)
            else:
                block.steps.append(sql.Where((condition,)))
            mine = list(block.order)
            if join.kind in ("right", "outer"):
                earlier = [replace(t, plain=False) for t in earlier]
                for b in before:
                    b.presence = b.presence or Presence(b.alias)
                    env.define(b.name, b.value())
            if join.kind in ("left", "outer"):
                mine = [replace(t, plain=False) for t in mine]
                made.presence = Presence(made.alias)
                env.define(made.name, made.value())
            block.order = mine + earlier if join.kind == "right" else earlier + mine

    def _bind(self, name: str, source: cxl.Expr, join: str, block: Block, env: Env, source_order: bool) -> Binding:
        value = self.lower(source, env)
        relation = self.as_relation(value, source)
        alias = self.fresh(name if name.isidentifier() and name.isascii() and name != "_" else "r") + "_"
        if relation is not None:
            rows = relation.build(source_order)
            binding = Binding(name, alias, relation.row, rows, join)
            block.order += [replace(t, sql=_under(alias, t.sql)) for t in rows.order]
        else:
            column = self.to_column(value)
            if not isinstance(column.type, ListType) or not join:
                self.no_form(source.span, f"a query over {column.type:?} has no Spark form")
            binding = Binding(name, alias, column.type.element, None, join, lateral=column.sql)
            if source_order:
                block.order.append(OrderTerm(sql.Column(POSITION_COLUMN, alias), type=INT))
        block.bindings.append(binding)
        env.define(name, binding.value())
        return binding

    # ------------------------------------------------------------------ groups

    def _group_context(
        self, q: ast.Query, group: ast.GroupBy, block: Block, env: Env, source_order: bool
    ) -> GroupContext:
        keys = [(key_name(e, i), self.lower(e, env)) for i, e in enumerate(group.keys)]
        value: Value = keys[0][1] if len(keys) == 1 else Record(dict(keys))
        if len(q.sources) == 1 and not q.joins:
            item = block.bindings[0].value()
            if isinstance(item, Record):
                item = Record(item.fields, item.presence, q.sources[0].name)
        else:
            item = Record({b.name: b.value() for b in block.bindings}, row_of="*")
        context = GroupContext(self, item, env, tuple(block.order) if source_order else ())
        context.key = self._group_key(value, context, group.keys[0])
        context.type = GroupType(self.type_of(context.key), self.type_of(item))
        return context

    def _group_key(self, value: Value, context: GroupContext, e: cxl.Expr) -> Value:
        """The key as seen after grouping: each scalar of it is a column to group by."""
        if isinstance(value, Record) and value.presence is None:
            return Record({n: self._group_key(v, context, e) for n, v in value.fields.items()})
        if isinstance(value, Local):
            return value  # the same for all rows, so there is nothing to group by
        column = self.to_column(value)
        if isinstance(column.type, MapType) or is_any(column.type):
            self.no_form(e.span, f"rows cannot be grouped by {column.type:?} on Spark")
        name = self.fresh(GROUP_KEY_PREFIX)
        context.keys.append((name, column.sql))
        return Column(sql.Column(name), column.type)

    def _aggregate_step(self, block: Block, context: GroupContext, place: list[OrderTerm]) -> list[OrderTerm]:
        aggregates = columns((name, made) for made, name in context.aggregates.items())
        step, first, after = first_places(place, {key: name for name, key in context.keys})
        block.steps += step or context.step
        if context.prepared:
            block.steps.append(sql.Extend(columns((name, made) for made, name in context.prepared.items())))
        if not context.keys:  # SQL makes one group of no rows; here there is none
            count = sql.As(call("count", ROWS), ROWS_COLUMN)
            some = sql.Binary(">", sql.Column(ROWS_COLUMN), sql.Literal(0))
            block.steps += [sql.Aggregate((*aggregates, count)), sql.Where((some,))]
            return []
        block.steps.append(sql.Aggregate((*aggregates, *first), columns(context.keys)))
        return list(after)

    # -------------------------------------------------------- order and select

    def _sort_keys(self, q: ast.Query, env: Env) -> list[OrderTerm]:
        made: list[OrderTerm] = []
        for key in q.orders:
            for e in key.value.items if isinstance(key.value, cxl.ArrayLiteral) else (key.value,):
                value = self.lower(e, env)
                fields = sorted(value.fields.items()) if isinstance(value, Record) else [("", value)]
                for _, field_value in fields:
                    column = self.to_column(field_value)
                    if is_null(column.type):
                        continue
                    made.append(OrderTerm(column.sql, key.descending, False, column.type))
        return made

    def _places(
        self, place: list[OrderTerm], selected: tuple[sql.As, ...]
    ) -> tuple[list[OrderTerm], tuple[sql.As, ...]]:
        """The columns that order the result, and those of them that it does not have anyway."""
        known = {c.value: c.name for c in reversed(selected)}
        terms: list[OrderTerm] = []
        hidden: list[sql.As] = []
        for t in place:
            if t.sql not in known:
                known[t.sql] = self.fresh(ORDER_PREFIX)
                hidden.append(sql.As(t.sql, known[t.sql]))
            terms.append(replace(t, sql=sql.Column(known[t.sql])))
        return terms, tuple(hidden)

    def _selected(self, e: cxl.Expr, env: Env) -> tuple[tuple[sql.As, ...], QType]:
        """The columns of a result, and the type of its rows."""
        value = self.lower(e, env)
        if isinstance(value, Record) and value.presence is None:
            fields = {name: self._storable(self.to_column(v), e) for name, v in value.fields.items()}
            if not fields:
                self.no_form(e.span, "a record without fields has no Spark form")
            entries = e.entries if isinstance(e, cxl.MapLiteral | ast.RecordLiteral) else ()
            spans = {entry.key.value: entry.value.span for entry in entries if isinstance(entry.key, cxl.Literal)}
            row: QType = RecordType(tuple((name, c.type) for name, c in fields.items()))
            return tuple(sql.As(c.sql, name, spans.get(name)) for name, c in fields.items()), row
        column = self._storable(self.to_column(value), e)
        if isinstance(column.type, RecordType) and not column.type.nullable:
            return columns((n, sql.Field(column.sql, n)) for n, _ in column.type.fields), column.type
        return (sql.As(column.sql, VALUE),), column.type

    def _storable(self, column: Column, e: cxl.Expr) -> Column:
        if is_null(column.type):
            return Column(sql.Cast(NULL, STRING), column.type)
        if is_any(column.type):
            self.no_form(e.span, "the type of this value is not known, so Spark cannot hold it", "convert it with 'as'")
        return Column(wide(column), column.type) if isinstance(column.number, int) else column

    def _distinct(
        self, block: Block, names: list[str], row: QType, terms: list[OrderTerm], e: cxl.Expr
    ) -> list[OrderTerm]:
        if any(isinstance(t, MapType) for _, t in columns_of(row)):
            self.no_form(e.span, "maps cannot be compared on Spark, so there is no distinct of them")
        step, first, after = first_places(terms, {sql.Column(name): name for name in names})
        block.steps += [*step, sql.Aggregate(first, own_columns(names))]
        return list(after)

    def _limit(self, q: ast.Query, block: Block, terms: list[OrderTerm], scope: Env) -> None:
        if terms:
            block.steps.append(sorted_by(terms))
        take = self._whole(q.take, "take", scope)
        skip = self._whole(q.skip, "skip", scope)
        if take is not None or skip:
            block.steps.append(sql.Limit(take, skip or 0))

    def _whole(self, e: cxl.Expr | None, word: str, scope: Env) -> int | None:
        if e is None:
            return None
        value = self.lower(e, scope)
        count = value.value if isinstance(value, Local) else None
        if count is None and not isinstance(value, Local):
            self.no_form(e.span, f"{word} needs a number that is known before the query runs")
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise Failed(f"{word} needs a whole number that is not negative", span=e.span, code="E710")
        return count

    # -------------------------------------------------------------------- sets

    def set_operator(self, e: cxl.Binary, scope: Env) -> Value:
        left = self.as_relation(self.lower(e.left, scope), e.left)
        right = self.as_relation(self.lower(e.right, scope), e.right)
        if left is None or right is None:
            side = e.left if left is None else e.right
            self.no_form(side.span, f"'{e.op}' needs rows on both sides")
        return Rows(set_relation(self, e, left, right))


def _under(alias: str, e: sql.Expr) -> sql.Expr:
    """A column of a source, or a field of one, as it is called under the alias of the source."""
    if isinstance(e, sql.Field):
        return sql.Field(_under(alias, e.target), e.name)
    assert isinstance(e, sql.Column)
    return sql.Column(e.name, alias)
