"""What a run says about its records, and what it does when two of its numbers differ."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.ledger import Law, count, solve
from clinker_spark.plan.nodes.base import StreamRef
from clinker_spark.plan.nodes.transform import TransformPlan
from clinker_spark.plan.prepare import prepare
from clinker_spark.plan.stages import Letters
from clinker_spark.report.summary import print_summary
from clinker_spark.runtime.reject import dead_letters, source_letters
from clinker_spark.runtime.run import accounting, state
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.runtime.run.state import RunState
from clinker_spark.spark.build import builder as build
from clinker_spark.spark.build import metrics
from clinker_spark.spark.fragments import runner
from clinker_spark.spark.scan.request import SourceFile
from clinker_spark.spark.session.small_inputs import SETTING, SMALL

LETTERS = "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"
PARQUET = """
pipeline: { name: test }
nodes:
  - { type: source, name: orders, config: { type: parquet, path: in.parquet, schema: { id: int, q: "nullable(int)" } } }
  - { type: output, name: out, input: orders, config: { type: parquet, path: out.parquet } }
"""
CSV = """
pipeline: { name: test }
nodes:
  - { type: source, name: orders, config: { type: csv, path: in.csv, schema: { id: int, q: int } } }
  - { type: transform, name: paid, input: orders, config: { cxl: "filter q > 1\\nemit share = 100 / (q - 5)" } }
  - { type: output, name: out, input: paid, config: { type: csv, path: out.csv } }
"""
ROWS = "id,q\n1,2\n2,1\nx,3\n4,5\n5,9\n6,2\n"


def parquet(bench: Any, rows: dict[str, list[Any]]) -> None:
    pq.write_table(pa.table(rows), bench.folder / "in.parquet")


def before_output(pipeline: str, nodes: str, last: str) -> str:
    """The pipeline with more nodes, the last of which is written."""
    start, end = pipeline.split("  - { type: output, name: out, input: ")
    return f"{start}{nodes}  - {{ type: output, name: out, input: {last},{end.split(',', 1)[1]}"


def numbers(report: Any) -> dict[str, tuple[Any, ...]]:
    return {node.name: (node.took, node.passed, node.dropped, node.failed) for node in report.nodes}


def refused(bench: Any, pipeline: str, outputs: tuple[str, ...] = ("out.csv", "dead.csv")) -> str:
    """The message of a run whose numbers differ; its outputs stay as they were."""
    for name in outputs:
        bench.file(name, "old")
    with pytest.raises(ClinkerError) as caught:
        bench.run(pipeline, force=True)
    assert {d.code for d in caught.value.diagnostics} == {"E412"} and caught.value.exit_code == 4
    assert [bench.text(name) for name in outputs] == ["old"] * len(outputs)
    assert bench.left_over() == []
    return "; ".join(d.message for d in caught.value.diagnostics)


def test_a_null_in_a_parquet_column_that_has_none_is_a_dead_letter(bench: Any) -> None:
    parquet(bench, {"id": [1, None, 3], "q": [1, 2, 3]})
    report = bench.run(PARQUET + LETTERS)
    assert report.exit_code == 2 and len(bench.letters()) == 1
    assert str(report.balances[0]) == "3 read = 2 written + 1 dead letters"
    assert pq.read_table(bench.folder / "out.parquet")["id"].to_pylist() == [1, 3]
    with pytest.raises(ClinkerError) as caught:
        bench.run(PARQUET, force=True)
    assert caught.value.diagnostics[0].code == "E409"


def test_a_query_between_parquet_files_keeps_what_fails_in_it(bench: Any) -> None:
    parquet(bench, {"id": [1, 2, 3], "q": [1, 0, 3]})
    config = "{ query: 'from o in orders select { s: 6 / o.q }' }"
    query = f"  - {{ type: query, name: share, inputs: [orders], config: {config} }}\n"
    report = bench.run(before_output(PARQUET, query, "share") + LETTERS)
    assert report.exit_code == 2 and len(bench.letters()) == 1
    assert numbers(report)["share"] == (3, 2, {}, 1)


def test_the_stage_of_dead_letters_is_always_there(bench: Any) -> None:
    bench.file("pipeline.yaml", PARQUET.replace("id: int", 'id: "nullable(int)"'))
    assert any(isinstance(stage, Letters) for stage in prepare(bench.folder / "pipeline.yaml").facts.stages)


def test_an_aggregate_whose_rows_and_groups_can_fail_counts_both(bench: Any) -> None:
    """Both are set aside at one node; the second count once stood in the place of the first, which was lost."""
    bench.file("in.csv", "id,q\n1,0\n2,1\n2,1\n3,4\n")
    cxl = 'cxl: "emit t = sum(10 / q)\\nemit s = 1 / (count(*) - 2)"'
    text = f"""
