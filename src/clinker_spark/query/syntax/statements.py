"""Statements and whole programs. After a mistake the parser goes on at the next statement, to report all of them."""

from __future__ import annotations

from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.syntax import ast
from clinker_spark.query.syntax.cursor import Bail
from clinker_spark.query.syntax.queries import QueryParser

_STARTERS = ("let", "var", "fun", "type", "if", "for", "while", "return", "break", "continue", "test", "expect", "save")


class StatementParser(QueryParser):
    def program(self) -> tuple[ast.Statement, ...]:
        """All statements that could be read."""
        made: list[ast.Statement] = []
        while not self.at("end"):
            before = self.index
            try:
                made.append(self._ended(self.statement()))
            except Bail:
                self.depth = 0
                self._recover(before)
        return tuple(made)

    def _recover(self, before: int) -> None:
        """To the next line that looks like the start of a statement."""
        self.index = max(self.index, before + 1)
        while not self.at("end"):
            token = self.token
            column = self.source.position(token.start)[1]
            if token.line_start and column == 1 and (token.kind in _STARTERS or token.kind == "name"):
                return
            self.advance()

    def statement(self) -> ast.Statement:
        token = self.token
        match token.kind:
            case "let" | "var":
                return self._let_statement()
            case "fun" if self.peek().kind == "name":
                self.advance()
                name = self.advance()
                if self.take("<"):  # type parameters say nothing here: arguments keep their own types
                    while not self.take(">"):
                        self.advance()
                function = self.function(token.start)
                return ast.FunctionDef(self.span_from(token.start), name.text, name.span, function)
            case "type":
                return self._type_statement()
            case "if":
                return self._if_statement()
            case "for":
                return self._for_statement()
            case "while":
                self.advance()
                condition = self.expression()
                body = self.block()
                return ast.While(self.span_from(token.start), condition, body)
            case "break":
                self.advance()
                return ast.Break(token.span)
            case "continue":
                self.advance()
                return ast.Continue(token.span)
            case "return":
                self.advance()
                value = None if self.at("}", "end") else self.expression()
                return ast.Return(self.span_from(token.start), value)
            case "test":
                self.advance()
                name = self.expect("string", 'write test "name" { ... }')
                body = self.block()
                return ast.Test(self.span_from(token.start), name.value, body)
            case "expect":
                self.advance()
                value = self.expression()
                return ast.Expect(self.span_from(token.start), value)
            case "save":
                return self._save_statement()
            case "name" if token.text == "update" and self.peek().kind == "name" and self.peek(2).text == "set":
                return self._update_statement()
        return self._expression_statement()

    def block(self) -> tuple[ast.Statement, ...]:
        opener = self.expect("{")
        self.deeper()
        made: list[ast.Statement] = []
        while not self.at("}", "end"):
            made.append(self._ended(self.statement()))
        self.depth -= 1
        self.close("}", opener)
        return tuple(made)

    def _let_statement(self) -> ast.Statement:
        word = self.advance()
        name = self.expect("name", f"write {word.text} name = value")
        type_name = self.type_name() if self.take(":") else None
        value = self.expression() if self.take("=") else None
        if value is None and type_name is None:
            self.expected("'='", f"write {word.text} {name.text} = value")
        span = self.span_from(word.start)
        return ast.Let(span, name.text, name.span, type_name, value, word.kind == "var")

    def _type_statement(self) -> ast.Statement:
        start = self.advance().start
        name = self.expect("name")
        if self.at("{"):
            fields = self.typed_fields()
            return ast.TypeDef(self.span_from(start), name.text, name.span, fields, None, None)
        self.expect("=", "write type Name { field: type }")
        first = self.token
        if self.peek().kind in ("|", "{", "("):
            variants = [self._variant()]
            while self.take("|"):
                variants.append(self._variant())
            return ast.TypeDef(self.span_from(start), name.text, name.span, None, tuple(variants), None)
        alias = self.type_name()
        if alias.name == first.text and self.at("|"):  # pragma: no cover - handled above
            self.expected("a type")
        return ast.TypeDef(self.span_from(start), name.text, name.span, None, None, alias)

    def _variant(self) -> ast.Variant:
        name = self.expect("name")
        if self.at("{"):
            return ast.Variant(name.span, name.text, self.typed_fields())
        fields: list[tuple[str, ast.TypeName]] = []
        if self.take("("):
            while not self.at(")"):
                field_name = self.member_name()
                self.expect(":")
                fields.append((field_name, self.type_name()))
                if not self.take(","):
                    break
            self.expect(")")
        return ast.Variant(self.span_from(name.start), name.text, tuple(fields))

    def _if_statement(self) -> ast.Statement:
        mark = self.index
        start = self.advance().start
        condition = self.expression()
        if self.at("then"):  # an expression that happens to stand alone
            self.index = mark
            return self._expression_statement()
        then = self.block()
        otherwise: tuple[ast.Statement, ...] = ()
        if self.take("else"):
            otherwise = (self._if_statement(),) if self.at("if") else self.block()
        return ast.If(self.span_from(start), condition, then, otherwise)

    def _for_statement(self) -> ast.Statement:
        start = self.advance().start
        name = self.expect("name", "write for x in xs { ... }")
        self.expect("in", "write for x in xs { ... }")
        source = self.expression()
        end = self.expression() if self.take("..") else None
        body = self.block()
        return ast.For(self.span_from(start), name.text, source, end, body)

    def _save_statement(self) -> ast.Statement:
        start = self.advance().start
        value = self.expression()
        path = None
        if self.take_word("to"):
            path = self.expression()
        options = self.options()
        return ast.Save(self.span_from(start), value, path, options)

    def _update_statement(self) -> ast.Statement:
        start = self.advance().start
        target = self.advance()
        self.advance()
        entries = self.entries()
        condition = self.expression() if self.take_word("where") else None
        return ast.Update(self.span_from(start), target.text, target.span, entries, condition)

    def _expression_statement(self) -> ast.Statement:
        start = self.token.start
        value = self.expression()
        if self.at("="):
            if not isinstance(value, cxl.Name | cxl.Index | cxl.Member):
                self.fail(value.span, "this cannot be assigned to", "assign to a variable, an element or a field")
            self.advance()
            assigned = self.expression()
            return ast.Assign(self.span_from(start), value, assigned)
        return ast.Evaluate(self.span_from(start), value)

    def _ended(self, statement: ast.Statement) -> ast.Statement:
        """The statement, if nothing follows it on its line that does not belong to it."""
        before = self.tokens[self.index - 1]
        between = self.source.text[before.end : self.token.start]
        alone = self.at("end", "}", *_STARTERS) or self.token.line_start or before.kind == "}" or ";" in between
        if not alone:
            self.expected("an operator or the end of the statement")
        return statement
