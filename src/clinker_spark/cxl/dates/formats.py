"""Date formats in the style of strftime: `%d/%m/%Y`, `%B %-d, %Y`, `%H:%M:%S%.3f`.

Names are English whatever the machine's language. Formatting and parsing are spelled out here for the interpreter;
`dateformats_sql` says the same in Spark SQL.

When parsing, a number takes as many digits as are there up to its width, blanks before it are skipped, and
whitespace in the format matches any whitespace, also none. Every field that was read must agree with the date.

>>> d = dt.datetime(2024, 3, 5, 14, 7, 9, 250000)
>>> format_value("%A %-d %b %Y, %I:%M %p%t%.f", d)
'Tuesday 5 Mar 2024, 02:07 PM\\t.250'
>>> parse_text("%d %B %Y", "5 march 2024", Kind.DATE)
datetime.date(2024, 3, 5)
>>> check_format("%Y-%Q")
"'%Q' is not a date format directive"
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.sqltext import regex_quote
from clinker_spark.cxl.errors import ErrorKind, Fail

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Token:
    """A directive (`code`, and the padding character or "" for none), or text to be taken literally."""

    code: str
    text: str = ""
    pad: str = ""


# Numeric directives: width, and what fills it.
NUMBERS: dict[str, tuple[int, str]] = {
    **dict.fromkeys(("C", "y", "g", "m", "d", "U", "W", "V", "H", "I", "M", "S"), (2, "0")),
    **dict.fromkeys(("e", "k", "l"), (2, " ")),
    **dict.fromkeys(("Y", "G"), (4, "0")),
    **dict.fromkeys(("w", "u"), (1, "")),
    "j": (3, "0"),
    "f": (9, "0"),
    "s": (1, ""),
}
_NAMES = frozenset("bBaApP")
_FRACTIONS = frozenset((".f", ".3f", ".6f", ".9f", "3f", "6f", "9f"))
TIME_CODES = frozenset("HkIlPpMSfs") | _FRACTIONS
_COMPOSED = {
    "D": "%m/%d/%y",
    "x": "%m/%d/%y",
    "F": "%Y-%m-%d",
    "v": "%e-%b-%Y",
    "R": "%H:%M",
    "T": "%H:%M:%S",
    "X": "%H:%M:%S",
    "r": "%I:%M:%S %p",
    "c": "%a %b %e %H:%M:%S %Y",
    "h": "%b",
}
_TEXTS = {"t": "\t", "n": "\n", "%": "%"}
_DIRECTIVE = re.compile(r"%([-_0]?)([.]?[0-9]?f|.)?", re.DOTALL)


class BadFormat(ValueError):
    """A format that is no format; the message says why."""


@lru_cache(maxsize=512)
def tokens(fmt: str) -> tuple[Token, ...]:
    """The directives and texts of a format; text is split into whitespace (code " ") and the rest (code "")."""
    found: list[Token] = []
    position = 0
    for match in _DIRECTIVE.finditer(fmt):
        found += _texts(fmt[position : match.start()])
        found += _directive(match)
        position = match.end()
    return (*found, *_texts(fmt[position:]))


def _directive(match: re.Match[str]) -> tuple[Token, ...]:
    modifier, code = match[1], match[2]
    if not code:
        raise BadFormat("a date format cannot end with '%'; write '%%' for a percent sign")
    if code in NUMBERS:
        pad = {"": NUMBERS[code][1], "-": "", "_": " ", "0": "0"}[modifier]
        return (Token(code, pad=pad),)
    known = code in _COMPOSED or code in _TEXTS or code in _NAMES or code in _FRACTIONS
    if known and modifier:
        raise BadFormat(f"'{match[0]}' is not a date format directive: only numbers can be padded")
    if code in _COMPOSED:
        return tokens(_COMPOSED[code])
    if code in _TEXTS:
        return _texts(_TEXTS[code])
    if known:
        return (Token(code),)
    raise BadFormat(f"'{match[0]}' is not a date format directive")


def _texts(text: str) -> tuple[Token, ...]:
    parts = re.findall(r"\s+|\S+", text, re.ASCII)  # only ASCII blanks are skipped on reading
    return tuple(Token(" " if part[0] in " \t\n\r\f\v" else "", part) for part in parts)


def check_format(fmt: str, receiver: Kind | None = None) -> str | None:
    """What is wrong with a format, or None. With `receiver` Date it must not ask for the time."""
    try:
        found = tokens(fmt)
    except BadFormat as problem:
        return str(problem)
    timely = next((t.code for t in found if t.code in TIME_CODES), None)
    if receiver is Kind.DATE and timely is not None:
        return f"'%{timely}' asks for the time of day, which a Date does not have"
    return None


# ---------------------------------------------------------------- formatting


def format_value(fmt: str, value: dt.date) -> str:
    """A date or datetime as text; fails on a bad format and on time directives for a date."""
    timed = isinstance(value, dt.datetime)
    if check_format(fmt, None if timed else Kind.DATE) is not None:
        raise Fail(ErrorKind.INVALID_FORMAT, fmt)
    moment = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
    return "".join(_formatted(token, moment) for token in tokens(fmt))


def _formatted(token: Token, v: dt.datetime) -> str:
    code = token.code
    if code in ("", " "):
        return token.text
    if code in NUMBERS:
        text = str(_number(code, v))
        return text.rjust(NUMBERS[code][0], token.pad) if token.pad else text
    if code in _FRACTIONS:
        return _fraction(code, v.microsecond)
    if code in "bB":
        return MONTHS[v.month - 1][: 3 if code == "b" else None]
    if code in "aA":
        return DAYS[v.weekday()][: 3 if code == "a" else None]
    half = "AM" if v.hour < 12 else "PM"
    return half if code == "p" else half.lower()


def _fraction(code: str, micros: int) -> str:
    digits = f"{micros:06}000"
    if code == ".f":
        return "" if not micros else "." + digits[: 6 if micros % 1000 else 3]
    return digits[: int(code[0])] if code[0] != "." else "." + digits[: int(code[1])]


def _number(code: str, v: dt.datetime) -> int:
    if code in "YCy":
        return {"Y": v.year, "C": v.year // 100, "y": v.year % 100}[code]
    if code in "GgV":
        year, week, _ = v.isocalendar()
        return {"G": year, "g": year % 100, "V": week}[code]
    if code in "jUW":
        ordinal = v.timetuple().tm_yday
        first = v.isoweekday() % 7 if code == "U" else v.weekday()
        return ordinal if code == "j" else (ordinal + 6 - first) // 7
    if code in "wu":
        return v.isoweekday() % 7 if code == "w" else v.isoweekday()
    if code in "Il":
        return (v.hour + 11) % 12 + 1
    if code == "f":
        return v.microsecond * 1000
    if code == "s":
        return (v - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1)
    return {"m": v.month, "d": v.day, "e": v.day, "H": v.hour, "k": v.hour, "M": v.minute, "S": v.second}[code]


# ---------------------------------------------------------------- parsing

_SAME = {"e": "d", "k": "H", "l": "I", "B": "b", "A": "a", "P": "p"}
_YEAR = "[+]?+(?!0000|0{1,3}(?![0-9]))([0-9]{1,4}+)"  # there is no year 0


@dataclass(frozen=True, slots=True)
class Reader:
    """How to read a format: a pattern that Python and Java understand alike, and which group holds which field."""

    pattern: str
    groups: tuple[str, ...]


@lru_cache(maxsize=512)
def reader(fmt: str) -> Reader:
    """The pattern of a format, without anchors. Its quantifiers are possessive: fields do not give digits back."""
    pattern, groups = "", []
    for token in tokens(fmt):
        code = _SAME.get(token.code, token.code)
        if code:
            pattern += r"\s*+" if code == " " or code in NUMBERS else ""
        if code in ("", " "):
            pattern += regex_quote(token.text) if not code else ""
            continue
        groups.append(code)
        if code in "YG":
            pattern += _YEAR
        elif code == "s":
            pattern += "([0-9]{1,11}+)"
        elif code == "I":
            pattern += "(?=0[1-9]|1[0-2]|[1-9](?![0-9]))([0-9]{1,2}+)"
        elif code in NUMBERS:
            pattern += f"([0-9]{{1,{NUMBERS[code][0]}}}+)"
        elif code in _FRACTIONS:
            pattern += "(?:([.][0-9]{1,9}+)[0-9]*+)?+" if code[0] == "." else f"([0-9]{{{code[0]}}})"
        elif code == "p":
            pattern += "((?i:am|pm))"
        else:
            names = MONTHS if code == "b" else DAYS
            long = token.code in "BA"
            pattern += "((?i:" + "|".join(_name_pattern(name, long) for name in names) + "))"
    return Reader(pattern, tuple(groups))


def _name_pattern(name: str, long: bool) -> str:
    return name[:3].lower() + (f"(?:{name[3:]})?+" if long and name[3:] else "")


@lru_cache(maxsize=512)
def _compiled(fmt: str) -> re.Pattern[str]:
    return re.compile(reader(fmt).pattern, re.ASCII)


def parse_text(fmt: str, text: str, want: Kind) -> dt.date | None:
    """The Date or DateTime (`want`) that a text stands for, or None. A bad format fails."""
    try:
        match = _compiled(fmt).fullmatch(text)
    except BadFormat:
        raise Fail(ErrorKind.INVALID_FORMAT, fmt) from None
    if match is None:
        return None
    fields: dict[str, int] = {}
    try:
        for code, part in zip(reader(fmt).groups, match.groups(), strict=True):
            name, value = _field(code, part)
            if fields.setdefault(name, value) != value:
                return None
        return _resolve(fields, want)
    except (ValueError, OverflowError, KeyError):  # no such day, or too little to go by
        return None


def _field(code: str, part: str | None) -> tuple[str, int]:
    if code == "b":
        return "m", [name[:3].lower() for name in MONTHS].index(str(part)[:3].lower()) + 1
    if code == "a":
        return "weekday", [name[:3].lower() for name in DAYS].index(str(part)[:3].lower())
    if code == "w":
        return "weekday", (_in(int(part or 0), 0, 6) + 6) % 7
    if code == "u":
        return "weekday", _in(int(part or 0), 1, 7) - 1
    if code == "p":
        return "p", int(str(part).lower() == "pm")
    if code in _FRACTIONS:
        return "micros", int((part or "").lstrip(".").ljust(6, "0")[:6])
    if code == "f":
        return "micros", int(part or 0) // 1000
    return code, int(part or 0)


def _in(value: int, low: int, high: int) -> int:
    if not low <= value <= high:
        raise ValueError
    return value


def _resolve(fields: dict[str, int], want: Kind) -> dt.date | None:
    time = _time(fields)
    if want is Kind.DATE:
        return _date(fields)
    if "s" in fields:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=fields["s"])
        alone = not fields.keys() & set("YCyGgmdjUWV")
        return moment if alone or dt.datetime.combine(_date(fields), time or dt.time()) == moment else None
    return None if time is None else dt.datetime.combine(_date(fields), time)


def _time(fields: dict[str, int]) -> dt.time | None:
    """The time of day, None when the fields do not make one up; out of range is a ValueError."""
    hour, half, clock = fields.get("H"), fields.get("p"), fields.get("I")
    if hour is None and clock is not None and half is not None:
        hour = clock % 12 + 12 * half
    elif hour is not None and (half not in (None, hour // 12) or (clock is not None and clock % 12 != hour % 12)):
        raise ValueError
    made = dt.time(hour or 0, fields.get("M", 0), fields.get("S", 0), fields.get("micros", 0))
    complete = hour is not None and "M" in fields and ("S" in fields or "micros" not in fields)
    return made if complete else None


def _date(fields: dict[str, int]) -> dt.date:
    year = fields.get("Y")
    if year is None and "y" in fields:
        century = fields.get("C", 20 if fields["y"] < 70 else 19)
        year = century * 100 + fields["y"]
    if year is not None and "m" in fields and "d" in fields:
        date = dt.date(year, fields["m"], fields["d"])
    elif year is not None and "j" in fields:
        date = dt.date(year, 1, 1) + dt.timedelta(days=fields["j"] - 1)
    elif year is not None and ("U" in fields or "W" in fields):
        code = "U" if "U" in fields else "W"
        weekday = (fields["weekday"] + 1) % 7 if code == "U" else fields["weekday"]
        new_year = dt.date(year, 1, 1)
        first = -(new_year.isoweekday() if code == "U" else new_year.weekday()) % 7
        date = new_year + dt.timedelta(days=first + (fields[code] - 1) * 7 + weekday)
    else:
        iso = fields["G"] if "G" in fields else fields["g"] + (2000 if fields["g"] < 70 else 1900)
        date = dt.date.fromisocalendar(iso, fields["V"], fields["weekday"] + 1)
    _verify(date, year, fields)
    return date


def _verify(date: dt.date, year: int | None, fields: dict[str, int]) -> None:
    moment = dt.datetime(date.year, date.month, date.day)
    agree = all(_number(code, moment) == fields[code] for code in "YCyGgmdjUWV" if code in fields)
    if not agree or fields.get("weekday", date.weekday()) != date.weekday() or year not in (None, date.year):
        raise ValueError


def try_parse_text(fmt: str, text: str, want: Kind) -> Any:
    """`parse_text` that gives null for a bad format too."""
    try:
        return parse_text(fmt, text, want)
    except Fail:
        return None
