"""Keys as pipelines of other versions write them, and ports that nothing feeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from tests.support.workbench import Workbench

BODY = """
_compose:
  name: body
  inputs:
    rows: { schema: { f0: string, f1: string } }
    more: { required: false, schema: { f0: string, f1: string } }
  outputs: { out: all, n: count }
nodes:
  - { type: merge, name: all, inputs: [rows, more] }
  - { type: aggregate, name: count, input: all, config: { cxl: "emit n = count(*)", group_by: [] } }
"""
PIPELINE = """
pipeline: { name: spellings }
nodes:
  - type: source
    name: fixed
    config:
      type: fixed_width
      path: in.txt
      format_schema:
        fields:
          - { name: f0, type: integer, start: 0, width: 3 }
          - { name: f1, type: string, start: 3, width: 2 }
      schema:
        - { name: f0, type: string }
        - { name: f1, type: string }
  - type: source
    name: patched
    config:
      type: csv
      path: in.csv
      schema: shared.schema.yaml
      schema_overrides:
        - { name: id, type: string }
        - { name: many, type: integer }
        - { name: gone, drop: true }
        - { name: extra, type: numeric }
  - { type: composition, name: call, use: ./body.comp.yaml, inputs: { rows: fixed } }
  - type: output
    name: o1
    input: call.out
    config:
      type: fixed_width
      path: o1.txt
      schema: layout.yaml
  - { type: output, name: o2, input: call.n, config: { type: csv, path: o2.csv } }
  - { type: output, name: o3, input: patched, config: { type: json, path: o3.json, options: { format: ndjson } } }
"""


def test_what_other_versions_write(bench: Workbench) -> None:
    bench.file("body.comp.yaml", BODY)
    types = "id: integer\ngone: boolean\nmany: string\nat: nullable(datetime)\nrate: number\n"
    fields = [f"{{ name: {name}, type: {word} }}" for name, _, word in (t.partition(": ") for t in types.splitlines())]
    bench.file("shared.schema.yaml", f"fields: [{', '.join(fields)}]\n")
    bench.file(
        "layout.yaml",
        "fields: [{ name: f0, type: integer, width: 4, justify: right }, { name: f1, type: string, width: 3 }]",
    )
    bench.file("in.txt", " 12ab\n  3c \n")
    bench.file("in.csv", "id,gone,many,at,rate,extra\n007,x,012,2024-01-02 03:04:05,1,2.5\n")
    bench.run(PIPELINE)
    assert bench.text("o1.txt") == "  12ab \n   3c  \n"
    assert bench.text("o2.csv") == "n\n2\n"
    assert bench.text("o3.json") == (
        '{"id":"007","many":12,"at":"2024-01-02 03:04:05","rate":1.0,"extra":2.5,"gone":"x"}\n'
    )


@pytest.mark.parametrize(
    ("change", "to", "code"),
    [
        ("{ name: gone, drop: true }", "{ name: goone, drop: true }", "E226"),
        ("{ name: extra, type: numeric }", "{ name: extra, nullable: true }", "E226"),
    ],
)
def test_patches_of_columns_that_are_not_there(change: str, to: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "body.comp.yaml").write_text(BODY)
    inline = "schema: { id: integer, gone: int, many: int }"
    text = PIPELINE.replace("schema: shared.schema.yaml", inline).replace(change, to)
    (tmp_path / "layout.yaml").write_text("- { name: f0, type: integer, width: 4 }")
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ClinkerError) as error:
        prepare(tmp_path / "p.yaml")
    assert [found.code for found in error.value.diagnostics] == [code]


def test_places_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "body.comp.yaml").write_text(BODY)
    (tmp_path / "shared.schema.yaml").write_text("{ id: int, gone: int, many: int }")
    (tmp_path / "layout.yaml").write_text("- { name: f0, type: integer, width: 4 }")
    places = PIPELINE[PIPELINE.index("        fields:\n") : PIPELINE.index("      schema:\n")]
    by_path = PIPELINE.replace(f"format_schema:\n{places}", "format_schema: places.yaml\n")
    known = []
    for text, file in ((PIPELINE, ""), (by_path, places), (by_path, places.replace("        fields:\n", ""))):
        (tmp_path / "p.yaml").write_text(text)
        (tmp_path / "places.yaml").write_text(file)
        known.append(prepare(tmp_path / "p.yaml").file.schema_of("fixed"))
    first, *others = [schema.columns for schema in known if schema is not None]
    assert [column.start for column in first] == [0, 3] and others == [first, first]
    for file, code, name in (
        ("", "E157", "p.yaml"),
        ("fields: 3", "E157", "places.yaml"),
        (places.replace("width: 2", "widht: 2"), "E005", "places.yaml"),
        (places.replace("start: 3", "start: 2"), "E226", "p.yaml"),
        (None, "E157", "p.yaml"),
    ):
        (tmp_path / "places.yaml").write_text(file) if file is not None else (tmp_path / "places.yaml").unlink()
        with pytest.raises(ClinkerError) as error:
            prepare(tmp_path / "p.yaml")
        [found] = error.value.diagnostics
        assert found.code == code and found.span and found.help, file
        assert found.source is not None and found.source.name.endswith(name), file


def test_a_port_without_a_schema_must_be_fed(tmp_path: Path) -> None:
    (tmp_path / "body.comp.yaml").write_text(
        BODY.replace("required: false, schema: { f0: string, f1: string }", "required: false")
    )
    (tmp_path / "shared.schema.yaml").write_text("{ id: int, gone: int, many: int }")
    (tmp_path / "layout.yaml").write_text("- { name: f0, type: integer, width: 4 }")
    (tmp_path / "p.yaml").write_text(PIPELINE)
    with pytest.raises(ClinkerError) as error:
        prepare(tmp_path / "p.yaml")
    assert [found.code for found in error.value.diagnostics] == ["E104"]


def test_an_output_may_name_the_key_of_totals(bench: Workbench) -> None:
    bench.file("s.csv", "id,d\n1,a\n2,a\n3,b\n")
    bench.run("""
