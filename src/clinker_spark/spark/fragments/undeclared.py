"""The undeclared columns of a batch, out of the map that rides along with every record."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.spark.scan.record_batches import unicode_text


def columns_of(widened: pa.MapArray, names: Iterable[str]) -> dict[str, pa.Array]:
    """The values of some columns: texts, or the JSON of values where the map keeps types.

    The map is gone through once, however many columns there are: records have few of them each.
    """
    rows = len(widened)
    offsets = widened.offsets.to_numpy()
    inside = slice(int(offsets[0]), int(offsets[-1]))
    values = widened.items[inside]
    if pa.types.is_struct(values.type):
        values = pc.struct_field(values, "json")
    encoded = widened.keys[inside].dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    owners = np.repeat(np.arange(rows), np.diff(offsets))
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    places = {name: i for i, name in enumerate(encoded.dictionary.to_pylist())}
    found = {}
    for name in names:
        place = places.get(name)
        if place is None:
            found[name] = pa.nulls(rows, pa.string())
            continue
        entries = order[edges[place] : edges[place + 1]][::-1]  # of a name that is there twice, the first one counts
        taken = np.full(rows, -1)
        taken[owners[entries]] = entries
        found[name] = values.take(pa.array(taken, mask=taken < 0))
    return found


def texts_of_json(values: pl.Series) -> pl.Series:
    """What a cell shows of JSON values: texts without quotes, whole floats without a point, the rest as it is."""
    quoted = values.str.starts_with('"').fill_null(False)
    plain = values.str.slice(1).str.head(-1)
    whole = values.str.strip_suffix(".0")
    found = plain.zip_with(quoted, whole)
    escaped = (quoted & values.str.contains("\\", literal=True).fill_null(False)).arg_true()
    if not len(escaped):
        return found
    read = [unicode_text(json.loads(text)) for text in values.gather(escaped).to_list()]
    return found.scatter(escaped, pl.Series(read, dtype=pl.String))
