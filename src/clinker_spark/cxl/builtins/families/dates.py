"""The methods of Date and DateTime. What would leave the years 1 to 9999 is null."""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

from clinker_spark.core.types import DATE, DATETIME, INT, STRING, Kind, Type
from clinker_spark.cxl.builtins.table import NOT_LITERAL, Builtin, Failure, Overload, SqlCall
from clinker_spark.cxl.dates.formats import check_format, format_value
from clinker_spark.cxl.dates.formats_sql import sql_format
from clinker_spark.cxl.errors import ErrorKind
from clinker_spark.cxl.values import div_trunc

_MOMENTS = (DATE, DATETIME)


def _day(sql: str, type: Type) -> str:
    return sql if type.kind is Kind.DATE else f"CAST({sql} AS DATE)"


# ---------------------------------------------------------------- parts


def _date_part(name: str, doc: str, examples: Any) -> Builtin:
    def run(value: dt.date) -> int:
        return int(getattr(value, name))

    return Builtin(
        name,
        "date",
        doc,
        (
            Overload((DATE,), INT, run, f"CAST({name}({{0}}) AS BIGINT)", vector=f"dates.{name}"),
            Overload((DATETIME,), INT, run, f"CAST({name}(CAST({{0}} AS DATE)) AS BIGINT)", vector=f"dates.{name}"),
        ),
        examples=examples,
    )


def _time_part(name: str, doc: str, examples: Any) -> Builtin:
    def run(value: dt.datetime) -> int:
        return int(getattr(value, name))

    return Builtin(
        name,
        "date",
        f"{doc}; null for a Date, which has no time of day.",
        (
            Overload((DATETIME,), INT, run, f"CAST({name}({{0}}) AS BIGINT)", vector=f"dates.{name}"),
            Overload((DATE,), INT.as_nullable(), lambda value: None, "CAST(NULL AS BIGINT)", vector="dates.no_time"),
        ),
        examples=examples,
    )


# ---------------------------------------------------------------- moving

_MIN, _MAX = dt.date.min, dt.date.max
_MOST_DAYS = (_MAX - _MIN).days
_MOST_MONTHS = 9999 * 12 - 1


def _add_days(value: Any, days: int) -> Any:
    try:
        return value + dt.timedelta(days=days)
    except OverflowError:
        return None


def add_months(value: Any, months: int) -> Any:
    """The same day so many months on, or the last day of that month; None beyond the calendar.

    >>> add_months(dt.date(2024, 1, 31), 1), add_months(dt.date(2024, 2, 29), -12)
    (datetime.date(2024, 2, 29), datetime.date(2023, 2, 28))
    """
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        return None
    return value.replace(year=year, month=month + 1, day=min(value.day, calendar.monthrange(year, month + 1)[1]))


def _add_days_sql(call: SqlCall) -> str:
    x, n, type = call.args[0], call.args[1], call.types[0]
    day, days = _day(x, type), call.literal(1)
    if days is None or (days is not NOT_LITERAL and abs(days) > _MOST_DAYS):
        return _nothing(type)
    if days is NOT_LITERAL:
        inside = (
            f"{n} BETWEEN -{_MOST_DAYS}L AND {_MOST_DAYS}L AND try_add(CAST(unix_date({day}) AS BIGINT), {n}) "
            f"BETWEEN -719162L AND 2932896L"
        )
        return f"CASE WHEN {inside} THEN {_moved_days(x, f'CAST({n} AS INT)', type)} END"
    inside = _within(day, days, (_MAX if days > 0 else _MIN) - dt.timedelta(days=days))
    return f"CASE WHEN {inside} THEN {_moved_days(x, str(days), type)} END"


def _moved_days(x: str, days: str, type: Type) -> str:
    return f"date_add({x}, {days})" if type.kind is Kind.DATE else f"{x} + make_dt_interval({days})"


