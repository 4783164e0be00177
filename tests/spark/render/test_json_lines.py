"""JSON objects: every kind of value, null columns, nesting, framing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from clinker_spark.core.errors import InputError
from clinker_spark.spark.render.rendering import render
from tests.spark.render.output_tools import framed, out_columns, output, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = {
    "float": {
        "0.0D": "0.0",
        "-0.0D": "-0.0",
        "100.0D": "100.0",
        "149.95D": "149.95",
        "1e10D": "10000000000.0",
        "1.5e10D": "15000000000.0",
        "1e-7D": "0.0000001",
        "1e23D": "100000000000000000000000.0",
        "0.001D": "0.001",
        "-12345678.9D": "-12345678.9",
    },
    "string": {
        "'a'": '"a"',
        "''": '""',
        "'q\"q'": r'"q\"q"',
        "'b' || chr(92)": r'"b\\"',
        "'l\nl'": r'"l\nl"',
        "chr(9) || chr(13) || chr(8) || chr(12)": r'"\t\r\b\f"',
        "chr(1) || chr(31)": r'"\u0001\u001F"',
        "'é😀/'": '"é😀/"',
        "'{}'": '"{}"',
    },
    "bool": {"true": "true", "false": "false"},
    "int": {"-9223372036854775808": "-9223372036854775808", "0": "0"},
    "decimal(2)": {"88": '"88.00"', "-0.5": '"-0.50"'},
    "decimal": {"'1.250'": '"1.250"'},
    "date": {"DATE'2024-02-29'": '"2024-02-29"'},
    "date_time": {
        "'2026-05-14 10:05:00'": '"2026-05-14 10:05:00"',
        "'2026-05-14 10:05:00.5'": '"2026-05-14 10:05:00.500"',
    },
    "array(string)": {"array('a', NULL, 'q\"')": r'["a",null,"q\""]', "array()": "[]"},
    "array(float)": {"array(1D, 1e10D, NULL)": "[1.0,10000000000.0,null]"},
    "array(map(date_time))": {
        "array(map('k', TIMESTAMP_NTZ'2024-01-02 03:04:05.25'))": '[{"k":"2024-01-02 03:04:05.250"}]'
    },
    "map(int)": {"map('a', 1, 'b', NULL)": '{"a":1,"b":null}', "map()": "{}"},
    "map(float)": {"map('q\"', 1e-7D)": r'{"q\"":0.0000001}'},
    "map(decimal(1))": {"map('a', 1)": '{"a":"1.0"}'},
    "any": {
        "CAST('q\"' AS VARIANT)": r'"q\""',
        "CAST(7L AS VARIANT)": "7",
        "CAST(3D AS VARIANT)": "3.0",
        "CAST(1e10D AS VARIANT)": "10000000000.0",
        "parse_json('1.50')": "1.5",
        "CAST(false AS VARIANT)": "false",
        "CAST(DATE'2024-01-02' AS VARIANT)": '"2024-01-02"',
        "CAST(TIMESTAMP_NTZ'2024-01-02 03:04:05.5' AS VARIANT)": '"2024-01-02 03:04:05.500"',
        'parse_json(\'{"b": [1e10, 100.0, null], "a": "x"}\')': '{"a":"x","b":[10000000000.0,100.0,null]}',
        'parse_json(\'{"b": {"c": [1, 2]}}\')': '{"b":{"c":[1,2]}}',
    },
}


def test_values_of_every_kind(started: SparkSession) -> None:
    longest = max(map(len, KINDS.values()))
    types = {f"c{i}": t for i, t in enumerate(KINDS)}
    cells = [list(values.items()) for values in KINDS.values()]
    rows = [[column[i % len(column)] for column in cells] for i in range(longest)]
    literals = [[sql for sql, _ in row] for row in rows]
    found = write(started, output("json"), types, literals)
    assert found.errors == [None] * longest
    want = [[f'"{name}":{text}' for name, (_, text) in zip(types, row, strict=True)] for row in rows]
    assert found.lines == ["{" + ",".join(members) + "}" for members in want]
    pretty = write(started, output("json", options={"pretty": True}), types, literals)
    assert [json.loads(str(line)) for line in pretty.lines] == [json.loads(str(line)) for line in found.lines]


def test_the_array_is_json(spark: SparkSession) -> None:
    types = {"a": "string", "f": "float", "b": "string"}
    found = write(spark, output("json"), types, [["'x'", "1D", "NULL"], ["NULL", "NULL", "'y'"], ["NULL"] * 3])
    assert found.file == b'[\n{"a":"x","f":1.0},\n{"b":"y"},\n{}\n]\n'
    assert json.loads(found.file) == [{"a": "x", "f": 1.0}, {"b": "y"}, {}]
    assert framed(found.rendering, []) == b"[]\n"


def test_ndjson_and_nulls(spark: SparkSession) -> None:
    config = output("json", options={"format": "ndjson"}, preserve_nulls=True)
    types = {"a": "string", "f": "float", "m": "map(int)", "v": "any", "x.y": "int"}
    rows = [
        ["'x'", "1D", "map()", "CAST(1L AS VARIANT)", "1"],
        ["NULL"] * 5,
        ["NULL", "NULL", "NULL", "parse_json('null')", "NULL"],
    ]
    found = write(spark, config, types, rows)
    null = '{"a":null,"f":null,"m":null,"v":null,"x":{"y":null}}\n'
    assert found.file.decode() == '{"a":"x","f":1.0,"m":{},"v":1,"x":{"y":1}}\n' + null + null
    assert framed(found.rendering, []) == b""
    simple = write(spark, config, {"a": "string", "b": "int"}, [["NULL", "1"]])
    assert simple.lines == ['{"a":null,"b":1}']


def test_dots_nest(spark: SparkSession) -> None:
    types = {"id": "int", "a.b": "int", "x": "float", "a.c.d": "string", r"v1\.2": "int", "e..f": "int"}
    rows = [
        ["1", "2", "3D", "'t'", "4", "5"],
        ["1", "NULL", "NULL", "NULL", "NULL", "NULL"],
        ["1", "NULL", "NULL", "'t'", "NULL", "NULL"],
    ]
    found = write(spark, output("json"), types, rows)
    assert found.lines == [
        '{"id":1,"a":{"b":2,"c":{"d":"t"}},"x":3.0,"v1.2":4,"e..f":5}',
        '{"id":1}',
        '{"id":1,"a":{"c":{"d":"t"}}}',
    ]
    pretty = write(spark, output("json", options={"pretty": True}), types, rows)
    assert pretty.file.decode() == (
        '[\n{\n  "id": 1,\n  "a": {\n    "b": 2,\n    "c": {\n      "d": "t"\n    }\n  },\n  "x": 3.0,\n'
        '  "v1.2": 4,\n  "e..f": 5\n},\n{\n  "id": 1\n},\n{\n  "id": 1,\n  "a": {\n    "c": {\n      "d": "t"\n    }\n'
        "  }\n}\n]\n"
    )


@pytest.mark.parametrize("names", [("a", "a.b"), ("a.b", "a"), ("a.b", "a.b.c")])
def test_a_name_inside_a_value(names: tuple[str, str]) -> None:
    with pytest.raises(InputError) as caught:
        render(output("json"), out_columns(dict.fromkeys(names, "int")), None)
    assert caught.value.diagnostics[0].code == "E238"


def test_nan_has_no_json(spark: SparkSession) -> None:
    types = {"f": "float", "a": "array(map(float))", "v": "any"}
    nan, inf = "double('NaN')", "double('-Infinity')"
    rows = [
        [nan, "NULL", "NULL"],
        [inf, "NULL", "NULL"],
        ["1D", f"array(map('k', {inf}))", "NULL"],
        ["NULL", "NULL", f"CAST({nan} AS VARIANT)"],
        ["NULL", "NULL", f"CAST(array(CAST({inf} AS VARIANT)) AS VARIANT)"],
        ["NULL", "array()", 'parse_json(\'["NaN", "Infinity"]\')'],
    ]
    found = write(spark, output("json"), types, rows)
    assert [e and (e["kind"], e["field"], e["value"]) for e in found.errors] == [
        ("nan_in_output_field", "f", "NaN"),
        ("nan_in_output_field", "f", "-inf"),
        ("nan_in_output_field", "a", '[{"k":"-Infinity"}]'),
        ("nan_in_output_field", "v", '"NaN"'),
        ("nan_in_output_field", "v", '["-Infinity"]'),
        None,
    ]


def test_formats_of_the_schema(spark: SparkSession) -> None:
    schema = [{"name": "d", "type": "date", "format": 'a"%d'}, {"name": "n", "type": "decimal", "scale": 1}]
    found = write(
        spark, output("json", schema=schema), {"d": "date", "n": "decimal(2)"}, [["DATE'2024-01-02'", "1.25"]]
    )
    assert found.lines == [r'{"d":"a\"02","n":"1.2"}']
