r"""Which repetitions Java can run in a constant amount of stack.

Java's engine calls itself once for every iteration of a repeated group, and a text with a few thousand iterations ends
in a stack overflow, which takes the whole Spark process with it. A possessive repetition (`(?:...)*+`) runs
in a loop instead, but never gives an iteration back. So a repeated group becomes possessive where giving back could not
help: where the rest of the pattern cannot fail, or where at no place of any text both another iteration and the
rest can match. The proof runs over the positions of the pattern (its characters), as an automaton has them.
What has no such proof runs in Python, whose engine keeps its state on the heap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from clinker_spark.cxl.regex import charclasses as cc
from clinker_spark.cxl.regex.tree import END, Alternatives, Assertion, Char, Group, Node, Repeat, Sequence, expanded

_DEPTH = 500
"""How many characters and assertions may lie on Java's stack. It fails at some thousands."""


class NotIterative(Exception):
    """A repetition would grow Java's stack with the text."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """What may come next: the first positions, whether the end of the pattern can be reached without reading
    (`nullable`, perhaps on a condition), and whether it can be reached in any case (`sure`)."""

    first: frozenset[int]
    nullable: bool
    sure: bool

    def then(self, rest: _Rest) -> _Rest:
        if not self.nullable:
            return self
        return _Rest(self.first | rest.first, rest.nullable, self.sure and rest.sure)

    def either(self, other: _Rest) -> _Rest:
        return _Rest(self.first | other.first, self.nullable or other.nullable, self.sure or other.sure)


_NOTHING = _Rest(frozenset(), nullable=True, sure=True)
_DEAD_END = _Rest(frozenset(), nullable=False, sure=False)
_CONDITION = _Rest(frozenset(), nullable=True, sure=False)


def for_java(tree: Node, *, full: bool) -> Node:
    """The tree with possessive repetitions where they are needed, for a search or for a `full` match.
    Raises `NotIterative`."""
    loops, rest = _Loops(), _DEAD_END if full else _NOTHING
    loops.number(tree)
    loops.connect(tree, rest, loops.onward)
    return loops.rewrite(tree, rest)


@dataclass
class _Loops:
    chars: list[cc.CharClass] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    """The position of each `Char`, by the identity of the node."""
    onward: dict[int, _Rest] = field(default_factory=dict)
    """What can follow each position, in the whole pattern."""

    def number(self, node: Node) -> None:
        match node:
            case Char(chars):
                self.places[id(node)] = len(self.chars)
                self.chars.append(chars)
            case Group(_, body) | Repeat(body):
                self.number(body)
            case Sequence(parts) | Alternatives(parts):
                for part in parts:
                    self.number(part)

    def start(self, node: Node) -> _Rest:
        """What a node can begin with. Counted iterations are taken for any number of them: more than can be."""
        match node:
            case Char():
                return _Rest(frozenset((self.places[id(node)],)), nullable=False, sure=False)
            case Assertion():
                return _DEAD_END if node == END else _CONDITION
            case Group(_, body):
                return self.start(body)
            case Repeat(body, low):
                return self.start(body).either(_NOTHING) if low == 0 else self.start(body)
            case Sequence(items):
                rest = _NOTHING
                for item in reversed(items):
                    rest = self.start(item).then(rest)
                return rest
            case Alternatives(branches):
                rest = _DEAD_END
                for branch in branches:
                    rest = rest.either(self.start(branch))
                return rest

    def inside(self, node: Repeat, rest: _Rest) -> _Rest:
        """What comes after an iteration of a repetition."""
        if node.high == 1:
            return rest
        after = self.start(node.body).either(rest)
        return replace(after, sure=False) if node.low > 1 else after

    def connect(self, node: Node, rest: _Rest, edges: dict[int, _Rest]) -> None:
        """Note what can follow each position."""
        match node:
            case Char():
                edges[self.places[id(node)]] = rest
            case Group(_, body):
                self.connect(body, rest, edges)
            case Repeat(body):
                self.connect(body, self.inside(node, rest), edges)
            case Alternatives(branches):
                for branch in branches:
                    self.connect(branch, rest, edges)
            case Sequence(items):
                for item in reversed(items):
                    self.connect(item, rest, edges)
                    rest = self.start(item).then(rest)

    # ------------------------------------------------------------------ rewrite

    def rewrite(self, node: Node, rest: _Rest) -> Node:
        match node:
            case Group(index, body):
                return Group(index, self.rewrite(body, rest))
            case Alternatives(branches):
                return Alternatives(tuple(self.rewrite(b, rest) for b in branches))
            case Sequence(items):
                done: list[Node] = []
                for item in reversed(items):
                    done.append(self.rewrite(item, rest))
                    rest = self.start(item).then(rest)
                return Sequence(tuple(reversed(done)))
            case Repeat(Char()):
                return self.repeated_char(node)
            case Repeat(body):
                return replace(self.repeated_group(node, rest), body=self.rewrite(body, self.inside(node, rest)))
        return node

    def repeated_char(self, node: Repeat) -> Node:
        """Java loops over `x*` and `x+`; over `x{n,m}` only while its characters are of one size in UTF-16."""
        if node.lazy or node.low == node.high or not self.is_wide(node.body):
            return node
        if node.high is None:
            if node.low < 2:
                return node
            fixed = node.body if node.low == 2 else Repeat(node.body, node.low - 1, node.low - 1, lazy=False)
            return Sequence((fixed, Repeat(node.body, 1, None, lazy=False)))
        if node.high > _DEPTH:
            raise NotIterative
        return node

    def is_wide(self, node: Node) -> bool:
        return cc.reaches_beyond_bmp(self.chars[self.places[id(node)]])

    def repeated_group(self, node: Repeat, rest: _Rest) -> Repeat:
        if node.high is not None and node.high * expanded(node.body) <= _DEPTH:
            return node
        if self.is_even(node.body):
            return node
        if rest.sure and node.low <= 1 and not node.lazy:
            return replace(node, possessive=True)  # nothing after it can fail: the first way through is the one
        if rest.nullable or not self.is_deterministic(node.body, rest):
            raise NotIterative
        return replace(node, lazy=False, possessive=True)

    def is_even(self, node: Node) -> bool:
        """Does the node always read the same number of UTF-16 units? Java counts the iterations of such a group."""
        match node:
            case Char():
                return not self.is_wide(node)
            case Group(_, body):
                return self.is_even(body)
            case Repeat(body, low, high):
                return low == high and self.is_even(body)
            case Sequence(items):
                return all(map(self.is_even, items))
        return False

    # -------------------------------------------------------------------- proof

    def is_deterministic(self, body: Node, rest: _Rest) -> bool:
        """Is it determined, wherever an iteration may begin, whether it does and where it ends?"""
        start = self.start(body)
        if start.nullable or _has_lazy(body):
            return False
        within: dict[int, _Rest] = {}
        self.connect(body, _NOTHING, within)
        return self.one_end(start, within, rest) and self.round_or_rest(start, within, rest)

    def one_end(self, start: _Rest, within: dict[int, _Rest], rest: _Rest) -> bool:
        """Where an iteration could have ended earlier, nothing could have followed it there."""
        after = start.first | rest.first
        for a, b in self.pairs(start.first, within, start.first, within):
            if within[a].nullable and within[b].first and (a != b or self.meet(within[b].first, after)):
                return False
        return True

    def round_or_rest(self, start: _Rest, within: dict[int, _Rest], rest: _Rest) -> bool:
        """No text begins both with an iteration and with the rest."""
        pairs = self.pairs(start.first, within, rest.first, self.onward)
        return not any(within[a].nullable or self.onward[b].nullable for a, b in pairs)

    def can_meet(self, a: int, b: int) -> bool:
        return cc.overlap(cc.members(self.chars[a]), cc.members(self.chars[b]))

    def meet(self, left: frozenset[int], right: frozenset[int]) -> bool:
        return any(self.can_meet(a, b) for a in left for b in right)

    def pairs(
        self, left: frozenset[int], after_left: dict[int, _Rest], right: frozenset[int], after_right: dict[int, _Rest]
    ) -> Iterator[tuple[int, int]]:
        """The positions that two walks over one text can be at, at the same time."""
        waiting = [(a, b) for a in left for b in right]
        seen = set(waiting)
        while waiting:
            a, b = waiting.pop()
            if not self.can_meet(a, b):
                continue
            yield a, b
            for pair in ((x, y) for x in after_left[a].first for y in after_right[b].first):
                if pair not in seen:
                    seen.add(pair)
                    waiting.append(pair)


def _has_lazy(node: Node) -> bool:
    match node:
        case Repeat(body, low, high, lazy):
            return (lazy and low != high) or _has_lazy(body)
        case Group(_, body):
            return _has_lazy(body)
        case Sequence(parts) | Alternatives(parts):
            return any(map(_has_lazy, parts))
    return False
