"""Whole pipelines: what is written, what is set aside, what is promised."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.operators import record_log
from tests.property.test_pipelines import partitioned

ORDERS = """order_id,customer,amount,qty,day
1,ann,10.50,2,2024-01-01
2,bob,oops,1,2024-01-02
3,"c, d",7.25,0,2024-01-02
4,ann,100,4,2024-01-03
5,eve,3.5,1,2024-01-03
"""
SOURCE = """
  - type: source
    name: orders
    config:
      type: csv
      path: orders.csv
      schema: { order_id: int, customer: string, amount: float, qty: int, day: date }
"""
CONTINUE = "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"


def pipeline(nodes: str, handling: str = CONTINUE, settings: str = "{ name: test }") -> str:
    return f"pipeline: {settings}\nnodes:\n{SOURCE.rstrip()}\n{nodes.rstrip()}\n{handling}"


def output(name: str, reads: str, config: str = "") -> str:
    return f"\n  - {{ type: output, name: {name}, input: {reads}, config: {{ type: csv, path: {name}.csv {config} }} }}"


def transform(name: str, reads: str, cxl: str, more: str = "") -> str:
    lines = "".join(f"\n        {line}" for line in cxl.strip().splitlines())
    return f"\n  - type: transform\n    name: {name}\n    input: {reads}\n    config:\n      cxl: |{lines}{more}"


def test_records_are_written_in_order_and_failures_are_explained(bench: Any) -> None:
    bench.file("orders.csv", ORDERS)
    report = bench.run(
        pipeline(transform("priced", "orders", "emit unit = amount.to_int() / qty") + output("out", "priced"))
    )
    assert bench.text("out.csv") == (
        "order_id,customer,amount,qty,day,unit\n"
        "1,ann,10.5,2,2024-01-01,5\n4,ann,100,4,2024-01-03,25\n5,eve,3.5,1,2024-01-03,3\n"
    )
    first, second = bench.letters()
    assert first["_cxl_dlq_source_row"] == "2" and first["_cxl_dlq_stage"] == "source"
    assert first["_cxl_dlq_triggering_field"] == "amount" and first["_cxl_dlq_triggering_value"] == "oops"
    assert first["amount"] == "oops" and first["_cxl_dlq_source_file"] == "orders.csv"
    assert second["_cxl_dlq_stage"] == "transform:priced" and second["_cxl_dlq_error_detail"] == "division by zero"
    assert second["customer"] == "c, d" and second["_cxl_dlq_triggering_field"] == "unit"
    assert report.exit_code == 2 and report.dead_letters == 2
    assert bench.left_over() == []


def test_a_clean_run_has_no_dead_letters_and_removes_old_ones(bench: Any) -> None:
    bench.file("orders.csv", "order_id,customer,amount,qty,day\n1,ann,1,2,2024-01-01\n")
    bench.file("dead.csv", "_cxl_dlq_source_file,_cxl_dlq_source_name,_cxl_dlq_source_row,_cxl_dlq_stage\n")
    report = bench.run(pipeline(output("out", "orders")))
    assert report.exit_code == 0 and report.letters == []
    assert not (bench.folder / "dead.csv").exists()


def test_fail_fast_publishes_nothing(bench: Any) -> None:
    bench.file("orders.csv", ORDERS)
    bench.file("out.csv", "old\n")
    with pytest.raises(ClinkerError) as caught:
        bench.run(pipeline(output("out", "orders"), handling=""))
    assert caught.value.exit_code == 3
    [found] = caught.value.diagnostics
    assert found.code == "E409" and "orders.csv, row 2" in found.message and "'oops'" in found.message
    assert bench.text("out.csv") == "old\n" and bench.left_over() == []


def test_routes_merges_and_aggregates(bench: Any) -> None:
    bench.file("orders.csv", ORDERS)
    nodes = (
        """
  - type: route
    name: size
    input: orders
    config: { conditions: { big: amount > 50, small: amount > 5 }, default: tiny }
  - { type: merge, name: both, inputs: [size.tiny, size.big] }
  - type: aggregate
    name: days
    input: both
    config:
      group_by: [day]
      cxl: |
        emit n = count(*)
        emit total = sum(amount)
