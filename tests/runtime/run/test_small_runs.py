"""Runs over small inputs: few jobs, whatever their outputs are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinker_spark.runtime.rollback.groups import Groups
from clinker_spark.spark.session.small_inputs import SETTING, SMALL


@pytest.fixture
def bench(bench: Any) -> Iterator[Any]:
    """In a session as users have it: the others of this folder plan as for large inputs."""
    bench.spark.conf.set(SETTING, str(SMALL))
    yield bench
    bench.spark.conf.set(SETTING, "0")


PIPELINE = """
pipeline: { name: test }
nodes:
  - type: source
    name: orders
    config: { type: csv, path: orders.csv, correlation_key: id, schema: { id: int, region: string, amount: string } }
  - { type: transform, name: priced, input: orders, config: { cxl: "emit amount = amount.to_int()" } }
  - type: aggregate
    name: totals
    input: priced
    config: { group_by: [region], cxl: "emit region = region\\nemit total = sum(amount)" }
  - { type: output, name: lines, input: priced, config: { type: csv, path: lines.csv } }
  - { type: output, name: xml, input: priced, config: { type: xml, path: lines.xml } }
  - { type: output, name: sums, input: totals, config: { type: csv, path: sums.csv } }
  - { type: output, name: parquet, input: totals, config: { type: parquet, path: sums.parquet } }
  - { type: output, name: listed, input: totals, config: { type: json, path: sums.json, options: { format: ndjson } } }
  - { type: output, name: more, input: priced, config: { type: xml, path: more.xml } }
  - type: output
    name: each
    input: priced
    config: { type: csv, path: "each_{source_file}.csv" }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def jobs_of(bench: Any, pipeline: str) -> tuple[Any, int]:
    context = bench.spark.sparkContext
    context.setJobGroup("small run", "")
    before = len(context.statusTracker().getJobIdsForGroup("small run"))
    report = bench.run(pipeline)
    return report, len(context.statusTracker().getJobIdsForGroup("small run")) - before


@pytest.mark.parametrize("bad", [False, True])
def test_outputs_of_every_kind_in_few_jobs(bench: Any, bad: bool) -> None:
    bench.file("orders.csv", f"id,region,amount\n1,n,5\n1,s,7\n2,n,{'x' if bad else '1'}\n2,s,3\n3,n,2\n")
    report, jobs = jobs_of(bench, PIPELINE)
    assert report.exit_code == (2 if bad else 0)
    # One for each kind: CSV, XML, Parquet, JSON lines, files by input. Failures are found by the first, then there are
    # two looks at what must be withheld, and all are written without it.
    assert jobs <= (8 if bad else 5)
    rows = ["1,n,5", "1,s,7", "3,n,2"] if bad else ["1,n,5", "1,s,7", "2,n,1", "2,s,3", "3,n,2"]
    assert bench.text("lines.csv").splitlines()[1:] == rows == bench.text("each_orders.csv").splitlines()[1:]
    assert bench.text("lines.xml").count("<Record>") == len(rows) == bench.text("more.xml").count("<Record>")
    totals = {"n": 7, "s": 10} if bad else {"n": 8, "s": 10}
    assert bench.text("sums.csv").splitlines()[1:] == [f"{key},{value}" for key, value in totals.items()]
    expected = [{"region": key, "total": value} for key, value in totals.items()]
    assert pq.read_table(bench.folder / "sums.parquet").to_pylist() == expected
    assert [json.loads(line) for line in bench.text("sums.json").splitlines()] == expected
    if bad:
        assert [letter["_cxl_dlq_source_row"] for letter in bench.letters()] == ["3", "4"]


def test_an_output_without_records_is_written(bench: Any) -> None:
    bench.file("orders.csv", "id,region,amount\n")
    report, _ = jobs_of(bench, PIPELINE)
    assert report.exit_code == 0 and bench.text("lines.csv") == "id,region,amount\n" and bench.text("sums.json") == ""


