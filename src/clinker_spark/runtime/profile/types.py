"""The type of a column, from a sample of its values.

A type is chosen if all values fit it, by the rules of the readers themselves: what is guessed is what a run reads.
Texts that would not be the same again (`007`) stay texts.

>>> guess_texts(["1", "20", ""]).type, guess_texts(["007", "8"]).type, guess_texts(["31/12/2026", "01/02/2027"]).format
('nullable(int)', 'string', '%d/%m/%Y')
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from clinker_spark.config.model.schema import Column
from clinker_spark.spark.scan.json.values import ABSENT
from clinker_spark.spark.scan.text.cleaning import NO_CLEANING, Cleaning
from clinker_spark.spark.scan.text.values import TextColumn

NULL_WORDS = ("NA", "N/A", "n/a", "NULL", "null", "None", "nan", "NaN", "-", "--", "?", "#N/A", "NIL")
_DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d %b %Y", "%d %B %Y")
_CLOCKS = ("%H:%M:%S", "%H:%M")
_ZEROS = re.compile(r"[+-]?0[0-9]")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.([0-9]+))?")
_COMPACT = re.compile(r"(?:19|20)[0-9]{6}")
_FIRST = 200
_MOST_PLACES = 6
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Guess:
    """A type, the format of dates, and what is to be said about it."""

    type: str
    format: str | None = None
    note: str = ""


def fits(type_: str, texts: Sequence[str], format_: str | None = None) -> list[bool]:
    """Which texts are values of a type, as the readers see it."""
    column = Column(name="x", type=type_, format=format_)
    found = TextColumn.of(column).convert(pa.array(texts, pa.string()))
    return [True] * len(texts) if found.failed is None else [not bad for bad in found.failed.to_pylist()]


def guess_texts(texts: Sequence[str | None], cleaning: Cleaning = NO_CLEANING) -> Guess:
    """The type of texts. None is a value that is not there; the empty text is null in all types but strings."""
    cleaned = [None if text is None else cleaning.clean_text(text) for text in texts]
    present = [text for text in cleaned if text]
    absent, empty = cleaned.count(None), cleaned.count("")
    if not present:
        note = "no value in the sample" if texts else "no record in the sample"
        return Guess("nullable(string)" if absent or not texts else "string", note=note)
    found, format_, note = _of_present(present)
    share = note or f"100 % of {len(present):,} values"
    if found == "string":
        nulls = f", {absent:,} null" if absent else ""
        return Guess("nullable(string)" if absent else "string", note=share + nulls)
    nulls = f", {absent + empty:,} without" if absent or empty else ""
    return Guess(f"nullable({found})" if absent or empty else found, format_, share + nulls)


def _of_present(texts: list[str]) -> tuple[str, str | None, str]:
    """Type, format and a note, of texts that are all there."""
    distinct = list(dict.fromkeys(texts))
    if any(_ZEROS.match(text) for text in distinct) and all(_NUMBER.fullmatch(text) for text in distinct):
        return "string", None, f"100 % of {len(texts):,} values; digits with zeros before them stay texts"
    if all(_COMPACT.fullmatch(text) for text in distinct) and _all("date", distinct, "%Y%m%d"):
        return "date", "%Y%m%d", f"100 % of {len(texts):,} values; int fits as well"
    if not any(_ZEROS.match(text) for text in distinct):
        for plain in ("bool", "int"):
            if _all(plain, distinct):
                return plain, None, ""
        if all(_NUMBER.fullmatch(text) for text in distinct):
            return _number(distinct), None, ""
        if _all("float", distinct):
            return "float", None, ""
    for iso in ("date", "date_time"):
        if _all(iso, distinct):
            return iso, None, ""
    formats = [(kind, text) for kind, text in _date_formats() if _all(kind, distinct, text)]
    if formats:
        (kind, text), *others = formats
        other = f"; {others[0][1]} fits as well: nothing tells them apart" if others else ""
        return kind, text, f"100 % of {len(texts):,} values{other}"
    return "string", None, _nearly(texts)


def _number(texts: list[str]) -> str:
    """decimal, where all fractions are of one length, as in prices; float elsewhere."""
    places = {len(match[1]) for text in texts if (match := _NUMBER.fullmatch(text)) and match[1]}
    digits = max(sum(char.isdigit() for char in text) for text in texts)
    if not places:
        return "decimal(0)" if digits <= 38 and _all("decimal(0)", texts) else "string"
    [first, *more] = sorted(places)
    fixed = f"decimal({first})"
    if not more and first <= _MOST_PLACES and len(texts) > 1 and _all(fixed, texts):
        return fixed
    return "float" if digits <= 17 and _all("float", texts) else "string"


def _all(type_: str, distinct: list[str], format_: str | None = None) -> bool:
    return all(fits(type_, distinct[:_FIRST], format_)) and all(fits(type_, distinct[_FIRST:], format_))


def _date_formats() -> list[tuple[str, str]]:
    times = [f"{day}{between}{clock}" for day in ("%Y-%m-%d", *_DAYS) for between in (" ", "T") for clock in _CLOCKS]
    return [*(("date", day) for day in _DAYS), *(("date_time", text) for text in times)]


def _nearly(texts: list[str]) -> str:
    """A text column that is nearly something else: how much of it is, and the first that is not."""
    total = len(texts)
    shares: list[tuple[int, str, str]] = []
    for type_, format_ in [("int", None), ("float", None), ("date", None), ("date_time", None), *_date_formats()]:
        good = fits(type_, texts[:2_000], format_)
        if sum(good) * 2 >= len(good):
            shares.append((sum(good), f"{type_} {format_}" if format_ else type_, texts[good.index(False)]))
    note = f"100 % of {total:,} values"
    if not shares:
        return note
    count, what, first = max(shares, key=lambda item: item[0])
    return f"{note}; {100 * count / min(total, 2_000):.4g} % are {what}, and {first!r} is none"


# ---------------------------------------------------------------- values with types of their own


def guess_values(values: Sequence[Any]) -> Guess:
    """The type of values of JSON, or of texts and lists of texts."""
    present = [value for value in values if value is not None and value is not ABSENT]
    missing = len(values) - len(present)
    if not present:
        return Guess("any", note="no value in the sample")
    found, format_ = _of_values(present)
    without = f", {missing:,} without" if missing else ""
    note = f"100 % of {len(present):,} values{without}"
    if found == "any":
        kinds = Counter(_kind(value) for value in present)
        note = ", ".join(f"{100 * n / len(present):.4g} % {kind}" for kind, n in kinds.most_common(3))
        return Guess("any", None, note)
    return Guess(f"nullable({found})" if missing else found, format_, note)


def _of_values(values: list[Any]) -> tuple[str, str | None]:
    kinds = {_kind(value) for value in values}
    if kinds == {"string"}:
        if any(value == "" for value in values):
            return "string", None
        for iso in ("date", "date_time"):
            if _all(iso, list(dict.fromkeys(values))):
                return iso, None
        return "string", None
    if kinds == {"int"}:
        return ("int" if all(abs(value) <= _LARGEST for value in values) else "decimal(0)"), None
    if kinds <= {"int", "float"}:
        return "float", None
    if kinds == {"bool"}:
        return "bool", None
    if kinds == {"array"}:
        inner = [item for value in values for item in value if item is not None]
        if not inner:
            return "array(any)", None
        element, _ = _of_values(inner)
        nulls = any(item is None for value in values for item in value)
        return f"array({element})" if not nulls or element == "any" else f"array(nullable({element}))", None
    return "any", None


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (int, "int"),
        ((float, Decimal), "float"),
        (str, "string"),
        (list, "array"),
    )
    return next((word for kind, word in kinds if isinstance(value, kind)), "object")


# ---------------------------------------------------------------- null words and blanks


def cleaning_for(columns: Sequence[Sequence[Any]]) -> tuple[Cleaning, dict[str, int]]:
    """What makes texts values: words that stand for none, and blanks around them. Gives how often each is there."""
    words: Counter[str] = Counter()
    trim = False
    for values in columns:
        texts = [value for value in values if isinstance(value, str)]
        if not texts:
            continue
        bare = [text.strip() for text in texts]
        found = Counter(text for text in bare if text in NULL_WORDS)
        rest = [text for text in bare if text and text not in NULL_WORDS]
        if not rest or (not found and bare == texts) or _of_present(rest)[0] == "string":
            continue
        words.update(found)
        trim = trim or bare != texts
    return Cleaning(trim, tuple(words)), dict(words)
