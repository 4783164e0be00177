"""From CXL text to tokens. Never raises: text that is no token becomes an `error` token that says why.

>>> tokens, comments = tokenize('emit total = price * 2  # net')
>>> [token.text for token in tokens]
['emit', 'total', '=', 'price', '*', '2', '']
>>> comments[0].text
'# net'
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any, Final

from clinker_spark.core.span import Span
from clinker_spark.cxl.limits import I64_MAX
from clinker_spark.cxl.syntax.ast import Comment

# fmt: off
KEYWORDS: Final = frozenset((
    "let", "emit", "if", "then", "else", "and", "or", "not", "match", "use", "as", "fn", "trace", "null", "true",
    "false", "now", "it", "filter", "distinct", "by", "for", "in",
))
# fmt: on
"""Words that cannot name a field, an emit or a let. After a dot they are ordinary names."""


@dataclass(slots=True)
class Token:
    """A piece of text with its place.

    `kind` is the text itself for keywords and punctuation; otherwise name, system (`$vars`), int, float,
    string, date, error or end. `value` is the literal's value, the namespace of a system variable, or the
    `Problem` of an error.
    """

    kind: str
    text: str
    start: int
    end: int
    line_start: bool
    """The first token on its line."""
    value: Any = None

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an error token is none, and what to write instead."""

    message: str
    help: str


_PATTERN: Final = re.compile(
    r"""
    [ \t]*+ (?:
    (?P<name>    [A-Za-z_][A-Za-z0-9_]*+ (?!\w) )
  | (?P<newline> \r\n? | \n )
  | (?P<wrong>   && | \|\| | // | <> | === | !== | !(?!=) | \?(?!\?) | [&|;@^~`\\] )
  | (?P<op>      \?\? | => | == | != | >= | <= | :: | [-+*/%<>=.,:()\[\]{}] )
  | (?P<string>  "(?:[^"\\\r\n]|\\[^\r\n])*+" | '(?:[^'\\\r\n]|\\[^\r\n])*+' )
  | (?P<number>  [0-9]++ (?:\.[0-9]++)?+ (?!\w) )
  | (?P<comment> \#(?![0-9])[^\r\n]* )
  | (?P<system>  \$[A-Za-z_][A-Za-z0-9_]*+ (?!\w) )
  | (?P<date>    \#[0-9]{4}-[0-9]{2}-[0-9]{2}\# )
  | (?P<baddate> \#[0-9][0-9A-Za-z:./+-]*\#? )
  | (?P<unclosed> "(?:[^"\\\r\n]|\\[^\r\n])*+\\? | '(?:[^'\\\r\n]|\\[^\r\n])*+\\? )
  | (?P<badnumber> [0-9]++ (?:\.[0-9]++)?+ \w+ )
  | (?P<badword> \$?[^\W\d]\w* )
  | (?P<other>   . )
  | (?P<stop>    \Z )
    )
    """,
    re.VERBOSE | re.DOTALL,
)

_ESCAPES: Final = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "t": "\t", "r": "\r"}
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)

_WRONG: Final = {
    "&&": ("'&&' is not an operator", "write 'and' (the logical operators are and, or, not)"),
    "||": ("'||' is not an operator", "write 'or' (the logical operators are and, or, not)"),
    "!": ("'!' is not an operator", "write 'not' (the logical operators are and, or, not)"),
    "&": ("'&' is not an operator", "write 'and'"),
    "|": ("'|' is not an operator", "write 'or'"),
    "//": ("'//' does not start a comment", "comments start with '#'"),
    "<>": ("'<>' is not an operator", "write '!=' for 'is not equal to'"),
    "===": ("'===' is not an operator", "write '=='"),
    "!==": ("'!==' is not an operator", "write '!='"),
    "?": ("'?' is not an operator", "write 'if … then … else …' for a choice, '??' for a default"),
    ";": ("unexpected ';'", "remove it: a statement ends where its line ends"),
    "\\": ("unexpected '\\'", "remove it: inside brackets and before an operator a line simply goes on"),
}
_LOOKALIKES: Final = {
    **dict.fromkeys("“”„«»‘’‚", "quote text with \" or '"),
    **dict.fromkeys("−–—", "write '-' for minus"),
    **dict.fromkeys("\u00a0\u2002\u2003\u2009\u202f\u3000\u200b\ufeff", "replace it with an ordinary space"),
    "≠": "write '!='",
    "≤": "write '<='",
    "≥": "write '>='",
    "×": "write '*'",
    "÷": "write '/'",
    "…": "write the expression out",
    "$": "a system variable has a name, such as $pipeline.name",
}
_NUMBER_HELP: Final = "write plain digits such as 1500 or 0.25 (no exponent, no '_', no hexadecimal)"
_DATE_HELP: Final = "write a date as #2024-03-15#; to begin a comment with a digit put a space after '#'"