pipeline: { name: keys }
nodes:
  - type: source
    name: s
    config: { type: csv, path: s.csv, schema: { id: int, d: string }, correlation_key: id }
  - { type: aggregate, name: tot, input: s, config: { group_by: [d], cxl: "emit n = count(*)" } }
  - type: output
    name: o
    input: tot
    config: { type: csv, path: o.csv, include_unmapped: false, mapping: [d, { total: "$ck.aggregate.tot" }] }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
""")
    assert bench.text("o.csv") == "d,total\na,0\nb,1\n"


def test_nodes_may_name_the_key_of_totals(bench: Workbench) -> None:
    """After a combine several records are made of one total, and its number tells them apart from those of others."""
    bench.file("s.csv", "id,d,n\n1,a,1\n2,a,2\n3,b,4\n4,c,9\n5,c,x\n")
    bench.file("l.csv", "d,e\na,1\na,2\nb,3\nc,4\n")
    bench.run("""
pipeline: { name: keys }
nodes:
  - type: source
    name: s
    config: { type: csv, path: s.csv, schema: { id: int, d: string, n: int }, correlation_key: id }
  - { type: source, name: l, config: { type: csv, path: l.csv, schema: { d: string, e: int } } }
  - { type: aggregate, name: tot, input: s, config: { group_by: [d], cxl: "emit n = sum(n)" } }
  - type: combine
    name: both
    input: { t: tot, l: l }
    config:
      where: t.d == l.d
      match: all
      on_miss: skip
      propagate_ck: driver
      cxl: |
        emit n = t.n
        emit e = l.e
  - type: transform
    name: w
    input: both
    config:
      analytic_window: { group_by: [n, "$ck.aggregate.tot"] }
      cxl: |
        emit all = $window.sum(e)
        emit bad = if e == 3 then "x".to_int() else 0
  - type: output
    name: o
    input: w
    config: { type: csv, path: o.csv, sort_order: [{ field: "$ck.aggregate.tot", order: desc }, { field: e }] }
  - type: aggregate
    name: again
    input: both
    config: { group_by: ["$ck.aggregate.tot", n], cxl: "emit total = sum(e)" }
  - type: output
    name: o2
    input: again
    config:
      type: csv
      path: o2.csv
      mapping: [n, { tot: "$ck.aggregate.tot" }, total, { own: "$ck.aggregate.again" }]
  - { type: aggregate, name: each, input: s, config: { group_by: ["$ck.id"], cxl: "emit n = sum(n)" } }
  - { type: output, name: o3, input: each, config: { type: csv, path: o3.csv, include_correlation_keys: true } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
""")
    assert bench.text("o.csv") == "n,e,all,bad\n9,4,4,0\n3,1,3,0\n3,2,3,0\n"
    assert bench.text("o2.csv") == "n,tot,total,own\n3,0,3,0\n9,2,4,2\n"
    assert bench.text("o3.csv") == "n,$ck.id\n1,1\n2,2\n9,4\n"
    assert [(row["id"], row["_cxl_dlq_trigger"]) for row in bench.letters() if row["id"]] == [
        ("3", "false"),
        ("5", "true"),
    ]