COPIES = """
pipeline: { name: test }
nodes:
  - type: source
    name: orders
    config: { type: csv, path: orders.csv, correlation_key: id, schema: { id: int, amount: int } }
  - { type: transform, name: once, input: orders, config: { cxl: distinct by amount } }
  - { type: transform, name: checked, input: once, config: { cxl: "emit share = 60 / (amount - 9)" } }
  - { type: output, name: lines, input: checked, config: { type: csv, path: lines.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def test_many_copies_of_a_record_that_fails_are_no_reason_to_give_up(bench: Any) -> None:
    """Each that is retracted makes the next one the first of its kind, which is judged then."""
    copies = Groups.most_iterations + 2
    bench.file("orders.csv", "id,amount\n" + "".join(f"{i},9\n" for i in range(copies)) + "99,10\n")
    report = bench.run(COPIES)
    assert report.exit_code == 2 and bench.text("lines.csv") == "id,amount,share\n99,10,60\n"
    assert [letter["_cxl_dlq_trigger"] for letter in bench.letters()] == ["true"] * copies
    assert report.rollback.retraction["iterations"] == copies


WHOLE = """
pipeline: { name: test }
nodes:
  - type: source
    name: orders
    config: { type: parquet, paths: [one.parquet, two.parquet], correlation_key: id, schema: { id: int, amount: int } }
  - type: cull
    name: culled
    input: orders
    config: { partition_by: [], removed_to: gone, rules: [{ name: many, drop_group_when: "count(*) > 100" }] }
  - { type: transform, name: checked, input: culled, config: { cxl: "emit share = 60 / (amount - 3)" } }
  - type: aggregate
    name: total
    input: checked
    config: { group_by: [], documents: together, cxl: "emit total = sum(amount)" }
  - type: aggregate
    name: count
    input: checked
    config: { group_by: [], documents: together, cxl: "emit n = count(*)" }
  - { type: output, name: lines, input: checked, config: { type: csv, path: lines.csv } }
  - { type: output, name: sums, input: total, config: { type: csv, path: sums.csv } }
  - { type: output, name: counts, input: count, config: { type: csv, path: counts.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def test_what_is_made_of_everything_costs_no_job_of_its_own(bench: Any) -> None:
    """Neither the schemas of files, nor a group of all records, nor several sums over everything."""
    for name, ids in (("one", [1, 2]), ("two", [2, 3])):
        pq.write_table(
            pa.table({"id": ids, "amount": [1, 3 if name == "two" else 5]}), bench.folder / f"{name}.parquet"
        )
    report, jobs = jobs_of(bench, WHOLE)
    assert report.exit_code == 2
    assert bench.text("lines.csv").splitlines()[1:] == ["1,1,-30", "2,5,30", "2,1,-30"]
    assert (bench.text("sums.csv"), bench.text("counts.csv")) == ("total\n7\n", "n\n3\n")
    # One for the schema of the files, the outputs twice, and two looks at what must be withheld.
    assert jobs <= 5


KEPT_ASIDE = """
pipeline: { name: test, engine: ENGINE }
nodes:
  - { type: source, name: s, config: { type: csv, paths: [a.csv, b.csv, c.csv], schema: { id: int } } }
  - { type: transform, name: t, input: s, config: { cxl: "emit q = 12 / (id - 1)" } }
  - { type: output, name: out, input: t, config: { type: csv, path: out.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


@pytest.mark.parametrize("engine", ["spark", "auto"])
def test_a_file_of_which_no_record_is_left_does_not_end_the_others(bench: Any, engine: str) -> None:
    """All of its records are letters, so its batch is empty, between others."""
    bench.file("a.csv", "id\n5\n1\n")
    bench.file("b.csv", "id\nx\ny\n")
    bench.file("c.csv", "id\n7\n")
    report = bench.run(KEPT_ASIDE.replace("ENGINE", engine))
    assert report.exit_code == 2 and bench.text("out.csv") == "id,q\n5,3\n7,2\n"
    assert len(bench.letters()) == 3
