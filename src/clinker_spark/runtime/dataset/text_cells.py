"""Cells of results as text, column by column: lines of JSON, and times in CSV."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.dataset.either import as_logged, holds_either
from clinker_spark.query.values import json_text

_NULL = pa.scalar("null")


def json_lines(batch: pa.RecordBatch) -> memoryview:
    """The rows of a batch, an object on each line.

    >>> print(bytes(json_lines(pa.record_batch({"a": [1, None], "b": ["x", "\\n"], "c": [0.1, 2.0]}))).decode(), end="")
    {"a": 1, "b": "x", "c": 0.1}
    {"a": null, "b": "\\n", "c": 2.0}
    """
    if not batch.num_rows:
        return memoryview(b"")
    parts: list[pa.Array | pa.Scalar] = []
    for i, name in enumerate(batch.schema.names):
        parts += [pa.scalar(f"{', ' if i else '{'}{json.dumps(name, ensure_ascii=False)}: "), _cells(batch.column(i))]
    lines = pc.binary_join_element_wise(*parts, pa.scalar("}\n" if parts else "{}\n"), pa.scalar(""))
    lines = lines if isinstance(lines, pa.Array) else pa.repeat(lines, batch.num_rows)
    offsets = lines.buffers()[1], lines.offset
    ends = memoryview(offsets[0]).cast("i")
    return memoryview(lines.buffers()[2])[ends[lines.offset] : ends[lines.offset + len(lines)]]


def _cells(values: pa.Array) -> pa.Array:
    """Each value as JSON has it."""
    kind = values.type
    if pa.types.is_null(kind):
        return pa.repeat(_NULL, len(values))
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return values.cast(pa.string()).fill_null("null")
    if pa.types.is_floating(kind):
        # Numbers have no comma in them: one text of all, cut again, is the quickest way to Python's own digits.
        known = pc.if_else(pc.is_finite(values), values, pa.scalar(None, kind)).to_pylist()
        return pa.array(json.dumps(known)[1:-1].split(", "), pa.string())
    if pa.types.is_timestamp(kind):
        quote = pa.scalar('"')
        return pc.binary_join_element_wise(quote, times(values), quote, pa.scalar("")).fill_null("null")
    if pa.types.is_string(kind):
        coded = values.dictionary_encode()
        texts = pa.array([json.dumps(text, ensure_ascii=False) for text in coded.dictionary.to_pylist()], pa.string())
        return texts.take(coded.indices).fill_null("null")
    cells = values.to_pylist()
    if holds_either(kind):
        cells = [as_logged(cell, kind) for cell in cells]
    return pa.array([json_text(cell, sort=False, indent=None, whole=False) for cell in cells], pa.string())


def times(values: pa.Array) -> pa.Array:
    """Times as text, with as many digits as they need, and a Z where they are moments in UTC.

    >>> times(pa.array([0, 1_500_000], pa.timestamp("us", tz="UTC"))).to_pylist()
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:01.500Z']
    """
    aware = values.type.tz is not None
    moments = values.cast(pa.timestamp("us", tz="UTC" if aware else None))
    texts = pc.strftime(moments.cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%S")
    for pattern, replacement in ((r"\.000000$", ""), (r"(\.[0-9]{3})000$", r"\1")):
        texts = pc.replace_substring_regex(texts, pattern, replacement)
    return pc.binary_join_element_wise(texts, pa.scalar("Z" if aware else ""), pa.scalar(""))
