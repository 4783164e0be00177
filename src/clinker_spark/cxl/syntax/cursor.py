"""The parser's place in the token list, and how it fails."""

from __future__ import annotations

from typing import NoReturn

from clinker_spark.core.diagnostics import Label
from clinker_spark.core.span import Source, Span
from clinker_spark.cxl.limits import MAX_EXPRESSION_DEPTH
from clinker_spark.cxl.syntax.lexer import KEYWORDS, Problem, Token
from clinker_spark.cxl.syntax.messages import (
    CLOSERS,
    STATEMENT_WORDS,
    Bail,
    describe,
    help_for_unexpected,
    parse_diagnostic,
    quote,
)


class Cursor:
    """Walks over tokens and keeps count of what would exhaust the stack.

    `depth` is the number of open levels, as `MAX_EXPRESSION_DEPTH` counts them; none takes more than two stack frames
    of the parser. Chains (`a + b + c`, `x.f().g()`, `else if`, `??`) are read in loops and open no level.
    """

    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.index = 0
        self.token = tokens[0]
        self.end = 0  # where the last consumed token ended
        self.depth = 0
        self.containers = 0
        self.bracketed = False  # inside brackets a new line does not end anything

    def advance(self) -> Token:
        """Consumes the current token, which is not the end."""
        token = self.token
        self.end = token.end
        self.index += 1
        self.token = self.tokens[self.index]
        return token

    def jump(self, index: int) -> None:
        self.index = index
        self.token = self.tokens[index]

    def peek(self, distance: int = 1) -> Token:
        return self.tokens[min(self.index + distance, len(self.tokens) - 1)]

    @property
    def previous(self) -> Token | None:
        return self.tokens[self.index - 1] if self.index else None

    def reset(self) -> None:
        """Forgets the state of an abandoned expression."""
        self.depth = self.containers = 0
        self.bracketed = False

    def same_line(self, token: Token) -> bool:
        """Whether `token` can belong to what stands before it, as far as line ends go."""
        return self.bracketed or not token.line_start

    def continues(self, kind: str) -> bool:
        """Whether the current token is `kind` and belongs to what stands before it."""
        return self.token.kind == kind and self.same_line(self.token)

    # ------------------------------------------------------------- errors

    def fail(self, span: Span, message: str, help_line: str, *labels: Label) -> NoReturn:
        raise Bail(parse_diagnostic(self.source, span, message, help_line, labels))

    def check_token(self) -> None:
        """What the lexer found wrong goes before anything that follows from it."""
        if self.token.kind == "error":
            problem: Problem = self.token.value
            self.fail(self.token.span, problem.message, problem.help)

    def expected(self, what: str, help_line: str, *labels: Label) -> NoReturn:
        """Fails with `expected WHAT after 'x', found 'y'`; at the end of a line it points at 'x'."""
        self.check_token()
        token, previous = self.token, self.previous
        message = f"expected {what}"
        if previous is None:
            self.fail(token.span, f"{message}, found {describe(token)}", help_line, *labels)
        message += f" after {quote(previous)}"
        if token.kind == "end" or token.line_start:
            self.fail(previous.span, message, help_line, *labels)
        self.fail(token.span, f"{message}, found {describe(token)}", help_line, *labels)

    def expect(self, kind: str, help_line: str) -> Token:
        """Consumes a token of this kind."""
        if self.token.kind != kind:
            self.expected(f"'{kind}'", help_line)
        return self.advance()

    def close(self, opener: Token, what: str = "", help_line: str = "") -> None:
        """Consumes the bracket that closes `opener`."""
        closer = CLOSERS[opener.kind]
        if self.token.kind != closer:
            usual = help_for_unexpected(self.token) if self.token.kind in ("=", "=>", "::") else None
            label = Label(opener.span, f"this '{opener.kind}' is not closed")
            self.expected(what or f"'{closer}'", usual or help_line or f"add '{closer}'", label)
        self.advance()

    def too_deep(self) -> NoReturn:
        self.fail(
            self.token.span,
            f"this expression has more than {MAX_EXPRESSION_DEPTH} levels",
            "split it up: give parts of it a name with let",
        )

    # -------------------------------------------------------------- names

    def name(self, what: str, example: str) -> Token:
        """Consumes an identifier that gives `what` its name."""
        token = self.token
        if token.kind == "name":
            return self.advance()
        if (token.kind in KEYWORDS or token.kind == "_") and self.same_line(token):
            sort = "a keyword" if token.kind in KEYWORDS else "the wildcard of match"
            message = f"'{token.text}' is {sort} and cannot be the name of {what}"
            self.fail(token.span, message, f"choose another name, such as '{token.text.strip('_') or 'value'}_'")
        self.expected(f"the name of {what}", example)

    def member_name(self) -> Token:
        """Consumes the word after a dot; keywords are fine there."""
        next_statement = self.token.kind in STATEMENT_WORDS and not self.same_line(self.token)
        if (self.token.kind == "name" or self.token.kind in KEYWORDS) and not next_statement:
            return self.advance()
        help_line = "write a name after the '.'"
        owner = self.tokens[self.index - 2]
        if self.token.kind == "int":
            help_line = f"write [{self.token.text}] for an element of an array, or digits on both sides of a point"
        elif owner.kind == "int":
            help_line = f"write {owner.text}.0 for a float"
        self.expected("a name", help_line)
