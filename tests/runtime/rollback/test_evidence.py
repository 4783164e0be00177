"""What is retracted and withheld, decided over tables. No Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.rollback.evidence import Evidence, Withheld, group_text
from clinker_spark.spark.rejects.dirty_groups import DirtyGroups
from clinker_spark.spark.rejects.traced import FAILED, LEFT_OUT, MADE_OF, REACHED, WHAT
from tests.plan.fact_fixtures import FOLDER, LINE, planned

TEXTS = pa.map_(pa.string(), pa.string())
SCHEMA = pa.schema(
    [
        *((name, pa.int32()) for name in (WHAT, "stage", "source", "file")),
        ("row", pa.int64()),
        *((name, TEXTS) for name in ("keys", "groups")),
    ]
)
ORDERS, DAILY, CHECKED, YEARLY, REPORT = range(5)


@pytest.fixture(scope="module")
def plan() -> Plan:
    text = (FOLDER / "judgement" / "after_totals.txt").read_text(encoding="utf-8")
    return planned(text.split(LINE)[0])


def record(what: int, stage: int, row: int | None, groups: dict[str, str], city: str | None = None) -> dict[str, Any]:
    """A record of the one source, or, without a row, one that was made of several."""
    place = {"source": None if row is None else 0, "file": None if row is None else 0, "row": row}
    keys = [] if city is None else [("$ck.city", city)]
    return {WHAT: what, "stage": stage, **place, "keys": keys, "groups": list(groups.items())}


def evidence(plan: Plan, *records: dict[str, Any]) -> Evidence:
    return Evidence(plan, pa.Table.from_pylist(list(records), SCHEMA))


def test_records_behind_totals_of_totals(plan: Plan) -> None:
    found = evidence(
        plan,
        record(MADE_OF, DAILY, 1, {"daily": "a"}),
        record(MADE_OF, DAILY, 2, {"daily": "b"}),
        record(MADE_OF, DAILY, 3, {"daily": "c"}),
        record(MADE_OF, YEARLY, None, {"daily": "a", "yearly": "x"}),
        record(MADE_OF, YEARLY, None, {"daily": "c", "yearly": "x"}),
        record(MADE_OF, YEARLY, None, {"daily": "b", "yearly": "y"}),
        record(FAILED, YEARLY, None, {"yearly": "x"}),
    )
    assert found.behind({"yearly": ["x"]})["row"].to_pylist() == [1, 3]
    assert found.behind({"daily": ["b"], "yearly": ["x"]})["row"].to_pylist() == [1, 2, 3]
    assert found.behind({"yearly": ["z"]}).num_rows == 0
    assert found.failures.num_rows == 1


def test_what_totals_were_made_without_is_withheld(plan: Plan) -> None:
    found = evidence(plan, record(LEFT_OUT, DAILY, 4, {}, "Bonn"), record(REACHED, REPORT, None, {"yearly": "x"}))
    held = found.held(DirtyGroups(plan, {0: [{"$ck.city": "Bonn"}]}))
    assert held["row"].to_pylist() == [4]


@pytest.mark.parametrize(("city", "held"), [("Bonn", True), ("Bern", False), (None, False)])
def test_records_of_groups_with_a_failure(plan: Plan, city: str | None, held: bool) -> None:
    [source] = plan.sources
    dirty = DirtyGroups(plan, {0: [{"$ck.city": "Bonn"}, {"$ck.city": None}]})  # a record without a key is no group
    test = Withheld([(source, dirty.texts(source, source.key_columns, ()))], by_source=False)
    assert test.holds(0, {"$ck.city": city}) == held


def test_the_name_of_a_group() -> None:
    assert group_text([("$ck.b", "2"), ("$ck.a", None), ("$ck.c", "x")]) == "b=2, c=x"
