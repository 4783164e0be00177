"""Fixed-width lines: places, padding, cutting by bytes, overflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clinker_spark.spark.render.rendering import render
from tests.spark.render.output_tools import framed, out_columns, output, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_places_and_padding(started: SparkSession) -> None:
    schema = [
        {"name": "text", "type": "string", "start": 12, "width": 6},
        {"name": "n", "type": "int", "start": 0, "width": 5},
        {"name": "zeros", "type": "int", "start": 6, "width": 5, "pad": "0"},
        {"name": "d", "type": "date", "start": 18, "width": 8},
        {"name": "t", "type": "date_time", "width": 14, "start": 26},
        {"name": "filler", "type": "string", "start": 40, "width": 2},
        {"name": "right", "type": "string", "start": 42, "end": 46, "justify": "right", "pad": "*"},
        {"name": "left", "type": "float", "start": 46, "width": 5, "justify": "left"},
        {"name": "m", "type": "decimal", "scale": 1, "start": 51, "width": 6},
        {"name": "u", "type": "date", "format": "%d.%m.", "start": 57, "width": 7},
    ]
    types = {
        "n": "int", "zeros": "int", "text": "string", "d": "date", "t": "date_time", "right": "string",
        "left": "float", "m": "decimal(2)", "u": "date", "other": "int",
    }  # fmt: skip
    day, moment = "DATE'2024-03-05'", "TIMESTAMP_NTZ'2024-03-05 06:07:08.9'"
    rows = [
        ["12", "-7", "'é😀'", day, moment, "'ä'", "1.5D", "1.25", day, "1"],
        ["NULL"] * 10,
        ["-1234", "12345", "'abcdef'", day, moment, "''", "1e3D", "-12.35", day, "1"],
    ]
    found = write(started, output("fixed_width", schema=schema), types, rows)
    assert found.errors == [None] * 3
    assert found.lines == [
        "   12 -0007 é😀2024030520240305060708  **ä1.5     1.205.03. ",
        " " * 64,
        "-1234 12345 abcdef2024030520240305060708  ****1000  -12.405.03. ",
    ]
    assert [len(str(line).encode()) for line in found.lines] == [64] * 3


def test_cutting_by_bytes(spark: SparkSession) -> None:
    texts = ["abcdef", "abcdé", "aé😀", "😀😀", "é", "aaa😀", "aaé", "ab"]
    rows = [[f"'{t}'"] * 3 for t in texts]
    schema = [
        {"name": "a", "type": "string", "width": 4, "truncation": "silent"},
        {"name": "b", "type": "string", "width": 2, "truncation": "silent", "justify": "right", "pad": "."},
        {"name": "c", "type": "string", "width": 1, "truncation": "silent"},
    ]
    found = write(spark, output("fixed_width", schema=schema), {"a": "string", "b": "string", "c": "string"}, rows)
    assert found.errors == [None] * len(texts)

    def cut(text: str, width: int) -> str:
        return text.encode()[:width].decode(errors="ignore")

    def pad(text: str, width: int) -> str:
        return text + " " * (width - len(text.encode()))

    want = []
    for t in texts:
        middle = cut(t, 2)
        want.append(pad(cut(t, 4), 4) + "." * (2 - len(middle.encode())) + middle + pad(cut(t, 1), 1))
    assert found.lines == want


def test_overflow(spark: SparkSession) -> None:
    schema = [
        {"name": "n", "type": "int", "width": 3, "truncation": "silent"},
        {"name": "s", "type": "string", "width": 3},
        {"name": "v", "type": "any", "width": 3},
        {"name": "m", "type": "map", "width": 9},
    ]
    types = {"n": "int", "s": "string", "v": "any", "m": "map(int)"}
    rows = [
        ["1234", "'a'", "NULL", "NULL"],
        ["1", "'éé'", "NULL", "NULL"],
        ["1", "'a\nb'", "NULL", "NULL"],
        ["1", "'a'", "CAST(12345L AS VARIANT)", "NULL"],
        ["1", "'a'", "NULL", "map('a', 1)"],
        ["123", "'abc'", "CAST('xyz' AS VARIANT)", "NULL"],
    ]
    found = write(spark, output("fixed_width", schema=schema), types, rows)
    assert [e and (e["kind"], e["field"], e["value"]) for e in found.errors] == [
        ("validation_failure", "n", "1234"),
        ("validation_failure", "s", "éé"),
        ("validation_failure", "s", "a\nb"),
        ("validation_failure", "v", "12345"),
        ("validation_failure", "m", '{"a":1}'),
        None,
    ]
    assert found.lines[5] == "123abcxyz" + " " * 9


def test_line_ends() -> None:
    schema = [{"name": "n", "type": "int", "width": 3}]
    for separator, file in (("lf", b"  1\n  2\n"), ("crlf", b"  1\r\n  2\r\n"), ("none", b"  1  2")):
        config = output("fixed_width", schema=schema, options={"line_separator": separator})
        rendering = render(config, out_columns({"n": "int"}), config.schema_)
        assert framed(rendering, [b"  1", b"  2"]) == file
        assert framed(rendering, []) == b""
