"""Correlation groups in whole runs: what is held back with a failure, what is spared, and totals without it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain import explain
from clinker_spark.runtime.rollback.groups import Groups
from clinker_spark.runtime.run import outputs
from clinker_spark.runtime.run.files.assemble import cut_lines

HEAD = "pipeline: { name: demo }\nnodes:\n"


def source(name: str, key: str, columns: str) -> str:
    return f"""
  - type: source
    name: {name}
    config: {{ type: csv, path: {name}.csv, correlation_key: {key}, schema: {{ {columns} }} }}
"""


def transform(name: str, reads: str, cxl: str) -> str:
    body = "\n".join(f"        {line}" for line in cxl.splitlines())
    return f"  - type: transform\n    name: {name}\n    input: {reads}\n    config:\n      cxl: |\n{body}\n"


def aggregate(name: str, reads: str, group_by: str, cxl: str) -> str:
    body = "\n".join(f"        {line}" for line in cxl.splitlines())
    return (
        f"  - type: aggregate\n    name: {name}\n    input: {reads}\n"
        f"    config:\n      group_by: [{group_by}]\n      cxl: |\n{body}\n"
    )


def output(name: str, reads: str, more: str = "") -> str:
    return f"  - {{ type: output, name: {name}, input: {reads}, config: {{ type: csv, path: {name}.csv{more} }} }}\n"


def handling(more: str = "") -> str:
    return f"error_handling: {{ strategy: continue, dlq: {{ path: dead.csv }}{more} }}\n"


def kinds(letters: list[dict[str, str]]) -> Counter[tuple[str, str]]:
    return Counter((row["_cxl_dlq_error_category"], row["_cxl_dlq_trigger"]) for row in letters)


EMPLOYEES = source("staff", "employee_id", "employee_id: string, amount: string")


def test_a_group_is_held_back_as_a_whole_whatever_is_made_of_its_key(bench: Any) -> None:
    bench.file("staff.csv", "employee_id,amount\nA,100\nA,bad\nA,300\nB,400\nC,5\nC,6\n,7\n,bad\n")
    text = HEAD + EMPLOYEES
    text += transform("typed", "staff", 'emit employee_id = "hidden"\nemit n = amount.to_int()')
    text += transform("small", "typed", "filter n != 6") + output(
        "out", "small", ", mapping: [employee_id, n], exclude: [amount]"
    )
    report = bench.run(text + handling())
    assert report.exit_code == 2
    letters = bench.letters()
    assert kinds(letters)[("type_coercion_failure", "true")] == 2
    mine = [row for row in letters if row["employee_id"] == "A"]
    assert [(r["_cxl_dlq_source_row"], r["_cxl_dlq_trigger"], r["$ck.employee_id"]) for r in mine] == [
        ("1", "false", "A"),
        ("2", "true", "A"),
        ("3", "false", "A"),
    ]
    assert "correlated with failure in group employee_id=A" in mine[0]["_cxl_dlq_error_detail"]
    # The group of the empty text is one of two records: it is a value like any other.
    assert bench.text("out.csv") == "employee_id,n\nhidden,400\nhidden,5\n"
    assert not bench.left_over()


def test_groups_that_are_too_large_are_dead_letters(bench: Any) -> None:
    bench.file("staff.csv", "employee_id,amount\nA,1\nA,2\nA,3\nB,600\nA,4\nA,5\n")
    report = bench.run(HEAD + EMPLOYEES + output("out", "staff") + handling(", max_group_buffer: 3"))
    assert report.exit_code == 2
    letters = bench.letters()
    assert kinds(letters) == {("group_size_exceeded", "true"): 1, ("correlated", "false"): 4}
    assert letters[0]["_cxl_dlq_error_detail"] == "group employee_id=A has 5 records, more than 3"
    assert bench.text("out.csv") == "employee_id,amount\nB,600\n"
    assert report.rollback.rollback_cursors == {"staff": 4}


JSON_LINE = '{{"employee_id":"{}","amount":"{}"}}\n'


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_large_groups_are_noticed_while_records_are_read(
    bench: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    pattern, header = ("{},{}\n", "employee_id,amount\n") if kind == "csv" else (JSON_LINE, "")
    staff = EMPLOYEES.replace("type: csv", f"type: {kind}").replace("staff.csv", f"staff.{kind}")
    text = HEAD + staff + output("out", "staff") + handling(", max_group_buffer: 20000")
    keys = ["A" if i % 3 else f"B{i}" for i in range(30_100)]
    bench.file(f"staff.{kind}", header + "".join(pattern.format(key, i) for i, key in enumerate(keys)))
    report = bench.run(text)
    found = Counter((letter.category, letter.count) for letter in report.letters)
    assert found == {("group_size_exceeded", 1): 1, ("correlated", 20065): 1}

    def counted(*_: Any) -> bool:
        raise AssertionError("no group comes near the limit, and yet they are counted")

    monkeypatch.setattr("clinker_spark.runtime.rollback.groups.ops.has_large_group", counted)
    bench.file(f"staff.{kind}", header + "".join(pattern.format(f"A{i // 10}", i) for i in range(30_100)))
    report = bench.run(text)
    assert report.exit_code == 0 and report.outputs[0].records == 30_100


ORDERS = source("orders", "order_id", "order_id: string, dept: string, amount: string")
TYPED = transform("typed", "orders", "emit amount = amount.to_int()")
TOTALS = aggregate("totals", "typed", "dept", "emit dept = dept\nemit total = sum(amount)")


def test_totals_can_lose_the_whole_group(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    write = outputs.write_parts

    def noted(prepared: Any, folder: str) -> None:
        written.append(prepared.node.name)
        write(prepared, folder)

    monkeypatch.setattr(outputs, "write_parts", noted)
    bench.file("orders.csv", "order_id,dept,amount\nO1,HR,10\nO2,HR,20\nO3,HR,bad\nO3,HR,7\nO4,ENG,100\nO5,ENG,200\n")
    text = HEAD + ORDERS + TYPED + TOTALS + output("out", "totals") + output("lines", "typed")
    # That a scope of single records keeps the rest of the group is shown by example 24, and so are strict totals.
    bench.run(text + handling(", retraction_scope: group"))
    assert "O3" not in bench.text("lines.csv")
    assert bench.text("out.csv") == "dept,total\nHR,30\nENG,300\n"
    assert [row["_cxl_dlq_source_row"] for row in bench.letters()] == ["3", "4"]
    assert written == ["out", "out", "lines"]  # after the failure there was no reason to write the lines at first


def test_what_a_query_made_fails_alone(bench: Any) -> None:
    """A query says nothing of where its records come from: one that fails takes nothing back, and is left out."""
    bench.file("orders.csv", "order_id,dept,amount\nO1,HR,10\nO2,HR,20\nO3,ENG,bad\nO3,ENG,7\nO4,ENG,100\n")
    query = """
  - type: query
    name: made
    inputs: [typed]
    config:
      query: |
        from o in typed
        group by o.dept into g
        select { dept: g.key, total: sum(from x in g select x.amount) }
