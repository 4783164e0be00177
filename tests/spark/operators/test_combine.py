"""Combines in whole runs: what fails, what is refused, and that order does not depend on how Spark joins."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from clinker_spark.plan.errors import PlanError
from clinker_spark.plan.passes.all import with_facts
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.errors import DataError
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.runtime.run.state import RunState
from clinker_spark.spark.build.passes import RunContext
from clinker_spark.spark.operators import combine

PIPELINE = """
pipeline: {{ name: demo }}
nodes:
  - type: source
    name: orders
    config: {{ type: csv, path: orders.csv, schema: {{ id: int, product: string, qty: int }} }}
  - type: source
    name: products
    config: {{ type: csv, path: products.csv, schema: {{ code: string, title: string, packs: int }} }}
  - type: combine
    name: both
    input: {input}
    config:
      where: {where}
      match: {match}
      on_miss: {on_miss}
      propagate_ck: driver
      cxl: {cxl}
{more}
  - type: output
    name: out
    input: both
    config: {{ type: {format}, path: out.txt }}
error_handling: {{ strategy: {strategy}, dlq: {{ path: dead.csv }} }}
"""
ORDERS = "id,product,qty\n1,A,10\n2,B,20\n3,Z,30\n4,A,40\n5,,50\n"
PRODUCTS = "code,title,packs\nA,Apple,5\nB,Bean,0\nA,Apricot,2\nC,Corn,1\n"
BODY = '"emit id = o.id\\nemit title = p.title"'


@pytest.fixture
def shop(bench: Any) -> Any:
    bench.file("orders.csv", ORDERS)
    bench.file("products.csv", PRODUCTS)
    return bench


def pipeline(**changes: str) -> str:
    usual = {
        "input": "{ o: orders, p: products }",
        "where": "o.product == p.code",
        "match": "first",
        "on_miss": "skip",
        "cxl": BODY,
        "more": "",
        "format": "csv",
        "strategy": "continue",
    }
    return PIPELINE.format(**{**usual, **changes})


def test_failures_of_the_program_are_dead_letters_of_the_driver(shop: Any) -> None:
    report = shop.run(pipeline(cxl='"emit id = o.id\\nemit boxes = o.qty / p.packs"'))
    assert report.exit_code == 2
    assert shop.text("out.txt") == "id,boxes\n1,2\n4,8\n"
    [letter] = shop.letters()
    assert letter["_cxl_dlq_error_category"] == "combine_output_row"
    assert letter["_cxl_dlq_stage"] == "combine:both"
    assert (letter["_cxl_dlq_source_name"], letter["_cxl_dlq_source_row"], letter["id"]) == ("orders", "2", "2")


def test_keys_and_conditions_that_fail_are_dead_letters_of_their_own_source(shop: Any) -> None:
    report = shop.run(pipeline(where='"o.qty / 10 == 4 / p.packs"', cxl='"emit id = o.id\\nemit code = p.code"'))
    assert report.exit_code == 2
    assert shop.text("out.txt") == "id,code\n2,A\n4,C\n"
    [letter] = shop.letters()
    assert (letter["_cxl_dlq_source_name"], letter["_cxl_dlq_source_row"]) == ("products", "2")
    assert letter["_cxl_dlq_error_category"] == "combine_output_row"


def test_a_condition_that_fails_for_a_pair_fails_the_driver(shop: Any) -> None:
    report = shop.run(pipeline(where='"o.product == p.code and o.qty / p.packs > 3"', match="all"))
    assert report.exit_code == 2
    assert shop.text("out.txt") == "id,title\n1,Apricot\n4,Apple\n4,Apricot\n"
    assert [row["id"] for row in shop.letters()] == ["2"]


def test_unknown_is_no_match_however_it_is_written(shop: Any) -> None:
    """`condition ?? false` is searched by its equalities and ranges, as the condition alone is."""
    shop.file("products.csv", "code,title,packs\nA,Apple,5\nA,Apricot,\nB,Bean,\nZ,Zest,100\n")
    found = set()
    for where in ("o.product == p.code and p.packs <= o.qty", "(o.product == p.code and p.packs <= o.qty) ?? false"):
        text = pipeline(where=f'"{where}"', match="all", on_miss="null_fields").replace(
            "packs: int", "packs: nullable(int)"
        )
        assert shop.run(text).exit_code == 0
        found.add(shop.text("out.txt"))
    assert found == {"id,title\n1,Apple\n2,\n3,\n4,Apple\n5,\n"}


def test_a_miss_can_stop_the_run(shop: Any) -> None:
    shop.file("out.txt", "as it was")
    with pytest.raises(DataError) as caught:
        shop.run(pipeline(on_miss="error"))
    [finding] = caught.value.diagnostics
    assert finding.code == "E319"
    assert finding.message == "orders.csv, row 3: no record of 'p' matches"
    assert shop.text("out.txt") == "as it was"
    assert not shop.left_over()


def test_too_many_pairs_stop_the_run(shop: Any) -> None:
    with pytest.raises(DataError) as caught:
        shop.run(pipeline(match="all", more="      max_output_rows: 4"))
    assert caught.value.diagnostics[0].code == "E325"
    assert not (shop.folder / "out.txt").exists()
    shop.run(pipeline(match="all", more="      max_output_rows: 5"))


def test_an_input_can_be_joined_with_itself(shop: Any) -> None:
    shop.run(
        pipeline(
            input="{ o: orders, p: orders }",
            where="o.product == p.product",
            match="all",
            cxl='"emit a = o.id\\nemit b = p.id"',
        )
    )
    assert shop.text("out.txt") == "a,b\n1,1\n1,4\n2,2\n3,3\n4,1\n4,4\n5,5\n"


def test_collected_matches_are_an_array_of_maps(shop: Any) -> None:
    shop.run(pipeline(match="collect", on_miss="null_fields", cxl='""', format="json"))
    rows = json.loads(shop.text("out.txt"))
    assert [len(row["p"]) for row in rows] == [2, 1, 0, 2, 0]
    assert rows[0]["p"][1] == {"code": "A", "title": "Apricot", "packs": 2}
    assert rows[4] == {"id": 5, "product": "", "qty": 50, "p": []}


def test_collected_matches_replace_a_column_of_their_name(shop: Any) -> None:
    changes = {"input": "{ o: orders, qty: products }", "where": "o.product == qty.code"}
    shop.run(pipeline(match="collect", on_miss="null_fields", cxl='""', format="json", **changes))
    rows = json.loads(shop.text("out.txt"))
    assert list(rows[0]) == ["id", "product", "qty"]
    assert [len(row["qty"]) for row in rows] == [2, 1, 0, 2, 0]


@pytest.mark.parametrize("match", ["first", "all"])
def test_every_way_to_join_gives_the_same_bytes(shop: Any, match: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"{i},{'ABCXYZ'[i * 7 % 6]},{i}\n" for i in range(200))
    shop.file("orders.csv", "id,product,qty\n" + rows)
    shop.file("pipeline.yaml", pipeline(match=match, on_miss="null_fields"))
    found = set()
    usual = RunState.context
    for forced in (None, "sort_merge", "grace_hash", "nested_loop"):

        def forcing(self: RunState, forced: str | None = forced) -> RunContext:
            return replace(usual(self), forced_join=forced)

        monkeypatch.setattr(RunState, "context", forcing)
        plan = prepare(shop.folder / "pipeline.yaml")
        if forced is not None:  # what moves records must not claim to keep them in place
            step = plan["both"].steps[0]
            object.__setattr__(step, "strategy", "sort_merge")
            plan = with_facts(plan)
        run(plan, shop.spark, Options())
        found.add(shop.text("out.txt"))
    assert len(found) == 1
    assert found.pop().splitlines()[1] == "0,Apple"


@pytest.mark.parametrize("ahead", [True, False])
def test_the_chain_that_is_made_first_is_the_left_side(shop: Any, ahead: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.run(pipeline(match="all", on_miss="skip"))
    expected = shop.text("out.txt")
    usual, joined, sides = RunState.context, combine._plain, []

    def seen(*given: Any, **named: Any) -> Any:
        found = joined(*given, **named)
        text = found._jdf.queryExecution().optimizedPlan().toString()
        text = text[text.index("\n", text.index("Join")) :]
        sides.append(text.index("o.id") < text.index("p.title"))
        return found

    monkeypatch.setattr(RunState, "context", lambda self: replace(usual(self), forced_join="sort_merge"))
    monkeypatch.setattr(combine, "_plain", seen)
    plan = prepare(shop.folder / "pipeline.yaml")
    object.__setattr__(plan["both"].steps[0], "strategy", "sort_merge")
    plan = with_facts(plan)
    resources = replace(plan.facts.resources, ahead={"both": ("p",)} if ahead else {})
    run(replace(plan, facts=replace(plan.facts, resources=resources)), shop.spark, Options())
    assert shop.text("out.txt") == expected
    assert sides == [not ahead]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"where": "o.qty"}, "E303"),
        ({"where": "o.prodct == p.code"}, "E304"),
        ({"where": "product == p.code"}, "E304"),
        ({"where": "o.qty > 3"}, "E305"),
        ({"input": "{ o: orders, p: products, q: products }"}, "E305"),
        ({"input": "{ o: orders, p: product }"}, "E307"),
        ({"cxl": "emit id = id"}, "E308"),
        ({"cxl": "let x = o.id"}, "E309"),
        ({"where": "o.product != p.code"}, "E313"),
        ({"where": '"o.product < p.code and o.product > p.title"'}, "E327"),
        ({"where": '"o.id == p.packs + 0.5"'}, "E328"),
        ({"match": "latest"}, "E329"),
        ({"match": "collect"}, "E311"),
    ],
)
def test_wrong_combines_are_refused_before_anything_is_read(tmp_path: Any, changes: dict[str, str], code: str) -> None:
    from clinker_spark.core.errors import ClinkerError

    (tmp_path / "pipeline.yaml").write_text(pipeline(**changes))
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "pipeline.yaml")
    found = [d for d in caught.value.diagnostics if d.severity.name == "ERROR"]
    assert {d.code for d in found} == {code}
    assert found[0].span is not None and found[0].help
    assert isinstance(caught.value, PlanError) or code in ("E307", "E311")


def test_steps_begin_with_the_smallest_connected_input(tmp_path: Any) -> None:
    (tmp_path / "orders.csv").write_text(ORDERS)
    (tmp_path / "products.csv").write_text(PRODUCTS * 20)
    text = pipeline(
        input="{ o: orders, p: products, q: orders }",
        where='"o.product == p.code and o.id == q.id"',
        more="      drive: o",
    )
    (tmp_path / "pipeline.yaml").write_text(text)
    steps = prepare(tmp_path / "pipeline.yaml")["both"].steps
    assert [(s.build, s.strategy) for s in steps] == [("q", "broadcast"), ("p", "broadcast")]


@pytest.mark.parametrize(
    ("where", "strategy"),
    [
        ("o.qty >= p.packs", "range"),
        ("o.qty > p.packs and o.id > p.packs", "range"),
        ("o.product == p.code and o.qty >= p.packs", "broadcast"),
    ],
)
def test_a_comparison_alone_needs_no_nested_loop(tmp_path: Any, where: str, strategy: str) -> None:
    (tmp_path / "orders.csv").write_text(ORDERS)
    (tmp_path / "products.csv").write_text(PRODUCTS)
    (tmp_path / "p.yaml").write_text(pipeline(where=where))
    [step] = prepare(tmp_path / "p.yaml")["both"].steps
    assert step.strategy == strategy