"""
        + output("small", "size.small")
        + output("both_out", "both")
        + output("days_out", "days")
    )
    report = bench.run(pipeline(nodes))
    assert bench.text("small.csv").splitlines()[1:] == ["1,ann,10.5,2,2024-01-01", '3,"c, d",7.25,0,2024-01-02']
    assert bench.text("both_out.csv").splitlines()[1:] == ["5,eve,3.5,1,2024-01-03", "4,ann,100,4,2024-01-03"]
    assert bench.text("days_out.csv") == "day,n,total\n2024-01-03,2,103.5\n"
    assert len(bench.letters()) == 1 and report.dead_letters == 1


def test_inclusive_routes_send_a_record_to_all_that_match(bench: Any) -> None:
    bench.file("orders.csv", ORDERS.replace("oops", "60"))
    nodes = """
  - type: route
    name: tags
    input: orders
    config: { mode: inclusive, conditions: { ann: customer == "ann", big: amount > 50 }, default: rest }
""" + "".join(output(name, f"tags.{name}", ", include_unmapped: true") for name in ("ann", "big", "rest"))
    bench.run(pipeline(nodes))
    ids = {
        name: [line.split(",")[0] for line in bench.text(f"{name}.csv").splitlines()[1:]]
        for name in ("ann", "big", "rest")
    }
    assert ids == {"ann": ["1", "4"], "big": ["2", "4"], "rest": ["3", "5"]}


def test_a_condition_that_fails_is_a_dead_letter_once(bench: Any) -> None:
    bench.file("orders.csv", ORDERS.replace("oops", "60"))
    nodes = (
        """
  - type: route
    name: split
    input: orders
    config: { conditions: { many: amount.to_int() / qty > 3 }, default: few }
"""
        + output("many", "split.many")
        + output("few", "split.few")
    )
    bench.run(pipeline(nodes))
    [letter] = bench.letters()
    assert letter["_cxl_dlq_stage"] == "route_eval" and letter["order_id"] == "3"


def test_distinct_keeps_the_first_seen_and_emit_each_fans_out(bench: Any) -> None:
    bench.file("orders.csv", ORDERS.replace("oops", "60"))
    nodes = (
        transform("once", "orders", "distinct by customer")
        + transform("lines", "once", "emit each n in [1, 2] {\n  emit line = n * 10\n}")
        + output("out", "lines", ", mapping: [customer, line], include_unmapped: false")
    )
    bench.run(pipeline(nodes))
    assert bench.text("out.csv").splitlines()[1:] == [
        "ann,10", "ann,20", "bob,10", "bob,20", '"c, d",10', '"c, d",20', "eve,10", "eve,20",
    ]  # fmt: skip


def test_windows_and_sorting(bench: Any) -> None:
    bench.file("orders.csv", ORDERS.replace("oops", "60"))
    more = "\n      analytic_window: { group_by: [day], sort_by: [{ field: amount, order: desc }] }"
    nodes = transform("ranked", "orders", "emit place = $window.row_number()", more)
    nodes += output("out", "ranked", ", mapping: [day, order_id, place], include_unmapped: false")
    nodes += output(
        "sorted",
        "ranked",
        ", sort_order: [{ field: amount, order: desc }], mapping: [order_id], include_unmapped: false",
    )
    bench.run(pipeline(nodes))
    assert bench.text("out.csv").splitlines()[1:] == [
        "2024-01-01,1,1", "2024-01-02,2,1", "2024-01-02,3,2", "2024-01-03,4,1", "2024-01-03,5,2",
    ]  # fmt: skip
    assert bench.text("sorted.csv").split() == ["order_id", "4", "2", "1", "3", "5"]


def test_validations_and_their_messages(bench: Any) -> None:
    bench.file("orders.csv", ORDERS.replace("oops", "60"))
    more = """
      validations:
        - { field: qty, check: positive }
        - { name: known, check: 'customer != "eve"', message: unknown customer }"""
    bench.run(pipeline(transform("checked", "orders", "emit ok = true", more) + output("out", "checked")))
    first, second = bench.letters()
    assert first["_cxl_dlq_error_category"] == second["_cxl_dlq_error_category"] == "validation_failure"
    assert first["_cxl_dlq_triggering_field"] == "qty" and first["_cxl_dlq_triggering_value"] == "0"
    assert "unknown customer" in second["_cxl_dlq_error_detail"] and second["order_id"] == "5"


def test_variables_of_the_pipeline_the_file_and_the_record(bench: Any) -> None:
    bench.file("a.csv", "id,n\n1,5\n2,6\n")
    bench.file("b.csv", "id,n\n3,7\n")
    text = """