"""
    checked = transform("checked", "made", 'emit ok = if total < 60 then "low".to_int() else 1')
    text = HEAD + ORDERS + TYPED + query + checked + output("out", "checked") + output("lines", "typed")
    report = bench.run(text + handling())
    assert bench.text("out.csv") == "dept,total,ok\nENG,107,1\n"
    assert [line.split(",")[0] for line in bench.text("lines.csv").split()] == ["order_id", "O1", "O2", "O4"]
    letters = [(r["_cxl_dlq_source_row"], r["_cxl_dlq_stage"], r["_cxl_dlq_trigger"]) for r in bench.letters()]
    assert letters == [
        ("3", "transform:typed", "true"),
        ("4", "output:lines", "false"),
        ("", "transform:checked", "true"),
    ]
    assert report.exit_code == 2


def test_what_fails_after_the_totals_takes_back_what_they_were_made_of(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 'O1,HR,10\n"O2, ""x""",HR,20\nO3,OPS,bad\nO4,ENG,100\nO5,ENG,200\nO6,OPS,50\n'
    bench.file("orders.csv", "order_id,dept,amount\n" + rows)
    checked = transform("checked", "totals", 'emit ok = if total < 60 then "low".to_int() else 1')
    over = aggregate("over", "checked", "", "emit all = sum(total)")
    text = HEAD + ORDERS + TYPED + TOTALS + checked + over + output("out", "over")
    bench.run(text + handling())
    assert bench.text("out.csv") == "all\n300\n"
    letters = bench.letters()
    assert kinds(letters) == {("type_coercion_failure", "true"): 3, ("correlated", "false"): 3}
    assert {r["order_id"] for r in letters if r["_cxl_dlq_trigger"] == "false"} == {"O1", 'O2, "x"', "O6"}
    written = [line.split(",", 2)[2] for line in bench.text("dead.csv").splitlines()]
    monkeypatch.setattr("clinker_spark.runtime.reject.letter_writer.FEW_LETTERS", 0)  # more are written by Spark
    bench.run(text + handling())
    assert [line.split(",", 2)[2] for line in bench.text("dead.csv").splitlines()] == written


