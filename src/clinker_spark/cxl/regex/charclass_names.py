r"""The named sets of characters: `\p{Greek}`, `\d`, `[:alpha:]`.

Names are those that Rust's `regex` crate, Java 17 and the Python package `regex` all know. Which of the newest
characters have a property is a matter of each engine's Unicode version.

>>> print(*emit(named("Greek") or NOTHING), named("Klingon"))
\p{IsGreek} \p{Script=Greek} None
"""

from __future__ import annotations

from functools import cache

from clinker_spark.cxl.regex.charclasses import EVERYTHING, NOTHING, CharClass, Flat, emit, from_ranges, negate

__all__ = ["NOTHING", "emit", "named", "perl", "posix"]

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
    return from_ranges((ord(a), ord(b)) for a, b in zip(ends[::2], ends[1::2], strict=True))
