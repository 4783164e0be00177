"""What may come next in the REPL, and whether an input is complete."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clinker_spark.cli.repl.commands import COMMANDS
from clinker_spark.cli.repl.help import topics
from clinker_spark.cli.repl.session import Session
from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.builtins import methods
from clinker_spark.cxl.builtins.families.collections import HIGHER_ORDER
from clinker_spark.cxl.builtins.families.windows import WINDOWS
from clinker_spark.cxl.check.resolve import known_methods
from clinker_spark.cxl.syntax.lexer import KEYWORDS, Token, tokenize
from clinker_spark.cxl.system import NAMESPACES, PIPELINE_MEMBERS, SOURCE_MEMBERS

_SYMBOLS = ("+", "-", "*", "/", "%", "==", "!=", ">", "<", ">=", "<=", "??", "=", "=>", ",", ".")
_GOES_ON = frozenset((*_SYMBOLS, "and", "or", "not", "then", "else", "if", "in"))
_CLOSING = {")": "(", "]": "[", "}": "{"}
_VALUES = frozenset(("name", "system", "int", "float", "string", "date", "now", "it", "true", "false", "null"))
_WIDER = {Kind.INT: (Kind.FLOAT, Kind.DECIMAL)}


def needs_more(text: str) -> bool:
    """Is the input still open: a bracket, or an operator at its end? An empty last line ends it in any case."""
    if text.lstrip().startswith(":") or ("\n" in text and not text.rpartition("\n")[2].strip()):
        return False
    tokens = tokenize(text)[0][:-1]
    depth = sum((t.kind in "([{") - (t.kind in ")]}") for t in tokens)
    if depth > 0 or not tokens:
        return depth > 0
    after_dot = len(tokens) > 1 and tokens[-2].kind == "."
    return tokens[-1].kind in _GOES_ON and not (after_dot and tokens[-1].text.isalpha())


@dataclass(frozen=True)
class Suggestion:
    """`text` replaces the last `typed` characters; `meta` says what it is."""

    text: str
    typed: int
    meta: str = ""


def complete(session: Session, before: str) -> list[Suggestion]:
    """Suggestions for the text left of the cursor."""
    if before.lstrip().startswith(":"):
        return _command(before.lstrip())
    tokens, comments = tokenize(before)
    tokens = tokens[:-1]
    in_text = tokens and tokens[-1].kind == "error" and tokens[-1].text[0] in "\"'"
    if in_text or (comments and comments[-1].span.end == len(before)):
        return []
    if found := re.search(r"\$(\w*)$", before):
        return _fit(found[1], ((name, "namespace") for name in NAMESPACES))
    if found := re.search(r"\$(\w+)\.(\w*)$", before):
        return _fit(found[2], _members(session, found[1]))
    if found := re.search(r"\.[ \t]*(\w*)$", before):
        dot = before.rindex(".")
        return _fit(found[1], _after_dot(session, before[:dot]))
    typed = re.search(r"[A-Za-z_]\w*$", before)
    return _fit(typed[0], _words(session)) if typed else []


def _fit(typed: str, words: Iterable[tuple[str, str]]) -> list[Suggestion]:
    known = sorted(set(words))
    return [Suggestion(word, len(typed), meta) for word, meta in known if word.startswith(typed) and word != typed]


def _command(before: str) -> list[Suggestion]:
    name, space, argument = before[1:].partition(" ")
    if not space:
        return _fit(name, ((command, row.doc) for command, row in COMMANDS.items()))
    if name in ("help", "h", "?"):
        return _fit(argument, ((word, "") for word in topics()))
    if name in ("load", "save", "save!"):
        return _files(argument)
    return []


def _files(typed: str) -> list[Suggestion]:
    folder, start = os.path.split(typed)
    try:
        with os.scandir(folder or ".") as entries:
            names = [(e.name + "/" * e.is_dir(), "") for e in entries if e.is_dir() or e.name.endswith(".cxl")]
    except OSError:
        return []
    return _fit(start, (name for name in names if not name[0].startswith(".")))


def _words(session: Session) -> Iterable[tuple[str, str]]:
    yield from ((word, "keyword") for word in KEYWORDS - session.fields.keys() - session.names.keys())
    yield from ((name, str(t)) for name, t in session.names.items())
    yield from ((name, str(field.type)) for name, field in session.fields.items() if name not in session.names)


def _members(session: Session, namespace: str) -> Iterable[tuple[str, str]]:
    match namespace:
        case "pipeline":
            return ((name, str(t)) for name, t in PIPELINE_MEMBERS.items())
        case "source":
            return ((name, str(t)) for name, t in SOURCE_MEMBERS.items())
        case "vars":
            return ((name, "") for name in session.vars)
        case "window":
            return ((name, row.doc) for name, row in WINDOWS.items())
    return ()


# ------------------------------------------------------------------ methods


def _after_dot(session: Session, before: str) -> Iterable[tuple[str, str]]:
    receiver = receiver_text(before)
    typed = None if receiver is None else session.expression(receiver)
    t = None if typed is None else typed.type
    yield from ((name, _doc(name)) for name in known_methods() if t is None or accepts(name, t))
    if receiver is not None and t is not None and t.kind in (Kind.MAP, Kind.ANY):
        value = session.value(receiver)
        yield from ((key, "key") for key in (value if isinstance(value, dict) else ()) if key.isidentifier())


def _doc(name: str) -> str:
    row = methods().get(name) or HIGHER_ORDER.get(name)
    return row.doc if row else "The value, or the argument where it is null."


def accepts(method: str, t: Type) -> bool:
    """May the method be called on a value of this type?"""
    if t.is_dynamic or t.kind is Kind.NULL or method == "catch":
        return True
    if method in HIGHER_ORDER and t.kind is Kind.ARRAY:
        return True
    row = methods().get(method)
    kinds = (t.kind, Kind.ANY, *_WIDER.get(t.kind, ()))
    return row is not None and any(overload.params[0].kind in kinds for overload in row.overloads)


def receiver_text(before: str) -> str | None:
    """The expression that ends where `before` ends and that a dot would apply to.

    >>> receiver_text("emit x = 1 + items[0].left(2)"), receiver_text("a +")
    ('items[0].left(2)', None)
    """
    tokens = tokenize(before)[0][:-1]
    i = len(tokens) - 1
    while i >= 0:
        kind = tokens[i].kind
        if kind in _CLOSING:
            i = _opening(tokens, i)
            if i < 0:
                return None
            if not _called(tokens, i):
                return before[tokens[i].start :]
            i -= 1
        elif i >= 1 and tokens[i - 1].kind == "." and tokens[i].text.isidentifier():
            i -= 2
        elif kind in _VALUES:
            return before[tokens[i].start :]
        else:
            return None
    return None


def _opening(tokens: Sequence[Token], closing: int) -> int:
    """The index of the bracket that `closing` closes; -1 when there is none."""
    depth = 0
    for i in range(closing, -1, -1):
        depth += (tokens[i].kind in _CLOSING) - (tokens[i].kind in _CLOSING.values())
        if depth == 0:
            return i
    return -1


def _called(tokens: Sequence[Token], opening: int) -> bool:
    """Does the bracket belong to what stands before it, as in `f(` and `a[`?"""
    if opening == 0 or tokens[opening].kind == "{":
        return False
    before = tokens[opening - 1]
    after_dot = opening >= 2 and tokens[opening - 2].kind == "."
    if tokens[opening].kind == "(":
        return before.kind == "name" or (after_dot and before.text.isidentifier())
    return after_dot or before.kind in _VALUES or before.kind in _CLOSING