def unescape(body: str) -> str:
    r"""The text a string literal stands for; an unknown escape keeps its backslash.

    >>> unescape(r"\d+\n")
    '\\d+\n'
    """
    if "\\" not in body:
        return body
    return _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[0]), body)


def tokenize(text: str) -> tuple[list[Token], list[Comment]]:
    """All tokens of `text`, the last of kind `end`, and its comments.

    >>> tokens, _ = tokenize("a && b")
    >>> tokens[1].kind, tokens[1].value.help
    ('error', "write 'and' (the logical operators are and, or, not)")
    """
    tokens: list[Token] = []
    comments: list[Comment] = []
    add = tokens.append
    line_start = True
    for found in _PATTERN.finditer(text):
        group = found.lastgroup or "other"
        if group == "newline":
            line_start = True
            continue
        if group == "stop":
            break
        start, end = found.span(group)
        piece = text[start:end]
        if group == "name":
            kind = piece if piece in KEYWORDS or piece == "_" else "name"
            add(Token(kind, piece, start, end, line_start))
        elif group == "op":
            add(Token(piece, piece, start, end, line_start))
        elif group == "comment":
            comments.append(Comment(Span(start, end), piece))
            continue
        elif piece == "\ufeff" and start == 0:
            continue
        else:
            kind, value = _special(group, piece)
            add(Token(kind, piece, start, end, line_start, value))
        line_start = False
    add(Token("end", "", len(text), len(text), True))
    return tokens, comments


def _special(group: str, piece: str) -> tuple[str, Any]:
    """Kind and value of a literal, a system variable or an error."""
    if group == "string":
        return "string", unescape(piece[1:-1])
    if group == "number":
        return _number(piece)
    if group == "system":
        return "system", piece[1:]
    if group == "date":
        return _date(piece)
    return "error", _problem(group, piece)


def _number(piece: str) -> tuple[str, Any]:
    if "." in piece:
        value = float(piece)
        if value == float("inf"):
            return "error", Problem("this number is too large for a float", "the largest float is about 1.8 × 10^308")
        return "float", value
    digits = piece.lstrip("0") or "0"
    # One past the largest int is let through: after a minus sign it is the smallest int, which the parser checks.
    # The length test comes first because Python refuses to convert thousands of digits.
    if len(digits) > 19 or int(digits) > I64_MAX + 1:
        return "error", too_wide(piece)
    return "int", int(digits)


def too_wide(piece: str) -> Problem:
    """The problem of an integer literal that needs more than 64 bits."""
    return Problem(
        f"the integer {_shorten(piece)} does not fit in 64 bits",
        f"integers go up to {I64_MAX}; write a float (with '.0' at the end) or an exact decimal (\"…\".to_decimal())",
    )


def _date(piece: str) -> tuple[str, Any]:
    try:
        return "date", datetime.date.fromisoformat(piece[1:-1])
    except ValueError:
        return "error", Problem(f"there is no date {piece[1:-1]}", "write year-month-day, as in #2024-03-15#")


def _problem(group: str, piece: str) -> Problem:
    if group == "wrong":
        message, advice = _WRONG.get(piece, (f"unexpected '{piece}'", "remove it"))
        return Problem(message, advice)
    if group == "baddate":
        if re.match(r"#[0-9]{4}-[0-9]{2}-[0-9]{2}T", piece):
            return Problem("there is no literal for a date with a time", 'write "2024-03-15T14:30:00".to_datetime()')
        return Problem(f"'{_shorten(piece)}' is not a date", _DATE_HELP)
    if group == "unclosed":
        return Problem("this text is not closed on its line", f"add {piece[0]} at its end; write a line break as \\n")
    if group == "badnumber":
        return Problem(f"'{_shorten(piece)}' is not a number", _NUMBER_HELP)
    if group == "badword":
        return Problem(f"'{_shorten(piece)}' is not a name", "names are made of the letters A-Z a-z, digits and '_'")
    shown = f"'{piece}'" if piece.isprintable() and piece != "\u200b" else f"U+{ord(piece):04X}"
    return Problem(f"unexpected character {shown}", _LOOKALIKES.get(piece, "remove it, or put it inside quotes"))


def _shorten(piece: str) -> str:
    return piece if len(piece) <= 40 else piece[:40] + "…"
