"""Which patterns run in a time that grows as the text does, where an engine tries one way after the other.

Such an engine is slow where a text can be read in many ways, all of which fail in the end. So a pattern is good when at
no place of any text more than one way can go on: whatever may follow a character (its follow set) consists of sets that
have nothing in common, none of them reached twice. Then a failing attempt is as long as what it read. And there is one
attempt for each place at which a match may begin; together they are no longer than the text if there is only one such
place, if all of them are short, or if what is read in a loop can never be the start of another attempt.

Small patterns without loops are good as well, whatever they do: their attempts are short.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from clinker_spark.cxl.regex import charclasses as cc
from clinker_spark.cxl.regex.tree import (
    START,
    Alternatives,
    Assertion,
    Char,
    Group,
    Node,
    Repeat,
    Sequence,
    expanded,
)

_FEW = 2000
"""How many steps an attempt may take to be called short."""
_SOON = 100
_MOST_RANGES = 200_000
"""Where there is more to compare, the answer is no."""


def leading_loop(tree: Node) -> Char | None:
    """The character that a pattern such as `[a-z]+@` begins with any number of.

    If there is no match from the first of a run of them, there is none from the others: a search may pass over these.
    """
    match tree:
        case Repeat(Char() as body, _, None):
            return body
        case Group(_, body):
            return leading_loop(body)
        case Sequence((first, *_)):
            return leading_loop(first)
    return None


def takes_linear_time(tree: Node, *, full: bool, passing: Char | None = None) -> bool:
    """May Java run the pattern, for a search or for a match of the whole text (`full`)? `passing` is a leading loop of
    which a search tries the start only."""
    if _ways(tree) * expanded(tree) <= _FEW:
        return True
    found = _Follow()
    start = found.connected(tree, full=full)
    if found.ranges(start) + sum(map(found.ranges, found.after.values())) > _MOST_RANGES:
        return False
    if not found.is_deterministic(start) or not all(map(found.is_deterministic, found.after.values())):
        return False
    if full or _begins_once(tree) or start.sure:
        return True
    loops = _Follow(count=False)
    return loops.loops_elsewhere(loops.connected(tree, full=False), passing)


def _ways(node: Node) -> int:
    """In how many ways a text can be read, at most; more than `_FEW` are as many as one likes."""
    match node:
        case Char() | Assertion():
            return 1
        case Group(_, body):
            return _ways(body)
        case Alternatives(branches):
            return min(sum(map(_ways, branches)), _FEW + 1)
        case Sequence(items):
            ways = 1
            for item in items:
                ways = min(ways * _ways(item), _FEW + 1)
            return ways
        case Repeat(body, low, high):
            if high is None:
                return _FEW + 1
            each = _ways(body)
            if each == 1:
                return min(high - low + 1, _FEW + 1)
            iterations = range(low, min(high, low + 12) + 1)  # two ways in each of twelve are too many already
            return min(sum(int(each ** min(n, 12)) for n in iterations), _FEW + 1)


def _begins_once(node: Node) -> bool:
    """Can a match begin at the start of the text only?"""
    match node:
        case Assertion():
            return node == START
        case Group(_, body):
            return _begins_once(body)
        case Sequence(items):
            return bool(items) and _begins_once(items[0])
        case Alternatives(branches):
            return all(map(_begins_once, branches))
    return False


@dataclass(frozen=True)
class _Next:
    """What may come next: positions, each as often as there are ways to it; in how many ways the end of the pattern
    can be reached without reading; and whether it can in any case (`sure`)."""

    first: tuple[int, ...]
    ends: int
    sure: bool

    def then(self, rest: _Next) -> _Next:
        if not self.ends:
            return self
        return _Next(self.first + rest.first * self.ends, min(self.ends * rest.ends, 2), self.sure and rest.sure)

    def either(self, other: _Next) -> _Next:
        return _Next(self.first + other.first, min(self.ends + other.ends, 2), self.sure or other.sure)


_HERE = _Next((), 1, True)
_NOWHERE = _Next((), 0, False)
_PERHAPS = _Next((), 1, False)


@dataclass
class _Follow:
    """The positions (characters) of a pattern, and what may come after each. Without `count`, repetitions that end soon
    are taken for no loops."""

    count: bool = True
    chars: list[cc.Ranges] = field(default_factory=list)
    after: dict[int, _Next] = field(default_factory=dict)
    _places: dict[int, int] = field(default_factory=dict)

    def connected(self, tree: Node, *, full: bool) -> _Next:
        """Fills in all positions; gives what the pattern can begin with."""
        rest = _PERHAPS if full else _HERE
        self._connect(tree, rest)
        return self._start(tree).then(rest)

    def _start(self, node: Node) -> _Next:
        match node:
            case Char(chars):
                # A character that stands in the tree twice is one place in memory; it is told apart by its parents.
                place = self._places.setdefault(id(node), len(self.chars))
                if place == len(self.chars):
                    self.chars.append(cc.members(chars))
                return _Next((place,), 0, False)
            case Assertion():
                return _PERHAPS
            case Group(_, body):
                return self._start(body)
            case Repeat(body, low):
                return self._start(body).either(_HERE) if low == 0 else self._start(body)
            case Sequence(items):
                rest = _HERE
                for item in reversed(items):
                    rest = self._start(item).then(rest)
                return rest
            case Alternatives(branches):
                rest = _NOWHERE
                for branch in branches:
                    rest = rest.either(self._start(branch))
                return rest

    def _connect(self, node: Node, rest: _Next) -> None:
        match node:
            case Char():
                place = self._start(node).first[0]
                known = self.after.get(place)
                self.after[place] = (
                    rest
                    if known is None
                    else _Next(known.first + rest.first, min(known.ends + rest.ends, 2), known.sure and rest.sure)
                )
            case Group(_, body):
                self._connect(body, rest)
            case Repeat(body, low, high):
                if high is not None and not self.count and high * expanded(body) <= _SOON:
                    rest = _Next(rest.first, rest.ends, rest.sure and low <= 1)
                elif high != 1:
                    again = self._start(body).either(rest)
                    rest = again if low <= 1 else _Next(again.first, again.ends, False)
                self._connect(body, rest)
            case Alternatives(branches):
                for branch in branches:
                    self._connect(branch, rest)
            case Sequence(items):
                for item in reversed(items):
                    self._connect(item, rest)
                    rest = self._start(item).then(rest)

    # --------------------------------------------------------------- questions

    def ranges(self, following: _Next) -> int:
        return sum(len(self.chars[p]) for p in following.first)

    def is_deterministic(self, following: _Next) -> bool:
        """Does every character allow at most one way to go on?"""
        ranges = sorted(r for p in following.first for r in self.chars[p])
        return all(a[1] < b[0] for a, b in pairwise(ranges))

    def loops_elsewhere(self, start: _Next, passing: Char | None) -> bool:
        """Is what can be read in a loop before a match is certain never what a match begins with?"""
        begins = _merged(self.chars[p] for p in start.first)
        loops = self._in_doubtful_loops(start)
        if passing is not None:
            loops.discard(self._places[id(passing)])
        return not any(cc.overlap(self.chars[p], begins) for p in loops)

    def _in_doubtful_loops(self, start: _Next) -> set[int]:
        doubtful = {p for p, rest in self.after.items() if not rest.sure}
        reached = self._reached(start.first, doubtful)
        return {p for p in reached if p in self._reached(self.after[p].first, doubtful)}

    def _reached(self, first: Iterable[int], among: set[int]) -> set[int]:
        waiting = [p for p in first if p in among]
        seen = set(waiting)
        while waiting:
            for p in self.after[waiting.pop()].first:
                if p in among and p not in seen:
                    seen.add(p)
                    waiting.append(p)
        return seen


def _merged(sets: Iterable[cc.Ranges]) -> cc.Ranges:
    return cc.from_ranges(r for ranges in sets for r in ranges).ranges
