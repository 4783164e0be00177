"""CSV lines: every kind of value, quoting, headers and framing."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest

from clinker_spark.core.errors import InputError
from clinker_spark.spark.render.rendering import render
from tests.spark.render.output_tools import framed, out_columns, output, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLOATS = {
    "0.0D": "0",
    "-0.0D": "-0",
    "1500.0D": "1500",
    "149.95D": "149.95",
    "1e10D": "10000000000",
    "1e-7D": "0.0000001",
    "1e23D": "100000000000000000000000",
    "-2.5D": "-2.5",
    "double('NaN')": "NaN",
    "double('Infinity')": "inf",
    "double('-Infinity')": "-inf",
    "NULL": "",
}
TEXTS = {
    "'plain'": "plain",
    "' blanks '": " blanks ",
    "'a,b'": '"a,b"',
    "'say \"hi\"'": '"say ""hi"""',
    "'two\nlines'": '"two\nlines"',
    "'a\rb'": '"a\rb"',
    "'semi;colon'": "semi;colon",
    "'é😀'": "é😀",
    "''": "",
    "NULL": "",
    "'\"'": '""""',
}
MOMENTS = {
    "'2026-05-14 10:05:00'": "2026-05-14T10:05:00",
    "'2026-05-14 10:05:00.5'": "2026-05-14T10:05:00.500",
    "'2026-05-14 10:05:00.123'": "2026-05-14T10:05:00.123",
    "'2026-05-14 10:05:00.1234'": "2026-05-14T10:05:00.123400",
    "'2026-05-14 00:00:00.000001'": "2026-05-14T00:00:00.000001",
    "NULL": "",
}
ANYS = {
    "CAST('a,b' AS VARIANT)": '"a,b"',
    "CAST(7L AS VARIANT)": "7",
    "CAST(3.0D AS VARIANT)": "3",
    "parse_json('1e10')": "10000000000",
    "parse_json('1.50')": "1.5",
    "CAST(true AS VARIANT)": "true",
    "CAST(DATE'2024-01-02' AS VARIANT)": "2024-01-02",
    "CAST(TIMESTAMP_NTZ'2024-01-02 03:04:05.5' AS VARIANT)": "2024-01-02T03:04:05.500",
    "parse_json('[1, 2.0, \"x\", null]')": '"[1,2.0,""x"",null]"',
    "parse_json('[1e10]')": "[10000000000.0]",
    "parse_json('null')": "",
    "NULL": "",
}
OTHERS = {
    "bool": {"true": "true", "false": "false", "NULL": ""},
    "int": {"-5": "-5", "9223372036854775807": "9223372036854775807", "NULL": ""},
    "decimal(2)": {"88": "88.00", "-1.5": "-1.50", "0": "0.00", "NULL": ""},
    "decimal(8)": {"0.00000001": "0.00000001", "-0.00000012": "-0.00000012"},
    "decimal": {"'88.50'": "88.50", "NULL": ""},
    "date": {"DATE'2024-02-29'": "2024-02-29", "NULL": ""},
    "array(int)": {"array(1, 2, NULL)": '"[1,2,null]"', "array()": "[]", "array(1)": "[1]", "NULL": ""},
    "array(float)": {"array(1D, 1e10D, 1e-7D)": '"[1.0,10000000000.0,0.0000001]"'},
    "array(string)": {"array('a', 'q\"')": '"[""a"",""q\\""""]"'},
    "array(decimal(2))": {"array(1, 2.5)": '"[""1.00"",""2.50""]"'},
}


def test_values_of_every_kind(started: SparkSession) -> None:
    kinds = {"float": FLOATS, "string": TEXTS, "date_time": MOMENTS, "any": ANYS, **OTHERS}
    longest = max(map(len, kinds.values()))
    types = {f"c{i}": t for i, t in enumerate(kinds)}
    cells = [list(values.items()) for values in kinds.values()]
    rows = [[column[i % len(column)] for column in cells] for i in range(longest)]
    found = write(started, output("csv"), types, [[sql for sql, _ in row] for row in rows])
    assert found.errors == [None] * longest
    assert found.lines == [",".join(text for _, text in row) for row in rows]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_texts_come_back_from_a_reader(spark: SparkSession, delimiter: str) -> None:
    texts = ["a", "", "x,y", "x;y", "x\ty", "x|y", 'q"q', '"', "l\nl", "l\r\nl", "é😀", " pad ", "'", "\\", "${HOME}"]
    literals = ["decode(X'" + t.encode().hex() + "', 'UTF-8')" for t in texts]
    types = {"a": "string", "n": "int", "b": "string", "f": "float", "c": "string"}
    rows = [
        [one, "1", two, "2.5D", three] for one, two, three in zip(literals, literals[3:], literals[6:], strict=False)
    ]
    want = [[one, "1", two, "2.5", three] for one, two, three in zip(texts, texts[3:], texts[6:], strict=False)]
    found = write(spark, output("csv", options={"delimiter": delimiter}), types, rows)
    read = list(csv.reader(io.StringIO(found.file.decode(), newline=""), delimiter=delimiter))
    assert read == [list(types), *want]


