"""Small values: what is read, what is refused, and how."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_core import PydanticCustomError

from clinker_spark.config.tree.scalars import Plain, as_bool, as_float, as_int, resolve
from clinker_spark.config.values import (
    read_bool,
    read_duration,
    read_float,
    read_fraction,
    read_int,
    read_moment,
    read_path,
    read_rate,
    read_size,
    read_text,
)

P = Plain


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (P("true"), True),
        (P("True"), True),
        (P("FALSE"), False),
        (P("yes"), "yes"),
        (P("on"), "on"),
        (P("~"), None),
        (P(""), None),
        (P("12"), 12),
        (P("-3"), -3),
        (P("+3"), 3),
        (P("0"), 0),
        (P("012"), "012"),
        (P("0x1F"), "0x1F"),
        (P("1_000"), "1_000"),
        (P("12:30"), "12:30"),
        (P("1.5"), 1.5),
        (P(".5"), 0.5),
        (P("1e3"), 1000.0),
        (P("1."), 1.0),
        (P("."), "."),
        (P("e5"), "e5"),
        (P(".inf"), ".inf"),
        (P(".nan"), ".nan"),
        (P("1e999"), "1e999"),
        (P("2026-01-31"), "2026-01-31"),
        (P("9" * 500), "9" * 500),
        ("12", "12"),
        ([P("1"), {"a": P("no")}], [1, {"a": "no"}]),
    ],
)
def test_what_an_unquoted_text_means(given: Any, expected: Any) -> None:
    found = resolve(given)
    assert found == expected and type(found) is type(expected)


def test_wanted_types_decide() -> None:
    assert as_int(P("1_000")) == 1000
    assert as_int(P("10_00")) is None
    assert as_int("12") is None
    assert as_float(P("12")) == 12.0
    assert as_bool(True) is True and as_bool(1) is None
    assert read_text(P("012")) == "012" and read_text(P("true")) == "true"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("123", 123),
        ("1K", 1024),
        ("512M", 512 * 2**20),
        ("2g", 2 * 2**30),
        ("1T", 2**40),
        ("10KB", 10_000),
        ("10 MB", 10_000_000),
        ("1GiB", 2**30),
        ("7B", 7),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    assert read_size(P(text)) == read_size(text if "K" in text else P(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500ms", dt.timedelta(milliseconds=500)),
        ("30s", dt.timedelta(seconds=30)),
        ("5m", dt.timedelta(minutes=5)),
        ("2h", dt.timedelta(hours=2)),
        ("7d", dt.timedelta(days=7)),
        ("0s", dt.timedelta(0)),
    ],
)
def test_durations(text: str, expected: dt.timedelta) -> None:
    assert read_duration(P(text)) == read_moment(text) == expected


def test_moments() -> None:
    assert read_moment("2026-01-31") == dt.datetime(2026, 1, 31)
    assert read_moment("2026-01-31T10:00:00+02:00") == dt.datetime(2026, 1, 31, 8)


def test_fractions() -> None:
    assert read_fraction(P("0.25")) == read_fraction("25%") == read_fraction(P("25 %")) == 0.25
    assert read_fraction(P("0")) == 0.0
    assert read_rate(P("100%")) == 1.0


@pytest.mark.parametrize(
    ("read", "given", "code", "help_part"),
    [
        (read_bool, P("yes"), "E007", "write true"),
        (read_bool, P("Off"), "E007", "write false"),
        (read_bool, "true", "E007", "without quotes"),
        (read_bool, P("1"), "E007", "true or false"),
        (read_bool, None, "E007", "true or false"),
        (read_int, P("012"), "E007", "write 12"),
        (read_int, "12", "E007", "write 12 without quotes"),
        (read_int, P("1.5"), "E007", "digits"),
        (read_int, P("12:30"), "E007", "digits"),
        (read_int, True, "E007", "digits"),
        (read_float, P(".nan"), "E007", "digits"),
        (read_float, P("1e999"), "E007", "digits"),
        (read_text, None, "E007", "after the colon"),
        (read_text, [], "E007", "brackets"),
        (read_text, 5, "E007", "quotes"),
        (read_path, "a\0b", "E007", "no path"),
        (read_size, P("1.5G"), "E215", "512M"),
        (read_size, P("-1"), "E215", "512M"),
        (read_size, P("99999999999T"), "E215", "512M"),
        (read_size, P("9" * 30), "E215", "512M"),
        (read_size, [], "E215", "512M"),
        (read_duration, P("5"), "E214", "add a unit: 5s"),
        (read_duration, P("5 minutes"), "E214", "5m"),
        (read_duration, P("-5m"), "E214", "5m"),
        (read_duration, P("99999999999d"), "E214", "7d"),
        (read_moment, "soon", "E214", "2026-01-31"),
        (read_moment, "9999-12-31T23:59:59-23:00", "E214", "2026-01-31"),
        (read_fraction, P("5"), "E007", "10%"),
        (read_fraction, P("101%"), "E007", "10%"),
        (read_rate, P("0"), "E318", "5%"),
        (read_rate, P("lots"), "E318", "5%"),
    ],
)
def test_what_is_refused(read: Callable[[Any], Any], given: Any, code: str, help_part: str) -> None:
    with pytest.raises(PydanticCustomError) as caught:
        read(given)
    assert caught.value.type == code
    assert caught.value.context is not None
    assert help_part in caught.value.context["help"]
    assert "{key}" in caught.value.context["message"]
