"""Sets of characters in a regular expression, and how each of two dialects writes them.

A class is built from ranges of code points and Unicode properties. Sets of ranges alone are computed
here; where a property takes part, the two engines evaluate it, and an operator between such sets becomes
a look-ahead. Case-insensitive matching is worked out here too (a set is closed under simple case
folding), because the engines fold differently: for Java, `(?iu)i` also matches the dotless i.

>>> emit(union(chars("a", "c"), chars("x"))), emit(negate(chars(",")))
(('[a-cx]', '[a-cx]'), ('[^,]', '[^,]'))
>>> print(*emit(fold(chars("k"))), *emit(named("Greek") or NOTHING))
[Kk\\x{212A}] [Kk\\u212A] \\p{IsGreek} \\p{Script=Greek}
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


# ------------------------------------------------------------------ properties

_CATEGORIES = {
    "L": "letter",
    "LC": "casedletter",
    "Lu": "uppercaseletter",
    "Ll": "lowercaseletter",
    "Lt": "titlecaseletter",
    "Lm": "modifierletter",
    "Lo": "otherletter",
    "M": "mark",
    "Mn": "nonspacingmark",
    "Mc": "spacingmark",
    "Me": "enclosingmark",
    "N": "number",
    "Nd": "decimalnumber",
    "Nl": "letternumber",
    "No": "othernumber",
    "P": "punctuation",
    "Pc": "connectorpunctuation",
    "Pd": "dashpunctuation",
    "Ps": "openpunctuation",
    "Pe": "closepunctuation",
    "Pi": "initialpunctuation",
    "Pf": "finalpunctuation",
    "Po": "otherpunctuation",
    "S": "symbol",
    "Sm": "mathsymbol",
    "Sc": "currencysymbol",
    "Sk": "modifiersymbol",
    "So": "othersymbol",
    "Z": "separator",
    "Zs": "spaceseparator",
    "Zl": "lineseparator",
    "Zp": "paragraphseparator",
    "C": "other",
    "Cc": "control",
    "Cf": "format",
    "Co": "privateuse",
    "Cn": "unassigned",
}

# The scripts that Java 17 knows (Unicode 13).
_SCRIPTS = """
Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki Bopomofo
Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian Common
Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan Elymaic
Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Han Hangul Hanifi_Rohingya Hanunoo
Hatran Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada
Katakana Kayah_Li Kharoshthi Khitan_Small_Script Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Linear_A Linear_B Lisu
Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek
Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari
New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian Old_Italic Old_North_Arabian Old_Permic
Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa
Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Signwriting Sinhala Sogdian
Sora_Sompeng Soyombo Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangut Telugu
Thaana Thai Tibetan Tifinagh Tirhuta Ugaritic Vai Wancho Warang_Citi Yezidi Yi Zanabazar_Square
"""

_BINARY = {
    "Alphabetic": ("alphabetic", "alpha"),
    "Uppercase": ("uppercase", "upper"),
    "Lowercase": ("lowercase", "lower"),
    "White_Space": ("whitespace", "wspace", "space"),
    "Ideographic": ("ideographic", "ideo"),
}


def _property(java: str, python: str) -> Flat:
    return Flat((), (((f"\\p{{{java}}}", f"\\p{{{python}}}"), (f"\\P{{{java}}}", f"\\P{{{python}}}")),))


def _loose(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


@cache
def _names() -> dict[str, dict[str, Flat]]:
    categories = {_loose(n): _property(short, short) for short, long in _CATEGORIES.items() for n in (short, long)}
    categories |= {"digit": categories["nd"], "punct": categories["p"], "any": EVERYTHING}
    categories["ascii"] = Flat(((0, 0x7F),))
    scripts = {_loose(name): _property(f"Is{name}", f"Script={name}") for name in _SCRIPTS.split()}
    binary = {n: _property(f"Is{name}", name) for name, names in _BINARY.items() for n in names}
    return {"gc": categories, "sc": scripts, "": binary | scripts | categories}


def named(name: str) -> CharClass | None:
    r"""The class that `\p{name}` stands for, where `name` may be `gc=Lu` or `Script=Greek`; None: not known."""
    head, sign, value = name.partition("=")
    head, opposite = (head[:-1], True) if sign and head.endswith("!") else (head, False)
    if not sign:
        head, sign, value = name.partition(":")
    if not sign:
        head, value = "", name
    namespace = {"": "", "gc": "gc", "generalcategory": "gc", "sc": "sc", "script": "sc"}.get(_loose(head))
    if namespace is None:
        return None
    loose = _loose(value)
    if namespace != "sc" and loose == "assigned":
        found: CharClass | None = negate(_names()["gc"]["cn"])
    else:
        names = _names()[namespace]
        found = names.get(loose) or names.get(loose.removeprefix("is"))
    return negate(found) if found is not None and opposite else found


WORD = Flat((), (((r"\w", r"\w"), (r"\W", r"\W")),))
r"""Unicode's word characters; Java needs `(?U)` for them."""


def perl(letter: str, *, unicode: bool) -> Flat:
    r"""`\d`, `\w` or `\s`."""
    if unicode:
        return {"d": _property("Nd", "Nd"), "s": _property("IsWhite_Space", "White_Space"), "w": WORD}[letter]
    return posix({"d": "digit", "w": "word", "s": "space"}[letter])


_POSIX = {
    "alnum": "09AZaz",
    "alpha": "AZaz",
    "ascii": "\x00\x7f",
    "blank": "\t\t  ",
    "cntrl": "\x00\x1f\x7f\x7f",
    "digit": "09",
    "graph": "!~",
    "lower": "az",
    "print": " ~",
    "punct": "!/:@[`{~",
    "space": "\t\r  ",
    "upper": "AZ",
    "word": "09AZ__az",
    "xdigit": "09AFaf",
}


def posix(name: str) -> Flat:
    """The ASCII class `[:name:]`; KeyError when there is none."""
    ends = _POSIX[name]
    return Flat(_normal((ord(a), ord(b)) for a, b in zip(ends[::2], ends[1::2], strict=True)))


# -------------------------------------------------------------------- as text


def emit(a: CharClass) -> Text:
    """The class as a piece of pattern that matches one character and can be quantified."""
    if isinstance(a, Flat):
        return _flat(a)
    if isinstance(a, Not):
        return _each("(?:(?!{})(?s:.))", emit(a.inner))
    return _each("(?:(?={}){})" if a.both else "(?:{}|{})", emit(a.left), emit(a.right))


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
            return ("(?!)", "(?!)")
        if a == EVERYTHING:
            return ("(?s:.)", "(?s:.)")
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