def test_a_delimiter_that_numbers_have(spark: SparkSession) -> None:
    types = {"f": "float", "d": "date", "i": "int"}
    rows = [["1.5D", "DATE'2024-01-02'", "-3"], ["2D", "NULL", "3"]]
    assert write(spark, output("csv", options={"delimiter": "."}), types, rows).lines == ['"1.5".2024-01-02.-3', "2..3"]
    assert write(spark, output("csv", options={"delimiter": "-"}), types, rows).lines == [
        '1.5-"2024-01-02"-"-3"',
        "2--3",
    ]


def test_a_single_column_has_no_blank_line(spark: SparkSession) -> None:
    found = write(spark, output("csv"), {"a": "string"}, [["''"], ["NULL"], ["'x'"], ["','"]])
    assert found.file == b'a\n""\n""\nx\n","\n'


def test_header_and_empty_file() -> None:
    columns = out_columns({"id": "int", "a,b": "string", 'q"': "string"})
    rendering = render(output("csv"), columns, None)
    assert framed(rendering, []) == rendering.prefix == b'id,"a,b","q"""\n'
    bare = render(output("csv", include_header=False), columns, None)
    assert framed(bare, []) == b"" and framed(bare, [b"1,2,3", b"4,5,6"]) == b"1,2,3\n4,5,6\n"
    split = render(output("csv", split={"max_records": 5, "repeat_header": False}), columns, None)
    assert rendering.repeat_prefix and not split.repeat_prefix


def test_schema_gives_scale_and_format(spark: SparkSession) -> None:
    schema = [
        {"name": "a", "type": "decimal", "scale": 1},
        {"name": "b", "type": "decimal(1)"},
        {"name": "c", "type": "date", "format": "%d/%m/%Y"},
        {"name": "d", "type": "date_time", "format": "%d.%m.%Y, %H:%M"},
        {"name": "e", "type": "decimal", "scale": 0},
    ]
    types = {"a": "decimal(3)", "b": "decimal", "c": "date", "d": "date_time", "e": "decimal"}
    moment = ["DATE'2024-03-05'", "TIMESTAMP_NTZ'2024-03-05 06:07:08'"]
    rows = [
        ["1.25", "'1.25'", *moment, "'0.5'"],
        ["1.35", "'1.35'", *moment, "'1.5'"],
        ["-1.251", "'-1.251'", *moment, "'-2.5000'"],
        ["-0.04", "'-0.04'", "NULL", "NULL", "'2.51'"],
        ["7", "'7'", "NULL", "NULL", "'99999999999999999999999999999'"],
        ["9.95", "'9999999999999999999999999999.96'", "NULL", "NULL", "NULL"],
    ]
    found = write(spark, output("csv", schema=schema), types, rows)
    dates = '05/03/2024,"05.03.2024, 06:07"'
    assert found.lines == [
        f"1.2,1.2,{dates},0",
        f"1.4,1.4,{dates},2",
        f"-1.3,-1.3,{dates},-2",
        "0.0,0.0,,,3",
        "7.0,7,,,99999999999999999999999999999",
        "10.0,10000000000000000000000000000.0,,,",
    ]


def test_a_format_must_fit_the_type() -> None:
    config = output("csv", schema=[{"name": "a", "type": "date_time", "format": "%H:%M"}])
    with pytest.raises(InputError) as caught:
        render(config, out_columns({"a": "date"}), config.schema_)
    assert caught.value.diagnostics[0].code == "E226"


def test_records_that_cannot_be_written(spark: SparkSession) -> None:
    types = {"m": "map(int)", "v": "any", "a": "array(float)"}
    rows = [
        ["map('k', 1)", "NULL", "NULL"],
        ["NULL", "parse_json('{\"k\": 1}')", "NULL"],
        ["NULL", "NULL", "array(double('NaN'))"],
        ["NULL", "CAST(array(CAST(double('NaN') AS VARIANT)) AS VARIANT)", "NULL"],
        ["NULL", "CAST(double('NaN') AS VARIANT)", "array(1D)"],
    ]
    found = write(spark, output("csv"), types, rows)
    problems = [e and (e["kind"], e["field"], e["value"]) for e in found.errors]
    assert problems == [
        ("validation_failure", "m", '{"k":1}'),
        ("validation_failure", "v", '{"k":1}'),
        ("nan_in_output_field", "a", '["NaN"]'),
        ("nan_in_output_field", "v", '["NaN"]'),
        None,
    ]
    assert found.errors[0] is not None and found.errors[0]["message"].startswith("a map cannot be written to CSV: emit")
    assert found.lines[4] == ",NaN,[1.0]"
    assert render(output("csv"), out_columns({"a": "int", "b": "string"}), None).error is None
