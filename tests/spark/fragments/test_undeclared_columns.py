"""Undeclared columns in a fragment: out of the map of each record, as JSON or as the text of a cell."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from clinker_spark.spark.fragments.undeclared import columns_of, texts_of_json
from clinker_spark.spark.scan.record_batches import widened_array

MAPS = [{"a": "1", "b": '"x"'}, None, {"b": None, "c": "2"}, {}, {"a": "3"}]


def test_columns_are_taken_out_of_the_maps() -> None:
    for typed in (False, True):
        maps = widened_array(MAPS, typed=typed)
        wanted = {
            "a": ["1", None, None, None, "3"],
            "b": ['"x"', None, None, None, None],
            "c": [None, None, "2", None, None],
            "never": [None] * 5,
        }
        assert {name: found.to_pylist() for name, found in columns_of(maps, wanted).items()} == wanted
        part = columns_of(maps.slice(2, 3), ["a", "c"])
        assert [found.to_pylist() for found in part.values()] == [[None, None, "3"], ["2", None, None]]
    assert columns_of(widened_array([]), ["a"])["a"].to_pylist() == []


def test_of_a_name_twice_the_first_counts() -> None:
    maps = pa.MapArray.from_arrays(pa.array([0, 2], pa.int32()), pa.array(["a", "a"]), pa.array(["first", "second"]))
    assert columns_of(maps, ["a"])["a"].to_pylist() == ["first"]


def test_cells_of_json_values() -> None:
    values = [
        '"x"',
        '"a \\"b\\" \\u00e9"',
        '""',
        "5",
        "5.0",
        "5.25",
        "1e5",
        "true",
        "[1.0,2]",
        '{"k":"v"}',
        None,
        '"5.0"',
    ]
    cells = ["x", 'a "b" é', "", "5", "5", "5.25", "1e5", "true", "[1.0,2]", '{"k":"v"}', None, "5.0"]
    assert texts_of_json(pl.Series(values, dtype=pl.String)).to_list() == cells
