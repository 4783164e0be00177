"""Finished cells, without Spark: they must be what writing the values would give, whatever the spelling in the file."""

from __future__ import annotations

import csv
import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinker_spark.core.types import BOOL, DATE, FLOAT, INT, STRING, Type
from clinker_spark.cxl.builtins.text import to_text
from clinker_spark.spark.scan.text.cells import cell_text, joined_cells
from clinker_spark.spark.scan.text.values import TextColumn

SIGN = st.sampled_from(["", "", "-", "+"])
DIGITS = st.text("0123456789", min_size=1, max_size=18) | st.sampled_from(["0", "00", "007", "10", "100"])
FLOATS = (
    st.builds(lambda s, w, f: f"{s}{w}.{f}", SIGN, DIGITS, DIGITS)
    | st.builds(lambda s, w, end: f"{s}{w}{end}", SIGN, DIGITS, st.sampled_from(["", ".", ".0", ".50", "e3", "E-7"]))
    | st.builds(lambda s, f: f"{s}.{f}", SIGN, DIGITS)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.decimals(0, 1000, places=2).map(str)
)


def cells(t: Type, texts: list[str]) -> tuple[list[str], list[Any]]:
    column = TextColumn("x", t.as_nullable())
    text = pa.array(texts, pa.string())
    converted = column.convert(text)
    assert converted.failed is None
    found = cell_text(column, text, converted.values).to_pylist()
    return [cell or "" for cell in found], converted.values.to_pylist()


@settings(max_examples=200, deadline=None)
@given(st.lists(FLOATS | st.just(""), max_size=40))
def test_floats(texts: list[str]) -> None:
    found, values = cells(FLOAT, texts)
    assert found == [to_text(value) for value in values]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.builds(lambda s, d: s + d, SIGN, DIGITS) | st.just(""), max_size=40))
def test_ints(texts: list[str]) -> None:
    found, values = cells(INT, texts)
    assert found == [to_text(value) for value in values]


@pytest.mark.parametrize(
    ("t", "texts"),
    [
        (INT, ["1", "-2", "0", ""]),
        (INT, ["-0", "1"]),
        (INT, ["-05", "1"]),
        (BOOL, ["TRUE", "false", "True", ""]),
        (DATE, ["2024-02-29", "", "0001-01-01", "9999-12-31"]),
        (FLOAT, ["-0", "-0.0", "0.0", "1e-7", "123456789012345", "1234567890123456", "0.1234567890123456"]),
        (FLOAT, []),
    ],
)
def test_edges(t: Type, texts: list[str]) -> None:
    found, values = cells(t, texts)
    assert found == [to_text(value) for value in values]


def test_slices_of_columns() -> None:
    column = TextColumn("x", FLOAT)
    text = pa.array(["1e5", "1.50", "2.5", "x"]).slice(1, 2)
    assert cell_text(column, text, column.convert(text).values).to_pylist() == ["1.5", "2.5"]


def test_dates_in_another_format_are_written_in_the_iso_form() -> None:
    column = TextColumn("x", DATE, formats=("%d/%m/%Y",), only_formats=True)
    text = pa.array(["29/02/2024"])
    assert cell_text(column, text, column.convert(text).values).to_pylist() == ["2024-02-29"]


TEXTS = st.text(st.sampled_from(list(',;"\n\r ax')) | st.characters(exclude_categories=["Cs"]), max_size=6)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=20), st.sampled_from([",", ";", "-", "1"]))
def test_joined_cells_read_back(rows: list[tuple[str, str]], delimiter: str) -> None:
    columns = [TextColumn("a", STRING), TextColumn("n", INT), TextColumn("b", STRING)]
    texts = [pa.array([a for a, _ in rows]), pa.array(["-1"] * len(rows)), pa.array([b for _, b in rows])]
    values = [texts[0], pa.array([-1] * len(rows)), texts[2]]
    lines = joined_cells(columns, texts, values, delimiter).to_pylist()
    for line, (a, b) in zip(lines, rows, strict=True):
        assert next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter)) == [a, "-1", b]


def test_quotes_stand_only_where_they_must() -> None:
    text = pa.array(["plain", 'say "x"', "a,b", "a;b", None])
    found = joined_cells([TextColumn("a", STRING)], [text], [text], ",").to_pylist()
    assert found == ["plain", '"say ""x"""', '"a,b"', "a;b", ""]