def _add_months_sql(per_unit: int) -> Callable[[SqlCall], str]:
    def sql(call: SqlCall) -> str:
        x, n, type = call.args[0], call.args[1], call.types[0]
        day, units = _day(x, type), call.literal(1)
        most = _MOST_MONTHS // per_unit
        if units is None or (units is not NOT_LITERAL and abs(units) > most):
            return _nothing(type)
        if units is NOT_LITERAL:
            # held within bounds, because a shared subexpression may be computed outside of its guard
            held = f"CAST(least(greatest({n}, -{most}L), {most}L) AS INT)"
            months = f"{held} * {per_unit}" if per_unit > 1 else held
            index = f"year({day}) * 12 + month({day}) - 1 + {months}"
            inside = f"{n} BETWEEN -{most}L AND {most}L AND {index} BETWEEN 12 AND 119999"
            return f"CASE WHEN {inside} THEN {_moved_months(x, months, type)} END"
        months = units * per_unit
        # the first or last month that still arrives within the calendar
        year, month = divmod((9999 * 12 + 11 if months > 0 else 12) - months, 12)
        edge = dt.date(year, month + 1, calendar.monthrange(year, month + 1)[1] if months > 0 else 1)
        return f"CASE WHEN {_within(day, months, edge)} THEN {_moved_months(x, str(months), type)} END"

    return sql


def _moved_months(x: str, months: str, type: Type) -> str:
    return f"add_months({x}, {months})" if type.kind is Kind.DATE else f"{x} + make_ym_interval(0, {months})"


def _within(day: str, step: int, edge: dt.date) -> str:
    return f"{day} {'<=' if step > 0 else '>='} DATE'{edge.isoformat()}'"


def _nothing(type: Type) -> str:
    return f"CAST(NULL AS {'DATE' if type.kind is Kind.DATE else 'TIMESTAMP_NTZ'})"


def _months_written(form: str) -> Callable[[SqlCall], str | None]:
    return lambda call: form if call.literal(1) is not NOT_LITERAL else None


def _moving(name: str, doc: str, run: Callable[..., Any], sql: Callable[[SqlCall], str], examples: Any) -> Builtin:
    form = "dates.add_days" if name == "add_days" else _months_written(f"dates.{name}")
    overloads = tuple(Overload((t, INT), t.as_nullable(), run, sql, vector=form) for t in _MOMENTS)
    return Builtin(name, "date", doc, overloads, examples=examples)


# ---------------------------------------------------------------- differences

_DAY_MICROS = 86_400_000_000


def _diff_days(a: dt.date, b: dt.date) -> int:
    return a.toordinal() - b.toordinal()


def diff_months(a: dt.date, b: dt.date) -> int:
    """Whole months from `b` to `a`, toward zero: the day of the month (and time of day) must be reached.

    >>> diff_months(dt.date(2024, 3, 14), dt.date(2024, 1, 15)), diff_months(dt.date(2024, 2, 29), dt.date(2024, 1, 31))
    (1, 0)
    """
    return div_trunc(_position(a) - _position(b), 32 * _DAY_MICROS)


def _position(value: dt.date) -> int:
    """A number that grows with the moment, in which every month counts 32 days."""
    day = (value.year * 12 + value.month) * 32 + value.day
    if not isinstance(value, dt.datetime):
        return day * _DAY_MICROS
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    return day * _DAY_MICROS + seconds * 1_000_000 + value.microsecond


def _position_sql(x: str, type: Type, micros: bool) -> str:
    day = _day(x, type)
    count = f"CAST((year({day}) * 12 + month({day})) * 32 + day({day}) AS BIGINT)"
    if not micros:
        return count
    count = f"{count} * {_DAY_MICROS}L"
    if type.kind is Kind.DATE:
        return count
    seconds = f"CAST(hour({x}) * 3600 + minute({x}) * 60 AS BIGINT) * 1000000L"
    return f"{count} + {seconds} + CAST(extract(SECOND FROM {x}) * 1000000 AS BIGINT)"


def _diff_months_sql(months: int) -> Callable[[SqlCall], str]:
    def sql(call: SqlCall) -> str:
        micros = any(t.kind is Kind.DATETIME for t in call.types)
        a, b = (_position_sql(x, t, micros) for x, t in zip(call.args, call.types, strict=True))
        return f"({a} - ({b})) div {months * 32 * (_DAY_MICROS if micros else 1)}L"

    return sql


def _difference(name: str, doc: str, run: Callable[..., Any], sql: Callable[[SqlCall], str], examples: Any) -> Builtin:
    overloads = tuple(Overload((a, b), INT, run, sql, vector=f"dates.{name}") for a in _MOMENTS for b in _MOMENTS)
    return Builtin(name, "date", doc, overloads, examples=examples)


def _diff_days_sql(call: SqlCall) -> str:
    a, b = (_day(x, t) for x, t in zip(call.args, call.types, strict=True))
    return f"CAST(datediff({a}, {b}) AS BIGINT)"


# ---------------------------------------------------------------- text


