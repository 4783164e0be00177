"""Texts as typed columns: what every type accepts, alone and next to values of every other kind."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from clinker_spark.config.model.schema import Column
from clinker_spark.spark.scan.text.values import TextColumn

D, T = dt.date, dt.datetime

ACCEPTED: list[tuple[str, str, Any]] = [
    ("int", "7", 7),
    ("int", "+7", 7),
    ("int", "-7", -7),
    ("int", "007", 7),
    ("int", "9223372036854775807", 2**63 - 1),
    ("int", "-9223372036854775808", -(2**63)),
    ("int", "00000000000000000000000012", 12),
    ("float", "1", 1.0),
    ("float", "-1.5", -1.5),
    ("float", "+.5", 0.5),
    ("float", "5.", 5.0),
    ("float", "1e5", 1e5),
    ("float", "2E-3", 0.002),
    ("float", "1e-400", 0.0),
    ("decimal(2)", "1", Decimal("1.00")),
    ("decimal(2)", "+1.5", Decimal("1.50")),
    ("decimal(2)", "-.5", Decimal("-0.50")),
    ("decimal(2)", "5.", Decimal("5.00")),
    ("decimal(2)", "1.2300", Decimal("1.23")),
    ("decimal(2)", "000012.5", Decimal("12.50")),
    ("decimal(2)", "123456789012345678901234567.89", Decimal("123456789012345678901234567.89")),
    ("decimal(0)", "12.0", Decimal("12")),
    ("decimal(5, 2)", "999.99", Decimal("999.99")),
    ("decimal(2, 2)", "0.99", Decimal("0.99")),
    ("decimal", "1.50", "1.50"),
    ("decimal", "+01.50", "1.50"),
    ("decimal", ".5", "0.5"),
    ("decimal", "-0.0", "0.0"),
    ("decimal", "12345678901234567890123456789", "12345678901234567890123456789"),
    ("bool", "true", True),
    ("bool", "FALSE", False),
    ("bool", "tRue", True),
    ("string", " a ", " a "),
    ("string", "", ""),
    ("string", "null", "null"),
    ("date", "2024-02-29", D(2024, 2, 29)),
    ("date", "0001-01-01", D(1, 1, 1)),
    ("date", "9999-12-31", D(9999, 12, 31)),
    ("date_time", "2024-03-05T14:07:09", T(2024, 3, 5, 14, 7, 9)),
    ("date_time", "2024-03-31 14:07:09.25", T(2024, 3, 31, 14, 7, 9, 250000)),
    ("date_time", "2024-03-05T14:07", T(2024, 3, 5, 14, 7)),
    ("date_time", "2024-03-05T14:07:09.123456789", T(2024, 3, 5, 14, 7, 9, 123456)),
    ("date_time", "2024-03-05T14:07:09Z", T(2024, 3, 5, 14, 7, 9)),
    ("date_time", "2024-03-31T00:30:00+02:00", T(2024, 3, 30, 22, 30)),
    ("date_time", "2024-03-05 14:07:09.5-0130", T(2024, 3, 5, 15, 37, 9, 500000)),
    ("nullable(int)", "", None),
    ("nullable(string)", "", None),
    ("nullable(date)", "", None),
]
REJECTED: list[tuple[str, str]] = [
    *(("int", text) for text in (" 1", "1 ", "0x1F", "1.0", "1e3", "-", "", "1_0", "9223372036854775808", "٣", "NULL")),
    *(("float", text) for text in (" 1", "inf", "NaN", "-Infinity", "1e400", "1,5", "1f", ".", "1e", "0x1", "")),
    *(("decimal(2)", text) for text in ("1.234", "1e2", " 1", "1 ", "", ".", "1" * 28, "nan")),
    *(("decimal(5, 2)", text) for text in ("1000", "1000.00", "0.001")),
    *(("decimal", text) for text in ("1e2", "1" * 30, " 1", "", "x", "0." + "1" * 29)),
    *(("bool", text) for text in ("1", "0", "t", "yes", " true", "")),
    *(("date", text) for text in ("2024-02-30", "2024-2-3", "20240203", "0000-01-01", " 2024-02-03", "05/03/2024", "")),
    *(("date_time", text) for text in ("2024-03-05", "2024-03-05T14", "2024-03-05T24:00:00", "2024-03-05t14:07:09")),
    *(("date_time", text) for text in ("2024-03-05T14:07:09.", "2024-03-05T14:07.5", "0000-01-01T00:00:00", "", "x")),
    *(("date_time", text) for text in ("2024-03-05T14:07:09+25:00", "0001-01-01T00:00:00+01:00")),
    ("nullable(int)", "x"),
]


def column(type_text: str, **more: Any) -> TextColumn:
    return TextColumn.of(Column(name="c", type=type_text, **more), more.pop("date_formats", ()))


def converted(reader: TextColumn, texts: list[str | None]) -> tuple[list[Any], list[bool]]:
    found = reader.convert(pa.array(texts, pa.string()))
    assert found.values.type == reader.arrow
    return found.values.to_pylist(), [False] * len(texts) if found.failed is None else found.failed.to_pylist()


@pytest.mark.parametrize(("type_text", "text", "value"), ACCEPTED)
def test_accepted(type_text: str, text: str, value: Any) -> None:
    assert converted(column(type_text), [text]) == ([value], [False])


@pytest.mark.parametrize(("type_text", "text"), REJECTED)
def test_rejected(type_text: str, text: str) -> None:
    assert converted(column(type_text), [text]) == ([None], [True])


@pytest.mark.parametrize("type_text", sorted({case[0] for case in ACCEPTED} - {"string", "nullable(string)"}))
def test_a_value_is_read_alike_whatever_stands_beside_it(type_text: str) -> None:
    """The whole column is cast where it can be, else value by value: the two must agree."""
    good = [(text, value) for kind, text, value in ACCEPTED if kind == type_text]
    bad = [text for kind, text in REJECTED if kind == type_text]
    for company in (["?"], bad, [text for text, _ in good]):
        values, failed = converted(column(type_text), [*(text for text, _ in good), *company])
        assert values[: len(good)] == [value for _, value in good]
        assert not any(failed[: len(good)])


def test_rows_without_a_text_have_neither_value_nor_failure() -> None:
    assert converted(column("int"), ["1", None, "x", ""]) == ([1, None, None, None], [False, False, True, True])
    assert converted(column("string"), [None, ""]) == ([None, ""], [False, False])


def test_the_format_of_a_column_is_the_only_one() -> None:
    reader = column("date", format="%d/%m/%Y")
    assert converted(reader, ["05/03/2024", "29/02/2024"]) == ([D(2024, 3, 5), D(2024, 2, 29)], [False, False])
    assert converted(reader, ["5/3/2024", "2024-03-05", "30/02/2024"]) == (
        [D(2024, 3, 5), None, None],
        [False, True, True],
    )
    reader = column("date_time", format="%d.%m.%Y %H:%M")
    assert converted(reader, ["05.03.2024 14:07", ""]) == ([T(2024, 3, 5, 14, 7), None], [False, True])
    reader = column("date_time", format="%Y/%m/%dT%H:%M:%S")
    assert converted(reader, ["2024/03/05T14:07:09", "x"]) == ([T(2024, 3, 5, 14, 7, 9), None], [False, True])


def test_the_formats_of_the_pipeline_come_after_iso() -> None:
    reader = TextColumn.of(Column(name="c", type="date"), ("%H:%M", "%d/%m/%Y", "%m/%d/%Y"))
    values, failed = converted(reader, ["2024-03-05", "05/03/2024", "03/25/2024", "x"])
    assert values == [D(2024, 3, 5), D(2024, 3, 5), D(2024, 3, 25), None]
    assert failed == [False, False, False, True]


def test_any_holds_texts() -> None:
    from clinker_spark.spark.columns.variants import decode

    values, failed = converted(column("any"), ["a", "", "x" * 100])
    assert [decode(v["value"], v["metadata"]) for v in values] == ["a", "", "x" * 100]
    assert not any(failed)
    assert converted(column("nullable(any)"), [""])[0] == [None]


def test_errors_say_what_could_not_be_read() -> None:
    assert column("nullable(int)").error("pending") == {
        "kind": "type_coercion_failure",
        "field": "c",
        "value": "pending",
        "message": "cannot convert 'pending' to Int",
    }
    assert column("date").error("")["kind"] == "missing_required_field"
