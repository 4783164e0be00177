"""Outputs that write documents: a header, records, a footer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare

SOURCE = """
pipeline: { name: test, vars: { sender: { type: string, default: acme } } }
nodes:
  - type: source
    name: rows
    config:
      type: json
      glob: in/*.json
      options: { format: object, record_path: rows }
      schema: { id: int, amount: nullable(float) }
      envelope:
        sections:
          head: { extract: { json_pointer: /head }, fields: { batch: int, by: string } }
          foot: { extract: { json_pointer: /foot }, fields: { sum: int } }
"""
NODES = """
  - type: transform
    name: shares
    input: rows
    config: { cxl: "emit share = 12 / id" }
  - type: envelope
    name: one
    body: shares
    config:
      strategy: concat
      header: { all: { sender: $vars.sender, run: '"r" + "1"' } }
      footer: { end: { n: count(), known: count(amount), total: sum(amount), mean: avg(amount), least: min(id) } }
  - { type: envelope, name: each, body: shares, config: { footer: { end: { total: sum(id) } } } }
"""
OUTPUTS = """
  - type: output
    name: lines
    input: rows
    config:
      type: csv
      path: lines.csv
      reconstruct_envelope: true
      options: { envelope: { header_from_doc: head, footer_from_doc: foot, footer_record_count_field: rows } }
  - type: output
    name: array
    input: one
    config:
      type: json
      path: array.json
      reconstruct_envelope: true
      options: { envelope: { header_from_doc: all, footer_from_doc: end } }
  - type: output
    name: elements
    input: each
    config:
      type: xml
      path: elements.xml
      sort_order: [{ field: id, order: desc }]
      reconstruct_envelope: true
      options: { envelope: { header_from_doc: head, footer_from_doc: end } }
  - { type: output, name: plain, input: one, config: { type: csv, path: plain.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""
ARRAY = OUTPUTS[OUTPUTS.index("      type: json") : OUTPUTS.index("  - type: output\n    name: elements")]


def document(batch: int, by: str, *rows: Any) -> str:
    records = [{"id": i, "amount": amount} for i, amount in rows]
    return json.dumps({"head": {"batch": batch, "by": by}, "rows": records, "foot": {"sum": batch * 10}})


def test_documents_have_headers_and_footers(bench: Any) -> None:
    bench.file("in/a.json", document(7, "me", (1, 1.5), (2, None)))
    bench.file("in/b.json", document(8, 'you, "x" <', (0, 9.0), (4, 2.0)))
    bench.file("in/c.json", document(9, "nobody"))
    bench.run(SOURCE + NODES + OUTPUTS)
    assert bench.text("lines.csv").splitlines() == [
        *("7,me", "id,amount", "1,1.5", "2,", "70,2"),
        *('8,"you, ""x"" <"', "id,amount", "0,9", "4,2", "80,2"),
    ]
    # The record that fails is in no document, and in no total.
    assert json.loads(bench.text("array.json")) == [
        {
            "header": {"sender": "acme", "run": "r1"},
            "records": [
                {"id": 1, "amount": 1.5, "share": 12},
                {"id": 2, "share": 6},
                {"id": 4, "amount": 2.0, "share": 3},
            ],
            "footer": {"n": 3, "known": 2, "total": 3.5, "mean": 1.75, "least": 1},
        }
    ]
    assert bench.text("elements.xml") == (
        "<Root><Document><header><batch>7</batch><by>me</by></header>"
        "<Record><id>2</id><share>6</share></Record><Record><id>1</id><amount>1.5</amount><share>12</share></Record>"
        "<footer><total>3</total></footer></Document>"
        '<Document><header><batch>8</batch><by>you, "x" &lt;</by></header>'
        "<Record><id>4</id><amount>2</amount><share>3</share></Record>"
        "<footer><total>4</total></footer></Document></Root>\n"
    )
    assert bench.text("plain.csv").splitlines() == ["id,amount,share", "1,1.5,12", "2,,6", "4,2,3"]


def test_one_document_has_one_header(bench: Any) -> None:
    text = SOURCE + NODES + OUTPUTS.replace("header_from_doc: all", "header_from_doc: head")
    bench.file("in/a.json", document(7, "me", (1, 1.5)))
    bench.file("in/b.json", document(7, "me", (2, 1.5)))
    bench.run(text)
    [made] = json.loads(bench.text("array.json"))
    assert made["header"] == {"batch": 7, "by": "me"} and len(made["records"]) == 2
    bench.file("in/b.json", document(8, "me", (2, 1.5)))
    with pytest.raises(ClinkerError) as caught:
        bench.run(text)
    [found] = caught.value.diagnostics
    assert found.code == "E350" and found.span is not None and found.help


def test_no_records_are_no_documents(bench: Any) -> None:
    bench.file("in/a.json", document(7, "me"))
    bench.run(SOURCE + NODES + OUTPUTS)
    assert bench.text("lines.csv") == "id,amount\n" and json.loads(bench.text("array.json")) == []
    assert bench.text("elements.xml") == "<Root></Root>\n"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("sender: $vars.sender", "sender: id", "E353"),
        ("sender: $vars.sender", "sender: $vars.nobody", "E353"),
        ("total: sum(id)", "total: sum(id * 2)", "E354"),
        ("total: sum(id)", "total: collect(id)", "E354"),
        ("total: sum(id)", "total: sum(idd)", "E354"),
        ("total: sum(id)", "total: sum(*)", "E354"),
        ("emit share = 12 / id", "emit id = amount.to_string().to_decimal()", "E354"),
        ("header_from_doc: all", "header_from_doc: end", "E347"),
        ("header_from_doc: all", "header_from_doc: nothing", "E347"),
        ("path: lines.csv", "path: lines.csv\n      split: { max_records: 3 }", "E347"),
        ("path: lines.csv", "path: lines.csv\n      if_exists: append", "E347"),
        ("type: json\n      path: array", "type: parquet\n      path: array", "E005"),
        (ARRAY, ARRAY.replace("json", "parquet").partition("      options")[0], "E347"),
        (
            "options: { envelope: { header_from_doc: all",
            "options: { format: ndjson, envelope: { header_from_doc: all",
            "E347",
        ),
        ("body: shares", "body: shares\n    header: rows", "E009"),
        ("input: one, config", "input: late, config", "E347"),
        ("reconstruct_envelope: true", "reconstruct_envelope: false", "W027"),
    ],
)
def test_what_documents_cannot_be(tmp_path: Any, old: str, new: str, code: str) -> None:
    text = SOURCE + NODES + OUTPUTS
    assert old in text
    text = text.replace(old, new, 1)
    if "late" in new:
        text += "  - { type: transform, name: late, input: one, config: { cxl: emit a = 1 } }\n"
        tail = text.index("error_handling")
        end = text.index("\n", tail) + 1
        text = text[:tail] + text[end:] + text[tail:end]
    (tmp_path / "p.yaml").write_text(text)
    try:
        found = prepare(tmp_path / "p.yaml").warnings
    except ClinkerError as error:
        found = error.diagnostics
    assert code in [each.code for each in found], found
    assert all(each.help and each.span for each in found)
