"""Methods of strings. Polars counts characters as the language does; where its idea of a letter may be another, the
interpreter decides."""

from __future__ import annotations

from typing import Any

import polars as pl

from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins import stringops as ops
from clinker_spark.cxl.builtins.table import NOT_LITERAL
from clinker_spark.cxl.vector.call import VectorCall, repaired, text_bytes


def _beyond_ascii(text: pl.Expr) -> pl.Expr:
    return text.map_batches(_are_beyond_ascii, return_dtype=pl.Boolean())


def _are_beyond_ascii(texts: pl.Series) -> pl.Series:
    if text_bytes(texts).isascii():
        return pl.repeat(False, len(texts), eager=True)
    return (texts.str.len_bytes() != texts.str.len_chars()).fill_null(False)


def upper(call: VectorCall) -> pl.Expr:
    return repaired(call, call.args[0].str.to_uppercase(), _beyond_ascii(call.args[0]))


def lower(call: VectorCall) -> pl.Expr:
    return repaired(call, call.args[0].str.to_lowercase(), _beyond_ascii(call.args[0]))


def trim(call: VectorCall) -> pl.Expr:
    return call.args[0].str.strip_chars(ops.BLANKS)


def trim_start(call: VectorCall) -> pl.Expr:
    return call.args[0].str.strip_chars_start(ops.BLANKS)


def trim_end(call: VectorCall) -> pl.Expr:
    return call.args[0].str.strip_chars_end(ops.BLANKS)


def starts_with(call: VectorCall) -> pl.Expr:
    return call.args[0].str.starts_with(call.args[1])


def ends_with(call: VectorCall) -> pl.Expr:
    return call.args[0].str.ends_with(call.args[1])


def contains(call: VectorCall) -> pl.Expr:
    return call.args[0].str.contains(call.args[1], literal=True)


def replace(call: VectorCall) -> pl.Expr:
    return call.args[0].str.replace_all(call.literals[1], call.literals[2], literal=True)


def substring(call: VectorCall) -> pl.Expr:
    start, length = call.literal(1), call.literal(2)
    first: Any = max(start or 0, 0)
    if length is NOT_LITERAL or length is None or length < 0:
        return call.args[0].str.slice(first)
    return call.args[0].str.slice(first, length)


def left(call: VectorCall) -> pl.Expr:
    return call.args[0].str.head(call.literals[1])


def right(call: VectorCall) -> pl.Expr:
    return call.args[0].str.tail(call.literals[1])


def _fill(call: VectorCall) -> str:
    fill = call.literal(2)
    return fill[0] if isinstance(fill, str) and fill else " "


def pad_left(call: VectorCall) -> pl.Expr:
    return call.args[0].str.pad_start(call.literals[1], _fill(call))


def pad_right(call: VectorCall) -> pl.Expr:
    return call.args[0].str.pad_end(call.literals[1], _fill(call))


def reverse(call: VectorCall) -> pl.Expr:
    text = call.args[0]  # Polars keeps what is one sign to a reader together: an accent with its letter, CR with LF
    return repaired(call, text.str.reverse(), _beyond_ascii(text) | text.str.contains("\r\n", literal=True))


def type_of(call: VectorCall) -> pl.Expr:
    named = pl.lit(call.types[0].kind.value.lower())
    return pl.when(call.args[0].is_null()).then(pl.lit("null")).otherwise(named)


def length(call: VectorCall) -> pl.Expr:
    return call.args[0].str.len_chars().cast(pl.Int64)


def is_null(call: VectorCall) -> pl.Expr:
    return call.args[0].is_null()


def is_empty(call: VectorCall) -> pl.Expr:
    missing = call.args[0].is_null()
    return missing | (call.args[0] == "") if call.types[0].kind is Kind.STRING else missing


def itself(call: VectorCall) -> pl.Expr:
    return call.args[0]
