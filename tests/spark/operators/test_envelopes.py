"""What files say about all of their records, as `$doc`."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain import explain
from clinker_spark.runtime.reject.letter_files import read_letters
from clinker_spark.runtime.reject.replay import replay_plan
from clinker_spark.runtime.reject.replay_files import replay_files
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run

JSON = """
pipeline: { name: test }
nodes:
  - type: source
    name: orders
    config:
      type: json
      glob: in/*.json*
      options: { format: object, record_path: body.orders }
      schema: { id: int, v: int }
      envelope:
        sections:
          head: { extract: { json_pointer: /head }, fields: { batch: int, at: date_time, sender: string } }
          tail: { extract: { json_pointer: /meta/tail }, fields: { total: float, ok: bool } }
"""
XML = """
  - type: source
    name: parts
    config:
      type: xml
      path: in/parts.xml
      options: { record_path: Doc/Items/Item }
      schema: { id: int, v: int }
      envelope:
        sections:
          head: { extract: { xml_path: Doc/Head }, fields: { batch: int, sender: string } }
"""
CXL = """
  - type: transform
    name: marked
    input: orders
    config:
      cxl: |
        emit batch = $doc.head.batch
        emit at = $doc.head.at
        emit total = $doc.tail.total
        emit ok = $doc.tail.ok
        emit share = v / $doc.tail.total
        filter $doc.head.batch != 9
  - type: route
    name: way
    input: parts
    config: { conditions: { mine: '$doc.head.sender == "me"' }, default: rest }
  - type: aggregate
    name: batches
    input: orders
    config: { group_by: [], cxl: "emit batch = max($doc.head.batch)\\nemit n = count(*)" }
  - { type: output, name: out, input: marked, config: { type: csv, path: out.csv } }
  - { type: output, name: out_mine, input: way.mine, config: { type: csv, path: mine.csv } }
  - { type: output, name: out_rest, input: way.rest, config: { type: csv, path: rest.csv } }
  - { type: output, name: out_batches, input: batches, config: { type: csv, path: batches.csv } }
"""


def document(batch: Any, *rows: int, **more: Any) -> str:
    orders = [{"id": i, "v": i * 10} for i in rows]
    head = {"batch": batch, "at": "2026-01-02T03:04:05", "sender": "me"}
    return json.dumps({"head": head, "body": {"x": [1], "orders": orders}, **more})


def test_records_know_what_their_file_says(bench: Any) -> None:
    bench.file("in/a.json", document(7, 1, 2, meta={"tail": {"total": 4, "ok": True}}))
    bench.file("in/b.json.gz", gzip.compress(document(8.0, 3, meta={"tail": None}).encode()))
    bench.file("in/c.json", json.dumps({"body": {"orders": [{"id": 4, "v": 1}]}, "meta": []}))
    bench.file("in/d.json", document(9, 5))
    items = "<Items><Item><id>1</id><v>2</v></Item></Items>"
    bench.file("in/parts.xml", f"<Doc><Head batch='3'><sender>me</sender><batch>3</batch></Head>{items}</Doc>")
    bench.run(JSON + XML + CXL)
    assert bench.text("out.csv").splitlines() == [
        "id,v,batch,at,total,ok,share",
        "1,10,7,2026-01-02T03:04:05,4,true,2.5",
        "2,20,7,2026-01-02T03:04:05,4,true,5",
        "3,30,8,2026-01-02T03:04:05,,,",
        "4,1,,,,,",
    ]
    assert bench.text("mine.csv") == "id,v\n1,2\n" and bench.text("rest.csv") == "id,v\n"
    assert bench.text("batches.csv") == "batch,n\n7,2\n8,1\n,1\n9,1\n"


@pytest.mark.parametrize("batch", ["seven", 7.5, True, "7", [1], {"x": 1}])
def test_a_value_of_another_type_stops_the_run(bench: Any, batch: Any) -> None:
    bench.file("in/a.json", document(batch, 1))
    text = JSON + CXL.partition("  - type: route")[0]
    with pytest.raises(ClinkerError) as caught:
        bench.run(text + "  - { type: output, name: out, input: marked, config: { type: csv, path: out.csv } }\n")
    [found] = caught.value.diagnostics
    assert found.code == "E463" and "$doc.head.batch of 'in/a.json'" in found.message and found.help
    assert not (bench.folder / "out.csv").exists()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("$doc.head.at", "$doc.head.when"), "E341"),
        (("$doc.head.at", "$doc.head"), "E341"),
        (("$doc.head.at", "$doc.head.at.day"), "E341"),
        (("json_pointer: /head }", "xml_path: a/b }"), "E007"),
        (("json_pointer: /head }", "json_pointer: head }"), "E363"),
        (("json_pointer: /head }", "segment: UNB }"), "E009"),
        (("xml_path: Doc/Head", "xml_path: Doc"), "E363"),
        (("batch: int, at", "batch: map(int), at"), "E007"),
        (("fields: { batch: int, sender", "fields: { batch: string, sender"), "E007"),
        (("max($doc.head.batch)", "$doc.head.batch"), "E200"),
        (("type: json\n      glob", "type: csv\n      glob"), "E007"),
        (("{ format: object, record_path: body.orders }", "{ format: ndjson }"), "E007"),
        (("input: marked, config: { type: csv", "input: late, config: { type: csv"), "E172"),
    ],
)
def test_what_envelopes_cannot_say(tmp_path: Any, change: tuple[str, str], code: str) -> None:
    text = JSON + XML + CXL
    assert change[0] in text
    if code == "E172":
        text += "  - { type: transform, name: late, input: total, config: { cxl: 'emit b = $doc.head.batch' } }\n"
        config = '{ group_by: [], documents: together, cxl: "emit n = count(*)" }'
        text += f"  - {{ type: aggregate, name: total, input: orders, config: {config} }}\n"
    if "type: csv\n" in change[1]:
        text = text.replace("options: { format: object, record_path: body.orders }", "options: {}")
    (tmp_path / "p.yaml").write_text(text.replace(*change))
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    assert code in [found.code for found in caught.value.diagnostics]
    assert all(found.help and found.span for found in caught.value.diagnostics)


def test_explain_shows_the_sections(tmp_path: Any) -> None:
    (tmp_path / "p.yaml").write_text(JSON + XML + CXL)
    assert "envelope: $doc.tail at meta/tail: total, ok" in explain(prepare(tmp_path / "p.yaml"), "text")


def test_letters_are_replayed_with_what_their_files_say(bench: Any, tmp_path: Any) -> None:
    text = JSON + CXL.partition("  - type: route")[0].replace("v / $doc", "(12 / v) / $doc").replace("filter", "# ")
    text += "  - { type: output, name: out, input: marked, config: { type: csv, path: out.csv } }\n"
    text += "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"
    bench.file("in/a.json", document(7, 1, 0, meta={"tail": {"total": 4}}))
    bench.file("in/b.json", document(8, 0, 2, meta={"tail": {"total": 2}}))
    bench.run(text)
    letters = bench.text("dead.csv").replace('""v"": 0', '""v"": 3').replace('"v": 0', '"v": 3')
    assert [line["_cxl_dlq_source_file"] for line in bench.letters()] == ["in/a.json", "in/b.json"]
    bench.file("dead.csv", letters)
    feed = replay_files(prepare(bench.folder / "pipeline.yaml"), read_letters(bench.folder / "dead.csv"), tmp_path)
    plan = replay_plan(prepare(bench.folder / "pipeline.yaml"), feed.files)
    run(plan, bench.spark, Options(files=feed.files, replay="beside", feed=feed))
    assert bench.text("out-replay.csv").splitlines() == [
        "id,v,batch,at,total,ok,share",
        "0,3,7,2026-01-02T03:04:05,4,,1",
        "0,3,8,2026-01-02T03:04:05,2,,2",
    ]
    (bench.folder / "in/a.json").unlink()
    with pytest.raises(ClinkerError) as caught:
        replay_files(prepare(bench.folder / "pipeline.yaml"), read_letters(bench.folder / "dead.csv"), tmp_path)
    [found] = caught.value.diagnostics
    assert found.code == "E458" and "'in/a.json'" in found.message and found.help


def test_fields_of_several_values(bench: Any) -> None:
    """Their parts are read with an index, as those of any array or map; what is not there is null."""
    heads = [{"xs": [3, 1, 2], "m": {"a": 1.5}, "days": ["2026-01-02"]}, {"xs": [], "m": {}}, {}]
    for i, head in enumerate(heads):
        bench.file(f"in/{i}.json", json.dumps({"h": head, "rows": [{"id": i}]}))
    bench.file("x.xml", "<d><h><x>4</x><x>5</x></h><r><id>7</id></r></d>")
    text = """
pipeline: { name: test }
nodes:
  - type: source
    name: rows
    config:
      type: json
      glob: in/*.json
      options: { record_path: rows }
      schema: { id: int }
      envelope:
        sections:
          h: { extract: { json_pointer: /h }, fields: { xs: array(int), m: map(float), days: array(date) } }
  - type: source
    name: x
    config:
      type: xml
      path: x.xml
      options: { record_path: d/r }
      schema: { id: int }
      envelope: { sections: { g: { extract: { xml_path: d/h }, fields: { x: array(int) } } } }
  - type: transform
    name: t
    input: rows
    config:
      cxl: |
        emit second = $doc.h.xs[1]
        emit a = $doc.h.m["a"]
        emit day = $doc.h.days[0]
        emit n = $doc.h.xs.length()
  - { type: transform, name: u, input: x, config: { cxl: "emit last = $doc.g.x[1]" } }
  - { type: output, name: o, input: t, config: { type: csv, path: o.csv } }
  - { type: output, name: p, input: u, config: { type: csv, path: p.csv } }
"""
    bench.run(text)
    assert bench.text("o.csv") == "id,second,a,day,n\n0,1,1.5,2026-01-02,3\n1,,,,0\n2,,,,\n"
    assert bench.text("p.csv") == "id,last\n7,5\n"
    bench.file("in/1.json", json.dumps({"h": {"xs": [1, "x"]}, "rows": []}))
    with pytest.raises(ClinkerError) as caught:
        bench.run(text)
    assert [found.code for found in caught.value.diagnostics] == ["E463"]
    (bench.folder / "pipeline.yaml").write_text(text.replace("x: array(int)", "x: map(int)"))
    with pytest.raises(ClinkerError) as caught:
        prepare(bench.folder / "pipeline.yaml")
    assert [found.code for found in caught.value.diagnostics] == ["E007"]
