"""`dlq_granularity: document`: one failure sets aside its file. The rest is as if the file had not been there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain import explain

PIPELINE = """
pipeline: {{ name: test, engine: {engine} }}
nodes:
  - type: source
    name: orders
    config:
      {{ type: {kind}, glob: "in/*.{kind}", dlq_granularity: document, {more}
        schema: {{ id: int, g: string, v: int }} }}
  - type: source
    name: extra
    config: {{ type: csv, path: extra.csv, schema: {{ id: int, g: string, v: int }}, {extra} on_unmapped: auto_widen }}
  - {{ type: merge, name: both, inputs: [orders, extra], config: {{}} }}
  - type: transform
    name: checked
    input: both
    config: {{ cxl: "emit share = 100 / v\\nfilter id != 99" }}
  - type: aggregate
    name: totals
    input: checked
    config: {{ group_by: [g], documents: together, cxl: "emit n = count(*)\\nemit sum = sum(v)" }}
  - type: transform
    name: judged
    input: totals
    config: {{ cxl: "emit ok = if sum > 1000 then 'no'.to_int() else 1" }}
  - {{ type: output, name: lines, input: checked, config: {{ type: csv, path: lines.csv }} }}
  - {{ type: output, name: sums, input: judged, config: {{ type: csv, path: sums.csv }} }}
