"""Totals of several files: each its own, or all together."""

from __future__ import annotations

from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain import explain

SCHEMA = "schema: { g: string, v: int }"
HEAD = f"""
pipeline: {{ name: test }}
nodes:
  - {{ type: source, name: many, config: {{ type: csv, glob: in/*.csv, {SCHEMA} }} }}
  - {{ type: source, name: one, config: {{ type: csv, path: in/a.csv, {SCHEMA} }} }}
  - {{ type: source, name: other, config: {{ type: csv, path: in/b.csv, {SCHEMA} }} }}
  - {{ type: merge, name: both, inputs: [one, other] }}
"""


def total(name: str, reads: str, documents: str = "") -> str:
    return f"""
  - type: aggregate
    name: {name}
    input: {reads}
    config: {{ group_by: [g], cxl: "emit v = sum(v)"{documents and f", documents: {documents}"} }}
  - {{ type: output, name: {name}_out, input: {name}, config: {{ type: csv, path: {name}.csv }} }}
"""


PIPELINE = (
    HEAD
    + total("usual", "many")
    + total("apart", "many", "separate")
    + total("together", "many", "together")
    + total("merged", "both")
    + total("split", "both", "separate")
    + total("single", "one")
    + total("again", "apart")
    + total("all", "apart", "together")
    + """
  - type: aggregate
    name: rows
    input: many
    config: { group_by: [], cxl: "emit last = max($source.row)\\nemit file = min($source.file)" }
  - { type: output, name: rows_out, input: rows, config: { type: csv, path: rows.csv } }
"""
)
APART = "g,v\nx,3\ny,5\nx,10\n"
TOGETHER = "g,v\nx,13\ny,5\n"


def test_files_have_totals_of_their_own_or_together(bench: Any) -> None:
    bench.file("in/a.csv", "g,v\nx,1\ny,5\nx,2\n")
    bench.file("in/b.csv", "g,v\nx,10\n")
    report = bench.run(PIPELINE)
    for name in ("usual", "apart", "split", "again"):
        assert bench.text(f"{name}.csv") == APART, name
    for name in ("together", "merged", "all"):
        assert bench.text(f"{name}.csv") == TOGETHER, name
    assert bench.text("single.csv") == "g,v\nx,3\ny,5\n"
    assert bench.text("rows.csv") == "last,file\n3,in/a.csv\n4,in/b.csv\n"  # rows are counted over all files
    said = {node.name: node.documents for node in report.nodes if node.kind == "aggregate"}
    assert said == {
        **dict.fromkeys(("usual", "apart", "split", "again", "rows"), "separate"),
        **dict.fromkeys(("together", "merged", "all"), "together"),
        "single": None,
    }


def test_explain_says_which(tmp_path: Any) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    text = explain(prepare(tmp_path / "p.yaml"), "text")
    assert text.count("documents: separate (each file has groups of its own)") == 5
    assert text.count("documents: together (groups reach over all files)") == 3


def test_what_is_made_of_all_files_belongs_to_none(tmp_path: Any) -> None:
    (tmp_path / "p.yaml").write_text(HEAD + total("t", "many", "together") + total("u", "t", "separate"))
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    [found] = caught.value.diagnostics
    assert found.code == "E007" and found.span and "'t' makes records of several files" in found.message
