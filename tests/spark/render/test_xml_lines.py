"""XML elements: every kind of value, attributes, nesting, names and characters."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from clinker_spark.core.errors import InputError
from clinker_spark.spark.render.rendering import render
from tests.spark.render.output_tools import framed, out_columns, output, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = {
    "float": {"1500.0D": "1500", "149.95D": "149.95", "1e10D": "10000000000", "double('NaN')": "NaN"},
    "string": {
        "'a'": "a",
        "''": "",
        "'a<b>&c\"d'": 'a&lt;b&gt;&amp;c"d',
        "'x\ry'": "x&#13;y",
        "'l\nl\t'": "l\nl\t",
        "'é😀'": "é😀",
    },
    "bool": {"true": "true"},
    "int": {"-7": "-7"},
    "decimal(2)": {"88": "88.00"},
    "decimal": {"'1.250'": "1.250"},
    "date": {"DATE'2024-02-29'": "2024-02-29"},
    "date_time": {
        "'2026-05-14 10:05:00'": "2026-05-14 10:05:00",
        "'2026-05-14 10:05:00.5'": "2026-05-14 10:05:00.500",
    },
    "any": {
        "CAST('<' AS VARIANT)": "&lt;",
        "CAST(3D AS VARIANT)": "3",
        "CAST(TIMESTAMP_NTZ'2024-01-02 03:04:05' AS VARIANT)": "2024-01-02 03:04:05",
        'parse_json(\'{"b": {"c": 1.5}, "a": "&"}\')': "<a>&amp;</a><b><c>1.5</c></b>",
    },
    "map(float)": {"map('k', 1D, 'n', NULL)": "<k>1</k>", "map()": ""},
}


def test_values_of_every_kind(started: SparkSession) -> None:
    longest = max(map(len, KINDS.values()))
    types = {f"c{i}": t for i, t in enumerate(KINDS)}
    cells = [list(values.items()) for values in KINDS.values()]
    rows = [[column[i % len(column)] for column in cells] for i in range(longest)]
    found = write(started, output("xml"), types, [[sql for sql, _ in row] for row in rows])
    assert found.errors == [None] * longest
    want = ["".join(f"<{n}>{text}</{n}>" for n, (_, text) in zip(types, row, strict=True)) for row in rows]
    assert found.lines == [f"<Record>{inner}</Record>" for inner in want]
    assert found.file.decode() == "<Root>" + "".join(map(str, found.lines)) + "</Root>\n"
    assert len(ET.fromstring(found.file)) == longest
    assert framed(found.rendering, []) == b"<Root></Root>\n"


def test_structure(spark: SparkSession) -> None:
    types = {
        "@id": "int",
        "@t": "string",
        "a.b": "string",
        "a.@u": "string",
        "a.c.d": "int",
        "l": "array(int)",
        "m": "array(map(int))",
        "v": "any",
        "p": "string",
        "p.@at": "int",
        "q.@at": "int",
        "q": "float",
    }
    text = "'<\"\n&\t'"
    rows = [
        [
            "1",
            text,
            "'b'",
            "'u'",
            "2",
            "array(1, NULL, 2)",
            "array(map('x', 1), map('y', 2))",
            "parse_json('[1, [2], {\"k\": 3}]')",
            "'x<'",
            "1",
            "NULL",
            "2D",
        ],
        ["NULL"] * 12,
        ["NULL", "NULL", "NULL", "NULL", "2", "array()", "NULL", "parse_json('null')", "NULL", "3", "NULL", "NULL"],
    ]
    options = {"root_element": "rows", "record_element": "row"}
    found = write(spark, output("xml", options=options), types, rows)
    assert found.errors == [None] * 3
    assert found.lines == [
        '<row id="1" t="&lt;&quot;&#10;&amp;&#9;"><a u="u"><b>b</b><c><d>2</d></c></a><l>1</l><l/><l>2</l>'
        "<m><x>1</x></m><m><y>2</y></m><v>1</v><v>[2]</v><v><k>3</k></v>"
        '<p at="1">x&lt;</p><q>2</q></row>',
        "<row></row>",
        '<row><a><c><d>2</d></c></a><p at="3"></p></row>',
    ]
    read = ET.fromstring(found.file)
    assert read.tag == "rows" and read[0].attrib == {"id": "1", "t": '<"\n&\t'}
    kept = write(spark, output("xml", preserve_nulls=True), types, [["NULL"] * 12])
    assert kept.lines == [
        '<Record id="" t=""><a u=""><b/><c><d/></c></a><l/><m/><v/><p at=""></p><q at=""></q></Record>'
    ]


def test_texts_come_back_from_a_reader(spark: SparkSession) -> None:
    texts = ["a", "", "<&>", "]]>", "x\ry", "x\r\ny", "\n", "\t", '"', "'", "é😀", " pad ", "&amp;"]
    literals = ["decode(X'" + t.encode().hex() + "', 'UTF-8')" for t in texts]
    found = write(spark, output("xml"), {"a": "string", "@b": "string"}, [[t, t] for t in literals])
    read = ET.fromstring(found.file)
    assert [r.findtext("a") for r in read] == texts
    assert [r.get("b") for r in read] == texts


def test_records_that_cannot_be_written(spark: SparkSession) -> None:
    types = {"s": "string", "m": "map(int)", "v": "any", "@w": "any"}
    rows = [
        ["chr(1)", "NULL", "NULL", "NULL"],
        ["NULL", "map('a b', 1)", "NULL", "NULL"],
        ["NULL", "NULL", 'parse_json(\'{"a": {"1": 2}}\')', "NULL"],
        ["NULL", "NULL", "CAST(chr(12) AS VARIANT)", "NULL"],
        ["NULL", "NULL", "NULL", "parse_json('{}')"],
        [
            "chr(9) || chr(92) || 'u0001'",
            "map('é-1', 1)",
            "CAST(chr(92) || 'u0001' || chr(92) || 'b' AS VARIANT)",
            "NULL",
        ],
    ]
    found = write(spark, output("xml"), types, rows)
    assert [e and (e["kind"], e["field"]) for e in found.errors] == [
        *(("validation_failure", name) for name in ("s", "m", "v", "v", "@w")),
        None,
    ]


@pytest.mark.parametrize("name", ["unit price", "1st", "a:b", "-x", "", "@", "a.@b c", "é😀 ", "a<"])
def test_names_that_xml_does_not_know(name: str) -> None:
    with pytest.raises(InputError) as caught:
        render(output("xml"), out_columns({name: "int"}), None)
    assert caught.value.diagnostics[0].code == "E238"


def test_what_an_element_cannot_hold() -> None:
    """Text and attributes, but not text and elements."""
    for columns in (
        {"p": "int", "p.a": "int"},
        {"p.@a": "int", "p": "int", "p.c": "int"},
        {"p.@a": "int", "p.c": "int", "p": "int"},
        {"p": "int", "p.c.@a": "int"},
        {"p.@a": "int", "p": "array(int)"},
        {"p": "any", "p.@a": "int"},
    ):
        with pytest.raises(InputError) as caught:
            render(output("xml"), out_columns(columns), None)
        assert caught.value.diagnostics[0].code == "E238"


def test_names_of_the_options() -> None:
    for key in ("root_element", "record_element"):
        with pytest.raises(InputError, match=key):
            render(output("xml", options={key: "a b"}), out_columns({"a": "int"}), None)
    render(output("xml", options={"attribute_prefix": ""}), out_columns({"_é.x-1": "int"}), None)