error_handling: {{ strategy: continue, dlq: {{ path: dead.csv{dlq} }} }}
"""
FILES: dict[str, list[tuple[Any, str, Any]]] = {
    "a": [(1, "x", 1), (2, "y", 2), (99, "x", 5)],
    "b": [(3, "x", 4), ("bad", "x", 5), (99, "z", 1), (4, "y", 0)],
    "c": [(5, "x", 10), (6, "z", 20)],
    "d": [(7, "z", 2000), (8, "y", 50)],
}


def text_of(kind: str, rows: list[tuple[Any, str, Any]]) -> str:
    if kind == "json":
        return json.dumps([{"id": i, "g": g, "v": v} for i, g, v in rows])
    return "id,g,v\n" + "".join(f"{i},{g},{v}\n" for i, g, v in rows)


def deliver(bench: Any, kind: str, files: dict[str, list[tuple[Any, str, Any]]]) -> None:
    for name in FILES:
        (bench.folder / "in" / f"{name}.{kind}").unlink(missing_ok=True)
    for name, rows in files.items():
        bench.file(f"in/{name}.{kind}", text_of(kind, rows))
    bench.file("extra.csv", "id,g,v\n50,x,100\n51,q,0\n52,y,7\n")


def pipeline(kind: str, *, engine: str = "auto", more: str = "", extra: str = "", dlq: str = "") -> str:
    return PIPELINE.format(kind=kind, engine=engine, more=more, extra=extra, dlq=dlq)


def outputs(bench: Any) -> tuple[str, str]:
    return bench.text("lines.csv"), bench.text("sums.csv")


def told(bench: Any) -> list[tuple[str, ...]]:
    names = ("source_file", "source_row", "error_category", "trigger")
    return [tuple(row[f"_cxl_dlq_{name}"] for name in names) for row in bench.letters()]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_failure_sets_aside_its_file(bench: Any, kind: str) -> None:
    deliver(bench, kind, FILES)
    report = bench.run(pipeline(kind))
    found = outputs(bench)
    letters = told(bench)
    b, d = f"b.{kind}", f"d.{kind}"
    category = "type_coercion_failure"
    expected = [
        (b, "1", "document_rejected", "false"),
        (b, "2", category, "true"),
        (b, "3", "document_rejected", "false"),
        (b, "4", category, "true"),
        # The total of z is too large: the records that it was made of are retracted, with their files.
        (f"c.{kind}", "1", "document_rejected", "false"),
        (f"c.{kind}", "2", "correlated", "false"),
        (d, "1", "correlated", "false"),
        (d, "2", "document_rejected", "false"),
    ]
    mine = [(file.split("/")[-1], *rest) for file, *rest in letters if kind in file and "extra" not in file]
    assert mine == expected
    assert report.sources[0].dead_letters == 8 and report.sources[1].dead_letters == 1
    assert sum(1 for row in letters if row[0] in ("", "<merged>")) == 1  # the total itself
    again = bench.run(pipeline(kind, engine="spark"))
    assert outputs(bench) == found and told(bench) == letters and again.dead_letters == report.dead_letters
    # As if the files had not been there.
    deliver(bench, kind, {"a": FILES["a"]})
    bench.run(pipeline(kind))
    assert outputs(bench) == found


def test_files_and_groups_at_once(bench: Any) -> None:
    """A group with a failure is withheld in all files; what is only set aside with its file takes no group along."""
    deliver(
        bench,
        "csv",
        {"a": [(1, "x", 1), (2, "y", 2)], "b": [(3, "x", 4), (4, "y", "bad")], "c": [(5, "z", 1), (6, "y", 1)]},
    )
    bench.run(pipeline("csv", more="correlation_key: g,", extra="correlation_key: g,"))
    rows = [(file.split("/")[-1], row, category) for file, row, category, _ in told(bench) if "extra" not in file]
    assert rows == [
        ("a.csv", "2", "correlated"),
        ("b.csv", "1", "document_rejected"),
        ("b.csv", "2", "type_coercion_failure"),
        ("c.csv", "2", "correlated"),
    ]
    ids = [line.split(",")[0] for line in bench.text("lines.csv").splitlines()[1:]]
    assert ids == ["1", "5", "50", "52"]


def test_limits_count_all_records_of_a_file(bench: Any) -> None:
    deliver(bench, "csv", {"a": FILES["a"], "b": FILES["b"]})
    with pytest.raises(ClinkerError) as caught:
        bench.run(pipeline("csv", dlq=", max_rate: 0.5, min_records: 1"))
    assert caught.value.diagnostics[0].code == "E315" and "5 of 10 records" in caught.value.diagnostics[0].message
    bench.run(pipeline("csv", dlq=", max_rate: 0.6, min_records: 1"))


def test_trailers_set_their_file_aside(bench: Any) -> None:
    kinds = (
        "{ discriminator: { field: k }, structure: [{ record: t, count: n }], records: ["
        "{ id: d, tag: D, columns: [{ name: k, type: string }, { name: v, type: int }] }, "
        "{ id: t, tag: T, columns: [{ name: k, type: string }, { name: n, type: int }] }] }"
    )
    text = (
        "pipeline: { name: t }\nnodes:\n"
        "  - type: source\n    name: s\n"
        f"    config: {{ type: csv, glob: 'in/*.csv', dlq_granularity: document, schema: {kinds} }}\n"
        "  - { type: output, name: out, input: s, config: { type: csv, path: out.csv } }\n"
        "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"
    )
    for name, lines in {
        "a": "D,1\nD,2\nT,2\n",
        "b": "D,3\nT,2\n",
        "c": "D,4\n",
        "d": "",
        "e": "D,5\nX,1\nT,2\n",
    }.items():
        bench.file(f"in/{name}.csv", lines)
    report = bench.run(text)
    assert bench.text("out.csv") == "record_type,k,v,n\nd,D,1,\nd,D,2,\n"
    assert [(file.split("/")[-1], *rest) for file, *rest in told(bench)] == [
        ("b.csv", "1", "document_rejected", "false"),
        ("b.csv", "2", "structural_validation", "true"),
        ("c.csv", "1", "document_rejected", "false"),
        ("c.csv", "2", "structural_validation", "true"),
        ("d.csv", "1", "structural_validation", "true"),
        ("e.csv", "1", "document_rejected", "false"),
        ("e.csv", "2", "structural_validation", "true"),
    ]
    assert report.sources[0].records == 9


def test_what_goes_with_whole_files(tmp_path: Any) -> None:
    (tmp_path / "p.yaml").write_text(pipeline("csv"))
    said = explain(prepare(tmp_path / "p.yaml"), "text")
    assert "failures: one sets aside all records of its file" in said
    (tmp_path / "p.yaml").write_text(pipeline("csv").replace("strategy: continue", "strategy: fail_fast"))
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    assert [found.code for found in caught.value.diagnostics] == ["E344"]
