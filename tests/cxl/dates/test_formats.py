"""Date formats in Python: what each directive writes, what is read back, and what is refused.

That Spark gives the same is shown by the conformance tables, which run both engines side by side.
"""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinker_spark.core.types import Kind
from clinker_spark.cxl.dates.formats import check_format, format_value, parse_text, try_parse_text
from clinker_spark.cxl.dates.formats_sql import sql_format, sql_parse
from clinker_spark.cxl.errors import ErrorKind, Fail

MOMENT = dt.datetime(2024, 3, 5, 14, 7, 9, 250_000)  # a Tuesday
SUNDAY = dt.date(2021, 1, 3)


@pytest.mark.parametrize(
    ("fmt", "text"),
    [
        ("%Y %C %y", "2024 20 24"),
        ("%m %b %B %h", "03 Mar March Mar"),
        ("%d|%e|%j", "05| 5|065"),
        ("%a %A %w %u", "Tue Tuesday 2 2"),
        ("%U %W %G %g %V", "09 10 2024 24 10"),
        ("%D %x %F %v", "03/05/24 03/05/24 2024-03-05  5-Mar-2024"),
        ("%H %k %I %l %P %p", "14 14 02  2 pm PM"),
        ("%M %S %f", "07 09 250000000"),
        ("%.f %.3f %.6f %.9f %3f %6f %9f", ".250 .250 .250000 .250000000 250 250000 250000000"),
        ("%R %T %X %r", "14:07 14:07:09 14:07:09 02:07:09 PM"),
        ("%s%t%n%%", "1709647629\t\n%"),
        ("%c", "Tue Mar  5 14:07:09 2024"),
        ("%-d %_d %0e %-m %_m %-I %-j %-H", "5  5 05 3  3 2 65 14"),
        ("", ""),
        ("it's 100%%", "it's 100%"),
    ],
)
def test_format(fmt: str, text: str) -> None:
    assert format_value(fmt, MOMENT) == text


@pytest.mark.parametrize(
    ("fmt", "text"), [("%U", "01"), ("%W", "00"), ("%V", "53"), ("%G", "2020"), ("%w", "0"), ("%u", "7")]
)
def test_week_numbers_at_the_turn_of_the_year(fmt: str, text: str) -> None:
    assert format_value(fmt, SUNDAY) == text


def test_fraction_is_left_out_when_there_is_none() -> None:
    assert format_value("%S%.f", dt.datetime(2024, 1, 1, 0, 0, 7)) == "07"
    assert format_value("%S%.f", dt.datetime(2024, 1, 1, 0, 0, 7, 1)) == "07.000001"


@pytest.mark.parametrize("fmt", ["%Q", "%", "abc%", "%-B", "%_F", "%0p", "%z", "%4f", "%.1f"])
def test_bad_formats_are_named(fmt: str) -> None:
    assert check_format(fmt) is not None
    with pytest.raises(Fail) as failed:
        format_value(fmt, MOMENT)
    assert failed.value.kind is ErrorKind.INVALID_FORMAT
    with pytest.raises(Fail):
        parse_text(fmt, "x", Kind.DATE)
    assert try_parse_text(fmt, "x", Kind.DATE) is None
    assert sql_parse(fmt, "x", Kind.DATE) is None


@pytest.mark.parametrize("fmt", ["%H:%M", "%F %T", "%p", "%.3f", "%s"])
def test_a_date_has_no_time(fmt: str) -> None:
    assert check_format(fmt, Kind.DATETIME) is None
    assert "time of day" in str(check_format(fmt, Kind.DATE))
    assert sql_format(fmt, "x", Kind.DATE) is None
    with pytest.raises(Fail) as failed:
        format_value(fmt, MOMENT.date())
    assert failed.value.kind is ErrorKind.INVALID_FORMAT


@pytest.mark.parametrize(
    ("fmt", "text", "date"),
    [
        ("%d/%m/%Y", "15/03/2024", "2024-03-15"),
        ("%d/%m/%Y", "5/3/24", "0024-03-05"),
        ("%Y-%m-%d", "2024- 3- 5", "2024-03-05"),
        ("%Y-%m-%d", "+2024-03-05", "2024-03-05"),
        ("%Y%m%d", "20240305", "2024-03-05"),
        ("%m/%d/%y", "03/05/69", "2069-03-05"),
        ("%m/%d/%y", "03/05/70", "1970-03-05"),
        ("%C%y-%m-%d", "1924-03-05", "1924-03-05"),
        ("%d %b %Y", "5 MAR 2024", "2024-03-05"),
        ("%d %B %Y", "5 mar 2024", "2024-03-05"),
        ("%d %B %Y", "5march2024", "2024-03-05"),
        ("%A, %d %B %Y", "tuesday, 5 March 2024", "2024-03-05"),
        ("%Y-%j", "2024-366", "2024-12-31"),
        ("%G-W%V-%u", "2020-W53-7", "2021-01-03"),
        ("%Y %U %w", "2021 01 0", "2021-01-03"),
        ("%Y %W %a", "2024 10 Tue", "2024-03-05"),
        ("%F %H:%M", "2024-03-05 23:59", "2024-03-05"),
    ],
)
def test_parse_date(fmt: str, text: str, date: str) -> None:
    assert parse_text(fmt, text, Kind.DATE) == dt.date.fromisoformat(date)


