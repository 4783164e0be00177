"""`join_values`: arrays as one text of CSV, and as elements with other names in XML."""

from __future__ import annotations

from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare

SOURCE = """
pipeline: { name: test }
nodes:
  - type: source
    name: rows
    config:
      type: json
      path: in.jsonl
      options: { format: ndjson }
      schema:
        - { name: id, type: int }
        - { name: tags, type: string, multiple: true, nullable: true }
        - { name: sizes, type: float, multiple: true, nullable: true }
"""
BACK = """
  - type: source
    name: back
    config:
      type: csv
      path: escaped.csv
      schema: [{ name: id, type: int }, { name: tags, type: string, multiple: true }]
      split_values: [{ field: tags, escape: "\\\\" }]
      on_unmapped: drop
  - { type: output, name: again, input: back, config: { type: json, path: again.json } }
"""
CONTINUE = "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"


def output(name: str, kind: str, joins: str) -> str:
    config = f"{{ type: {kind}, path: {name}.{kind}, join_values: {joins} }}"
    return f"  - {{ type: output, name: {name}, input: rows, config: {config} }}\n"


def test_values_are_joined(bench: Any) -> None:
    lines = ['{"id":1,"tags":["a","b"],"sizes":[1.5,2.0]}', '{"id":2,"tags":["a;x","b\\\\"],"sizes":[]}', '{"id":3}']
    bench.file("in.jsonl", "\n".join(lines) + "\n")
    outputs = output("plain", "csv", "[tags, sizes]")
    outputs += output("escaped", "csv", '[{ field: tags, on_conflict: escape }, { field: sizes, delimiter: " | " }]')
    outputs += output("encoded", "csv", "[{ field: tags, on_conflict: encode_json }]")
    outputs += output(
        "named", "xml", "[{ field: tags, repeat_as: tag, wrap_in: list }, { field: sizes, repeat_as: s }]"
    )
    bench.run(SOURCE + outputs + CONTINUE)
    assert bench.text("plain.csv") == "id,tags,sizes\n1,a;b,1.5;2\n3,,\n"
    [letter] = bench.letters()
    assert letter["_cxl_dlq_error_category"] == "multi_value_join_collision" and letter["id"] == "2"
    assert (letter["_cxl_dlq_stage"], letter["_cxl_dlq_triggering_field"]) == ("output:plain", "tags")
    assert bench.text("escaped.csv") == "id,tags,sizes\n1,a;b,1.5 | 2\n2,a\\;x;b\\\\,\n3,,\n"
    assert bench.text("encoded.csv").splitlines()[1:3] == [
        '1,"[""a"",""b""]","[1.5,2.0]"',
        '2,"[""a;x"",""b\\\\""]",[]',
    ]
    assert bench.text("named.xml") == (
        "<Root><Record><id>1</id><list><tag>a</tag><tag>b</tag></list><s>1.5</s><s>2</s></Record>"
        "<Record><id>2</id><list><tag>a;x</tag><tag>b\\</tag></list></Record><Record><id>3</id></Record></Root>\n"
    )
    bench.run("pipeline: { name: back }\nnodes:" + BACK)
    assert '"tags":["a;x","b\\\\"]' in bench.text("again.json")


@pytest.mark.parametrize(
    ("kind", "joins", "code"),
    [
        ("json", "[tags]", "E362"),
        ("csv", "[id]", "E362"),
        ("csv", "[tagz]", "E362"),
        ("csv", "[tags, tags]", "E362"),
        ("csv", "[{ field: tags, wrap_in: x }]", "E362"),
        ("xml", "[{ field: tags, delimiter: x }]", "E362"),
        ("csv", '[{ field: tags, delimiter: "" }]', "E007"),
        ("csv", "[{ field: tags, escape: ab }]", "E007"),
    ],
)
def test_what_cannot_be_joined(tmp_path: Any, kind: str, joins: str, code: str) -> None:
    (tmp_path / "p.yaml").write_text(SOURCE + output("o", kind, joins))
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    assert [found.code for found in caught.value.diagnostics] == [code]
    assert all(found.help and found.span for found in caught.value.diagnostics)


@pytest.mark.parametrize(("kind", "code"), [("csv", "W367"), ("json", "W367"), ("parquet", "E366")])
def test_an_output_without_columns_is_told(tmp_path: Any, kind: str, code: str) -> None:
    source = SOURCE.replace("      schema:", "      on_unmapped: drop\n      schema:")
    few = "  - { type: transform, name: few, input: rows, config: { cxl: filter id > 1 } }\n"
    config = f"{{ type: {kind}, path: o.{kind}, include_unmapped: false }}"
    (tmp_path / "p.yaml").write_text(source + few + f"  - {{ type: output, name: o, input: few, config: {config} }}\n")
    try:
        found = prepare(tmp_path / "p.yaml").warnings
    except ClinkerError as error:
        found = tuple(error.diagnostics)
    assert [each.code for each in found] == [code] and found[0].help and found[0].span