pipeline: {{ name: test }}
nodes:
  - {{ type: source, name: orders, config: {{ type: csv, path: in.csv, schema: {{ id: int, q: int }} }} }}
  - {{ type: aggregate, name: sums, input: orders, config: {{ group_by: [id], {cxl} }} }}
  - {{ type: output, name: out, input: sums, config: {{ type: csv, path: out.csv }} }}
  - {{ type: output, name: more, input: sums, config: {{ type: json, path: more.json }} }}
"""
    report = bench.run(text + LETTERS)
    assert numbers(report)["sums"] == (4, 1, {}, 2)
    assert sorted(letter["_cxl_dlq_error_category"] for letter in bench.letters()) == [
        "aggregate_finalize",
        "aggregate_type_error",
    ]


def test_numbers_in_the_report_the_events_and_the_summary(bench: Any) -> None:
    from rich.console import Console

    bench.file("in.csv", ROWS)
    events: list[tuple[str, dict[str, Any]]] = []
    bench.file("pipeline.yaml", CSV + LETTERS)
    report = run(prepare(bench.folder / "pipeline.yaml"), bench.spark, None, lambda *event: events.append(event))
    assert numbers(report) == {
        "orders": (6, 5, {}, 1),
        "paid": (5, 3, {"filter": 1}, 1),
        "out": (3, 3, {}, 0),
    }
    line = "6 read = 3 written + 2 dead letters + 1 filtered out by 'paid'"
    assert [str(balance) for balance in report.balances] == [line]
    shown = io.StringIO()
    print_summary(report, Console(file=shown, width=200), 1.0)
    assert f"orders: {line}" in shown.getvalue()
    dropped = [{"node": "paid", "reason": "filter", "records": 1}]
    balance = {"sources": ["orders"], "read": 6, "written": 3, "dead_letters": 2, "dropped": dropped}
    assert ("balanced", balance) in events and report.as_dict()["balances"] == [balance]
    assert report.as_dict()["nodes"][1]["dropped"] == {"filter": 1}


@pytest.mark.parametrize(
    ("kind", "cxl"),
    [
        ("csv", "emit s = 1 / (q - 5)"),  # lines are cut out of the output
        ("csv", "filter q > 1\nemit s = 1 / (q - 5)"),  # written again by readers that leave groups out
        ("json", "filter q > 1\nemit s = 1 / (q - 5)"),  # written again without what failed
    ],
)
def test_what_is_held_back_with_a_failure_is_part_of_the_sum(bench: Any, kind: str, cxl: str) -> None:
    rows = [("A", 2), ("A", 5), ("A", 1), ("B", 1), ("B", 7), ("C", 2), ("C", None), ("D", 4), ("A", 8)]
    if kind == "csv":
        bench.file("in.csv", "g,q\n" + "".join(f"{g},{'x' if q is None else q}\n" for g, q in rows))
    else:
        bench.file("in.csv", "".join(json.dumps({"g": g, "q": q}) + "\n" for g, q in rows))
    config = f"type: {kind}, path: in.csv, correlation_key: [g], schema: {{ g: string, q: int }}"
    text = f"""
pipeline: {{ name: test }}
nodes:
  - {{ type: source, name: orders, config: {{ {config} }} }}
  - {{ type: transform, name: paid, input: orders, config: {{ cxl: {json.dumps(cxl)} }} }}
  - {{ type: output, name: out, input: paid, config: {{ type: csv, path: out.csv }} }}
