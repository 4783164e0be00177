"""Running queries on plain lists: clause by clause, in order, with a hash table for joins on equal keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.evaluate.expressions import Env, ExpressionEvaluator
from clinker_spark.query.evaluate.functions import distinct, items
from clinker_spark.query.failures import Failed
from clinker_spark.query.functions import FUNCTIONS
from clinker_spark.query.names import conjuncts, free_names, key_name, scalar_aggregate
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.values import Group, JoinedRow, NamedRow, identity, show, sort_key, truthy

Row = dict[str, Any]


class QueryEvaluator(ExpressionEvaluator):
    def query(self, q: ast.Query, scope: Env) -> Any:
        found = self.on_spark(q, scope)
        if found is not NotImplemented:
            return found
        rows = self._rows(q, scope)
        if q.group is not None:
            rows = self._grouped(q, q.group, rows, scope)
        if q.orders:
            rows = self._sorted(q, rows, scope)
        skip = self._count(q.skip, "skip", scope)
        take = self._count(q.take, "take", scope)
        end = None if take is None else (skip or 0) + take
        call = scalar_aggregate(q)
        if call is not None and id(q) not in self.facts.per_row:
            values = [self.eval(call.args[0], Scope(scope, row)) for row in rows]
            return self.facts.total(call, FUNCTIONS[call.function].run(values[skip:end]))
        selected = [self.local(self.eval(q.select, Scope(scope, row))) for row in rows]
        if q.distinct:
            selected = distinct(selected)
        return selected[skip:end]

    def _rows(self, q: ast.Query, scope: Env) -> list[Row]:
        rows: list[Row] = [{}]
        for source in q.sources:
            rows = self._cross(source, rows, scope)
        bound = [source.name for source in q.sources]
        for join in q.joins:
            rows = self._join(join, rows, bound, scope)
            bound.append(join.name)
        for let in q.lets:
            rows = [{**row, let.name: self.eval(let.value, Scope(scope, row))} for row in rows]
        for where in q.wheres:
            rows = [row for row in rows if truthy(self.local(self.eval(where, Scope(scope, row))))]
        return rows

    def _items(self, source: cxl.Expr, scope: Env) -> list[Any]:
        return items(self.local(self.eval(source, scope)))

    def _cross(self, source: ast.From, rows: list[Row], scope: Env) -> list[Row]:
        if not rows:  # the source may be a list of an earlier row, and there is none
            return []
        if not (free_names(source.source) & set(rows[0])):
            found = self._items(source.source, scope)
            return [{**row, source.name: item} for row in rows for item in found]
        return [{**row, source.name: item} for row in rows for item in self._items(source.source, Scope(scope, row))]

    # ------------------------------------------------------------------ joins

    def _join(self, join: ast.Join, rows: list[Row], bound: list[str], scope: Env) -> list[Row]:
        right = self._items(join.source, scope)
        find = self._finder(join, rows, right, scope)
        name = join.name
        missing = dict.fromkeys(bound)
        if join.kind == "right":
            by_right: list[list[Row]] = [[] for _ in right]
            for row in rows:
                for position in find(row):
                    by_right[position].append(row)
            made = []
            for item, matches in zip(right, by_right, strict=True):
                made += [{**row, name: item} for row in matches or [missing]]
            return made
        made = []
        seen: set[int] = set()
        for row in rows:
            matches_here = find(row)
            seen.update(matches_here)
            made += [{**row, name: right[i]} for i in matches_here]
            if not matches_here and join.kind != "inner":
                made.append({**row, name: None})
        if join.kind == "outer":
            made += [{**missing, name: item} for i, item in enumerate(right) if i not in seen]
        return made

    def _finder(self, join: ast.Join, rows: list[Row], right: list[Any], scope: Env) -> Callable[[Row], list[int]]:
        """Row -> positions of the right rows that match it, in their order."""
        bound = set(rows[0]) if rows else set()
        left_keys, right_keys, rest = split_on(join.on, join.name, bound)

        def matches(row: Row, position: int, conditions: list[cxl.Expr]) -> bool:
            inner: Env = Scope(scope, {**row, join.name: right[position]})
            return all(truthy(self.local(self.eval(c, inner))) for c in conditions)

        if not left_keys:
            return lambda row: [i for i in range(len(right)) if matches(row, i, [join.on])]
        table: dict[Any, list[int]] = {}
        for i, item in enumerate(right):
            inner: Env = Scope(scope, {join.name: item})
            table.setdefault(identity([self.eval(k, inner) for k in right_keys]), []).append(i)

        def look_up(row: Row) -> list[int]:
            found = table.get(identity([self.eval(k, Scope(scope, row)) for k in left_keys]), [])
            return [i for i in found if matches(row, i, rest)] if rest else found

        return look_up

    # ----------------------------------------------------------------- groups

    def _grouped(self, q: ast.Query, group: ast.GroupBy, rows: list[Row], scope: Env) -> list[Row]:
        single = len(q.sources) == 1 and not q.joins
        lets = {let.name for let in q.lets}
        groups: dict[Any, Group] = {}
        for row in rows:
            inner: Env = Scope(scope, row)
            keys = [self.local(self.eval(k, inner)) for k in group.keys]
            if len(keys) == 1:
                key = keys[0]
            else:
                key = {key_name(e, i): v for i, (e, v) in enumerate(zip(group.keys, keys, strict=True))}
            found = groups.setdefault(identity(key), Group(key))
            item = (
                _named(row[q.sources[0].name], q.sources[0].name)
                if single
                else JoinedRow({n: v for n, v in row.items() if n not in lets})
            )
            found.items.append(item)
        made = [_group_row(group.name, g) for g in groups.values()]
        if group.having is not None:
            having = group.having
            made = [row for row in made if truthy(self.local(self.eval(having, Scope(scope, row))))]
        return made

    # --------------------------------------------------------- order and parts

    def _sorted(self, q: ast.Query, rows: list[Row], scope: Env) -> list[Row]:
        """Stable, from the last key to the first; nulls last in both directions."""
        for key in reversed(q.orders):
            found = [self.local(self.eval(key.value, Scope(scope, row))) for row in rows]
            there = [i for i, v in enumerate(found) if v is not None]
            missing = [i for i, v in enumerate(found) if v is None]
            there.sort(key=lambda i, found=found: sort_key(found[i]), reverse=key.descending)  # type: ignore[misc]
            rows = [rows[i] for i in there + missing]
        return rows

    def _count(self, e: cxl.Expr | None, word: str, scope: Env) -> int | None:
        if e is None:
            return None
        value = self.local(self.eval(e, scope))
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            shown = show(value, False)
            raise Failed(f"{word} needs a whole number that is not negative, not {shown}", span=e.span, code="E710")
        return value


def _named(item: Any, source: str) -> Any:
    if type(item) is not dict:
        return item
    row = NamedRow(item)
    row.source = source
    return row


def _group_row(name: str, group: Group) -> Row:
    """What the clauses after `into` see: the group, and the fields of its key by their own names."""
    return {**group.key, name: group} if isinstance(group.key, dict) else {name: group}


def split_on(on: cxl.Expr, right: str, bound: set[str]) -> tuple[list[cxl.Expr], list[cxl.Expr], list[cxl.Expr]]:
    """The equalities between the two sides as keys of the left and of the right, and what is left of the condition.

    >>> from clinker_spark.core.span import Source
    >>> from clinker_spark.query.syntax.parser import parse
    >>> program, _ = parse(Source("q", "b.id == a.id && a.x < b.y"))
    >>> left, right, rest = split_on(program[0].value, "b", {"a"})
    >>> left[0].target.name, right[0].target.name, rest[0].op
    ('a', 'b', '<')
    """
    left_keys: list[cxl.Expr] = []
    right_keys: list[cxl.Expr] = []
    rest: list[cxl.Expr] = []
    for part in conjuncts(on):
        if isinstance(part, cxl.Binary) and part.op == "==":
            a, b = free_names(part.left), free_names(part.right)
            if a & bound and right not in a and right in b and not b & bound:
                left_keys.append(part.left)
                right_keys.append(part.right)
                continue
            if b & bound and right not in b and right in a and not a & bound:
                left_keys.append(part.right)
                right_keys.append(part.left)
                continue
        rest.append(part)
    return left_keys, right_keys, rest
