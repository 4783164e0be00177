"""The words of the parser's diagnostics: how a token is named, and what to write instead."""

from __future__ import annotations

from typing import Final

from clinker_spark.core.diagnostics import Diagnostic, Label
from clinker_spark.core.diagnostics.suggest import nearest
from clinker_spark.core.span import Source, Span
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.syntax.lexer import KEYWORDS, Token

STATEMENT_WORDS: Final = ("let", "emit", "filter", "distinct", "trace", "use", "fn")
"""The keywords that start a statement."""

TRACE_LEVELS: Final = ("debug", "info", "warn", "error")

CLOSERS: Final = {"(": ")", "[": "]", "{": "}"}

CLOSURE_HELP: Final = "a closure 'it => …' can only be a direct argument of a method, as in xs.filter(it => it > 1)"

# Words that other languages use for the same thing.
_FOREIGN_WORDS: Final = {
    **dict.fromkeys(("var", "val", "const", "set", "dim", "assign"), "let"),
    **dict.fromkeys(("select", "output", "return", "yield", "print", "column"), "emit"),
    **dict.fromkeys(("where", "having", "keep", "when"), "filter"),
    **dict.fromkeys(("unique", "dedup", "dedupe"), "distinct"),
    **dict.fromkeys(("log", "debug", "info", "warn", "error"), "trace"),
    **dict.fromkeys(("import", "include", "require", "from"), "use"),
    **dict.fromkeys(("def", "func", "function", "fun"), "fn"),
}

# fmt: off
_EXPRESSION_STARTS: Final = frozenset((
    "name", "system", "int", "float", "string", "date", "true", "false", "null", "now", "it", "if", "match", "not",
    "(", "[", "{", "-",
))
# fmt: on


class Bail(Exception):
    """Gives up on the statement at hand; `diagnostic` says why.

    `block_follows` is true when the '{' of an `emit each` is missing but the lines of its body are not.
    """

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        self.block_follows = False
        super().__init__(diagnostic.message)


def parse_diagnostic(
    source: Source, span: Span, message: str, help_line: str, labels: tuple[Label, ...] = ()
) -> Diagnostic:
    """A parse error."""
    return Diagnostic("E202", message, source, span, help_line, phase="parse", labels=labels)


def starts_expression(token: Token) -> bool:
    return token.kind in _EXPRESSION_STARTS


def describe(token: Token) -> str:
    """How a message names a token."""
    if token.kind == "end":
        return "the end of the text"
    if token.kind in KEYWORDS:
        return f"the keyword '{token.text}'"
    return quote(token)


def quote(token: Token) -> str:
    if token.kind == "string" and len(token.text) <= 30:
        return token.text
    text = token.text if len(token.text) <= 30 else token.text[:30] + "…"
    return "a string" if token.kind == "string" else f"'{text}'"


def help_for_unexpected(token: Token) -> str | None:
    """What is usually meant by a token that cannot stand where it stands, or None."""
    if token.kind == "=":
        return "compare with '==' ('=' only gives a name to a value in let, emit and fn)"
    if token.kind == "=>":
        return CLOSURE_HELP
    if token.kind == "::":
        return "write '.' between the parts of a name"
    if token.kind in (")", "]", "}"):
        return f"remove this '{token.kind}', or open it with '{'([{'[')]}'.index(token.kind)]}' further left"
    if token.kind == "_":
        return "'_' can only be the last arm of a match: '_ => …'"
    if token.kind == "else":
        return "'else' belongs to 'if … then … else …'"
    if token.kind == "then":
        return "'then' belongs to 'if … then … else …'"
    if token.kind == "for":
        return "write '[x for x in xs]' for a list, or 'emit each x in xs { … }' for one record per element"
    return None


def help_for_missing_expression(previous: Token | None, token: Token, following: Token) -> str:
    """What to write where an expression should stand but `token` does."""
    if token.kind == "end" or token.line_start or token.kind in (")", "]", "}"):
        return "write a value there: a literal, a name or a call"
    if token.kind in STATEMENT_WORDS:
        if previous is not None and previous.kind in ("then", "else"):
            return "'if' is an expression, not a statement: write 'emit x = if … then … else …'"
        return f"'{token.kind}' starts a statement; a column of that name must be renamed to be read"
    if token.kind == "." and following.kind == "int":
        return f"write 0.{following.text}: a number has digits on both sides of the point"
    if token.kind == "+":
        return "remove the '+': a number needs no sign"
    if token.kind == "*" and previous is not None and previous.kind == "(":
        return "only count(*) takes a '*'"
    if token.kind in KEYWORDS and token.kind not in ("then", "else", "for"):
        return f"'{token.kind}' is a keyword and cannot be used as a name"
    return help_for_unexpected(token) or "write a value there: a literal, a name or a call"


def help_for_statement_word(word: str, rest: Token) -> str:
    """A suggestion for a word at the start of a line that is no statement."""
    meant = nearest(word, STATEMENT_WORDS, 2) or _FOREIGN_WORDS.get(word.lower())
    if meant is not None:
        return f"did you mean '{meant}'?"
    if rest.kind == "name":
        return f"write 'emit {rest.text} = …' for an output column or 'let {rest.text} = …' for a local value"
    return f"a statement starts with {', '.join(STATEMENT_WORDS[:-1])} or {STATEMENT_WORDS[-1]}"


def explain_junk(statement: ast.Statement | None, token: Token) -> tuple[Span, str, str]:
    """Span, message and help for `token`, which stands behind a complete statement on the same line."""
    bare = statement.value if isinstance(statement, ast.Bare) else None
    if token.kind == "=" and isinstance(bare, ast.Name):
        name = bare.name
        help_line = f"write 'emit {name} = …' for an output column or 'let {name} = …' for a local value"
        return bare.span.to(token.span), "a value is given to a name without 'emit' or 'let'", help_line
    if token.kind == "=" and isinstance(bare, ast.SystemVar):
        help_line = f"write 'emit ${bare.namespace}.{'.'.join(bare.path)} = …'"
        return bare.span.to(token.span), "a value is given to a variable without 'emit'", help_line
    if isinstance(bare, ast.Name) and (starts_expression(token) or token.kind == "by"):
        return bare.span, f"'{bare.name}' does not start a statement", help_for_statement_word(bare.name, token)
    if isinstance(statement, ast.Distinct):
        help_line = "write 'distinct' or 'distinct by name', with one name"
        return token.span, f"unexpected {describe(token)} after 'distinct'", help_line
    message = f"unexpected {describe(token)} after the end of the expression"
    default = "begin a new line for a new statement, or join the two with an operator"
    return token.span, message, help_for_unexpected(token) or default
