"""How many failures are too many: decided from counts alone, at the limits and on both sides of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.errors import DataError
from clinker_spark.runtime.reject.thresholds import check, check_output_rows, first_failure
from clinker_spark.spark.rejects.letters import LetterCount
from clinker_spark.spark.scan.request import SourceFile

PIPELINE = """
pipeline: {{ name: test }}
nodes:
  - {{ type: source, name: orders, config: {{ type: csv, path: orders.csv, schema: {{ id: int, q: int }} }} }}
  - {{ type: source, name: prices, config: {{ type: csv, path: prices.csv, schema: {{ id: int, p: int }} }} }}
  - {{ type: transform, name: share, input: orders, config: {{ cxl: "emit s = 1 / q" }} }}
  - type: combine
    name: priced
    input: {{ o: share, p: prices }}
    config: {{ where: "o.id == p.id", match: all, propagate_ck: driver, {most} cxl: "emit id = o.id\\nemit p = p.p" }}
  - {{ type: output, name: out, input: priced, config: {{ type: csv, path: out.csv }} }}
error_handling: {{ strategy: continue, {handling} }}
"""
RECORDS = {"orders": 100, "prices": 20}


def planned(folder: Path, handling: str = "dlq: { path: dead.csv }", most: str = "") -> Plan:
    path = folder / "pipeline.yaml"
    path.write_text(PIPELINE.format(handling=handling, most=most))
    return prepare(path)


def counts(plan: Plan, **failed: int) -> list[LetterCount]:
    """Failures by node: of the source itself its values are wrong, of others what they compute."""
    places = {node.name: place for place, node in enumerate(plan.nodes)}
    sources = {node.name: node.index for node in plan.sources}
    return [
        LetterCount(
            sources.get(name, sources["orders"]),
            places[name],
            "type_coercion_failure" if name in sources else "division_by_zero",
            count,
        )
        for name, count in failed.items()
    ]


def found(plan: Plan, counted: list[LetterCount], records: dict[str, int] = RECORDS) -> list[Diagnostic]:
    try:
        check(plan, counted, lambda source: sum(records.values()) if source is None else records[source])
    except DataError as error:
        assert error.exit_code == 3
        return list(error.diagnostics)
    return []


def codes(plan: Plan, counted: list[LetterCount], records: dict[str, int] = RECORDS) -> list[str]:
    return [diagnostic.code for diagnostic in found(plan, counted, records)]


def test_without_a_limit_any_number_goes(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert codes(plan, counts(plan, orders=100, prices=20)) == []


def test_the_rate_of_the_pipeline_counts_failures_of_all_nodes_and_sources(tmp_path: Path) -> None:
    plan = planned(tmp_path, "dlq: { path: dead.csv, max_rate: 0.1, min_records: 5 }")
    assert codes(plan, counts(plan, orders=4, share=4, prices=3)) == []  # 11 of 120
    [said] = found(plan, counts(plan, orders=4, share=4, prices=4))  # 12 of 120: the limit itself is too much
    assert said.code == "E315" and "12 of 120 records of the pipeline failed: 10.00%" in said.message


def test_few_records_have_no_rate(tmp_path: Path) -> None:
    plan = planned(tmp_path, "dlq: { path: dead.csv, max_rate: 0.1, min_records: 10 }")
    failed = counts(plan, share=5)
    assert codes(plan, failed, {"orders": 9, "prices": 0}) == []
    assert codes(plan, failed, {"orders": 9, "prices": 1}) == ["E315"]
    assert codes(plan, [], {"orders": 0, "prices": 0}) == []


def test_a_source_may_have_a_rate_and_a_least_number_of_its_own(tmp_path: Path) -> None:
    own = "per_source: { prices: { max_rate: 0.5, min_records: 20 }, orders: { max_rate: 0.02 } }"
    plan = planned(tmp_path, f"dlq: {{ path: dead.csv, max_rate: 0.9, min_records: 101, {own} }}")
    assert codes(plan, counts(plan, prices=9, orders=50)) == []  # orders has 100 records, the general least is 101
    [said] = found(plan, counts(plan, prices=10, orders=50))
    assert said.code == "E316" and "10 of 20 records of source 'prices' failed: 50.00%" in said.message
    assert codes(plan, counts(plan, prices=19), {"orders": 500, "prices": 19}) == []
    both = found(plan, counts(plan, prices=10, share=4), {"orders": 200, "prices": 20})  # what fails later counts too
    assert [(d.code, "prices" in d.message) for d in both] == [("E316", False), ("E316", True)]


def test_wrong_types_are_counted_at_sources_alone_and_must_exceed_their_limit(tmp_path: Path) -> None:
    plan = planned(tmp_path, "dlq: { path: dead.csv }, type_error_threshold: 0.05")
    assert codes(plan, counts(plan, orders=6, share=90)) == []  # 6 of 120 are the limit
    [said] = found(plan, counts(plan, orders=5, prices=2))
    assert said.code == "E368" and said.message.startswith("7 of 120 records have values of the wrong type")
    others = [LetterCount(0, 0, "structural_mismatch", 50)]
    assert codes(plan, others) == [] and codes(plan, [], {"orders": 0, "prices": 0}) == []


def test_every_limit_that_is_reached_is_told(tmp_path: Path) -> None:
    own = "per_source: { orders: { max_rate: 0.1 } }"
    plan = planned(
        tmp_path, f"dlq: {{ path: dead.csv, max_rate: 0.1, min_records: 1, {own} }}, type_error_threshold: 0"
    )
    assert codes(plan, counts(plan, orders=60)) == ["E315", "E316", "E368"]


def test_a_join_may_make_as_many_records_as_it_says(tmp_path: Path) -> None:
    plan = planned(tmp_path, most="max_output_rows: 1000,")
    check_output_rows(plan, {"priced": 1000}.__getitem__)  # of no other node the number is asked for
    with pytest.raises(DataError) as caught:
        check_output_rows(plan, {"priced": 1001}.__getitem__)
    [said] = caught.value.diagnostics
    assert said.code == "E325" and "1,001 records, more than 1,000" in said.message
    assert said.source is not None and said.span is not None
    assert said.source.text[said.span.start : said.span.end] == "1000"
    check_output_rows(planned(tmp_path), {}.__getitem__)


def test_the_first_failure_in_words(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    share = next(place for place, node in enumerate(plan.nodes) if node.name == "share")
    row: dict[str, Any] = {
        "stage": share,
        "source": 0,
        "file": 0,
        "row": 7,
        "field": "s",
        "message": "division by zero",
    }
    files = {"orders": (SourceFile("/in/orders.csv", "orders.csv", 10),)}
    assert plan.sources[0].name == "orders"
    said = first_failure(plan, row, files, counts(plan, share=3))
    assert (said.code, said.message) == (
        "E409",
        "orders.csv, row 7: field 's': division by zero (3 records fail in all)",
    )
    nowhere = first_failure(plan, row | {"source": None, "field": None}, files, counts(plan, share=1))
    assert nowhere.message == "division by zero"