@pytest.mark.parametrize(
    ("fmt", "text"),
    [
        ("%Y-%m-%d", "2024-02-30"),
        ("%Y-%m-%d", "2024-03-05 "),
        ("%Y-%m-%d", "2024-03-05\n"),
        ("%Y-%m-%d", "0000-01-01"),
        ("%Y-%m-%d", "12024-01-01"),
        ("%Y-%m-%d", "-2024-01-01"),
        ("%Y%m%d", "2024035x"),
        ("%d %b %Y", "5 March 2024"),
        ("%A, %d %B %Y", "Monday, 5 March 2024"),
        ("%Y-%j", "2023-366"),
        ("%Y", "2024"),
        ("%m-%d", "03-05"),
        ("%d %d %m %Y", "4 5 3 2024"),
        ("%F %H:%M", "2024-03-05 24:00"),
        ("%Y %U %w", "2021 01 7"),
    ],
)
def test_no_such_date(fmt: str, text: str) -> None:
    assert parse_text(fmt, text, Kind.DATE) is None


@pytest.mark.parametrize(
    ("fmt", "text", "moment"),
    [
        ("%Y-%m-%dT%H:%M:%S%.f", "2024-03-05T14:07:09", "2024-03-05T14:07:09"),
        ("%Y-%m-%dT%H:%M:%S%.f", "2024-03-05T14:07:09.123456789", "2024-03-05T14:07:09.123456"),
        ("%F %H:%M", "2024-03-05 14:07", "2024-03-05T14:07:00"),
        ("%F %I:%M %p", "2024-03-05 12:07 am", "2024-03-05T00:07:00"),
        ("%F %I:%M %p", "2024-03-05 12:07 PM", "2024-03-05T12:07:00"),
        ("%F %T.%f", "2024-03-05 14:07:09.250000000", "2024-03-05T14:07:09.250000"),
        ("%F %H%M%S%3f", "2024-03-05 140709250", "2024-03-05T14:07:09.250000"),
        ("%s", "1709647629", "2024-03-05T14:07:09"),
        ("%c", "Tue Mar  5 14:07:09 2024", "2024-03-05T14:07:09"),
    ],
)
def test_parse_datetime(fmt: str, text: str, moment: str) -> None:
    assert parse_text(fmt, text, Kind.DATETIME) == dt.datetime.fromisoformat(moment)


@pytest.mark.parametrize(
    ("fmt", "text"),
    [
        ("%Y-%m-%d", "2024-03-05"),  # no time
        ("%F %H", "2024-03-05 14"),  # no minute
        ("%F %I:%M", "2024-03-05 02:07"),  # morning or afternoon?
        ("%F %I:%M %p", "2024-03-05 13:07 PM"),
        ("%F %H:%M %p", "2024-03-05 13:07 AM"),
        ("%F %T", "2024-03-05 14:07:60"),
        ("%F %s", "2024-03-05 0"),
        ("%F %H:%M%.f", "2024-03-05 14:07.5"),  # a fraction of what?
    ],
)
def test_no_such_datetime(fmt: str, text: str) -> None:
    assert parse_text(fmt, text, Kind.DATETIME) is None


@pytest.mark.parametrize(
    ("fmt", "want", "native"),
    [
        ("%d/%m/%Y", Kind.DATE, True),
        ("%A %d %B %Y %I:%M %p", Kind.DATETIME, True),
        ("%Y%j", Kind.DATE, True),
        ("%G-W%V-%u", Kind.DATE, False),
        ("%s", Kind.DATETIME, False),
        ("%Y-%m-%d", Kind.DATETIME, True),  # always null
    ],
)
def test_which_formats_spark_reads(fmt: str, want: Kind, native: bool) -> None:
    assert (sql_parse(fmt, "x", want) is not None) is native


_MOMENTS = st.datetimes(min_value=dt.datetime(1, 1, 1), max_value=dt.datetime(9999, 12, 31, 23, 59, 59, 999_999))


@given(_MOMENTS, st.sampled_from(["%Y-%m-%dT%H:%M:%S%.6f", "%A %B %-d %Y %r%.6f", "%Y%j%H%M%S%6f", "%F %T.%f"]))
def test_what_is_written_is_read_back(moment: dt.datetime, fmt: str) -> None:
    assert parse_text(fmt, format_value(fmt, moment), Kind.DATETIME) == moment


@given(st.text(alphabet="%YmdHMSjbBaApf.-_03 /T", max_size=12), st.text(max_size=20))
def test_no_format_and_no_text_breaks_the_reader(fmt: str, text: str) -> None:
    if check_format(fmt) is None:
        parsed = parse_text(fmt, text, Kind.DATETIME)
        assert parsed is None or isinstance(parsed, dt.datetime)
        format_value(fmt, MOMENT)