def _format_overload(type: Type) -> Overload:
    def problem(literals: Sequence[Any]) -> str | None:
        fmt = literals[1] if len(literals) > 1 else None
        return check_format(fmt, type.kind) if isinstance(fmt, str) else None

    def check(literals: Sequence[Any]) -> tuple[int, str] | None:
        message = problem(literals)
        return None if message is None else (1, message)

    def sql(call: SqlCall) -> str | None:
        fmt = call.literal(1)
        if fmt is NOT_LITERAL:
            return None
        return (sql_format(fmt, call.args[0], type.kind) if fmt is not None else None) or "CAST(NULL AS STRING)"

    return Overload(
        (type, STRING),
        STRING,
        lambda value, fmt: format_value(fmt, value),
        sql,
        (Failure(ErrorKind.INVALID_FORMAT, "the date format does not fit", value=1),),
        check=check,
        python_reason="a date format that is computed has to be read on each record",
        safe=lambda literals: literals[1] is not NOT_LITERAL and problem(literals) is None,
        vector=lambda call: "dates.format_date" if call.literal(1) is not NOT_LITERAL else None,
    )


BUILTINS: tuple[Builtin, ...] = (
    _date_part("year", "The year.", (("#2024-03-15#.year()", "2024"), ("#0001-01-01#.year()", "1"))),
    _date_part("month", "The month, 1 to 12.", (("#2024-03-15#.month()", "3"), ("#2024-12-31#.month()", "12"))),
    _date_part("day", "The day of the month.", (("#2024-03-15#.day()", "15"), ("#2024-02-29#.day()", "29"))),
    _time_part(
        "hour",
        "The hour, 0 to 23",
        (('"2024-03-15T14:30:45".to_datetime().hour()', "14"), ("#2024-03-15#.hour()", "null")),
    ),
    _time_part(
        "minute",
        "The minute, 0 to 59",
        (('"2024-03-15T14:30:45".to_datetime().minute()', "30"), ("#2024-03-15#.minute()", "null")),
    ),
    _time_part(
        "second",
        "The second, 0 to 59",
        (('"2024-03-15T14:30:45".to_datetime().second()', "45"), ("#2024-03-15#.second()", "null")),
    ),
    _moving(
        "add_days",
        "So many days later (earlier when negative); null beyond the years 1 to 9999.",
        _add_days,
        _add_days_sql,
        (("#2024-01-15#.add_days(10)", '"2024-01-25"'), ("#2024-03-01#.add_days(-1)", '"2024-02-29"')),
    ),
    _moving(
        "add_months",
        "So many months later, on the last day of the month where that day does not exist.",
        add_months,
        _add_months_sql(1),
        (("#2024-01-31#.add_months(1)", '"2024-02-29"'), ("#2024-03-15#.add_months(-2)", '"2024-01-15"')),
    ),
    _moving(
        "add_years",
        "So many years later; a 29 February becomes the 28th where there is none.",
        lambda value, years: add_months(value, years * 12),
        _add_months_sql(12),
        (("#2024-02-29#.add_years(1)", '"2025-02-28"'), ("#2024-03-15#.add_years(-4)", '"2020-03-15"')),
    ),
    _difference(
        "diff_days",
        "Calendar days from the argument to the receiver; the time of day does not count.",
        _diff_days,
        _diff_days_sql,
        (("#2024-03-15#.diff_days(#2024-03-01#)", "14"), ("#2024-01-01#.diff_days(#2024-03-15#)", "-74")),
    ),
    _difference(
        "diff_months",
        "Whole months from the argument to the receiver, toward zero; the day (and time) of the month must be reached.",
        diff_months,
        _diff_months_sql(1),
        (("#2024-03-15#.diff_months(#2024-01-15#)", "2"), ("#2024-03-14#.diff_months(#2024-01-15#)", "1")),
    ),
    _difference(
        "diff_years",
        "Whole years from the argument to the receiver, toward zero.",
        lambda a, b: div_trunc(diff_months(a, b), 12),
        _diff_months_sql(12),
        (("#2024-03-15#.diff_years(#2020-01-15#)", "4"), ("#2024-01-14#.diff_years(#2020-01-15#)", "3")),
    ),
    Builtin(
        "format_date",
        "date",
        "The date as text, by a strftime format such as `%d/%m/%Y`; names are English.",
        (_format_overload(DATETIME), _format_overload(DATE)),
        examples=(
            ('#2024-03-15#.format_date("%B %d, %Y")', '"March 15, 2024"'),
            ('#2024-03-15#.format_date("%Y/%m/%d")', '"2024/03/15"'),
        ),
    ),
)
