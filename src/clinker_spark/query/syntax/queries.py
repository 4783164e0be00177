"""Query clauses. Their words are keywords only where a clause may start, so `p.group` and `let limit = 3` are fine.

Both spellings of every clause: `sort by` and `order by`, `take` and `limit`, `skip` and `offset`. Conditions may be
repeated; `skip` and `take` may come in either order.
"""

from __future__ import annotations

from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.syntax import ast
from clinker_spark.query.syntax.expressions import ExpressionParser

_CLAUSES = (
    "from", "join", "left", "right", "outer", "inner", "full", "cross", "where", "let", "group", "sort", "order",
    "skip", "offset", "take", "limit", "select", "unordered", "having", "distinct",
)  # fmt: skip
_KINDS = {"left": "left", "right": "right", "outer": "outer", "full": "outer", "inner": "inner"}


class QueryParser(ExpressionParser):
    def query(self) -> cxl.Expr:
        start = self.token.start
        sources: list[ast.From] = []
        joins: list[ast.Join] = []
        lets: list[ast.LetClause] = []
        wheres: list[cxl.Expr] = []
        while self.at_word("from"):
            sources.append(self._from())
        while self._at_join():
            joins.append(self._join())
        while self.at_word("where") or self.at("let"):
            if self.at("let"):
                lets.append(self._let(bool(wheres)))
                continue
            self.advance()
            wheres.append(self.expression())
        group = self._group_by() if self.at_word("group") else None
        orders = self._order_by() if self.at_word("sort", "order") else ()
        skip = take = None
        unordered = self.take_word("unordered")
        while self.at_word("skip", "offset", "take", "limit"):
            word = self.advance()
            if (skip if word.text in ("skip", "offset") else take) is not None:
                self.fail(word.span, f"'{word.text}' stands twice in one query", "keep one of them")
            if word.text in ("skip", "offset"):
                skip = self.expression()
            else:
                take = self.expression()
        unordered = self.take_word("unordered") or unordered
        if not self.at_word("select"):
            self._no_select()
        self.advance()
        distinct = self.take_word("distinct")
        select = self.expression()
        return ast.Query(
            self.span_from(start),
            tuple(sources),
            tuple(joins),
            tuple(lets),
            tuple(wheres),
            group,
            orders,
            skip,
            take,
            select,
            distinct,
            unordered,
        )

    def _from(self) -> ast.From:
        start = self.advance().start
        name = self.expect("name", "write from x in source")
        self.expect("in", "write from x in source")
        source = self.expression()
        return ast.From(self.span_from(start), name.text, name.span, source)

    def _at_join(self) -> bool:
        return self.at_word("join") or (self.at_word(*_KINDS) and self.peek().text == "join")

    def _join(self) -> ast.Join:
        start = self.token.start
        kind = "inner" if self.at_word("join") else _KINDS[self.advance().text]
        self.advance()
        self.take_word("from")
        name = self.expect("name", "write join y in source on condition")
        self.expect("in", "write join y in source on condition")
        source = self.expression()
        self.expect_word("on", "a join needs a condition: on x.id == y.id; for all pairs write a second 'from'")
        on = self.expression()
        return ast.Join(self.span_from(start), kind, name.text, name.span, source, on)

    def _let(self, late: bool) -> ast.LetClause:
        start = self.advance().start
        name = self.expect("name")
        if late:
            self.fail(name.span, "a 'let' inside a query stands before its 'where'", "move it up")
        self.expect("=")
        value = self.expression()
        return ast.LetClause(self.span_from(start), name.text, name.span, value)

    def _group_by(self) -> ast.GroupBy:
        start = self.advance().start
        self.expect_word("by", "write group by key into g")
        keys = [self.expression()]
        while self.take(","):
            keys.append(self.expression())
        self.expect_word("into", "name the group: group by key into g")
        name = self.expect("name", "name the group: group by key into g")
        having = self.expression() if self.take_word("having") else None
        return ast.GroupBy(self.span_from(start), tuple(keys), name.text, name.span, having)

    def _order_by(self) -> tuple[ast.SortKey, ...]:
        word = self.advance()
        self.expect_word("by", f"write {word.text} by key")
        keys: list[ast.SortKey] = []
        while True:
            start = self.token.start
            value = self.expression()
            descending = self.take_word("desc")
            if not descending:
                self.take_word("asc")
            keys.append(ast.SortKey(self.span_from(start), value, descending))
            if not self.take(","):
                return tuple(keys)

    def _no_select(self) -> None:
        if self.at_word(*_CLAUSES) or self.at("let"):
            order = "from, join, where, group by, sort by, skip, take, select"
            self.fail(self.token.span, f"'{self.token.text}' stands too late in the query", f"the order is: {order}")
        self.expected("'select'", "a query ends with what it makes of each row: select x")