pipeline: { name: test, vars: { factor: { type: int, default: 3 } } }
nodes:
  - { type: source, name: all, config: { type: csv, glob: "*.csv", schema: { id: int, n: int } } }
  - type: transform
    name: write
    input: all
    config:
      declares:
        - { name: last, scope: pipeline, type: int }
        - { name: last_of_file, scope: source, type: int }
        - { name: own, scope: record, type: int }
      cxl: |
        emit $pipeline.last = n
        emit $source.last_of_file = n
        emit $record.own = n * $vars.factor
  - type: transform
    name: read
    input: write
    config:
      cxl: |
        emit last = $pipeline.last
        emit of_file = $source.last_of_file
        emit own = $record.own
        emit at = $source.file + ":" + $source.row.to_string()
        emit total = $source.count
  - { type: output, name: out, input: read, config: { type: csv, path: out/out.csv, include_unmapped: false } }
"""
    bench.run(text)
    assert bench.text("out/out.csv").splitlines()[1:] == ["7,6,15,a.csv:1,3", "7,6,18,a.csv:2,3", "7,7,21,b.csv:3,3"]


def test_each_file_has_groups_of_its_own(bench: Any) -> None:
    bench.file("in/a.csv", "k,n\nx,0.1\ny,0.2\nx,0.2\n")
    bench.file("in/b.csv", "k,n\nx,0.7\n")
    text = """
pipeline: { name: test }
nodes:
  - { type: source, name: all, config: { type: csv, glob: "in/*.csv", schema: { k: string, n: float } } }
  - { type: aggregate, name: sums, input: all, config: { group_by: [k], cxl: "emit total = sum(n)" } }
  - { type: output, name: out, input: sums, config: { type: json, path: out.ndjson, options: { format: ndjson } } }
"""
    bench.run(text)
    rows = [json.loads(line) for line in bench.text("out.ndjson").splitlines()]
    assert rows == [{"k": "x", "total": 0.1 + 0.2}, {"k": "y", "total": 0.2}, {"k": "x", "total": 0.7}]


def test_an_aggregate_of_nothing_is_one_record(bench: Any) -> None:
    bench.file("orders.csv", "order_id,customer,amount,qty,day\n")
    nodes = """
  - type: aggregate
    name: all
    input: orders
    config: { group_by: [], cxl: "emit n = count(*)\\nemit s = sum(qty)" }
""" + output("out", "all")
    bench.run(pipeline(nodes))
    assert bench.text("out.csv") == "n,s\n0,\n"


def test_too_many_failures_stop_the_run(bench: Any) -> None:
    bench.file("orders.csv", ORDERS)
    bench.file("out.csv", "old\n")
    handling = "error_handling: { strategy: continue, dlq: { path: dead.csv, max_rate: 0.1, min_records: 5 } }\n"
    with pytest.raises(ClinkerError) as caught:
        bench.run(pipeline(output("out", "orders"), handling=handling))
    assert caught.value.exit_code == 3 and caught.value.diagnostics[0].code == "E315"
    assert bench.text("out.csv") == "old\n" and not (bench.folder / "dead.csv").exists()


def test_dead_letters_of_one_source_in_a_file_of_its_own(bench: Any) -> None:
    bench.file("orders.csv", ORDERS)
    handling = (
        "error_handling: { strategy: continue, dlq: { path: dead.csv, per_source: { orders: { path: own.csv } } } }\n"
    )
    bench.run(pipeline(output("out", "orders"), handling=handling))
    assert len(bench.letters("own.csv")) == 1 and not (bench.folder / "dead.csv").exists()


def test_undeclared_columns_travel_to_the_output(bench: Any) -> None:
    bench.file("orders.csv", "id,extra,city\n1,foo,Paris\n")
    text = """
pipeline: { name: test }
nodes:
  - { type: source, name: s, config: { type: csv, path: orders.csv, schema: { id: int } } }
  - { type: output, name: out, input: s, config: { type: json, path: out.json } }
