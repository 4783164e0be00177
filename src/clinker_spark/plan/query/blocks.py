"""Lowering queries: each becomes one chain of SQL pipe steps, with hidden columns for the order if it is needed.

`sort by` sorts nothing by itself: it puts its keys in front of the hidden order columns. Rows are sorted once, by
whoever needs them in order: `take`, or the one who prints them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from clinker_spark.cxl.hidden import GROUP_KEY_PREFIX
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.plan.columns import ORDER_PREFIX, POSITION_COLUMN, ROWS_COLUMN
from clinker_spark.plan.query.arrays import ArrayLowering
from clinker_spark.plan.query.base import Env
from clinker_spark.plan.query.bindings import Binding, Block
from clinker_spark.plan.query.groups import GroupContext
from clinker_spark.plan.query.keys import groups_in_order
from clinker_spark.plan.query.order import aggregate_step, first_places
from clinker_spark.plan.query.values import (
    VALUE,
    Column,
    GroupRef,
    Local,
    OrderTerm,
    Presence,
    Record,
    Relation,
    Rendered,
    Rows,
    Value,
    columns_of,
)
from clinker_spark.query.check.declared import TypeTable
from clinker_spark.query.failures import Failed
from clinker_spark.query.names import key_name, scalar_aggregate
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import (
    INT,
    GroupType,
    ListType,
    MapType,
    QType,
    RecordType,
    is_any,
    is_null,
)
from clinker_spark.query.values import Dataset

Inline = Callable[[list[Any]], Relation]
"""A list of the program as rows on Spark."""

_JOINS = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "outer": "FULL JOIN"}


class QueryLowering(ArrayLowering):
    """Lowers whole expressions over rows on Spark."""

    def __init__(self, types: TypeTable, inline: Inline, per_row: frozenset[int] = frozenset()) -> None:
        super().__init__(types)
        self._inline = inline
        self._per_row = per_row

    # ---------------------------------------------------------------- queries

    def query(self, q: ast.Query, scope: Env) -> Value:
        first = self.lower(q.sources[0].source, scope)
        if isinstance(first, Column | GroupRef) and len(q.sources) == 1 and not q.joins:
            array = self.to_column(first)
            with self.guarded_by(None):  # what fails for an element of a list cannot be asked outside of the list
                return self.array_query(q, array, scope)
        call = scalar_aggregate(q)
        if call is not None and id(q) not in self._per_row and call.function not in scope:
            rows = ast.Query(
                q.span,
                q.sources,
                q.joins,
                q.lets,
                q.wheres,
                None,
                q.orders,
                q.skip,
                q.take,
                call.args[0],
                False,
                q.unordered,
            )
            return self.aggregate_rows(call.function, self.relation(rows, scope), False, call.span)
        return Rows(self.relation(q, scope))

    def relation(self, q: ast.Query, scope: Env) -> Relation:
        """The rows of a query. It is lowered at once, so that what has no Spark form is found now."""
        found: dict[bool, Rendered] = {}
        found[False], row = self._block(q, scope, False)

        def build(ordered: bool) -> Rendered:
            if ordered not in found:
                found[ordered], _ = self._block(q, scope, ordered)
            return found[ordered]

        return Relation(row, build)

    def as_relation(self, value: Value, e: cxl.Expr) -> Relation | None:
        if isinstance(value, Rows):
            return value.relation
        if isinstance(value, Local) and isinstance(value.value, Dataset):
            return value.value.relation  # type: ignore[attr-defined, no-any-return]
        if isinstance(value, Local) and isinstance(value.value, list):
            try:
                return self._inline(value.value)
            except Failed as failed:
                failed.span = failed.span or e.span
                raise
        return None

    def _block(self, q: ast.Query, scope: Env, ordered: bool) -> tuple[Rendered, QType]:
        limited = q.skip is not None or q.take is not None
        wanted = (ordered or limited) and not q.unordered and not groups_in_order(q)
        made = self._attempt(q, scope, ordered, wanted)
        # Lists of the rows of a group, and first(g), need the order of the rows even if nobody else does.
        return made if made is not None else self._attempt(q, scope, ordered, True) or self._unreachable()

    def _unreachable(self) -> tuple[Rendered, QType]:
        raise AssertionError("order was asked for twice")

    def _attempt(self, q: ast.Query, scope: Env, ordered: bool, source_order: bool) -> tuple[Rendered, QType] | None:
        block = Block()
        env: Env = Scope(scope)
        with self.guarded_by(None):
            self._sources(q, block, env, source_order)
        tables = [(b.rendered.table if b.rendered is not None else None, b.alias) for b in block.bindings]
        guard = self.guard_of(q, tables)
        with self.guarded_by(guard), self.row_by_row(), ExitStack() as passed:
            made = self._clauses(q, scope, env, block, (ordered, source_order), passed)
        if guard is None or made is None or self.note(q, tables[0][0], guard):
            return made
        return self._attempt(q, scope, ordered, source_order)

    def _clauses(
        self, q: ast.Query, scope: Env, env: Env, block: Block, wanted: tuple[bool, bool], passed: ExitStack
    ) -> tuple[Rendered, QType] | None:
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
            names = dict(context.key.fields) if isinstance(context.key, Record) else {}
            env = Scope(scope, {**names, q.group.name: GroupRef(context, context.type)})
            passed.enter_context(self.guarded_by(None))  # groups are no rows
        having = ""
        if q.group is not None and q.group.having is not None:
            having = self.condition(q.group.having, env, exact=False)
        sorts = self._sort_keys(q, env) if ordered or limited else []
        columns, row = self._selected(q.select, env)
        if context is not None and context.asked_for_order and not source_order:
            return None
        if conditions:
            block.steps.append("WHERE " + " AND ".join(conditions))
        place = list(block.order) if keep_order and not groups_in_order(q) else []
        if context is not None:
            place = self._aggregate_step(block, context, place)
        if having:
            block.steps.append(f"WHERE {having}")
        terms, hidden = self._places([*sorts, *place], columns)
        listed = ", ".join(f"{text} AS {quote(name)}" for name, text in columns)
        block.steps.append(f"SELECT {listed}{hidden}")
        if q.distinct:
            terms = self._distinct(block, columns, row, terms, q.select)
        if limited:
            self._limit(q, block, terms, scope)
        if not ordered:
            shown = [quote(name) for name, _ in columns]
            if any(t.text not in shown for t in terms):
                block.steps.append("SELECT " + ", ".join(shown))
            terms = []
        return Rendered(block.text(), tuple(terms), in_order=limited and bool(terms)), row

    # ---------------------------------------------------------------- sources

    def _sources(self, q: ast.Query, block: Block, env: Env, source_order: bool) -> None:
        for source in q.sources:
            step = "FROM" if not block.bindings else "CROSS JOIN"
            self._bind(source.name, source.source, step, block, env, source_order)
        for join in q.joins:
            before = list(block.bindings)
            earlier = list(block.order)
            block.order.clear()
            made = self._bind(join.name, join.source, _JOINS[join.kind], block, env, source_order)
            if made.lateral and join.kind != "inner":
                self.no_form(join.source.span, f"a {join.kind} join with a list of each row has no Spark form")
            with self.row_by_row():
                condition = self.condition(join.on, env, exact=False)
            made.on = condition if not made.lateral else ""
            if made.lateral:
                block.steps.append(f"WHERE {condition}")
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

    def _bind(self, name: str, source: cxl.Expr, step: str, block: Block, env: Env, source_order: bool) -> Binding:
        value = self.lower(source, env)
        relation = self.as_relation(value, source)
        alias = self.fresh(name if name.isidentifier() and name.isascii() and name != "_" else "r") + "_"
        if relation is not None:
            rendered = relation.build(source_order)
            binding = Binding(name, alias, relation.row, rendered, step)
            block.order += [replace(t, text=f"{alias}.{t.text}") for t in rendered.order]
        else:
            column = self.to_column(value)
            if not isinstance(column.type, ListType) or step == "FROM":
                self.no_form(source.span, f"a query over {column.type} has no Spark form")
            binding = Binding(name, alias, column.type.element, None, step, lateral=column.text)
            if source_order:
                block.order.append(OrderTerm(f"{alias}.{quote(POSITION_COLUMN)}", type=INT))
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
            self.no_form(e.span, f"rows cannot be grouped by {column.type} on Spark")
        name = self.fresh(GROUP_KEY_PREFIX)
        context.keys.append((name, column.text))
        return Column(quote(name), column.type)

    def _aggregate_step(self, block: Block, context: GroupContext, place: list[OrderTerm]) -> list[OrderTerm]:
        aggregates = [f"{text} AS {quote(name)}" for name, text in context.aggregates]
        step, first, after = first_places(place, {text: quote(name) for name, text in context.keys})
        block.steps += step or context.step
        if context.prepared:
            listed = ", ".join(f"{text} AS {quote(name)}" for name, text in context.prepared)
            block.steps.append(f"EXTEND {listed}")
        if not context.keys:  # SQL makes one group of no rows; here there is none
            rows = quote(ROWS_COLUMN)
            block.steps += [f"AGGREGATE {', '.join([*aggregates, f'count(*) AS {rows}'])}", f"WHERE {rows} > 0"]
            return []
        keys = ", ".join(f"{text} AS {quote(name)}" for name, text in context.keys)
        block.steps.append(aggregate_step([*aggregates, *first], keys))
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
                    made.append(OrderTerm(column.text, key.descending, False, column.type))
        return made

    def _places(self, place: list[OrderTerm], columns: list[tuple[str, str]]) -> tuple[list[OrderTerm], str]:
        """The columns that order the result, and those of them that it does not have anyway."""
        known = {text: name for name, text in reversed(columns)}
        terms: list[OrderTerm] = []
        hidden = ""
        for t in place:
            if t.text not in known:
                known[t.text] = self.fresh(ORDER_PREFIX)
                hidden += f", {t.text} AS {quote(known[t.text])}"
            terms.append(replace(t, text=quote(known[t.text])))
        return terms, hidden

    def _selected(self, e: cxl.Expr, env: Env) -> tuple[list[tuple[str, str]], QType]:
        """The columns of a result, and the type of its rows."""
        for entry in e.entries if isinstance(e, cxl.MapLiteral | ast.RecordLiteral) else ():
            if isinstance(entry.key, cxl.Literal):
                self.origins[quote(str(entry.key.value))] = entry.value.span
        value = self.lower(e, env)
        if isinstance(value, Record) and value.presence is None:
            columns = {name: self._storable(self.to_column(v), e) for name, v in value.fields.items()}
            if not columns:
                self.no_form(e.span, "a record without fields has no Spark form")
            row: QType = RecordType(tuple((name, c.type) for name, c in columns.items()))
            return [(name, c.text) for name, c in columns.items()], row
        column = self._storable(self.to_column(value), e)
        if isinstance(column.type, RecordType) and not column.type.null:
            return [(n, f"{column.text}.{quote(n)}") for n, _ in column.type.fields], column.type
        return [(VALUE, column.text)], column.type

    def _storable(self, column: Column, e: cxl.Expr) -> Column:
        if is_null(column.type):
            return Column("CAST(NULL AS STRING)", column.type)
        if isinstance(column.number, int) and -(2**31) < column.number < 2**31:
            return Column(f"{column.text}L", column.type)  # a written number is a 64-bit one
        if is_any(column.type):
            self.no_form(e.span, "the type of this value is not known, so Spark cannot hold it", "convert it with 'as'")
        return column

    def _distinct(
        self, block: Block, columns: list[tuple[str, str]], row: QType, terms: list[OrderTerm], e: cxl.Expr
    ) -> list[OrderTerm]:
        if any(isinstance(t, MapType) for _, t in columns_of(row)):
            self.no_form(e.span, "maps cannot be compared on Spark, so there is no distinct of them")
        names = [quote(name) for name, _ in columns]
        step, first, after = first_places(terms, {name: name for name in names})
        block.steps += [*step, aggregate_step(first, ", ".join(names))]
        return list(after)

    def _limit(self, q: ast.Query, block: Block, terms: list[OrderTerm], scope: Env) -> None:
        if terms:
            block.steps.append("ORDER BY " + ", ".join(t.sql() for t in terms))
        take = self._whole(q.take, "take", scope)
        skip = self._whole(q.skip, "skip", scope)
        parts = [f"LIMIT {take}"] if take is not None else []
        parts += [f"OFFSET {skip}"] if skip else []
        if parts:
            block.steps.append(" ".join(parts))

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
        from clinker_spark.plan.query.sets import set_relation

        return Rows(set_relation(self, e, left, right))