"""
    report = bench.run(text + LETTERS)
    [balance] = report.balances
    left_out = 2 if "filter" in cxl else 0  # one of A, one of B
    assert (balance.read, balance.written, balance.dead_letters) == (9, 3 - left_out // 2, 6 - left_out // 2)
    assert balance.dropped == ([("paid", "filter", left_out)] if left_out else [])
    assert (
        len(bench.text("out.csv").splitlines()) - 1 == balance.written and len(bench.letters()) == balance.dead_letters
    )


def test_filters_are_counted_whatever_their_conditions_cost(bench: Any) -> None:
    """Cheap conditions are evaluated twice, others once: on nulls, beside texts that look costly, after failures."""
    bench.file("in.csv", "id,q,note\n1,,ok\n2,1,ok\n3,7,CAST(\n4,0,ok\n5,7,ok\n6,9,ok\n7,2,ok\n8,3,ok\n")
    programs = {
        "cheap": "filter q > 1 or q < 1",
        "quoted": 'filter note != "CAST("',
        "costly": "filter id.to_string().length() < 2 and q != 2",
        "failing": "let share = 10 / q\nfilter share > 1",
    }
    text, before = CSV.replace("q: int", 'q: "nullable(int)", note: string'), "orders"
    nodes = ""
    for name, cxl in programs.items():
        nodes += f"  - {{ type: transform, name: {name}, input: {before}, config: {{ cxl: {json.dumps(cxl)} }} }}\n"
        before = name
    text = "".join(line for line in text.splitlines(True) if "name: paid" not in line)
    report = bench.run(before_output(text, nodes, before) + LETTERS)
    assert numbers(report) == {
        "orders": (8, 8, {}, 0),
        "cheap": (8, 6, {"filter": 2}, 0),
        "quoted": (6, 5, {"filter": 1}, 0),
        "costly": (5, 4, {"filter": 1}, 0),
        "failing": (4, 1, {"filter": 2}, 1),
        "out": (1, 1, {}, 0),
    }
    assert bench.text("out.csv").splitlines()[1:] == ["8,3,ok"] and len(bench.letters()) == 1


def test_names_of_nodes_and_checks_do_not_get_in_the_way_of_counts(bench: Any) -> None:
    """A check that is called as a count is, a node as another with what it counts, and two inputs of one node."""
    bench.file("in.csv", ROWS)
    checks = "validations: [{ check: 'q < 9', name: filter, severity: warn, message: large }]"
    query = "from a in low join b in high on 10 / a.id - a.id == 10 / b.id - b.id select { id: a.id }"
    text = f"""
pipeline: {{ name: test }}
nodes:
  - {{ type: source, name: a, config: {{ type: csv, path: in.csv, schema: {{ id: int, q: int }} }} }}
  - {{ type: transform, name: t, input: a, config: {{ cxl: "filter q > 1", {checks} }} }}
  - {{ type: route, name: r, input: t, config: {{ conditions: {{ low: q < 3 }}, default: high }} }}
  - {{ type: query, name: k, inputs: [r.low, r.high], config: {{ query: "{query}" }} }}
  - {{ type: output, name: "t: filter", input: k, config: {{ type: csv, path: out.csv }} }}
  - {{ type: output, name: "a: read", input: r.high, config: {{ type: csv, path: more.csv }} }}
