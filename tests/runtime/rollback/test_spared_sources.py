"""A failure of one source spares the records of another, also where a total of both is held back."""

from __future__ import annotations

from typing import Any

PIPELINE = """
pipeline: { name: test }
nodes:
  - type: source
    name: a
    config: { type: csv, path: a.csv, schema: { k: string, v: int }, correlation_key: k }
  - type: source
    name: b
    config: { type: csv, path: b.csv, schema: { k: string, v: int }, correlation_key: k }
  - { type: merge, name: both, inputs: [a, b] }
  - type: aggregate
    name: sums
    input: both
    config: { group_by: [k], cxl: "emit total = sum(v)" }
  - { type: output, name: totals, input: sums, config: { type: csv, path: totals.csv } }
"""
ROWS = """
  - type: transform
    name: positive
    input: both
    config: { cxl: "filter v > 0" }
  - { type: output, name: rows, input: positive, config: { type: csv, path: rows.csv } }
"""
HANDLING = "error_handling: { strategy: continue, dlq: { path: dead.csv } }"


def test_what_reached_every_output_of_records_is_no_letter(bench: Any) -> None:
    bench.file("a.csv", "k,v\nx,1\nx,oops\ny,2\n")
    bench.file("b.csv", "k,v\nx,3\ny,4\nx,-5\n")
    bench.run(PIPELINE + ROWS + HANDLING)
    assert bench.text("totals.csv") == "k,total\ny,6\n"
    assert bench.text("rows.csv") == "k,v\ny,2\nx,3\ny,4\n"

    def letters() -> list[tuple[str, str, str]]:
        names = ("_cxl_dlq_source_name", "_cxl_dlq_source_row", "_cxl_dlq_trigger")
        return [tuple(letter[name] for name in names) for letter in bench.letters()]  # type: ignore[misc]

    # Row 1 of b was written as it is; row 3 reached no output at all.
    assert letters() == [("a", "1", "false"), ("a", "2", "true"), ("b", "3", "false")]
    bench.run(PIPELINE + HANDLING)
    assert letters() == [("a", "1", "false"), ("a", "2", "true"), ("b", "1", "false"), ("b", "3", "false")]