def test_totals_that_fail_only_without_what_was_taken_back_are_noticed(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What several outputs read is kept while they are written again; its failures count all the same."""
    kept: list[tuple[str, bool]] = []
    write = outputs.write_parts

    def noted(prepared: Any, folder: str) -> None:
        kept.append(
            (prepared.node.name, "InMemoryRelation" in prepared.frame._jdf.queryExecution().executedPlan().toString())
        )
        write(prepared, folder)

    monkeypatch.setattr(outputs, "write_parts", noted)
    bench.file("orders.csv", "order_id,dept,amount\nO1,OPS,50\nO2,OPS,70\nO3,ENG,100\nO4,ENG,200\n")
    risky = transform("risky", "typed", "emit q = 10 / (amount - 70)")
    checked = transform("checked", "totals", 'emit ok = if total < 60 then "low".to_int() else 1')
    over = aggregate("over", "checked", "", "emit all = sum(total)")
    text = HEAD + ORDERS + TYPED + risky + TOTALS + checked + over
    text += output("first", "over") + output("lines", "risky", ", exclude: [q]") + output("second", "over") + handling()
    before = len(bench.spark.sparkContext._jsc.getPersistentRDDs())  # other tests may have left some
    report = bench.run(text)
    assert bench.text("first.csv") == bench.text("second.csv") == "all\n300\n"
    assert bench.text("lines.csv") == "order_id,dept,amount\nO3,ENG,100\nO4,ENG,200\n"
    assert report.rollback.retraction["iterations"] == 2
    assert [(r["order_id"], r["_cxl_dlq_trigger"]) for r in bench.letters()] == [
        ("O1", "false"),
        ("O2", "true"),
        ("", "true"),
    ]
    assert kept[:2] == [("first", False), ("lines", False)]  # the third one waits for what is retracted
    assert kept[-3:] == [("first", True), ("lines", False), ("second", True)]
    assert "kept while outputs are written again: 'over'" in explain(prepare(bench.folder / "pipeline.yaml"), "text")
    assert len(bench.spark.sparkContext._jsc.getPersistentRDDs()) == before


def test_a_failure_of_one_source_spares_the_records_of_the_other(bench: Any) -> None:
    for name in ("a", "b"):
        bench.file(f"{name}.csv", "id,amt\n1,10\n2,20\n")
    columns = "id: int, amt: int"
    text = (
        HEAD
        + source("a", "id", columns)
        + source("b", "id", columns)
        + "  - { type: merge, name: m, inputs: [a, b] }\n"
    )
    text += transform("t", "m", 'emit r = if $source.name == "b" then 1 / (amt - amt) else amt') + output("out", "t")
    bench.run(text + handling())
    assert bench.text("out.csv") == "id,amt,r\n1,10,10\n2,20,20\n"
    assert [(r["_cxl_dlq_source_name"], r["_cxl_dlq_trigger"]) for r in bench.letters()] == [
        ("b", "true"),
        ("b", "true"),
    ]


def test_policies_decide_about_records_of_two_groups(bench: Any) -> None:
    bench.file("orders.csv", "order_id,customer,amount\nO1,C1,bad\nO1,C2,5\nO2,C1,6\nO3,C1,7\nO4,C2,8\n")
    bench.file("customers.csv", "customer,name\nC1,Ada\nC2,Bea\n")
    text = HEAD + source("orders", "order_id", "order_id: string, customer: string, amount: string")
    text += source("customers", "customer", "customer: string, name: string")
    text += """
  - type: combine
    name: both
    input: { o: orders, c: customers }
    config:
      where: o.customer == c.customer
      propagate_ck: all
      cxl: |
        emit id = o.order_id
        emit name = c.name
        emit amount = o.amount
"""
    text += transform("typed", "both", "emit n = amount.to_int()")
    only = ", mapping: [id], include_unmapped: false"
    text += output("any", "typed", only)
    for policy in ("all", "primary"):
        text += output(policy, "typed", f"{only}, correlation_fanout_policy: {policy}")
    bench.run(text + handling())
    assert bench.text("any.csv").split()[1:] == ["O4"]
    assert bench.text("all.csv").split()[1:] == ["O1", "O2", "O3", "O4"]
    assert bench.text("primary.csv").split()[1:] == ["O2", "O3", "O4"]


def test_streaming_does_not_go_with_retraction(tmp_path: Any) -> None:
    text = (
        HEAD
        + ORDERS
        + TYPED
        + TOTALS.replace("group_by:", "strategy: streaming\n      group_by:")
        + output("out", "totals")
    )
    (tmp_path / "p.yaml").write_text(text + handling())
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    assert [d.code for d in caught.value.diagnostics] == ["E15Y"]


def test_where_records_go_their_own_way_lines_are_cut_out_of_the_output(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clinker_spark.runtime.run.outputs.Outputs.write_again", None)  # nothing is written twice
    rows = "".join(f"{'ABCD'[i % 4]},{'bad' if i == 6 else i},n{i}\n" for i in range(12))
    bench.file("staff.csv", "employee_id,amount,note\n" + rows + "E\n,bad,x\n,13,y\n")
    text = HEAD + source("staff", "employee_id", "employee_id: string, amount: string, note: string")
    text += transform("typed", "staff", "emit n = amount.to_int()") + output("out", "typed", ", exclude: [amount]")
    report = bench.run(text + handling())
    kept = "".join(f"{'ABCD'[i % 4]},n{i},{i}\n" for i in range(12) if i % 4 != 2)
    assert bench.text("out.csv") == "employee_id,note,n\n" + kept
    assert report.outputs[0].records == 9 and report.rollback.retraction["output_rows_retracted_total"] == 3
    letters = bench.letters()
    assert [row["_cxl_dlq_source_row"] for row in letters] == ["3", "7", "11", "13", "14", "15"]
    assert [row["_cxl_dlq_trigger"] for row in letters] == ["false", "true", "false", "true", "true", "false"]
    assert [row["note"] for row in letters] == ["n2", "n6", "n10", "", "x", "y"]
    assert report.rollback.rollback_cursors == {"staff": 12}


def test_groups_of_two_keys_are_left_out_of_several_outputs(bench: Any) -> None:
    rows = ["1,2024-01-01,5", "1,2024-01-01,bad", "1,2024-01-02,8", "2,2024-01-01,9", "2,2024-01-01,3", "3,,4"]
    bench.file("staff.csv", "shop,day,amount\n" + "\n".join(rows) + "\n")
    text = HEAD + source("staff", "[shop, day]", "shop: int, day: { type: date, nullable: true }, amount: string")
    text += transform("typed", "staff", "emit n = amount.to_int()\nfilter n != 3")
    text += transform("parts", "typed", "emit each v in [n, n + 1] {\n  emit part = v\n}")
    text += output("all", "typed", ", exclude: [amount]") + output("parts_out", "parts", ", exclude: [day, amount, n]")
    bench.run(text + handling())
    assert bench.text("all.csv") == "shop,day,n\n1,2024-01-02,8\n2,2024-01-01,9\n3,,4\n"
    assert bench.text("parts_out.csv") == "shop,part\n1,8\n1,9\n2,9\n2,10\n3,4\n3,5\n"
    assert [(r["_cxl_dlq_source_row"], r["_cxl_dlq_trigger"]) for r in bench.letters()] == [
        ("1", "false"),
        ("2", "true"),
    ]


def test_lines_are_only_cut_where_records_are_lines(tmp_path: Path) -> None:
    first, second = tmp_path / "part-0", tmp_path / "part-1"
    first.write_bytes(b"a\nb\nc\n")
    second.write_bytes(b"d\ne\n")
    assert not cut_lines([first, second], np.array([1]), records=4)
    assert first.read_bytes() == b"a\nb\nc\n"
    assert cut_lines([first, second], np.array([0, 2, 4]), records=5)
    assert (first.read_bytes(), second.read_bytes()) == (b"b\n", b"d\n")


@pytest.mark.parametrize("block", [1, 2, 3, 5, 64])
def test_lines_are_cut_whatever_the_blocks_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr("clinker_spark.runtime.run.files.assemble._BLOCK", block)
    lines = [b"one\n", b"\n", b"three\n", b"4\n", b"five\n"]
    for dropped in ([], [0], [1, 2], [0, 1, 2, 3, 4], [2, 4], [3]):
        part = tmp_path / "part"
        part.write_bytes(b"".join(lines))
        assert cut_lines([part], np.array(dropped, dtype=np.int64), records=5)
        assert part.read_bytes() == b"".join(line for i, line in enumerate(lines) if i not in dropped)


ENDLESS = """
pipeline: { name: test }
nodes:
  - type: source
    name: s
    config: { type: csv, path: in.csv, correlation_key: id, schema: { id: int, shop: string, amount: int } }
  - { type: aggregate, name: totals, input: s, config: { group_by: [shop], cxl: emit total = sum(amount) } }
  - type: transform
    name: behind_the_best
    input: totals
    config: { analytic_window: { group_by: [] }, cxl: emit share = total / ($window.max(total) - total) }
  - { type: output, name: o, input: behind_the_best, config: { type: csv, path: o.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def test_a_failure_that_makes_the_next_one_ends_somewhere(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Groups, "most_iterations", 2)
    bench.file("in.csv", "id,shop,amount\n1,a,1\n2,b,2\n3,c,3\n4,d,4\n")
    with pytest.raises(ClinkerError) as caught:
        bench.run(ENDLESS)
    assert [d.code for d in caught.value.diagnostics] == ["E411"] and not (bench.folder / "o.csv").exists()
    assert bench.left_over() == []
