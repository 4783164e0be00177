"""Sets of characters in a regular expression, and how each of two dialects writes them.

A class is built from ranges of code points and Unicode properties. Sets of ranges alone are computed
here; where a property takes part, the two engines evaluate it, and an operator between such sets becomes
a look-ahead. Case-insensitive matching is worked out here too (a set is closed under simple case
folding), because the engines fold differently: for Java, `(?iu)i` also matches the dotless i.

>>> emit(union(chars("a", "c"), chars("x"))), emit(negate(chars(",")))
(('[a-cx]', '[a-cx]'), ('[^,]', '[^,]'))
>>> print(*emit(fold(chars("k"))))
[Kk\\x{212A}] [Kk\\u212A]
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, reduce

import regex

Text = tuple[str, str]
"""One piece of a pattern as Java writes it and as the Python package `regex` does."""

Ranges = tuple[tuple[int, int], ...]
"""Inclusive, sorted, neither overlapping nor touching."""

_LAST = 0x10FFFF


@dataclass(frozen=True, slots=True)
class Flat:
    """The characters in `ranges` or with one of `properties`, or (`negated`) all others. Without a property
    the ranges alone say it, and `negated` is false. Each property has its text and its opposite's."""

    ranges: Ranges
    properties: tuple[tuple[Text, Text], ...] = ()
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Either:
    """The characters in one of two sets, or (`both`) in both."""

    left: CharClass
    right: CharClass
    both: bool = False


@dataclass(frozen=True, slots=True)
class Not:
    """The characters that are not in the set."""

    inner: CharClass


CharClass = Flat | Either | Not

NOTHING = Flat(())
EVERYTHING = Flat(((0, _LAST),))


def _normal(ranges: Iterable[tuple[int, int]]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def _complement(ranges: Ranges) -> Ranges:
    edges = [-1, *(edge for r in ranges for edge in r), _LAST + 1]
    return tuple((a + 1, b - 1) for a, b in zip(edges[::2], edges[1::2], strict=True) if a + 1 <= b - 1)


def chars(first: str, last: str | None = None) -> Flat:
    """One character, or all from `first` to `last`."""
    return Flat(((ord(first), ord(last or first)),))


def from_ranges(ranges: Iterable[tuple[int, int]]) -> Flat:
    """All characters in some inclusive ranges, in any order."""
    return Flat(_normal(ranges))


def only_ranges(a: CharClass) -> bool:
    return isinstance(a, Flat) and not a.properties


def negate(a: CharClass) -> CharClass:
    if isinstance(a, Not):
        return a.inner
    if isinstance(a, Either):
        return Not(a)
    if only_ranges(a):
        return Flat(_complement(a.ranges))
    if not a.ranges and len(a.properties) == 1 and not a.negated:
        text, opposite = a.properties[0]
        return Flat((), ((opposite, text),))
    return Flat(a.ranges, a.properties, not a.negated)


def union(a: CharClass, b: CharClass) -> CharClass:
    if isinstance(a, Flat) and isinstance(b, Flat) and not a.negated and not b.negated:
        properties = a.properties + tuple(p for p in b.properties if p not in a.properties)
        if any((opposite, text) in properties for text, opposite in properties):
            return EVERYTHING
        return Flat(_normal(a.ranges + b.ranges), properties)
    return Either(a, b)


def intersect(a: CharClass, b: CharClass) -> CharClass:
    if only_ranges(a) and only_ranges(b):
        return negate(union(negate(a), negate(b)))
    return Either(a, b, both=True)


def subtract(a: CharClass, b: CharClass) -> CharClass:
    return intersect(a, negate(b))


def symmetric_difference(a: CharClass, b: CharClass) -> CharClass:
    return union(subtract(a, b), subtract(b, a))


@cache
def members(a: CharClass) -> Ranges:
    """All characters of the set, properties written out."""
    if isinstance(a, Not):
        return _complement(members(a.inner))
    if isinstance(a, Either):
        left, right = Flat(members(a.left)), Flat(members(a.right))
        found = intersect(left, right) if a.both else union(left, right)
        return members(found)
    ranges = _normal((*a.ranges, *(r for text, _ in a.properties for r in _with_property(text[1]))))
    return _complement(ranges) if a.negated else ranges


# The far planes are empty or for private use: whole stretches are alike in all properties.
_STRETCHES = ((0x40000, 0xDFFFF), (0xE1000, 0xEFFFF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))
_NEAR = (range(0x40000), range(0xE0000, 0xE1000), range(0xFFFFE, 0x100000), range(0x10FFFE, 0x110000))


@cache
def _with_property(text: str) -> Ranges:
    one, many = regex.compile(text), regex.compile(f"{text}+")
    near = [(ord(run[0][0]), ord(run[0][-1])) for block in _near() for run in many.finditer(block)]
    return _normal((*near, *(stretch for stretch in _STRETCHES if one.match(chr(stretch[0])))))


@cache
def _near() -> tuple[str, ...]:
    return tuple("".join(map(chr, block)) for block in _NEAR)


def reaches_beyond_bmp(a: CharClass) -> bool:
    """May the set have a character that UTF-16 writes as two units?"""
    return not isinstance(a, Flat) or bool(a.properties) or (a != NOTHING and a.ranges[-1][1] > 0xFFFF)


@cache
def overlap(a: Ranges, b: Ranges) -> bool:
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i][1] < b[j][0]:
            i += 1
        elif b[j][1] < a[i][0]:
            j += 1
        else:
            return True
    return False


