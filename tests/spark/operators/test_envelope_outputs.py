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
NODES_BESIDE = """nodes:
  - { type: source, name: others, config: { type: csv, path: others.csv, schema: { batch: int } } }
  - type: aggregate
    name: totals
    input: rows
    config: { group_by: [], documents: together, cxl: "emit n = count(*)" }
  - { type: output, name: beside, input: totals, config: { type: csv, path: beside.csv } }
"""
WIRED = """
pipeline: { name: wired }
nodes:
  - type: source
    name: feed
    config:
      type: csv
      glob: in/*.csv
      options: { has_header: false }
      schema:
        discriminator: { field: kind }
        records:
          - id: head
            tag: H
            columns: [{ name: kind, type: string }, { name: batch, type: int }, { name: who, type: string }]
          - { id: item, tag: D, columns: [{ name: kind, type: string }, { name: id, type: int } ] }
  - { type: route, name: kinds, input: feed, config: { conditions: { head: record_type == "head" }, default: item } }
  - type: transform
    name: heads
    input: kinds.head
    config: { cxl: "emit batch = batch + 100\nemit who = who.upper()" }
  - { type: transform, name: items, input: kinds.item, config: { cxl: "emit id = id" } }
  - type: envelope
    name: framed
    body: items
    header: heads
    config: { strategy: preserve, header: { more: { run: '"r" + batch_name' } }, footer: { end: { n: count() } } }
  - type: output
    name: lines
    input: framed
    config:
      type: csv
      path: lines.csv
      include_unmapped: false
      reconstruct_envelope: true
      options: { envelope: { header_from_doc: header, footer_from_doc: end } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
""".replace("batch_name", "$pipeline.name")
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


def test_headers_are_records_of_another_node(bench: Any) -> None:
    bench.file("in/a.csv", "H,7,acme\nD,1\nD,x\nD,2\n")
    bench.file("in/b.csv", 'D,3\nH,8,"you, me"\n')
    bench.run(WIRED)
    lines = ["107,ACME", "id", "1", "2", "2", '108,"YOU, ME"', "id", "3", "1"]
    assert bench.text("lines.csv").splitlines() == lines
    assert [(letter["_cxl_dlq_source_file"], letter["_cxl_dlq_source_row"]) for letter in bench.letters()] == [
        ("in/a.csv", "3")
    ]
    together = WIRED.replace("strategy: preserve", "strategy: concat")
    for text, second, code, name in (
        (WIRED, "D,3\n", "E351", "in/b.csv"),
        (WIRED, "H,8,you\n", "E351", "in/b.csv"),
        (WIRED, "H,8,you\nD,3\nH,8,you\n", "E352", "in/b.csv"),
        (together, "H,8,you\nD,3\n", "E350", "heads"),
    ):
        bench.file("in/b.csv", second)
        with pytest.raises(ClinkerError) as caught:
            bench.run(text)
        [found] = caught.value.diagnostics
        assert found.code == code and name in found.message and found.span is not None and found.help
        assert bench.text("lines.csv").splitlines() == lines
    bench.file("in/b.csv", "H,7,acme\nD,3\n")
    bench.run(together)
    assert bench.text("lines.csv").splitlines() == ["107,ACME", "id", "1", "2", "3", "3"]


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
        ("body: shares", "body: shares\n    trailer: rows", "E009"),
        ("body: shares", "body: shares\n    header: nobody", "E004"),
        ("header: { all: {", "header: { header: {", "E347"),
        ("name: each, body: shares,", "name: each, body: shares, header: others,", "E351"),
        ("name: each, body: shares,", "name: each, body: shares, header: totals,", "E351"),
        ("name: each, body: shares,", "name: each, body: shares, header: rows,", "E347"),
        ("input: one, config", "input: late, config", "E347"),
        ("reconstruct_envelope: true", "reconstruct_envelope: false", "W027"),
    ],
)
def test_what_documents_cannot_be(tmp_path: Any, old: str, new: str, code: str) -> None:
    text = SOURCE + NODES + OUTPUTS
    assert old in text
    text = text.replace(old, new, 1)
    if "header: header" in text:
        text = text.replace("body: shares", "body: shares\n    header: rows", 1)
    if "header: " in new:
        text = text.replace("nodes:\n", NODES_BESIDE, 1)
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