"""
    bench.run(text)
    assert json.loads(bench.text("out.json")) == [{"id": 1, "extra": "foo", "city": "Paris"}]


def test_split_files_and_names(bench: Any) -> None:
    bench.file("orders.csv", ORDERS.replace("oops", "60"))
    nodes = output("out", "orders", ", split: { max_records: 2 }")
    nodes += output("by_day", "orders", ", split: { max_records: 1, group_key: day }")
    columns = "exclude: [day, customer], if_exists: unique_suffix, unique_suffix_width: 2"
    split = "split: { max_bytes: 50, group_key: day, oversize_group: error }"
    nodes += (
        "\n  - { type: output, name: p, input: orders, "
        f'config: {{ type: parquet, path: "p{{n:-v:}}.parquet", {columns}, {split} }} }}'
    )
    bench.file("p-v01_0002.parquet", "not mine")
    bench.file("p_0002.parquet", "not mine")
    bench.run(pipeline(nodes))
    # Three numbers of eight bytes each: a file is full after three records, and ends with the day.
    names = ["p_0001", "p-v02_0002"]
    tables = [pq.read_table(bench.folder / f"{name}.parquet") for name in names]
    assert [table.column("order_id").to_pylist() for table in tables] == [[1, 2, 3], [4, 5]]
    assert bench.spark.read.parquet(str(bench.folder / "p_0001.parquet")).columns == ["order_id", "amount", "qty"]
    assert bench.text("p_0002.parquet") == "not mine"
    counts = [len(bench.text(f"out_{i:04}.csv").splitlines()) for i in (1, 2, 3)]
    assert counts == [3, 3, 2]
    days = [{line.split(",")[-1] for line in bench.text(f"by_day_{i:04}.csv").splitlines()[1:]} for i in (1, 2, 3)]
    assert days == [{"2024-01-01"}, {"2024-01-02"}, {"2024-01-03"}]


def test_one_output_for_each_input_file(bench: Any) -> None:
    bench.file("in/a.csv", "k\nx\ny\n")
    bench.file("in/b.csv", "k\nz\n")
    text = """
pipeline: { name: test }
nodes:
  - { type: source, name: all, config: { type: csv, glob: "in/*.csv", schema: { k: string } } }
  - { type: output, name: out, input: all, config: { type: csv, path: "out/{source_file}-copy.csv" } }
  - { type: output, name: p, input: all, config: { type: parquet, path: "out/{source_file}.parquet" } }
"""
    bench.run(text)
    tables = [pq.read_table(bench.folder / f"out/{name}.parquet").to_pydict() for name in "ab"]
    assert tables == [{"k": ["x", "y"]}, {"k": ["z"]}]
    assert bench.text("out/a-copy.csv") == "k\nx\ny\n" and bench.text("out/b-copy.csv") == "k\nz\n"


def test_other_formats_out(bench: Any) -> None:
    bench.file("orders.csv", ORDERS.replace("oops", "60"))
    nodes = """
  - type: output
    name: x
    input: orders
    config: { type: xml, path: out.xml, mapping: [order_id], include_unmapped: false }
  - { type: output, name: p, input: orders, config: { type: parquet, path: out.parquet } }
  - type: output
    name: f
    input: orders
    config:
      type: fixed_width
      path: out.txt
      schema: [{ name: order_id, type: int, width: 4 }, { name: customer, type: string, width: 5 }]
""" + output("folder/", "orders").replace("folder/.csv", "folder/").replace("name: folder/", "name: folder")
    bench.run(pipeline(nodes))
    assert bench.text("out.xml").startswith("<Root><Record><order_id>1</order_id></Record><Record><order_id>2<")
    assert bench.text("out.xml").endswith("</Record></Root>\n")
    assert bench.text("out.txt").splitlines()[0] == "   1ann  "
    assert pq.read_table(bench.folder / "out.parquet").column("order_id").to_pylist() == [1, 2, 3, 4, 5]
    assert bench.text("folder/part-00000.csv").startswith("order_id,")


def test_compositions_are_sealed_and_configured(bench: Any) -> None:
    bench.file("orders.csv", ORDERS.replace("oops", "60"))
    bench.file(
        "keep.comp.yaml",
        """
_compose:
  name: keep
  inputs: { rows: { schema: { amount: float } } }
  outputs: { kept: filtered }
  config_schema: { least: { type: float, default: 0.0 } }