"""
    report = bench.run(text + LETTERS)
    assert numbers(report)["t"] == (5, 4, {"filter": 1}, 0)
    assert numbers(report)["a: read"] == (2, 2, {}, 0)
    assert [warning.code for warning in report.warnings] == ["W017"]


def test_a_branch_that_nothing_reads_is_a_drop_of_its_route(bench: Any) -> None:
    bench.file("in.csv", ROWS)
    route = (
        "  - { type: route, name: r, input: paid, config: { conditions: { low: q < 3, mid: q < 8 }, default: high } }\n"
    )
    report = bench.run(before_output(CSV, route, "r.low") + LETTERS)
    assert numbers(report)["r"] == (3, 2, {"branch that nothing reads": 1}, 0)
    assert report.balances[0].missing == 0


def test_long_runs_of_transforms_have_numbers_for_each(bench: Any) -> None:
    bench.file("in.csv", "id,q\n" + "".join(f"{i},{i}\n" for i in range(30)))
    nodes, last = "", "orders"
    for i in range(20):
        nodes += f"  - {{ type: transform, name: t{i}, input: {last}, config: {{ cxl: 'emit x = 1 / (q - {i})' }} }}\n"
        last = f"t{i}"
    text = CSV.split("  - { type: transform")[0] + nodes
    text += f"  - {{ type: output, name: out, input: {last}, config: {{ type: csv, path: out.csv }} }}\n"
    report = bench.run(text + LETTERS)
    found = numbers(report)
    assert [found[f"t{i}"] for i in range(20)] == [(30 - i, 29 - i, {}, 1) for i in range(20)]
    assert str(report.balances[0]) == "30 read = 10 written + 20 dead letters"


def test_a_filter_after_parquet_is_still_left_to_the_files(bench: Any) -> None:
    parquet(bench, {"id": [1, 2, 3], "q": [1, 2, 3]})
    few = '  - { type: transform, name: few, input: orders, config: { cxl: "filter q > 2" } }\n'
    text = before_output(PARQUET.replace("id: int", 'id: "nullable(int)"'), few, "few")
    report = bench.run(text)
    assert numbers(report)["few"] == (3, 1, {"filter": 2}, 0)
    assert str(report.balances[0]) == "3 read = 1 written + 2 filtered out by 'few'"
    found = RunState(prepare(bench.folder / "pipeline.yaml"), bench.spark, Options(), lambda *_: None)
    found.inputs.files = {"orders": (SourceFile(str(bench.folder / "in.parquet"), "in.parquet"),)}
    plan = found.builder.stream(StreamRef("few")).frame._jdf.queryExecution().executedPlan().toString()
    assert "GreaterThan(q,2)" in plan


# ---------------------------------------------------------------- differences


def test_a_dead_letter_that_is_not_there_stops_the_run(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.file("in.csv", ROWS)
    save = dead_letters.save
    monkeypatch.setattr(dead_letters, "save", lambda frame, place: save(frame.limit(1), place))
    assert refused(bench, CSV + LETTERS) == "2 records failed, and there are 1 dead letters"


def test_a_letter_that_a_reader_lost_stops_the_run(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.file("in.csv", ROWS.replace("4,5", "y,5"))
    read = source_letters.read_kept
    monkeypatch.setattr(source_letters, "read_kept", lambda path: read(path).slice(0, 1))
    assert "'orders' has 6 records, and 5 were given or kept aside" in refused(bench, CSV + LETTERS)


@pytest.mark.parametrize("correlated", [False, True])
def test_a_record_that_gets_lost_on_the_way_stops_the_run(
    bench: Any, monkeypatch: pytest.MonkeyPatch, correlated: bool
) -> None:
    bench.file("in.csv", "id,q\n1,2\n2,1\n4,4\n5,9\n6,2\n")
    operator_of = build.operator_of

    def losing(builder: Any, node: TransformPlan) -> Any:
        stream: Any = operator_of(TransformPlan)(builder, node)
        return stream.over(stream.frame.where("q <> 9"))

    monkeypatch.setattr(build, "operator_of", lambda plan: losing if plan is TransformPlan else operator_of(plan))
    text = CSV.replace("name: test", "name: test, engine: spark")
    text = text.replace("path: in.csv", "path: in.csv, correlation_key: [id]") if correlated else text
    assert refused(bench, text + LETTERS) == "'out' takes 4 records, and 3 were written, failed or left out"


def test_a_line_that_a_worker_loses_stops_the_run(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small inputs are computed by this process, so that it can be made to lose one."""
    bench.file("in.csv", "id,q\n1,2\n2,1\n4,4\n5,9\n6,2\n")
    lines_of = runner.lines_of

    def losing(frame: Any, lines: Any, end: str) -> Any:
        made, unfit = lines_of(frame, lines, end)
        return made.head(len(made) - 1), unfit

    monkeypatch.setattr(runner, "lines_of", losing)
    text = CSV.replace("name: test", "name: test, engine: vector")
    bench.spark.conf.set(SETTING, str(SMALL))
    try:
        assert refused(bench, text + LETTERS) == "'out' takes 4 records, and 3 were written, failed or left out"
    finally:
        bench.spark.conf.set(SETTING, "0")


