"""What grouping promises without Java: the errors of bad keys, and the SQL of keys."""

from __future__ import annotations

import math

import pytest

from clinker_spark.cxl import compile
from clinker_spark.cxl.builtins.keys import grouping_key, partition_key
from clinker_spark.cxl.errors import EvalError
from clinker_spark.cxl.lower.aggregates import LoweredAggregate, lower_aggregate
from clinker_spark.cxl.program import Program
from clinker_spark.cxl.system import default_context

SCHEMA = {"f": "float", "x": "any", "m": "decimal", "n": "int", "s": "string", "items": "array(int)"}


def grouped(*group_by: str) -> Program:
    return compile("emit c = count(*)", SCHEMA, mode="aggregate", group_by=group_by)


def lowered(*group_by: str) -> LoweredAggregate:
    return lower_aggregate(grouped(*group_by).typed, default_context())


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("f", math.nan, "NaN"), ("x", [1], "[1]"), ("x", {"a": 1}, '{"a":1}'), ("items", [], "[]")],
)
def test_a_bad_key_names_its_column_and_value(name: str, value: object, text: str) -> None:
    with pytest.raises(EvalError) as caught:
        grouped("n", name).aggregate([{"n": 1, name: value}])
    assert (caught.value.kind, caught.value.field, caught.value.value) == ("type_mismatch", name, text)
    assert caught.value.message == "a key of group_by cannot be NaN, an array or a map"


@pytest.mark.parametrize(("name", "fallible"), [("f", True), ("x", True), ("items", True), ("n", False), ("m", False)])
def test_only_some_types_can_be_a_bad_key(name: str, fallible: bool) -> None:
    assert (lowered(name).row_error is not None) is fallible
    assert grouped(name).fallible is fallible


def test_plain_columns_are_grouped_as_they_are() -> None:
    found = lowered("n", "s")
    assert found.keys == (("n", "`n`"), ("s", "`s`"))
    assert [text for _, text in found.partials] == ["count(1)"]


@pytest.mark.parametrize("name", ["x", "m"])
def test_the_first_record_shows_a_key_that_can_look_different(name: str) -> None:
    found = lowered(name)
    assert [key for key, _ in found.keys] == ["$k0"]
    shown = dict(found.partials)[name]
    assert shown.startswith("min_by(") and shown.endswith(", `$arrival`)")


def test_nan_is_one_partition_of_a_window() -> None:
    assert partition_key(math.nan) == partition_key(-math.nan)
    assert partition_key(1) == grouping_key(1.0) != grouping_key(True)
