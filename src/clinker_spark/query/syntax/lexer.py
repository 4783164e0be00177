"""From query text to tokens. Never raises: text that is no token becomes an `error` token that says why.

CXL's tokens, and beside them the other spellings: `&&`, `||`, `!`, comments that start with `//` or `/*`. A
line end means nothing except that a bracket after it does not continue the line before; `;` is a space.

>>> [token.text for token in tokenize("from p in people // all of them")]
['from', 'p', 'in', 'people', '']
"""

from __future__ import annotations

import datetime
import re
from typing import Any, Final

from clinker_spark.cxl.syntax.lexer import Problem, Token, unescape

# fmt: off
KEYWORDS: Final = frozenset((
    "let", "var", "fun", "fn", "type", "if", "then", "else", "for", "while", "in", "return", "break", "continue",
    "match", "true", "false", "null", "none", "nil", "and", "or", "not", "load", "save", "as", "test", "expect",
))
# fmt: on
"""Words that cannot name a variable. After a dot and before a colon they are ordinary names."""

_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\.", re.DOTALL)
_PATTERN: Final = re.compile(
    r"""
    [ \t;]*+ (?:
    (?P<name>    [^\W\d]\w*+ )
  | (?P<newline> \r\n? | \n )
  | (?P<comment> //[^\r\n]* | /\*.*?\*/ | \#(?![0-9]{4}-[0-9]{2}-[0-9]{2}\#)[^\r\n]* )
  | (?P<op>      \?\? | \?\. | => | == | != | >= | <= | && | \|\| | \.\. | [-+*/%<>=.,:()\[\]{}!|?] )
  | (?P<string>  "(?:[^"\\\r\n]|\\[^\r\n])*+" | '(?:[^'\\\r\n]|\\[^\r\n])*+' | `[^`]*+` )
  | (?P<number>  0[xX][0-9A-Fa-f]++ | [0-9]++ (?:\.[0-9]++)?+ (?:[eE][-+]?[0-9]++)?+ (?!\w) )
  | (?P<date>    \#[0-9]{4}-[0-9]{2}-[0-9]{2}\# )
  | (?P<unclosed> ["'`][^\r\n]* | /\*.* )
  | (?P<badnumber> [0-9]++ (?:\.[0-9]++)?+ \w+ )
  | (?P<other>   . )
  | (?P<stop>    \Z )
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_SPELLED: Final = {"&&": "and", "||": "or", "none": "null", "nil": "null", "fn": "fun"}
"""Other spellings of one thing: the parser knows only the second."""


def tokenize(text: str) -> list[Token]:
    """All tokens of `text`; the last one is of kind `end`.

    >>> tokenize("#2024-02-31#")[0].value.message
    'there is no date 2024-02-31'
    """
    tokens: list[Token] = []
    line_start = True
    for found in _PATTERN.finditer(text):
        group = found.lastgroup or "other"
        start, end = found.span(group)
        piece = text[start:end]
        if group == "stop":
            break
        if group == "newline" or (group == "comment" and "\n" in piece):
            line_start = True
            continue
        if group == "comment" or piece == "\ufeff":
            continue
        kind, value = _token(group, piece)
        tokens.append(Token(kind, piece, start, end, line_start, value))
        line_start = False
    tokens.append(Token("end", "", len(text), len(text), True))
    return tokens


def _token(group: str, piece: str) -> tuple[str, Any]:
    if group == "name":
        return (_SPELLED.get(piece, piece) if piece in KEYWORDS else "name"), None
    if group == "op":
        return _SPELLED.get(piece, piece), None
    if group == "string":
        return "string", piece[1:-1] if piece[0] == "`" else _unescape(piece[1:-1])
    if group == "number":
        return _number(piece)
    if group == "date":
        try:
            return "date", datetime.date.fromisoformat(piece[1:-1])
        except ValueError:
            return "error", Problem(f"there is no date {piece[1:-1]}", "write year-month-day, as in #2024-03-15#")
    return "error", _problem(group, piece)


def _unescape(body: str) -> str:
    if "\\u" not in body:
        return unescape(body)
    # One pass: what an escape stands for is not read again. Two halves of a character are one.
    text = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else unescape(m[0]), body)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _number(piece: str) -> tuple[str, Any]:
    if piece[:2] in ("0x", "0X"):
        return "int", int(piece, 16)
    if any(c in piece for c in ".eE"):
        value = float(piece)
        if value == float("inf"):
            return "error", Problem("this number is too large for a float", "the largest float is about 1.8e308")
        return "float", value
    if len(piece) > 300:
        return "error", Problem("this number has too many digits", "write at most 300 digits")
    return "int", int(piece)


def _problem(group: str, piece: str) -> Problem:
    shown = piece if len(piece) <= 40 else piece[:40] + "…"
    if group == "unclosed":
        if piece.startswith("/*"):
            return Problem("this comment is not closed", "add */ at its end")
        return Problem("this text is not closed on its line", f"add {piece[0]} at its end; write a line break as \\n")
    if group == "badnumber":
        return Problem(f"'{shown}' is not a number", "write digits such as 1500, 0.25 or 1e6")
    return Problem(f"unexpected character '{shown}'", "remove it, or put it inside quotes")
