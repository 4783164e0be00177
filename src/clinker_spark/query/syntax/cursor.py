"""Walking over tokens: what the parsers of expressions, clauses and statements share."""

from __future__ import annotations

from typing import NoReturn

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.span import Source, Span
from clinker_spark.cxl.syntax.lexer import Problem, Token

MAX_DEPTH = 60
"""Levels of brackets, queries and blocks inside each other."""


class Bail(Exception):
    """The statement cannot be read further; its diagnostic is already noted."""


class Cursor:
    """A position in a list of tokens, and what was found to be wrong so far."""

    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.index = 0
        self.depth = 0
        self.diagnostics: list[Diagnostic] = []

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    @property
    def end(self) -> int:
        """Where the last token that was read ends."""
        return self.tokens[self.index - 1].end if self.index else 0

    def span_from(self, start: int) -> Span:
        return Span(start, max(start, self.end))

    def advance(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.index += 1
        return token

    def at(self, *kinds: str) -> bool:
        return self.token.kind in kinds

    def take(self, kind: str) -> bool:
        """Reads the token if it is of this kind."""
        if self.token.kind != kind:
            return False
        self.advance()
        return True

    # ------------------------------------------------- words that are names elsewhere

    def at_word(self, *words: str) -> bool:
        """Is the next token one of these words? They are keywords only where a clause may start."""
        return self.token.kind == "name" and self.token.text in words

    def take_word(self, word: str) -> bool:
        if not self.at_word(word):
            return False
        self.advance()
        return True

    def expect(self, kind: str, help_text: str | None = None) -> Token:
        if self.token.kind != kind:
            self.expected(f"'{kind}'" if kind != "name" else "a name", help_text)
        return self.advance()

    def expect_word(self, word: str, help_text: str) -> Token:
        if not (self.at_word(word) or self.token.text == word):
            self.expected(f"'{word}'", help_text)
        return self.advance()

    def close(self, kind: str, opener: Token) -> Token:
        if self.token.kind != kind:
            self.expected(f"'{kind}'", f"'{opener.text}' opened on line {self.source.position(opener.start)[0]}")
        return self.advance()

    # ------------------------------------------------------------------ mistakes

    def expected(self, what: str, help_text: str | None = None) -> NoReturn:
        token = self.token
        if token.kind == "error":
            problem: Problem = token.value
            self.fail(token.span, problem.message, problem.help)
        found = "the text ends" if token.kind == "end" else f"found '{token.text}'"
        self.fail(token.span, f"expected {what}, but {found}", help_text)

    def fail(self, span: Span, message: str, help_text: str | None = None) -> NoReturn:
        self.note(span, message, help_text)
        raise Bail

    def note(self, span: Span, message: str, help_text: str | None = None) -> None:
        self.diagnostics.append(Diagnostic("E700", message, self.source, span, help_text, phase="parse"))

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(
                self.token.span, f"this is nested more than {MAX_DEPTH} levels deep", "use 'let' for the inner parts"
            )
