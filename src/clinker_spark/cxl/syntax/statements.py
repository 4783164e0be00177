"""CXL statements, and how the parser goes on after a mistake.

A broken statement gives one diagnostic and is skipped up to the next line that starts a statement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from clinker_spark.core.diagnostics import Diagnostic, Label
from clinker_spark.core.span import Source, Span
from clinker_spark.cxl.limits import MAX_EMIT_EACH_DEPTH
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.syntax.expressions import ExpressionParser
from clinker_spark.cxl.syntax.lexer import Token
from clinker_spark.cxl.syntax.messages import (
    STATEMENT_WORDS,
    TRACE_LEVELS,
    Bail,
    describe,
    explain_junk,
    help_for_unexpected,
    parse_diagnostic,
    starts_expression,
)

WRITABLE: Final = ("pipeline", "source", "record")
"""Namespaces that `emit $ns.x = …` can write."""

DEFAULT_TRACE_LEVEL: Final = "debug"

_MODULE_STATEMENTS: Final = (ast.Use, ast.Let, ast.FunctionDef)


class StatementParser(ExpressionParser):
    """Reads a whole file; `diagnostics` collects what is wrong with it."""

    def __init__(self, source: Source, tokens: list[Token], module: bool) -> None:
        super().__init__(source, tokens)
        self.diagnostics: list[Diagnostic] = []
        self._module = module
        self._each_depth = 0
        self._uses_are_over = False
        self._handlers: dict[str, Callable[[Token], ast.Statement | None]] = {
            "let": self._let,
            "emit": self._emit,
            "filter": self._filter,
            "distinct": self._distinct,
            "trace": self._trace,
            "use": self._use,
            "fn": self._function,
        }

    def program(self) -> tuple[ast.Statement, ...]:
        return self._statements(body=False)

    def single_expression(self) -> ast.Expr | None:
        """The whole text as one expression."""
        try:
            value = self.expression()
            if self.token.kind != "end":
                self._junk(None)
            return value
        except Bail as bail:
            self.diagnostics.append(bail.diagnostic)
        except RecursionError:
            self._stack_exhausted()
        return None

    # ------------------------------------------------------------ sequence

    def _statements(self, body: bool) -> tuple[ast.Statement, ...]:
        """Statements up to the end of the text, or of an `emit each` body."""
        found: list[ast.Statement] = []
        unclosed = 0
        level = self._each_depth
        while self.token.kind != "end":
            if self.token.kind == "}" and unclosed:
                # Belongs to a statement that was given up on; not worth another diagnostic.
                self.advance()
                unclosed -= 1
                continue
            if self.token.kind == "}" and body:
                break
            start = self.index
            try:
                statement = self._statement()
                if statement is not None:
                    found.append(statement)
                    if not self._at_boundary(body):
                        self._junk(statement)
            except Bail as bail:
                self.diagnostics.append(bail.diagnostic)
                unclosed += self._recover(start, body) + bail.block_follows
            except RecursionError:
                self._each_depth = level
                self._stack_exhausted()
                unclosed += self._recover(start, body)
        return tuple(found)

    def _statement(self) -> ast.Statement | None:
        token = self.token
        handler = self._handlers.get(token.kind)
        statement = handler(token) if handler is not None else self._bare(token)
        if statement is None or self._each_depth:
            return statement
        if self._module and not isinstance(statement, _MODULE_STATEMENTS):
            self._report(token.span, "a module cannot contain this statement", "a module holds only use, let and fn")
        elif not isinstance(statement, ast.Use):
            self._uses_are_over = True
        elif self._uses_are_over:
            self._report(statement.span, "'use' after another statement", "move it to the top of the file")
        return statement

    def _at_boundary(self, body: bool) -> bool:
        """Whether a statement may end before the current token."""
        token = self.token
        return token.line_start or token.kind in STATEMENT_WORDS or (body and token.kind == "}")

    def _junk(self, statement: ast.Statement | None) -> None:
        self.check_token()
        self.fail(*explain_junk(statement, self.token))

    def _report(self, span: Span, message: str, help_line: str) -> None:
        self.diagnostics.append(parse_diagnostic(self.source, span, message, help_line))

    def _stack_exhausted(self) -> None:
        """The limits keep clear of Python's recursion limit, unless the caller has used up most of it."""
        self._report(self.token.span, "this expression is nested too deeply", "split it up with let")

    def _recover(self, start: int, body: bool) -> int:
        """Skips a broken statement that began at token `start`; returns how many '{' it leaves open.

        The next statement is at a line that starts with a statement's keyword, or with a name outside all
        brackets and no further to the right; the '}' of the enclosing body also ends it.
        """
        self.reset()
        resume = max(self.index, start + 1)
        margin = self._column(self.tokens[start])
        braces = others = 0
        for index in range(start, len(self.tokens)):
            token = self.tokens[index]
            if token.kind == "end" or (index >= resume and self._resumes(token, margin, braces + others)):
                break
            if token.kind == "{":
                braces += 1
            elif token.kind == "}":
                if body and not braces and index >= resume:
                    break
                braces, others = max(0, braces - 1), 0
            elif token.kind in ("(", "["):
                others += 1
            elif token.kind in (")", "]"):
                others = max(0, others - 1)
        self.jump(index)
        return 0 if body else braces

    def _resumes(self, token: Token, margin: int, open_brackets: int) -> bool:
        if not token.line_start or token.kind in STATEMENT_WORDS:
            return token.line_start
        return token.kind in ("name", "system") and not open_brackets and self._column(token) <= margin

    def _column(self, token: Token) -> int:
        return self.source.position(token.start)[1]

    # ---------------------------------------------------------- statements

    def _bare(self, token: Token) -> ast.Statement:
        self.check_token()
        if not starts_expression(token):
            message = f"expected a statement, found {describe(token)}"
            usual = help_for_unexpected(token)
            self.fail(token.span, message, usual or f"a statement starts with {', '.join(STATEMENT_WORDS)} or a value")
        value = self.expression()
        return ast.Bare(Span(token.start, self.end), value)

    def _let(self, token: Token) -> ast.Statement:
        self.advance()
        name = self.name("a let", "write 'let name = value'")
        self._equals("let", name.text)
        value = self.expression()
        return ast.Let(Span(token.start, self.end), name.text, value, name.span)

    def _equals(self, word: str, name: str) -> None:
        """The '=' of a let or an emit."""
        example = f"write '{word} {name} = value'"
        token, member = self.token, self.peek().text
        if word == "emit" and token.kind == "." and self.peek(2).kind == "=":
            example = f"an output column has a plain name: write 'emit {name}_{member} = value'"
        elif word == "emit" and token.kind == ".":
            example = f"write 'emit {member} = {name}.{member}'"
        elif word == "emit" and (token.line_start or token.kind in (",", *STATEMENT_WORDS)):
            example = f"write 'emit {name} = {name}' to output the value of that name"
        self.expect("=", example)

    def _emit(self, token: Token) -> ast.Statement | None:
        self.advance()
        if self.token.kind == "name" and self.token.text == "each" and self.peek().kind != "=":
            return self._emit_each(token)
        if self.token.kind == "system":
            return self._scoped_emit(token)
        if self.token.kind == "string":
            self.fail(self.token.span, "the name of an output column has no quotes", "write 'emit name = value'")
        name = self.name("an output column", "write 'emit name = value'")
        self._equals("emit", name.text)
        value = self.expression()
        return ast.Emit(Span(token.start, self.end), None, name.text, value, name.span)

    def _scoped_emit(self, token: Token) -> ast.Statement:
        target = self.advance()
        scope: str = target.value
        if scope not in WRITABLE:
            reason = {"vars": "read-only", "config": "read-only", "ck": "reserved"}.get(scope, "not writable")
            places = "emit writes $pipeline.x, $source.x, $record.x or a plain column"
            self.fail(target.span, f"{target.text} is {reason}", places)
        self.expect(".", f"write 'emit {target.text}.name = value'")
        name = self.name("a variable", f"write 'emit {target.text}.name = value'")
        self.expect("=", f"write 'emit {target.text}.{name.text} = value'")
        value = self.expression()
        return ast.Emit(Span(token.start, self.end), scope, name.text, value, name.span)

    def _filter(self, token: Token) -> ast.Statement:
        self.advance()
        predicate = self.expression()
        return ast.Filter(Span(token.start, self.end), predicate)

    def _distinct(self, token: Token) -> ast.Statement:
        self.advance()
        if self.token.kind != "by":
            return ast.Distinct(Span(token.start, self.end), None, None)
        self.advance()
        name = self.name("the key of distinct", "write 'distinct by name'")
        return ast.Distinct(Span(token.start, self.end), name.text, name.span)

    def _trace(self, token: Token) -> ast.Statement:
        self.advance()
        level = DEFAULT_TRACE_LEVEL
        after = self.peek()
        # A level word with nothing behind it is the message: a column of that name.
        if self.token.text in TRACE_LEVELS and starts_expression(after) and not after.line_start:
            level = self.advance().text
        condition = None
        if self.continues("if"):
            self.advance()
            condition = self.expression()
            if self.token.kind == "then":
                help_line = "write 'trace if condition message', or '(if … then … else …)' for a message that varies"
                self.fail(self.token.span, "the condition of trace has no 'then'", help_line)
        message = self.expression()
        return ast.Trace(Span(token.start, self.end), level, condition, message)

    def _use(self, token: Token) -> ast.Statement:
        self.advance()
        example = "write 'use folder.file' or 'use folder.file as name'"
        path = [self.name("a module", example).text]
        while self.token.kind in (".", "::"):
            if self.token.kind == "::":
                self.fail(self.token.span, "'::' in a module path", f"write '.': use {path[0]}.{self.peek().text}")
            self.advance()
            if self.token.kind == "*":
                help_line = f"write 'use {'.'.join(path)}' and read its members as {path[-1]}.member"
                self.fail(self.token.span, "'use' cannot take all members of a module at once", help_line)
            path.append(self.name("a module", example).text)
        alias = None
        if self.token.kind == "as":
            self.advance()
            alias = self.name("a module", example).text
        return ast.Use(Span(token.start, self.end), tuple(path), alias)

    def _function(self, token: Token) -> ast.Statement:
        self.advance()
        example = "write 'fn name(a, b) = value'"
        name = self.name("a function", example)
        params = self._parameters(self.expect("(", example), example)
        self.expect("=", example)
        body = self.expression()
        return ast.FunctionDef(Span(token.start, self.end), name.text, params, body, name.span)

    def _parameters(self, opener: Token, example: str) -> tuple[str, ...]:
        self.bracketed = True
        params: list[str] = []
        while self.token.kind != ")":
            param = self.name("a parameter", example)
            if param.text in params:
                self.fail(param.span, f"two parameters are called '{param.text}'", "give each its own name")
            params.append(param.text)
            if self.token.kind != ",":
                break
            self.advance()
            if self.token.kind == ")":
                self.expected("another parameter", "write its name, or remove the ','")
        self.close(opener, "',' or ')'", example)
        self.bracketed = False
        return tuple(params)

    # ----------------------------------------------------------- emit each

    def _emit_each(self, token: Token) -> ast.Statement | None:
        self.advance()
        try:
            binding, source, outer = self._each_header()
        except Bail as bail:
            # The body is still worth reading; otherwise its statements and its '}' would look misplaced.
            if not self._find_body():
                bail.block_follows = self._next_line_is_indented(token)
                raise
            self.diagnostics.append(bail.diagnostic)
            self._each_body()
            return None
        body = self._each_body()
        return ast.EmitEach(Span(token.start, self.end), binding.text, source, outer, body, binding.span)

    def _each_header(self) -> tuple[Token, ast.Expr, bool]:
        example = "write 'emit each item in items { … }'"
        binding = self.advance() if self.token.kind == "it" else self.name("the element of emit each", example)
        self.expect("in", example)
        source = self.expression()
        outer = self.token.kind == "name" and self.token.text == "outer"
        if outer:
            self.advance()
        if self.token.kind != "{":
            self.expected("'{'", example)
        return binding, source, outer

    def _find_body(self) -> bool:
        """Moves to a '{' later on the line of a broken header."""
        self.reset()
        for index in range(self.index, len(self.tokens)):
            token = self.tokens[index]
            if token.kind == "{":
                self.jump(index)
                return True
            if token.line_start and index > self.index:
                break
        return False

    def _next_line_is_indented(self, token: Token) -> bool:
        index = self.index
        while self.tokens[index].kind != "end" and not self.tokens[index].line_start:
            index += 1
        return self._column(self.tokens[index]) > self._column(token)

    def _each_body(self) -> tuple[ast.Statement, ...]:
        opener = self.token
        if self._each_depth >= MAX_EMIT_EACH_DEPTH:
            message = f"more than {MAX_EMIT_EACH_DEPTH} 'emit each' blocks inside one another"
            self._report(opener.span, message, "flatten the data first, for example with flat_map")
            self._skip_block()
            return ()
        self.advance()
        self._each_depth += 1
        body = self._statements(body=True)
        self._each_depth -= 1
        if self.token.kind == "end":
            self._report_unclosed(opener)
        else:
            self.advance()
        return body

    def _report_unclosed(self, opener: Token) -> None:
        """Once per file: when blocks nest, the outer ones are missing their '}' for the same reason."""
        message = "this 'emit each' is not closed"
        if all(d.message != message for d in self.diagnostics):
            label = Label(opener.span, "this '{' is not closed")
            self.diagnostics.append(
                parse_diagnostic(self.source, opener.span, message, "add '}' after its last statement", (label,))
            )

    def _skip_block(self) -> None:
        """Jumps behind the '}' that closes the current '{'."""
        level = 0
        for index in range(self.index, len(self.tokens)):
            kind = self.tokens[index].kind
            level += (kind == "{") - (kind == "}")
            if kind == "end" or not level:
                self.end = self.tokens[index].end
                self.jump(min(index + 1, len(self.tokens) - 1))
                return
