"""The order in which failures are judged, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.reject.saved_letters import save_table
from clinker_spark.runtime.rollback.strata import UNTRACED, failed_totals, strata
from tests.plan.fact_fixtures import FOLDER, LINE, planned

SCHEMA = pa.schema([("stage", pa.int32()), ("source", pa.int32()), ("groups", pa.map_(pa.string(), pa.string()))])
ORDERS, DAILY, CHECKED, YEARLY, REPORT = range(5)


@pytest.fixture(scope="module")
def plan() -> Plan:
    text = (FOLDER / "judgement" / "after_totals.txt").read_text(encoding="utf-8")
    return planned(text.split(LINE)[0])


def failures(*rows: tuple[int, int | None, dict[str, str]]) -> pa.Table:
    columns = [{"stage": stage, "source": source, "groups": list(groups.items())} for stage, source, groups in rows]
    return pa.Table.from_pylist(columns, SCHEMA)


def test_records_are_judged_before_totals_and_these_before_what_is_made_of_them(plan: Plan) -> None:
    found = failures(
        (ORDERS, 0, {}),
        (DAILY, 0, {}),  # a record that cannot be grouped
        (DAILY, None, {"daily": "1"}),
        (CHECKED, None, {"daily": "1"}),
        (YEARLY, None, {"daily": "1"}),  # a total that cannot be grouped again
        (YEARLY, None, {"yearly": "1"}),
        (REPORT, None, {"yearly": "1"}),
        (YEARLY, None, {}),
    )
    assert strata(plan, found).tolist() == [0, 0, 1, 1, 1, 2, 2, UNTRACED]


def test_in_parts(plan: Plan) -> None:
    found = failures((DAILY, 0, {"daily": "1"}), (DAILY, None, {"daily": "2"}), (ORDERS, 0, {}))
    assert strata(plan, found[1:]).tolist() == [1, 0]
    assert strata(plan, pa.concat_tables([found, found])).tolist() == [1, 1, 0] * 2
    assert strata(plan, found[:0]).tolist() == []


def test_what_failed_totals_are(tmp_path: Path) -> None:
    nobody: Any = None
    found = failures((DAILY, None, {"daily": "1"}), (CHECKED, None, {"daily": "2"}), (DAILY, 0, {"daily": "3"}))
    letters = save_table(found, tmp_path / "letters", nobody)
    assert failed_totals(letters, 10) == ({"daily": {"1", "2"}}, 2)
    few = letters.only(lambda batch: pa.array(strata_is(batch, DAILY)), tmp_path / "few")
    assert few.table()["source"].to_pylist() == [None, 0]


def strata_is(batch: pa.RecordBatch, stage: int) -> list[bool]:
    return [found == stage for found in batch["stage"].to_pylist()]
