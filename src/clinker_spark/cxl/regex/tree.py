"""The tree of a regular expression, and what can be asked about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clinker_spark.cxl.regex import charclasses as cc


class RegexError(ValueError):
    """A pattern that is not valid, or that this dialect does not have. `offset` counts its characters from 0."""

    def __init__(self, message: str, offset: int) -> None:
        self.message = message
        self.offset = offset
        super().__init__(f"{message} (at character {offset + 1})")


@dataclass(frozen=True, slots=True)
class Char:
    """One character out of a set."""

    chars: cc.CharClass


@dataclass(frozen=True, slots=True)
class Assertion:
    """A condition on a position.

    `kind` is `start` or `end` of the text (`\\A`, `\\z`) or of a line (`line_start`, `line_end`), or one of the word
    boundaries `b`, `B`, `word_start`, `word_end`, `half_start` and `half_end`; `ascii` says which words those are of.
    """

    text: cc.Text
    kind: str = "start"
    ascii: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    index: int
    body: Node


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    body: Node
    low: int
    high: int | None
    lazy: bool
    possessive: bool = False  # never out of the parser: see regex_loops


Node = Char | Assertion | Group | Sequence | Alternatives | Repeat

START = Assertion((r"\A", r"\A"), "start")
END = Assertion((r"\z", r"\Z"), "end")


def sequence(items: Iterable[Node]) -> Node:
    items = tuple(items)
    return items[0] if len(items) == 1 else Sequence(items)


def alternatives(branches: list[Node]) -> Node:
    """Neighbouring branches of one character become one set: cheaper, and Java's stack does not grow with them."""
    merged: list[Node] = []
    for branch in branches:
        if merged and isinstance(branch, Char) and isinstance(merged[-1], Char):
            merged[-1] = Char(cc.union(merged[-1].chars, branch.chars))
        else:
            merged.append(branch)
    return merged[0] if len(merged) == 1 else Alternatives(tuple(merged))


# -------------------------------------------------------------------- questions


def never_moves(node: Node) -> bool:
    """Does it match without reading anything?"""
    match node:
        case Char():
            return False
        case Assertion():
            return True
        case Group(_, body):
            return never_moves(body)
        case Repeat(body, _, high):
            return high == 0 or never_moves(body)
        case Sequence(parts) | Alternatives(parts):
            return all(map(never_moves, parts))


def expanded(node: Node) -> int:
    """The number of characters and assertions, counted repetitions written out."""
    match node:
        case Char() | Assertion():
            return 1
        case Group(_, body):
            return expanded(body)
        case Repeat(body, low, high):
            return max(low, high or 0, 1) * expanded(body)
        case Sequence(parts) | Alternatives(parts):
            return sum(map(expanded, parts))


def can_be_empty(node: Node) -> bool:
    match node:
        case Char():
            return False
        case Assertion():
            return True
        case Group(_, body):
            return can_be_empty(body)
        case Repeat(body, low):
            return low == 0 or can_be_empty(body)
        case Sequence(items):
            return all(map(can_be_empty, items))
        case Alternatives(branches):
            return any(map(can_be_empty, branches))


def has_empty_iterations(node: Node) -> bool:
    """Is there a repetition that can repeat without reading anything?"""
    match node:
        case Repeat(body, _, high):
            return (high != 1 and can_be_empty(body)) or has_empty_iterations(body)
        case Group(_, body):
            return has_empty_iterations(body)
        case Sequence(parts) | Alternatives(parts):
            return any(map(has_empty_iterations, parts))
    return False


def outside_loops(node: Node) -> Iterator[int]:
    """The groups that take part at most once."""
    match node:
        case Group(index, body):
            yield index
            yield from outside_loops(body)
        case Repeat(body, _, 1):
            yield from outside_loops(body)
        case Sequence(parts) | Alternatives(parts):
            for part in parts:
                yield from outside_loops(part)


def is_certain(node: Node, group: int) -> bool:
    match node:
        case Group(index, body):
            return index == group or is_certain(body, group)
        case Repeat(body, low):
            return low > 0 and is_certain(body, group)
        case Sequence(items):
            return any(is_certain(i, group) for i in items)
    return False


def find_group(node: Node, group: int) -> Node | None:
    """The body of a group."""
    match node:
        case Group(index, body):
            return body if index == group else find_group(body, group)
        case Repeat(body):
            return find_group(body, group)
        case Sequence(parts) | Alternatives(parts):
            return next((f for p in parts if (f := find_group(p, group)) is not None), None)
    return None


def has_groups(node: Node) -> bool:
    match node:
        case Group():
            return True
        case Repeat(body):
            return has_groups(body)
        case Sequence(parts) | Alternatives(parts):
            return any(map(has_groups, parts))
    return False