def test_counts_that_were_wrong_are_counted_again(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when Spark ran a task twice: all numbers of a run without and one with failures are doubled."""
    observed = metrics._observed

    def doubled(*given: Any, **how: Any) -> dict[str, int]:
        return {name: 2 * number for name, number in observed(*given, **how).items()}

    monkeypatch.setattr(metrics, "_observed", doubled)
    bench.file("in.csv", ROWS)
    report = bench.run(CSV + LETTERS)
    assert numbers(report)["paid"] == (5, 3, {"filter": 1}, 1)
    assert report.outputs[0].records == 3 and len(bench.letters()) == 2
    monkeypatch.setattr(
        metrics, "_observed", lambda *given, **how: dict.fromkeys(observed(*given, **how), 0) | {"rows": 0}
    )
    report = bench.run(CSV + LETTERS, force=True)
    assert report.outputs[0].records == 3 and len(bench.letters()) == 2


def test_readers_that_cannot_say_what_they_gave(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.file("in.csv", ROWS)
    monkeypatch.setattr(accounting, "final_count", lambda *_: None)
    assert numbers(bench.run(CSV + LETTERS))["orders"] == (6, 5, {}, 1)
    monkeypatch.setattr(state, "is_local", lambda _: False)  # as on a cluster
    report = bench.run(CSV + LETTERS, force=True)
    assert numbers(report)["orders"] == (6, 5, {}, 1) and report.balances[0].missing == 0


def test_failures_before_a_join_that_spark_need_not_run(bench: Any, spark: Any) -> None:
    """With nothing to find, adaptive execution leaves the driver out. Its bad records are found nevertheless."""
    bench.file("in.csv", ROWS)
    bench.file("none.csv", "id,n\n")
    other = "  - { type: source, name: none, config: { type: csv, path: none.csv, schema: { id: int, n: string } } }\n"
    config = 'where: "o.id == b.id", match: first, on_miss: skip, propagate_ck: driver, cxl: "emit id = o.id"'
    other += f"  - {{ type: combine, name: found, input: {{ o: paid, b: none }}, config: {{ {config} }} }}\n"
    text = CSV.replace("  - { type: output", other + "  - { type: output").replace(
        "input: paid, config: { type", "input: found, config: { type"
    )
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    try:
        report = bench.run(text + LETTERS)
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "false")
    assert len(bench.letters()) == report.dead_letters == 2
    assert numbers(report)["found"][1:] == (0, {"on_miss: skip": 3}, 0)


def test_a_query_that_stops_reading_is_no_difference(bench: Any) -> None:
    bench.file("in.csv", "id,q\n" + "".join(f"{i},{i}\n" for i in range(50)))
    config = "{ query: 'from o in paid take 3 select { id: o.id }' }"
    query = f"  - {{ type: query, name: few, inputs: [paid], config: {config} }}\n"
    report = bench.run(before_output(CSV, query, "few") + LETTERS)
    assert report.outputs[0].records == 3 and numbers(report)["few"][1] == 3


# ---------------------------------------------------------------- laws


def test_unknown_counts_follow_from_others_and_are_checked_then() -> None:
    routed = Law("r", "takes {left}, passes {right}", count("read"), count("low") + count("high"))
    low = Law("o", "takes {left}, wrote {right}", count("low"), count("o: rows"))
    high = Law("p", "takes {left}, wrote {right}", count("high"), count("p: rows"))
    values, found = solve([routed, low, high], {"read": 5, "o: rows": 2, "p: rows": 3})
    assert values["low"] == 2 and values["high"] == 3 and not found
    _, found = solve([routed, low, high], {"read": 5, "o: rows": 2, "p: rows": 2})
    assert [(difference.node, difference.message) for difference in found] == [("r", "takes 5, passes 4")]
    _, found = solve([routed, low], {"read": 5, "o: rows": 6})
    assert "do not fit" in found[0].message
    assert solve([routed], {"read": 5}) == ({"read": 5}, [])
