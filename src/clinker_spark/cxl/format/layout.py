"""Where lines break: a small document algebra in the manner of Wadler's pretty printer.

A document is text, a possible line break, an indented or grouped document, or a sequence. A group is printed
on one line when it fits, otherwise all its own line breaks become real ones.

>>> args = group(["f(", indent([SOFT, "alpha,", LINE, "beta"]), SOFT, ")"])
>>> render(args, width=20)
'f(alpha, beta)'
>>> print(render(args, width=10))
f(
  alpha,
  beta
)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

INDENT: Final = 2


@dataclass(frozen=True, slots=True)
class Break:
    """A line break, or `flat` when its group stays on one line. A hard one never does."""

    flat: str
    hard: bool = False


@dataclass(frozen=True, slots=True)
class Suffix:
    """Text for the end of the current line, such as a comment; what encloses it cannot stay on one line."""

    text: str
    hard: bool = True


@dataclass(frozen=True, slots=True)
class WhenBroken:
    """Text that only a group that is broken over lines has, such as a comma after the last item."""

    text: str
    hard: bool = False


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Doc, ...]
    hard: bool


@dataclass(frozen=True, slots=True)
class Indent:
    inner: Doc
    hard: bool


@dataclass(frozen=True, slots=True)
class Group:
    inner: Doc
    hard: bool


Doc: TypeAlias = "str | Break | Suffix | WhenBroken | Sequence | Indent | Group"

LINE: Final = Break(" ")
SOFT: Final = Break("")
HARD: Final = Break("", hard=True)


def _is_hard(doc: Doc) -> bool:
    return not isinstance(doc, str) and doc.hard


def sequence(parts: Iterable[Doc]) -> Doc:
    docs = tuple(parts)
    return docs[0] if len(docs) == 1 else Sequence(docs, any(_is_hard(doc) for doc in docs))


def indent(parts: Iterable[Doc]) -> Doc:
    inner = sequence(parts)
    return Indent(inner, _is_hard(inner))


def group(parts: Iterable[Doc]) -> Doc:
    """A group of these parts; one with a hard break inside is always broken."""
    inner = sequence(parts)
    return Group(inner, _is_hard(inner))


_Item: TypeAlias = tuple[int, bool, Doc]  # indentation, flat, document


def render(doc: Doc, *, width: int, column: int = 0) -> str:
    """The text of a document, within `width` columns where possible; later lines are indented by `column` too."""
    out: list[str] = []
    suffixes: list[str] = []
    stack: list[_Item] = [(column, False, doc)]
    at = column
    while stack:
        margin, flat, top = stack.pop()
        if isinstance(top, str):
            out.append(top)
            at += len(top)
        elif isinstance(top, Sequence):
            stack.extend((margin, flat, part) for part in reversed(top.parts))
        elif isinstance(top, Indent):
            stack.append((margin + INDENT, flat, top.inner))
        elif isinstance(top, Group):
            item = (margin, True, top.inner)
            fits = flat or (not top.hard and _fits(item, stack, width - at))
            stack.append((margin, fits, top.inner))
        elif isinstance(top, Suffix):
            suffixes.append(top.text)
        elif isinstance(top, WhenBroken):
            out.append("" if flat else top.text)
            at += 0 if flat else len(top.text)
        elif flat:
            out.append(top.flat)
            at += len(top.flat)
        else:
            out.extend(suffixes)
            suffixes.clear()
            out.append("\n" + " " * margin)
            at = margin
    return "".join(out + suffixes)


def _fits(item: _Item, rest: list[_Item], room: int) -> bool:
    """Whether `item` and what follows it, up to the next real line break, fit in `room` columns."""
    todo = [item]
    following = len(rest)
    while room >= 0:
        if not todo:
            if not following:
                return True
            following -= 1
            todo.append(rest[following])
        margin, flat, top = todo.pop()
        if isinstance(top, str):
            room -= len(top)
        elif isinstance(top, Sequence):
            todo.extend((margin, flat, part) for part in reversed(top.parts))
        elif isinstance(top, Indent):
            todo.append((margin, flat, top.inner))
        elif isinstance(top, Group):
            todo.append((margin, flat and not top.hard, top.inner))
        elif isinstance(top, WhenBroken):
            room -= 0 if flat else len(top.text)
        elif isinstance(top, Break):
            if not flat:
                return True
            room -= len(top.flat)
    return False