# ---------------------------------------------------------------- case folding


def later_case_pairs() -> Iterable[tuple[int, int]]:
    """(upper, lower) pairs that Unicode added after version 14: an older Python does not know them, Spark does."""
    yield from ((0x1C89, 0x1C8A), (0xA7CB, 0x264), (0xA7CC, 0xA7CD), (0xA7CE, 0xA7CF), (0xA7D2, 0xA7D3))
    yield from ((0xA7D4, 0xA7D5), (0xA7DA, 0xA7DB), (0xA7DC, 0x19B))
    yield from ((c, c + 0x20) for c in range(0x10D50, 0x10D66))
    yield from ((c, c + 0x1B) for c in range(0x16EA0, 0x16EB9))


# Pairs whose full folding is longer than one character, so that Python's casefold does not pair them.
_SIMPLE_FOLDS = ((0x1FD3, 0x390), (0x1FE3, 0x3B0), (0xFB05, 0xFB06))

# Everything but the large scripts without case: the orbits are computed while a program is compiled.
_CASED_BLOCKS = (
    range(0x3000),
    range(0xA000, 0xAC00),
    range(0xFB00, 0x12000),
    range(0x16000, 0x17000),
    range(0x1D000, 0x1F000),
)


@cache
def _orbits() -> dict[int, tuple[int, ...]]:
    """For each character that has case variants: all of them, itself included."""
    groups: dict[int, set[int]] = {}
    for code in (c for block in _CASED_BLOCKS for c in block):
        char = chr(code)
        # Simple folding is one character to one; where full folding is longer, lower-casing may still be simple.
        folded = next((f for f in (char.casefold(), char.lower()) if len(f) == 1), char)
        if folded != char:
            groups.setdefault(ord(folded), {ord(folded)}).add(code)
    for a, b in (*later_case_pairs(), *_SIMPLE_FOLDS):
        groups.setdefault(b, {b}).add(a)
    return {code: tuple(sorted(group)) for group in groups.values() for code in group}


@cache
def _cased() -> tuple[int, ...]:
    return tuple(sorted(_orbits()))


def fold(a: Flat) -> Flat:
    """The set with all case variants of its characters.

    >>> fold(chars("s")).ranges
    ((83, 83), (115, 115), (383, 383))
    """
    variants: set[int] = set()
    cased, orbits = _cased(), _orbits()
    for low, high in a.ranges:
        for code in cased[bisect_left(cased, low) : bisect_right(cased, high)]:
            variants.update(orbits[code])
    for (_, text), _ in a.properties:
        variants.update(_variants_outside(text))
    return Flat(_normal((*a.ranges, *((v, v) for v in variants))), a.properties)


