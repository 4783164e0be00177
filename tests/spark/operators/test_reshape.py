"""Reshapes: rules that change records of a group and add others."""

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
    config:
      type: json
      path: rows.json
      options: { format: ndjson }
      schema: { id: int, g: nullable(string), v: nullable(int), note: nullable(string) }
"""
ROWS = """{"id": 1, "g": "b", "v": 3}
{"id": 2, "g": "a", "v": 1, "note": "x"}
{"id": 3, "v": 5}
{"id": 4, "g": "b", "v": 9}
{"id": 5, "g": "b"}
{"id": 6, "g": "", "v": 5}
{"id": 7, "v": 2}
{"id": 8, "g": "b", "v": 9, "more": 1}
"""
RULES = """
  - type: reshape
    name: repaired
    input: rows
    config:
      partition_by: [g]
      order_by: [{ field: v, order: desc }]
      rules:
        - name: close
          when: v > 4
          mutate: { set: { v: v - 4, note: '"closed"' } }
          synthesize: { overrides: { v: v, id: id + 100 } }
        - name: open
          when: v < 4 or v == 9
          synthesize:
            copy_from: none
            overrides: { id: id + 200, g: '"n"', v: $window.count(), note: null }
"""
TAIL = "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"


def written(name: str, reads: str, cxl: str = "") -> str:
    text = f"  - {{ type: transform, name: t_{name}, input: {reads}, config: {{ cxl: '{cxl}' }} }}\n" if cxl else ""
    reads = f"t_{name}" if cxl else reads
    path = f"{name}.csv"
    return text + f"  - {{ type: output, name: {name}, input: {reads}, config: {{ type: csv, path: {path} }} }}\n"


def test_groups_leave_one_after_the_other_with_their_new_records(bench: Any) -> None:
    bench.file("rows.json", ROWS)
    again = """
  - type: reshape
    name: again
    input: repaired
    config:
      partition_by: []
      order_by: [id]
      rules:
        - { name: small, when: id < 3 or id > 200, mutate: { set: { note: '"second"' } } }
        - { name: one, when: id == 1, synthesize: { overrides: { id: "0" } } }
"""
    marks = "emit s = $meta.synthetic\nemit maker = $meta.synthesized_by\nemit m = $meta.mutated_by".replace(
        "\n", "\n        "
    )
    audit = f"""
  - type: transform
    name: marked
    input: again
    config:
      cxl: |
        {marks}
"""
    report = bench.run(HEAD + RULES + again + audit + written("first", "repaired") + written("second", "marked") + TAIL)
    assert report.dead_letters == 0
    # Groups come as their first records do, null and "" apart. In b, v is 9, 9, 3, null; new records come by record,
    # then by rule, and have the old values. What nobody declared is copied, too.
    assert bench.text("first.csv").splitlines() == [
        "id,g,v,note,more",
        "4,b,5,closed,",
        "8,b,5,closed,1",
        "1,b,3,,",
        "5,b,,,",
        "104,b,9,,",
        "204,n,4,,",
        "108,b,9,,1",
        "208,n,4,,",
        "201,n,4,,",
        "2,a,1,x,",
        "202,n,1,,",
        "3,,1,closed,",
        "7,,2,,",
        "103,,5,,",
        "207,n,2,,",
        "6,,1,closed,",
        "106,,5,,",
    ]
    rows = [line.split(",") for line in bench.text("second.csv").splitlines()]
    assert rows[0] == ["id", "g", "v", "note", "s", "maker", "m", "more"]
    assert [row[0] for row in rows[1:]] == [
        *("1", "2", "3", "4", "5", "6", "7", "8"),
        *("103", "104", "106", "108", "201", "202", "204", "207", "208", "0"),
    ]
    found = {row[0]: row[3:7] for row in rows[1:]}
    assert found["1"] == ["second", "false", "", "again:small"]
    assert found["4"] == ["closed", "false", "", "repaired:close"]
    assert found["104"] == ["", "true", "repaired:close", ""]
    assert found["204"] == ["second", "true", "repaired:open", "again:small"]
    assert found["0"] == ["", "true", "again:one", ""]


def test_a_contradiction_takes_its_group_along(bench: Any) -> None:
    bench.file("rows.json", ROWS)
    clash = """
  - type: reshape
    name: clash
    input: rows
    config:
      partition_by: [g]
      rules:
        - { name: low, when: v < 4, mutate: { set: { note: '"low"' } } }
        - { name: odd, when: 6 / (v - 1) == 3, mutate: { set: { note: '"odd"' } } }
"""
    report = bench.run(HEAD + clash + written("out", "clash") + TAIL)
    # 1 fails with its group b; 2 divides by zero, which concerns nobody else.
    assert bench.text("out.csv").splitlines()[1:] == ["3,,5,,", "7,,2,low,", "6,,5,,"]
    assert report.dead_letters == 5
    letters = {
        row["id"]: (row["_cxl_dlq_error_category"], row["_cxl_dlq_stage"], row["_cxl_dlq_trigger"])
        for row in bench.letters()
    }
    correlated = ("correlated", "reshape:clash", "false")
    assert letters == {
        "1": ("mutation_conflict", "reshape:clash:low+odd", "true"),
        "2": ("type_coercion_failure", "reshape:clash", "true"),
        "4": correlated,
        "5": correlated,
        "8": correlated,
    }


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("set: { v:", "set: { g: '\"x\"', v:"), "E460"),
        (("overrides: { id: id + 200, g", "overrides: { g"), "E461"),
        (("set: { v:", "set: { w: 1, v:"), "E203"),
        (("overrides: { v: v,", "overrides: { w: v,"), "E203"),
        (("id: id + 100", "id: '\"x\"'"), "E200"),
        (("when: v > 4", "when: v + 4"), "E200"),
        (("v: v - 4", "v: v - "), "E202"),
        (("v: v - 4", "v: emit"), "E202"),
        (("field: v,", "field: w,"), "E203"),
        (("partition_by: [g]", "partition_by: [w]"), "E203"),
        (("      partition_by: [g]\n", ""), "E006"),
        (("order: desc", "null_order: drop"), "E007"),
        (("name: open", "name: close"), "E007"),
        (("when: v < 4 or v == 9\n", "when: v >  4\n          mutate: { set: { note: null } }\n"), "E462"),
        (("copy_from: none", "copy_from: nobody"), "E007"),
        (("v: $window.count()", "v: $meta.mutated_by"), "E200"),
        (("note: null", "note: $meta.mutated_by"), "E171"),
        (("note: null", "note: $meta.who"), "E203"),
    ],
)
def test_what_rules_must_not_do(tmp_path: Any, change: tuple[str, str], code: str) -> None:
    assert change[0] in RULES
    (tmp_path / "p.yaml").write_text(HEAD + RULES.replace(*change) + written("out", "repaired") + TAIL)
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    assert [found.code for found in caught.value.diagnostics] == [code]
    assert all(found.help and found.span for found in caught.value.diagnostics)


def test_the_plan_shows_the_rules(tmp_path: Any) -> None:
    (tmp_path / "p.yaml").write_text(HEAD + RULES + written("out", "repaired") + TAIL)
    text = explain(prepare(tmp_path / "p.yaml"), "text")
    assert "rule 'close': sets v, note and adds a record" in text
    assert "rule 'open': adds a record" in text
    assert "spill_priority=15" in text
