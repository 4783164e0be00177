"""Characters as far as a pattern can tell them apart.

A pattern names a few sets of characters. Two characters that are in the same of these sets look alike to it, so a text
can be rewritten, character by character, into a small alphabet in which each letter stands for all that look alike.
What a set has in it is then decided here alone, whichever engine runs the pattern, and word boundaries of Unicode
become those of ASCII: letters for word characters are taken from ASCII's word characters, the others from the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clinker_spark.cxl.regex import charclasses as cc
from clinker_spark.cxl.regex.charclass_names import perl
from clinker_spark.cxl.regex.tree import Alternatives, Assertion, Char, Group, Node, Repeat, Sequence

_NEWLINE = cc.chars("\n")
_WORD_BYTES = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
_OTHER_BYTES = bytes(b for b in range(1, 256) if b not in _WORD_BYTES and b != 0x0A)
_BOUNDARIES = ("b", "B", "word_start", "word_end", "half_start", "half_end")


class _Codes(dict[int, int]):
    """The letter of each character, found when it is first asked for."""

    def __init__(self, edges: list[int], letters: list[int]) -> None:
        super().__init__()
        self._edges, self._letters = edges, letters

    def __missing__(self, code: int) -> int:
        found = self[code] = self._letters[bisect_right(self._edges, code) - 1]
        return found


@dataclass(frozen=True)
class Alphabet:
    """`letters` are the letters of each set that the pattern names; `words` those of word characters, Unicode's and
    ASCII's. `as_bytes` says that each letter is a byte, and a word character of ASCII if it stands for such."""

    letters: dict[cc.CharClass, frozenset[int]]
    words: tuple[frozenset[int], frozenset[int]]
    newline: int | None
    as_bytes: bool
    _codes: _Codes

    def rewrite(self, text: str) -> str:
        """The text in this alphabet, one letter for each character."""
        return text.translate(self._codes)


def alphabet_of(tree: Node) -> Alphabet:
    sets: dict[cc.CharClass, None] = {}
    kinds: set[tuple[bool, bool]] = set()
    lines = False
    for node in leaves(tree):
        if isinstance(node, Char):
            sets.setdefault(node.chars)
        elif node.kind in _BOUNDARIES:
            kinds.add((True, node.ascii))
        elif node.kind.startswith("line"):
            lines = True
    named = list(sets)
    words = [perl("w", unicode=True), perl("w", unicode=False)]
    asked = [*named, *([_NEWLINE] if lines else []), *(words[ascii] for _, ascii in sorted(kinds))]
    edges, signatures = _pieces([cc.members(a) for a in asked])
    unicode_words = words[0] if (True, False) in kinds else words[1] if kinds else None
    word_bit = 1 << asked.index(unicode_words) if unicode_words is not None else 0
    newline_bit = 1 << asked.index(_NEWLINE) if lines else 0
    known: dict[int, int] = {}
    pools = [iter(_OTHER_BYTES), iter(_WORD_BYTES)] if kinds else [iter(_OTHER_BYTES + _WORD_BYTES)] * 2
    as_bytes = len(kinds) < 2
    spare = iter(range(0x100, 0x10FFFF))
    for signature in signatures:
        if signature in known:
            continue
        if newline_bit and signature & newline_bit:
            known[signature] = 0x0A
            continue
        letter = next(pools[bool(signature & word_bit)], None)
        if letter is None:
            as_bytes, letter = False, next(spare)
        known[signature] = letter

    def letters(a: cc.CharClass) -> frozenset[int]:
        if a not in asked:
            return frozenset()
        bit = 1 << asked.index(a)
        return frozenset(letter for signature, letter in known.items() if signature & bit)

    return Alphabet(
        {a: letters(a) for a in named},
        (letters(words[0]), letters(words[1])),
        0x0A if lines else None,
        as_bytes,
        _Codes(edges, [known[s] for s in signatures]),
    )


def leaves(node: Node) -> Iterator[Char | Assertion]:
    """The characters and assertions of a pattern, in order."""
    waiting: list[Node] = [node]
    while waiting:
        match waiting.pop():
            case Char() | Assertion() as leaf:
                yield leaf
            case Group(_, body) | Repeat(body):
                waiting.append(body)
            case Sequence(parts) | Alternatives(parts):
                waiting.extend(reversed(parts))


def _pieces(sets: Iterable[cc.Ranges]) -> tuple[list[int], list[int]]:
    """Unicode cut where a set begins or ends: the first character of each piece, and which sets (bits) it is in."""
    changes: dict[int, int] = {0: 0}
    for i, ranges in enumerate(sets):
        for low, high in ranges:
            changes[low] = changes.get(low, 0) ^ (1 << i)
            changes[high + 1] = changes.get(high + 1, 0) ^ (1 << i)
    edges = sorted(changes)
    signatures, current = [], 0
    for edge in edges:
        current ^= changes[edge]
        signatures.append(current)
    return edges, signatures
