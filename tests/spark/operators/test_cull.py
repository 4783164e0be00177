"""Culls: groups that leave the stream."""

from __future__ import annotations

from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain import explain

HEAD = """
pipeline: { name: test }
nodes:
  - type: source
    name: rows
    config: { type: csv, path: rows.csv, schema: { id: int, g: nullable(string), v: nullable(int) } }
"""
ROWS = "id,g,v\n1,b,3\n2,a,1\n3,,5\n4,b,9\n5,c,2\n6,c,\n7,,0\n8,a,7\n9,d,\n10,e,1\n11,e,x\n12,a,2\n"
CULL = """
  - type: cull
    name: judged
    input: rows
    config:
      partition_by: [g]
      order_by: [{ field: v, order: desc }]
      removed_to: removed
      rules:
        - { name: large, drop_group_when: sum(v) > 10 }
        - { name: pairs, drop_group_when: count(*) == 2 and min(v) > 0 }
"""
TAIL = "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"


def written(name: str, reads: str) -> str:
    return f"  - {{ type: output, name: {name}, input: {reads}, config: {{ type: csv, path: {name}.csv }} }}\n"


def test_groups_leave_by_a_port(bench: Any) -> None:
    bench.file("rows.csv", ROWS)
    # Without a port, they are counted and gone; a group of everything; a condition that fails.
    more = """
  - type: cull
    name: all
    input: rows
    config: { partition_by: [], removed_to: gone, rules: [{ name: many, drop_group_when: count(*) > 10 }] }
  - type: cull
    name: divided
    input: rows
    config: { partition_by: [g], rules: [{ name: n, drop_group_when: 6 / (count(*) - 2) > 3 }] }
"""
    outputs = [written("kept", "judged"), written("left", "judged.removed"), written("gone", "all.gone")]
    report = bench.run(
        HEAD + CULL + more + "".join(outputs) + written("rest", "all") + written("good", "divided") + TAIL
    )
    # A sum of nothing is null, and null is not larger than 10.
    kept = ["8,a,7", "12,a,2", "2,a,1", "3,,5", "7,,0", "9,d,", "10,e,1"]
    assert bench.text("kept.csv").splitlines() == ["id,g,v", *kept]
    assert bench.text("left.csv").splitlines()[1:] == ["4,b,9", "1,b,3", "5,c,2", "6,c,"]
    assert bench.text("gone.csv").count("\n") == 12 and bench.text("rest.csv") == "id,g,v\n"
    # Six by one less two is -6; groups of two cannot be judged, and only a has three records.
    assert bench.text("good.csv").splitlines()[1:] == ["9,d,", "10,e,1"]
    assert report.dead_letters == 1 + 6
    assert {row["_cxl_dlq_error_category"] for row in bench.letters()} == {
        "type_coercion_failure",
        "aggregate_type_error",
    }


def test_rules_may_ask_what_the_file_says(bench: Any) -> None:
    """`$doc` is that of the file of a group; where its records come from several files, the least of theirs."""
    for name, (most, rows) in {"a": (1, "xxy"), "b": (2, "yzzz"), "c": (None, "vv")}.items():
        records = ", ".join(f'{{"id": {i}, "g": "{g}"}}' for i, g in enumerate(rows))
        head = "{}" if most is None else f'{{"most": {most}}}'
        bench.file(f"in/{name}.json", f'{{"h": {head}, "rows": [{records}]}}')
    bench.run(
        """
pipeline: { name: test }
nodes:
  - type: source
    name: rows
    config:
      type: json
      glob: in/*.json
      options: { record_path: rows }
      schema: { id: int, g: string }
      envelope: { sections: { h: { extract: { json_pointer: /h }, fields: { most: int } } } }
  - type: cull
    name: judged
    input: rows
    config:
      partition_by: [g]
      removed_to: removed
      rules: [{ name: many, drop_group_when: count(*) > $doc.h.most }]
"""
        + written("kept", "judged")
        + written("left", "judged.removed")
        + TAIL
    )
    assert [line[-1] for line in bench.text("left.csv").splitlines()[1:]] == list("xxyyzzz")
    assert bench.text("kept.csv").splitlines()[1:] == ["0,v", "1,v"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("removed_to: removed", "removed_to: a.b"), "E010"),
        (("removed_to: removed", "removed_to: ''"), "E007"),
        (("removed_to: removed\n", "removed_to: other\n"), "E004"),
        (("sum(v) > 10", "v > 10"), "E200"),
        (("sum(v) > 10", "sum(v)"), "E200"),
        (("sum(v) > 10", "sum(w) > 1"), "E203"),
        (("name: pairs", "name: large"), "E007"),
        (("partition_by: [g]", "partition_by: [w]"), "E203"),
    ],
)
def test_what_rules_must_not_do(tmp_path: Any, change: tuple[str, str], code: str) -> None:
    assert change[0] in CULL
    text = HEAD + CULL.replace(*change) + written("kept", "judged") + written("left", "judged.removed") + TAIL
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    assert caught.value.diagnostics[0].code == code
    assert all(found.help and found.span for found in caught.value.diagnostics)


def test_the_plan_shows_both_streams(tmp_path: Any) -> None:
    (tmp_path / "p.yaml").write_text(HEAD + CULL + written("kept", "judged") + written("left", "judged.removed") + TAIL)
    text = explain(prepare(tmp_path / "p.yaml"), "text")
    assert "Cull 'judged' (rules: large, pairs):\n  Kept -> kept\n  Removed 'removed' -> left" in text
