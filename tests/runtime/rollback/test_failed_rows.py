"""Failures of large inputs: where records go their own way, only those that failed are read with their texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clinker_spark.runtime.rollback import failed_rows
from clinker_spark.spark.operators import source
from clinker_spark.spark.scan.request import ReadRequest
from clinker_spark.spark.session.small_inputs import SETTING

SOURCE = """
  - type: source
    name: {name}
    config:
      type: csv
      path: {name}.csv
      correlation_key: order_id
      schema: {{ order_id: string, dept: string, amount: string, n: int }}
"""
MERGED = """
pipeline: { name: demo }
nodes:
{sources}
  - { type: merge, name: both, inputs: [{inputs}], config: { mode: {mode} } }
  - { type: transform, name: typed, input: both, config: { cxl: emit amount = amount.to_int() } }
  - type: route
    name: sizes
    input: typed
    config: { conditions: { large: "100 / (n - 3) > 20" }, default: small }
  - { type: aggregate, name: totals, input: sizes.small, config: { group_by: [dept], cxl: "{totals}" } }
  - { type: output, name: totals_out, input: totals, config: { type: csv, path: totals.csv } }
  - { type: output, name: large_out, input: sizes.large, config: { type: csv, path: large.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def merged(mode: str) -> str:
    """Two sources, failures at three places, and totals behind all of them."""
    parts = {
        "{sources}": "".join(SOURCE.format(name=name) for name in ("a", "b")),
        "{inputs}": "a, b",
        "{mode}": mode,
        "{totals}": r"emit dept = dept\nemit total = sum(amount)",
    }
    text = MERGED
    for name, value in parts.items():
        text = text.replace(name, value)
    return text


@pytest.fixture
def large(spark: Any) -> Iterator[None]:
    """Inputs are planned as large ones are."""
    before = spark.conf.get(SETTING, None)
    spark.conf.set(SETTING, "0")
    yield
    if before is None:
        spark.conf.unset(SETTING)
    else:
        spark.conf.set(SETTING, before)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[ReadRequest]:
    """What readers were asked for."""
    found: list[ReadRequest] = []
    read = source.read

    def noted(spark: Any, kind: str, request: ReadRequest) -> Any:
        found.append(request)
        return read(spark, kind, request)

    monkeypatch.setattr(source, "read", noted)
    return found


def files(bench: Any) -> None:
    head = "order_id,dept,amount,n\n"
    rows = [f"O{i // 2},d{i % 3},{i},{i % 3 + 4}\n" for i in range(40)]
    rows[5] = 'O2,"d\n2",bad,5\n'  # fails in the transform
    rows[11] = "O5,d2,11,x\n"  # fails in the reader
    rows[20] = "O10,d2,20,3\n"  # fails in the route
    rows[31] = "O15,d1\n"
    bench.file("a.csv", head + "".join(rows))
    bench.file("b.csv", head + "P1,d1,1,9\nP1,d1,worse,9\nP2,d0,7,9\n")


def results(bench: Any) -> tuple[str, str, list[dict[str, str]]]:
    changing = ("_cxl_dlq_id", "_cxl_dlq_timestamp")
    letters = [{name: cell for name, cell in row.items() if name not in changing} for row in bench.letters()]
    return bench.text("totals.csv"), bench.text("large.csv"), letters


def test_texts_are_read_only_of_records_that_failed(
    bench: Any, large: None, reads: list[ReadRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    files(bench)
    bench.run(merged("concat"))
    found = results(bench)
    failed = [row for row in found[2] if row["_cxl_dlq_trigger"] == "true"]
    assert [(row["_cxl_dlq_source_file"], row["_cxl_dlq_source_row"]) for row in failed] == [
        *[("a.csv", row) for row in ("6", "12", "21", "32")],
        ("b.csv", "2"),
    ]
    assert failed[0]["_cxl_dlq_source_line"] == 'O2,"d\n2",bad,5' and failed[0]["dept"] == "d\n2"
    texts = [request for request in reads if request.record]
    finding = [request for request in texts if request.csv.row_filter is not None and request.csv.row_filter.keep]
    assert sorted(request.source for request in finding) == ["a", "b"]
    # The pass that finds them reads what can fail, and not what is only summed or written.
    narrow = [request for request in reads if request.positions and not request.record and request.csv.only_flags]
    assert {request.source for request in narrow} == {"a", "b"}
    assert all("dept" not in (request.wanted or ()) for request in narrow if request.csv.row_filter is None)

    monkeypatch.setattr(failed_rows, "BROADCASTABLE", 0)
    reads.clear()
    bench.run(merged("concat"), force=True)
    assert not any(request.csv.row_filter is not None and request.csv.row_filter.keep for request in reads)
    assert results(bench) == found


def test_records_that_take_turns_are_all_read(bench: Any, large: None, reads: list[ReadRequest]) -> None:
    files(bench)
    bench.run(merged("interleave"))
    assert len([row for row in bench.letters() if row["_cxl_dlq_trigger"] == "true"]) == 5
    assert not any(request.csv.row_filter is not None and request.csv.row_filter.keep for request in reads)