nodes:
  - { type: transform, name: filtered, input: rows, config: { cxl: "filter amount >= $config.least" } }
""",
    )
    nodes = (
        """
  - { type: composition, name: large, use: keep.comp.yaml, input: orders, config: { least: 50.0 } }
  - { type: composition, name: medium, use: keep.comp.yaml, inputs: { rows: orders }, config: { least: 10.0 } }
"""
        + output("large_out", "large")
        + output("medium_out", "medium.kept")
    )
    bench.run(pipeline(nodes))
    assert [line[0] for line in bench.text("large_out.csv").splitlines()[1:]] == ["2", "4"]
    assert [line[0] for line in bench.text("medium_out.csv").splitlines()[1:]] == ["1", "2", "4"]


def test_validations_that_warn_and_log_lines(bench: Any, monkeypatch: Any) -> None:
    bench.file("orders.csv", ORDERS)
    more = """
      validations: [{ field: qty, check: positive, severity: warn }]
      log:
        - { level: info, when: before_transform, message: begins }
        - { level: info, when: per_record, every: 2, message: one, fields: [order_id, customer] }
        - { level: info, when: per_record, every: 1, message: ann, condition: 10 / qty < 3 and customer == "ann" }
        - { level: warn, when: on_error, message: some failed }"""
    text = pipeline(transform("t", "orders", "emit u = amount.to_int() / (qty - 4)", more) + output("out", "t"))
    bench.file("pipeline.yaml", text)
    monkeypatch.setattr(record_log, "MOST_LINES", 1)
    monkeypatch.setattr(record_log, "_BLOCK_BITS", 1)
    told: list[tuple[str, Any]] = []
    report = run(
        prepare(bench.folder / "pipeline.yaml"),
        bench.spark,
        Options(),
        lambda event, details: told.append((details["message"], details.get("fields"))) if event == "log" else None,
    )
    assert [w.code for w in report.warnings] == ["W017"] and report.warnings[0].message.startswith("1 record(s)")
    # The record that cannot be read does not come in, and a condition that fails (10 / 0) is not true.
    assert told == [
        ("begins", None),
        ("one", {"order_id": "1", "customer": "ann"}),
        ("one: and 1 more records", None),
        ("ann", {}),
        ("some failed (1 records)", None),
    ]
    assert len(bench.letters()) == 2


@pytest.mark.parametrize("split", [1 << 20, 12])
def test_interleaved_inputs_take_turns_whatever_happened_to_them(bench: Any, split: int) -> None:
    bench.file("a.csv", "id\n" + "".join(f"{i}\n" for i in range(1, 8)))
    bench.file("b.csv", "id\n" + "".join(f"{i}\n" for i in range(11, 15)))
    text = """
pipeline: { name: test }
nodes:
  - { type: source, name: a, config: { type: csv, path: a.csv, schema: { id: int } } }
  - { type: source, name: b, config: { type: csv, path: b.csv, schema: { id: int } } }
  - { type: transform, name: late, input: a, config: { cxl: filter id >= 4 } }
  - { type: aggregate, name: groups, input: b, config: { group_by: [id], cxl: "" } }
  - { type: merge, name: mixed, inputs: [late, groups], config: { mode: interleave } }
  - { type: output, name: out, input: mixed, config: { type: csv, path: out.csv } }
"""
    with partitioned(bench.spark, 3, True, split):
        bench.run(text)
    assert bench.text("out.csv").split() == ["id", "4", "11", "5", "12", "6", "13", "7", "14"]


def test_what_no_record_can_reach_is_empty(bench: Any) -> None:
    """Spark leaves such a branch out of its plan, counts and all."""
    bench.file("orders.csv", ORDERS.replace("oops", "60"))
    nodes = (
        transform("none", "orders", "filter 1 == 2\nemit u = amount.to_int() / qty")
        + """
  - type: route
    name: never
    input: none
    config: { conditions: { a: 1 == 2 }, default: b }
"""
        + output("a", "never.a")
        + output("b", "never.b")
    )
    report = bench.run(pipeline(nodes))
    assert [o.records for o in report.outputs] == [0, 0] and report.exit_code == 0
    assert bench.text("a.csv") == bench.text("b.csv") == "order_id,customer,amount,qty,day,u\n"
