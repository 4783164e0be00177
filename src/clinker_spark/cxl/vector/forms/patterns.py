"""Regular expressions, run by RE2 over Arrow columns as everywhere; what RE2 has no words for, text by text."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from clinker_spark.cxl.regex.columns import over_texts
from clinker_spark.cxl.regex.patterns import compile_regex
from clinker_spark.cxl.vector.call import VectorCall


def _over(call: VectorCall, name: str, group: int | None) -> pl.Expr:
    run = over_texts(compile_regex(call.literals[1]), name, group)
    dtype = pl.Boolean() if group is None else pl.String()

    def search(texts: pl.Series) -> pl.Series:
        found = run(texts.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string()))
        return pl.Series(texts.name, pl.from_arrow(found), dtype=dtype)

    return call.args[0].map_batches(search, return_dtype=dtype)


def matches(call: VectorCall) -> pl.Expr:
    return _over(call, "matches", None)


def find(call: VectorCall) -> pl.Expr:
    return _over(call, "find", None)


def capture(call: VectorCall) -> pl.Expr:
    group = call.literals[2] if len(call.args) > 2 else 0
    if not 0 <= group <= compile_regex(call.literals[1]).groups:
        return pl.lit(None, dtype=pl.String)
    return _over(call, "capture", group)
