"""What is retracted and withheld, decided over tables. No Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.rollback.evidence import Evidence, Withheld, group_text
from clinker_spark.spark.rejects.dirty_groups import DirtyGroups
from clinker_spark.spark.rejects.traced import FAILED, LEFT_OUT, MADE_OF, NUMBERED, REACHED, WHAT
from tests.plan.fact_fixtures import FOLDER, LINE, planned

TEXTS = pa.map_(pa.string(), pa.string())
SCHEMA = pa.schema(
    [
        *((name, pa.int32()) for name in (WHAT, "stage", "source", "file")),
        ("row", pa.int64()),
        *((name, TEXTS) for name in ("keys", "groups", "letter")),
        *((name, pa.string()) for name in ("category", "message")),
        ("trigger", pa.bool_()),
        *((name, pa.list_(pa.int64())) for name in ("tie", "built")),
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
    letter = [("$ck.city", city), ("amount", "7")]
    return {WHAT: what, "stage": stage, **place, "keys": keys, "groups": list(groups.items()), "letter": letter}


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


def test_records_of_totals_that_totals_were_made_without(plan: Plan) -> None:
    found = evidence(
        plan,
        record(MADE_OF, DAILY, 1, {"daily": "a"}, "Bonn"),
        record(MADE_OF, DAILY, 2, {"daily": "b"}, "Bern"),
        record(LEFT_OUT, YEARLY, None, {"daily": "a"}, "Bonn"),
    )
    assert found.held(DirtyGroups(plan, {0: [{"$ck.city": "Bonn"}]}))["row"].to_pylist() == [1]


def test_groups_that_are_too_large(plan: Plan) -> None:
    """A record counts once, wherever it goes; one without a key is no group; a group that was too large stays so."""
    found = evidence(
        plan,
        record(REACHED, REPORT, 2, {}, "Bonn"),
        record(MADE_OF, DAILY, 2, {"daily": "a"}, "Bonn"),
        record(LEFT_OUT, DAILY, 1, {}, "Bonn"),
        record(REACHED, REPORT, 3, {}, "Bern"),
        *(record(REACHED, REPORT, row, {}) for row in (4, 5, 6)),
    )
    large, letters = found.large_groups(1, ())
    assert large == [("orders", (("$ck.city", "Bonn"),))]
    told = {row["row"]: (row["trigger"], row["category"], row["message"]) for row in letters.to_pylist()}
    assert told == {
        1: (True, "group_size_exceeded", "group city=Bonn has 2 records, more than 1"),
        2: (False, "correlated", "correlated with failure in group city=Bonn"),
    }
    assert letters["stage"].to_pylist() == [ORDERS, ORDERS]
    again, letters = found.large_groups(5, large)
    assert again == large and letters["trigger"].to_pylist() == [False, False]
    assert found.large_groups(2, ())[0] == []


def test_numbers_of_totals(plan: Plan) -> None:
    found = evidence(
        plan,
        record(NUMBERED, DAILY, 0, {"daily": "a"}) | {"source": None},
        record(NUMBERED, DAILY, 1, {"daily": "b"}) | {"source": None},
    )
    assert found.numbers() == {"daily": {"a": 0, "b": 1}}


@pytest.mark.parametrize(("city", "held"), [("Bonn", True), ("Bern", False), (None, False)])
def test_records_of_groups_with_a_failure(plan: Plan, city: str | None, held: bool) -> None:
    [source] = plan.sources
    dirty = DirtyGroups(plan, {0: [{"$ck.city": "Bonn"}, {"$ck.city": None}]})  # a record without a key is no group
    test = Withheld([(source, dirty.texts(source, source.key_columns, ()))], by_source=False)
    assert test.holds(0, {"$ck.city": city}) == held


def test_the_name_of_a_group() -> None:
    assert group_text([("$ck.b", "2"), ("$ck.a", None), ("$ck.c", "x")]) == "b=2, c=x"
