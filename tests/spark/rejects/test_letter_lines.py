"""What a line of a dead-letter file looks like. No Spark."""

from __future__ import annotations

import csv
import datetime as dt
import io
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from clinker_spark.plan.columns import LINE_COLUMN
from clinker_spark.spark.rejects.letter_lines import SHOWN, LetterLines, LetterSource, map_columns
from clinker_spark.spark.rejects.letter_marks import source_hash

NOW = dt.datetime(2026, 3, 1, 12, 30)
SOURCES = (LetterSource("orders", ("a.csv", "b.csv"), ("id,qty", "qty,id")), LetterSource("items", ("i.json",)))
LINES = LetterLines(("id", "qty"), SOURCES, ("source", "source", "transform:t"), NOW)
TYPES = {
    "source": pa.int32(),
    "file": pa.int32(),
    "row": pa.int64(),
    "stage": pa.int32(),
    "trigger": pa.bool_(),
    "letter": pa.map_(pa.string(), pa.string()),
}
SCHEMA = pa.schema([(name, TYPES.get(name, pa.string())) for name in SHOWN])


def batch(*rows: dict[str, Any]) -> pa.RecordBatch:
    usual = dict.fromkeys(SHOWN) | {"stage": 2, "category": "expression_error", "message": "no", "trigger": True}
    return pa.RecordBatch.from_pylist([usual | row for row in rows], SCHEMA)


def read(lines: LetterLines, letters: pa.RecordBatch, fed: Any = None) -> list[dict[str, str]]:
    text = lines.header.decode() + "".join(f"{line}\n" for line in lines.lines(letters, fed).to_pylist())
    return [{k.removeprefix("_cxl_dlq_"): v for k, v in row.items()} for row in csv.DictReader(io.StringIO(text))]


def test_a_record_of_a_file() -> None:
    letter = [("id", 'x "1"'), ("qty", "a,b"), (LINE_COLUMN, '"a,b","x ""1"""')]
    [row] = read(LINES, batch({"source": 0, "file": 1, "row": 7, "field": "id", "value": "x", "letter": letter}))
    assert (row["source_name"], row["source_file"], row["source_row"]) == ("orders", "b.csv", "7")
    assert (row["stage"], row["trigger"], row["triggering_field"]) == ("transform:t", "true", "id")
    assert (row["id"], row["qty"], row["source_line"], row["source_header"]) == (
        'x "1"',
        "a,b",
        '"a,b","x ""1"""',
        "qty,id",
    )
    assert row["source_hash"] == source_hash(['x "1"', "a,b"], '"a,b","x ""1"""')
    assert row["timestamp"] == "2026-03-01T12:30:00Z"


def test_what_was_made_of_several_records_and_what_has_no_line() -> None:
    letters = batch({"letter": [("id", "1")]}, {"source": 1, "file": 0, "row": 1, "letter": [("qty", "2")]})
    made, read_one = read(LINES, letters)
    assert (made["source_name"], made["source_file"], made["source_row"]) == ("<merged>", "<merged>", "")
    assert (read_one["source_file"], read_one["source_header"], read_one["source_line_encoding"]) == ("i.json", "", "")
    assert (read_one["id"], read_one["qty"]) == ("", "2")


def test_columns_that_are_not_wanted() -> None:
    letters = batch({"source": 0, "file": 0, "row": 1, "letter": [("id", "1")]})
    [bare] = read(replace(LINES, include_reason=False, include_source_row=False), letters)
    assert bare.keys() == {
        *("id", "timestamp", "source_file", "source_name", "source_row"),
        *("triggering_field", "triggering_value", "stage", "route", "trigger"),
    }


@pytest.mark.parametrize(("value", "detail"), [("x", "as it was"), ("y", "no")])
def test_a_replayed_letter_keeps_its_identity(value: str, detail: str) -> None:
    before = {"id": "known", "source_row": "42", "error_category": "expression_error", "triggering_value": "x"}
    letters = batch({"source": 0, "file": 0, "row": 1, "value": value, "letter": []}, {"letter": []})
    fed, new = read(replace(LINES, columns=()), letters, [before | {"error_detail": "as it was"}, None])
    assert (fed["id"], fed["source_row"], fed["error_detail"]) == ("known", "42", detail)
    assert new["id"] != "known" and new["error_detail"] == "no"


def test_part_of_a_batch() -> None:
    maps = pa.array([[("a", "1")], [("a", "2"), ("b", "3")], []], pa.map_(pa.string(), pa.string()))
    assert [column.to_pylist() for column in map_columns(maps[1:], ["a", "b"])] == [["2", None], ["3", None]]
