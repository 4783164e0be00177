"""Sources that declare an order, and what relies on it."""

from __future__ import annotations

from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain import explain
from clinker_spark.spark.operators import source_order

PIPELINE = """
pipeline: {{ name: test }}
nodes:
  - type: source
    name: s
    config:
      type: {kind}
      glob: "{glob}"
      sort_order: [{{ field: k, null_order: first }}, {{ field: day, order: desc }}]
      on_unsorted: {mode}
      schema: {{ k: nullable(string), day: nullable(int), v: int }}
  - type: transform
    name: seen
    input: s
    config: {{ cxl: "emit row = $source.row" }}
  - {{ type: output, name: out, input: seen, config: {{ type: csv, path: out.csv }} }}
error_handling: {{ strategy: continue, dlq: {{ path: dead.csv }} }}
"""


def text(kind: str = "csv", glob: str = "[ab].csv", mode: str = "warn") -> str:
    return PIPELINE.format(kind=kind, glob=glob, mode=mode)


def test_files_that_are_not_in_order_are_sorted_each_on_its_own(bench: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(source_order, "_BLOCK_BITS", 1)  # so that neighbours are also compared across blocks
    bench.file("a.csv", "k,day,v\n,,1\nx,,2\nz,oops,0\nx,5,3\ny,1,4\n")
    bench.file("b.csv", "k,day,v\n,2,1\na,9,2\na,9,3\na,,4\nb,1,5\n")
    # `a.csv` has a null before 5 where nulls come last; the record that cannot be read does not count.
    report = bench.run(text().replace("error_handling", GROUPS).replace("STRATEGY", "streaming"))
    [warning] = report.warnings
    assert warning.code == "W307" and warning.span is not None
    assert "'a.csv' has (x, 5) in row 4 after (x, null) in row 2" in warning.message and "b.csv" not in warning.message
    rows = bench.text("out.csv").splitlines()[1:]
    assert rows[:4] == [",,1,1", "x,5,3,4", "x,,2,2", "y,1,4,5"]
    assert rows[4:] == [",2,1,6", "a,9,2,7", "a,9,3,8", "a,,4,9", "b,1,5,10"]
    assert [letter["_cxl_dlq_source_row"] for letter in bench.letters()] == ["3"]
    assert bench.text("out2.csv").splitlines()[1:] == [",1", "x,2", "y,1", ",1", "a,3", "b,1"]  # each file on its own


def test_groups_are_held_back_from_a_source_that_was_sorted(bench: Any) -> None:
    bench.file("a.csv", "k,day,v\nc,1,1\nb,2,x\na,3,3\nb,4,4\nd,5,5\n")
    keyed = text(glob="a.csv").replace("config:\n      type", "config:\n      correlation_key: k\n      type", 1)
    report = bench.run(keyed)
    assert [w.code for w in report.warnings] == ["W307"]
    assert bench.text("out.csv").splitlines()[1:] == ["a,3,3,3", "c,1,1,1", "d,5,5,5"]
    assert [letter["_cxl_dlq_source_row"] for letter in bench.letters()] == ["2", "4"]


def test_a_file_out_of_order_can_stop_the_run(bench: Any) -> None:
    bench.file("out.csv", "old\n")
    bench.file("a.json", '[{"k": "a", "day": 1, "v": 1}, {"k": "a", "day": 2, "v": 1}]')
    with pytest.raises(ClinkerError) as caught:
        bench.run(text("json", "a.json", "error"))
    [found] = caught.value.diagnostics
    assert (caught.value.exit_code, found.code) == (3, "E450")
    assert found.message == "not sorted by k nulls first, day desc: 'a.json' has (a, 2) in row 2 after (a, 1) in row 1"
    assert bench.text("out.csv") == "old\n" and bench.left_over() == []


def test_only_values_that_have_an_order_can_be_declared_sorted(tmp_path: Any) -> None:
    (tmp_path / "p.yaml").write_text(
        text().replace("nullable(string)", "array(int)").replace("nullable(int)", "decimal").replace("csv", "json")
    )
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    assert [found.code for found in caught.value.diagnostics] == ["E007", "E007"]
    assert "have no order" in caught.value.diagnostics[0].message


GROUPS = """
  - type: aggregate
    name: groups
    input: seen
    config: { group_by: [day, k], strategy: STRATEGY, cxl: "emit n = count(*)" }
  - type: aggregate
    name: again
    input: groups
    config: { group_by: [k], cxl: "emit n = sum(n)" }
  - { type: output, name: out2, input: again, config: { type: csv, path: out2.csv } }
error_handling"""


def planned(folder: Any, given: str) -> Any:
    (folder / "p.yaml").write_text(given)
    return prepare(folder / "p.yaml")


def test_groups_of_sorted_records_are_streamed(tmp_path: Any) -> None:
    grouped = text().replace("error_handling", GROUPS).replace("STRATEGY", "streaming")
    plan = planned(tmp_path, grouped)
    assert [plan[name].strategy for name in ("groups", "again")] == ["streaming", "streaming"]
    assert "[aggregation:streaming] groups" in explain(plan, "text")
    assert "  sorted by: k nulls first, day desc, file by file\n" in explain(plan, "text")
    assert "compare neighbours in 's': sorted by k nulls first, day desc?" in explain(plan, "text")
    hashed = planned(tmp_path, grouped.replace("strategy: streaming", "strategy: hash"))
    assert hashed["groups"].strategy == "hash"
    for change in (
        ("emit row", "emit day = 1\\n emit row"),
        ("[day, k]", "[day, k, row]"),
        ("input: seen\n", "input: both\n"),
    ):
        other = grouped.replace(*change)
        if "both" in change[1]:
            merge = "  - { type: merge, name: both, inputs: [seen] }\n"
            other = other.replace(
                "  - type: aggregate\n    name: groups", f"{merge}  - type: aggregate\n    name: groups"
            )
        with pytest.raises(ClinkerError) as caught:
            planned(tmp_path, other)
        assert caught.value.diagnostics[0].code == "E451", change
        assert planned(tmp_path, other.replace("streaming", "auto"))["groups"].strategy == "hash"
