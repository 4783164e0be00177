"""Columns of text as typed Arrow columns, by the rules that hold for every text format.

No blank is trimmed and no word means null, unless the source asks for it (`cleaning`). An empty text is "" in a string
column, null in a nullable column and a missing value elsewhere. A column is first cast as a whole; only where that
fails, or where Arrow is more generous than the rules, are the usual spellings told from the rest by a pattern and the
rest read one by one.

>>> found = TextColumn("qty", INT).convert(pa.array(["7", "+8", "0x1F", ""]))
>>> found.values.to_pylist(), found.failed.to_pylist()
([7, 8, None, None], [False, False, True, True])
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.config.model.schema import Column
from clinker_spark.core.types import INT, Kind, Type
from clinker_spark.cxl.dates.formats import check_format
from clinker_spark.cxl.values import DECIMAL_DIGITS
from clinker_spark.spark.columns.python_calls import arrow_type
from clinker_spark.spark.columns.variants import encode
from clinker_spark.spark.scan.text.arrays import array_reader
from clinker_spark.spark.scan.text.bytes import TextBytes, byte_table, mentions
from clinker_spark.spark.scan.text.cleaning import NO_CLEANING, Cleaning
from clinker_spark.spark.scan.text.readers import Reader, reader_of

__all__ = ["INT", "Converted", "TextColumn", "text_columns"]

_YEAR_ONE_DAYS, _YEAR_ONE_MICROS = -719162, -719162 * 86_400_000_000
_NO_METADATA = encode("")[1]

# Spellings that a cast reads as the rules want it, whatever the value. Days up to 28 exist in every month.
_DAY = "[1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
_CLOCK = r"[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_USUAL = {
    Kind.INT: r"^-?[0-9]{1,18}$",
    Kind.FLOAT: r"^[+-]?[0-9]{1,17}(?:\.[0-9]{0,20})?(?:[eE][+-]?[0-9]{1,2})?$",
    Kind.BOOL: "^(?i:true|false)$",
    Kind.DATE: f"^{_DAY}$",
    Kind.DATETIME: f"^{_DAY}{_CLOCK}$",
}
_ZONED = f"^{_DAY}{_CLOCK}(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])$"
_NUMBER_FIELDS = {"%Y": "([1-9][0-9]{3})", **dict.fromkeys(("%m", "%d", "%H", "%M", "%S"), "([0-9]{2})")}


@dataclass(frozen=True)
class Converted:
    """A typed column. `failed` marks the values that could not be read, null there; None when there are none."""

    values: pa.Array
    failed: pa.Array | None = None


@dataclass(frozen=True)
class TextColumn:
    """How the texts of one column are read."""

    name: str
    type: Type
    digits: int | None = None
    formats: tuple[str, ...] = ()
    """The formats of dates besides, or with `only_formats` instead of, the ISO form."""
    only_formats: bool = False
    cleaning: Cleaning = NO_CLEANING

    @classmethod
    def of(cls, column: Column, date_formats: Sequence[str] = (), cleaning: Cleaning = NO_CLEANING) -> TextColumn:
        kind = column.data_type.kind
        formats: tuple[str, ...] = ()
        if kind in (Kind.DATE, Kind.DATETIME):
            # A format with the time of day says nothing about a date column, and is passed over there.
            formats = (column.format,) if column.format else tuple(f for f in date_formats if not check_format(f, kind))
        return cls(column.name, column.data_type, column.digits, formats, column.format is not None, cleaning)

    @property
    def arrow(self) -> pa.DataType:
        return arrow_type(self.type)

    @property
    def checked(self) -> bool:
        """Can a text fail to be a value of this column?"""
        if self.type.is_dynamic:
            return False
        return self.type.kind is not Kind.STRING or (bool(self.cleaning.null_words) and not self.type.nullable)

    def convert(self, text: pa.Array) -> Converted:
        """The typed column of a text column. Where there is no text at all, there is no value and no failure."""
        words = None
        if self.cleaning:
            text, words = self.cleaning.clean(text)
        if self.type.kind is Kind.STRING and not self.type.nullable:
            return Converted(text) if words is None else Converted(_nulled(text, words), pc.fill_null(words, False))
        if self.type.is_dynamic and words is not None:
            text = _nulled(text, words)
        empty = _empty(text) if self.checked or self.type.nullable else None
        if not self.checked:
            nulled = text if empty is None else _nulled(text, empty)
            return Converted(_variants(nulled) if self.type.is_dynamic else nulled)
        present = text if empty is None else _nulled(text, empty)
        if self.type.kind is Kind.ARRAY:
            return self._read_arrays(present, empty)
        whole = None if self.only_formats else self._cast_whole(present)
        found = Converted(whole) if whole is not None else self._cast_most(present) or self._convert_strictly(present)
        if empty is None or self.type.nullable:
            return found
        return Converted(found.values, empty if found.failed is None else pc.or_(empty, found.failed))

    def error(self, text: str) -> dict[str, str | None]:
        """The `$error` of a text that this column cannot hold."""
        shown = text if len(text) <= 200 else text[:200] + "…"
        cleaned = self.cleaning.clean_text(text)
        if cleaned is None and text:
            message = f"'{self.name}' is '{shown}', which means null, and its type {self.type} is not nullable"
            return {"kind": "missing_required_field", "field": self.name, "value": shown, "message": message}
        if not cleaned:
            message = f"'{self.name}' is empty, and its type {self.type} is not nullable"
            return {"kind": "missing_required_field", "field": self.name, "value": "", "message": message}
        message = f"cannot convert '{shown}' to {self.type.unwrap()}"
        return {"kind": "type_coercion_failure", "field": self.name, "value": shown, "message": message}

    def _read_arrays(self, text: pa.Array, empty: pa.Array | None) -> Converted:
        """Arrays written as JSON. An empty text has no values; it is null where there may be none."""
        read = array_reader(self.type, self.formats, only_formats=self.only_formats)
        none: list[Any] | None = None if self.type.nullable else []
        blank = [False] * len(text) if empty is None else empty.to_pylist()
        found = [none if there else value for there, value in zip(blank, _read_each(text, read), strict=True)]
        failed = [value is None and there is not None for value, there in zip(found, text.to_pylist(), strict=True)]
        return Converted(pa.array(found, self.arrow), pa.array(failed) if any(failed) else None)

    # ---------------------------------------------------------------- the whole column at once

    def _cast_whole(self, text: pa.Array) -> pa.Array | None:
        """The column cast by Arrow, None where a value fails or where Arrow would accept more than the rules."""
        kind = self.type.kind
        if kind is Kind.DECIMAL and self.type.scale is None:
            return None  # text stays text: only the pattern can tell
        if mentions(text, _TOO_GENEROUS.get(kind, b"")):
            return None
        try:
            values = pc.cast(text, self.arrow)
        except pa.ArrowInvalid:
            return None
        return values if self._within_rules(values, text) else None

    def _within_rules(self, values: pa.Array, text: pa.Array) -> bool:
        kind = self.type.kind
        if kind is Kind.FLOAT:
            return pc.all(pc.is_finite(values), min_count=0).as_py() is not False
        if kind is Kind.DECIMAL and self.digits is not None and self.digits < DECIMAL_DIGITS:
            limit = pa.scalar(Decimal(10 ** max(self.digits - (self.type.scale or 0), 0)), self.arrow)
            return pc.all(pc.less(pc.abs(values), limit), min_count=0).as_py() is not False
        if kind is Kind.DATE:
            lowest = pc.min(pc.cast(values, pa.int32())).as_py()
            return lowest is None or lowest >= _YEAR_ONE_DAYS
        if kind is Kind.DATETIME:
            lowest = pc.min(pc.cast(values, pa.int64())).as_py()
            # Arrow also takes a day alone and an hour alone for a time.
            return lowest is None or (lowest >= _YEAR_ONE_MICROS and pc.min(pc.binary_length(text)).as_py() >= 16)
        return True

    # ---------------------------------------------------------------- all but a few texts at once

    def _cast_most(self, text: pa.Array) -> Converted | None:
        """The column cast but for the texts with a byte that no value has, which are read one by one. None where that
        does not help: what fails looks like a value, or too much fails."""
        if self.only_formats or self.type.kind not in _NOT_IN_VALUES or not len(text):
            return None
        doubtful = TextBytes(text).texts_with(_NOT_IN_VALUES[self.type.kind])
        if not len(doubtful) or len(doubtful) > len(text) // 4:
            return None
        chosen = np.zeros(len(text), dtype=bool)
        chosen[doubtful] = True
        mask = pa.array(chosen)
        whole = self._cast_whole(_nulled(text, mask))
        if whole is None:
            return None
        read = _read_each(pc.filter(text, mask), self._reader())
        values = pc.replace_with_mask(whole, mask, pa.array(read, self.arrow))
        chosen[doubtful] = [value is None for value in read]
        return Converted(values, pa.array(chosen) if chosen.any() else None)

    # ---------------------------------------------------------------- the usual spellings, and the rest one by one

    def _convert_strictly(self, text: pa.Array) -> Converted:
        values = pa.nulls(len(text), self.arrow)
        for pattern, rewritten in self._usual_spellings():
            usual = pc.fill_null(pc.match_substring_regex(text, pattern), False)
            if pc.any(usual).as_py():
                picked = pc.if_else(usual, text, pa.scalar(None, pa.string()))
                if rewritten is not None:
                    picked = pc.replace_substring_regex(picked, pattern, rewritten)
                values = pc.coalesce(values, self._cast_usual(picked, zoned=pattern == _ZONED))
        left = pc.and_(pc.is_null(values), pc.is_valid(text))
        if not pc.any(left).as_py():
            return Converted(values)
        read = _read_each(pc.filter(text, left), self._reader())
        values = pc.replace_with_mask(values, left, pa.array(read, self.arrow))
        failed = pc.and_(pc.is_null(values), pc.is_valid(text))
        return Converted(values, failed if pc.any(failed).as_py() else None)

    def _usual_spellings(self) -> list[tuple[str, str | None]]:
        """Patterns, each with what its groups are rewritten to before the cast."""
        kind = self.type.kind
        if kind is Kind.DECIMAL:
            return [(self._usual_decimal(), None)]
        found: list[tuple[str, str | None]] = [] if self.only_formats else [(_USUAL[kind], None)]
        if kind is Kind.DATETIME and not self.only_formats:
            found.append((_ZONED, None))
        if self.only_formats and (rewriting := _iso_rewriting(self.formats[0], kind)) is not None:
            found.append(rewriting)
        return found

    def _usual_decimal(self) -> str:
        scale = self.type.scale
        if scale is None:
            # At most 14 digits on either side stay below every limit; no sign and no zero that would be left out.
            most = min(self.digits or DECIMAL_DIGITS, 28) // 2
            return rf"^-?[1-9][0-9]{{0,{max(most - 1, 0)}}}(?:\.[0-9]{{1,{max(most, 1)}}})?$" if most else "^[1-9]$"
        whole = min(self.digits or DECIMAL_DIGITS, DECIMAL_DIGITS) - scale
        fraction = rf"(?:\.[0-9]{{0,{scale}}})?" if scale else r"\.?"
        return rf"^[+-]?[0-9]{{1,{whole}}}{fraction}$" if whole > 0 else rf"^[+-]?0?\.[0-9]{{1,{scale}}}$"

    def _cast_usual(self, text: pa.Array, *, zoned: bool) -> pa.Array:
        if zoned:
            return pc.cast(pc.cast(text, pa.timestamp("us", "UTC")), pa.timestamp("us"))
        try:
            return pc.cast(text, self.arrow)
        except pa.ArrowInvalid:  # a rewritten day that does not exist: all of them are read one by one
            return pa.nulls(len(text), self.arrow)

    def _reader(self) -> Reader:
        return reader_of(self.type, self.digits, self.formats, only_formats=self.only_formats)


# Bytes by which texts give themselves away that Arrow reads and the rules do not: 0x1F, 1e5 as a decimal, 1 as a Bool.
_TOO_GENEROUS = {Kind.INT: b"xX", Kind.DECIMAL: b"eE", Kind.BOOL: b"01"}


# Bytes that the usual spellings of a value do not have. (A plus before a number is read one by one.)
_NOT_IN_VALUES = {
    Kind.INT: byte_table(b"0123456789-", others=True),
    Kind.FLOAT: byte_table(b"0123456789-+.eE", others=True),
    Kind.DECIMAL: byte_table(b"0123456789-+.", others=True),
    Kind.DATE: byte_table(b"0123456789-", others=True),
    Kind.DATETIME: byte_table(b"0123456789-+.:TZ ", others=True),
}


def text_columns(
    columns: Sequence[Column], date_formats: Sequence[str] = (), cleaning: Cleaning = NO_CLEANING
) -> tuple[TextColumn, ...]:
    return tuple(TextColumn.of(column, date_formats, cleaning) for column in columns)


def _nulled(text: pa.Array, where: pa.Array) -> pa.Array:
    return pc.if_else(where, pa.scalar(None, pa.string()), text)


def _empty(text: pa.Array) -> pa.Array | None:
    """Where the text is empty; None if it is nowhere."""
    lengths = pc.binary_length(text)
    if pc.min(lengths).as_py() != 0:
        return None
    return pc.fill_null(pc.equal(lengths, 0), False)


def _read_each(texts: pa.Array, reader: Reader) -> list[Any]:
    """Every text read by Python, equal ones once."""
    known: dict[str, Any] = {}
    found = []
    for text in texts.to_pylist():
        if text not in known:
            known[text] = None if text is None else reader(text)
        found.append(known[text])
    return found


def _variants(text: pa.Array) -> pa.Array:
    """Texts as variants that hold strings."""
    values = _read_each(text, lambda value: None if value is None else encode(value)[0])
    rows = [None if value is None else {"value": value, "metadata": _NO_METADATA} for value in values]
    return pa.array(rows, arrow_type(Type(Kind.ANY)))


def _iso_rewriting(fmt: str, kind: Kind) -> tuple[str, str] | None:
    """A pattern for a format of plain numbers, and the ISO form made of its groups.

    >>> _iso_rewriting("%d/%m/%Y", Kind.DATE)
    ('^([0-9]{2})/([0-9]{2})/([1-9][0-9]{3})$', '\\\\3-\\\\2-\\\\1')
    """
    fields = re.findall("%.", fmt)
    wanted = ["%Y", "%m", "%d"] + (["%H", "%M", "%S"] if kind is Kind.DATETIME else [])
    if sorted(fields) != sorted(wanted):
        return None
    parts = re.split("(%.)", fmt)
    if any(part and part not in _NUMBER_FIELDS and not re.fullmatch("[-/.:,T]+", part) for part in parts):
        return None
    pattern = "".join(_NUMBER_FIELDS.get(part, re.escape(part)) for part in parts)
    places = {field: f"\\{fields.index(field) + 1}" for field in wanted}
    iso = "%Y-%m-%d" if kind is Kind.DATE else "%Y-%m-%dT%H:%M:%S"
    for field, place in places.items():
        iso = iso.replace(field, place)
    return f"^{pattern}$", iso