@cache
def _variants_outside(text: str) -> frozenset[int]:
    """Case variants of a property's characters that do not have the property themselves."""
    matches = regex.compile(text).match
    inside = {code for code in _cased() if matches(chr(code))}
    found = frozenset(v for code in inside for v in _orbits()[code] if v not in inside)
    if len(found) > 16:
        raise ValueError(f"{text} depends on case and cannot be used where (?i) is set; use \\p{{L}} or (?-i:{text})")
    return found


# -------------------------------------------------------------------- as text


def emit(a: CharClass) -> Text:
    """The class as a piece of pattern that matches one character and can be quantified.

    Java must see one class, however it is composed: it loops over those, and recurses over groups.
    """
    if isinstance(a, Flat):
        return _flat(a)
    return _java_set(a), _python_set(a)


def _java_set(a: CharClass) -> str:
    if isinstance(a, Not):
        return f"[^{_java_set(a.inner)}]"
    if isinstance(a, Either):
        return f"[{_java_set(a.left)}{'&&' if a.both else ''}{_java_set(a.right)}]"
    text = _flat(a)[0]
    return text if text.startswith("[") else f"[{text}]"


def _python_set(a: CharClass) -> str:
    if isinstance(a, Not):
        return f"(?:(?!{_python_set(a.inner)})(?s:.))"
    if isinstance(a, Either):
        left, right = _python_set(a.left), _python_set(a.right)
        return f"(?:(?={left}){right})" if a.both else f"(?:{left}|{right})"
    return _flat(a)[1]


def _each(template: str, *parts: Text) -> Text:
    return template.format(*(p[0] for p in parts)), template.format(*(p[1] for p in parts))


def single(a: CharClass) -> str | None:
    """The one character of the set, when it has just one."""
    if isinstance(a, Flat) and not a.properties and len(a.ranges) == 1 and a.ranges[0][0] == a.ranges[0][1]:
        return chr(a.ranges[0][0])
    return None


def _flat(a: Flat) -> Text:
    char = single(a)
    if char is not None:
        return literal(char)
    if not a.properties:
        if a == NOTHING:
            return (r"[^\x{0}-\x{10FFFF}]", "(?!)")
        if a == EVERYTHING:
            return (r"[\x{0}-\x{10FFFF}]", "(?s:.)")
        if a.ranges[0][0] == 0 and a.ranges[-1][1] == _LAST:
            return _each("[^{}]", _joined(_complement(a.ranges), ()))
    elif not a.ranges and len(a.properties) == 1 and not a.negated:
        return a.properties[0][0]
    return _each("[^{}]" if a.negated else "[{}]", _joined(a.ranges, a.properties))


def _joined(ranges: Ranges, properties: Iterable[tuple[Text, Text]]) -> Text:
    pieces: list[Text] = []
    for low, high in ranges:
        first, last = _in_class(chr(low)), _in_class(chr(high))
        pieces.append(first if low == high else _each("{}{}" if high == low + 1 else "{}-{}", first, last))
    return reduce(lambda x, y: (x[0] + y[0], x[1] + y[1]), [*pieces, *(text for text, _ in properties)])


def literal(char: str) -> Text:
    """One character, outside a class."""
    return _char(char, "\\.+*?()|[]{}^$")


def _in_class(char: str) -> Text:
    return _char(char, "\\[]^-&~|")


def _char(char: str, special: str) -> Text:
    if char in special or char in "\n\r\t":
        text = "\\" + {"\n": "n", "\r": "r", "\t": "t"}.get(char, char)
        return (text, text)
    code = ord(char)
    # An escaped quote keeps patterns simple as SQL literals; marks and look-alikes are easier to read as numbers.
    plain = code < 0x7F or (unicodedata.category(char)[0] not in "MZ" and unicodedata.is_normalized("NFC", char))
    if plain and char.isprintable() and char != "'":
        return (char, char)
    return (f"\\x{{{code:X}}}", f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}")
