"""Types of queries, clause by clause: what each name is at each place, and what may stand there."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.core.types import Kind
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.check.base import Types
from clinker_spark.query.check.expressions import ExpressionChecker
from clinker_spark.query.functions import FUNCTIONS
from clinker_spark.query.names import key_name, scalar_aggregate
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import ANY, FunctionType, GroupType, ListType, QType, RecordType, element_of, is_kind


class QueryChecker(ExpressionChecker):
    def query(self, q: ast.Query, scope: Types) -> QType:
        rows, dataset = self._sources(q, scope)
        inner: Types = Scope(scope, rows)
        for let in q.lets:
            inner.define(let.name, self.infer(let.value, inner))
        for where in q.wheres:
            self.condition(where, inner, "a where")
        if q.group is not None:
            inner = self._group(q, q.group, inner, scope, rows)
        for key in q.orders:
            t = self.infer(key.value, inner)
            if isinstance(t, FunctionType | GroupType):
                help_text = "sort by a number, a text or a date"
                self.note("E702", key.value.span, f"rows cannot be sorted by {t:?}", help_text)
        for word, count in (("skip", q.skip), ("take", q.take)):
            if count is not None:
                self._count(word, count, scope)
        return self._selected(q, inner, dataset)

    def _sources(self, q: ast.Query, scope: Types) -> tuple[dict[str, QType], bool]:
        rows: dict[str, QType] = {}
        dataset = False
        for source in q.sources:
            t = self.infer(source.source, Scope(scope, dict(rows)))
            rows[source.name] = self._element(source.source, t)
            dataset = dataset or (isinstance(t, ListType) and t.dataset)
        for join in q.joins:
            t = self.infer(join.source, Scope(scope, dict(rows)))
            right = self._element(join.source, t)
            dataset = dataset or (isinstance(t, ListType) and t.dataset)
            self.condition(join.on, Scope(scope, {**rows, join.name: right}), "the condition of a join", "E703")
            if join.kind in ("right", "outer"):
                rows = {name: r.as_nullable() for name, r in rows.items()}
            rows[join.name] = right.as_nullable() if join.kind in ("left", "outer") else right
        return rows, dataset

    def _element(self, source: cxl.Expr, t: QType) -> QType:
        element = element_of(t)
        if element is None or is_kind(t, Kind.STRING):
            return self.note("E709", source.span, f"a query needs a list, not {t:?}")
        return element

    def _group(self, q: ast.Query, group: ast.GroupBy, inner: Types, scope: Types, rows: dict[str, QType]) -> Types:
        keys = [self.infer(k, inner) for k in group.keys]
        if len(keys) == 1:
            key = keys[0]
        else:
            key = RecordType(tuple((key_name(e, i), t) for i, (e, t) in enumerate(zip(group.keys, keys, strict=True))))
        if len(q.sources) == 1 and not q.joins:
            item = rows[q.sources[0].name]
            if isinstance(item, RecordType):
                item = replace(item, row_of=q.sources[0].name)
        else:
            item = RecordType(tuple(rows.items()), row_of="*")
        names: dict[str, QType] = dict(key.fields) if isinstance(key, RecordType) else {}
        after: Types = Scope(scope, {**names, group.name: GroupType(key, item)})
        if group.having is not None:
            self.condition(group.having, after, "a having")
        return after

    def _count(self, word: str, e: cxl.Expr, scope: Types) -> None:
        t = self.infer(e, scope)
        if is_kind(t, Kind.FLOAT, Kind.STRING, Kind.BOOL, Kind.DECIMAL, Kind.DATE):
            self.note("E710", e.span, f"{word} needs a whole number, not {t:?}")
        elif isinstance(e, cxl.Literal) and isinstance(e.value, int) and e.value < 0:
            self.note("E710", e.span, f"{word} cannot be negative")

    def _selected(self, q: ast.Query, inner: Types, dataset: bool) -> QType:
        call = scalar_aggregate(q)
        if call is not None and call.function not in inner:
            t = self.infer(call.args[0], inner)
            if isinstance(t, ListType | GroupType):
                self.per_row.add(id(q))
            else:
                row = FUNCTIONS[call.function]
                whole = ListType(t)
                problem = row.check([whole]) if row.check is not None else None
                if problem is not None:
                    return self.note("E702", call.args[0].span, f"{call.function}() {problem}")
                return self.total(call, row, row.result_type([whole]))
        selected = self.infer(q.select, inner)
        if isinstance(selected, FunctionType):
            self.note("E702", q.select.span, "a query cannot select functions")
            selected = ANY
        return ListType(selected, dataset)
