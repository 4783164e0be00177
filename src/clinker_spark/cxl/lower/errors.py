"""The error channel as SQL: the first failure that holds, as a struct, or null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clinker_spark.cxl.builtins.sqltext import NULL_STRING, sql_string
from clinker_spark.cxl.errors import ErrorKind
from clinker_spark.cxl.hidden import ERROR_TYPE
from clinker_spark.cxl.lower.plan import Failing

Named = tuple[Failing, str | None]
"""A failure, and the column being computed."""

NO_ERROR = f"CAST(NULL AS {ERROR_TYPE})"
NO_VALUE = NULL_STRING
_FLAG = f"CAST(named_struct('kind', '', 'field', '', 'value', '', 'message', '') AS {ERROR_TYPE})"


def failing(when: str, kind: ErrorKind, message: str, level: int = 0, value: str = NO_VALUE) -> Failing:
    """A failure of the language: where `when` holds, with a fixed message and SQL for the offending value."""
    return Failing(when, sql_string(kind.value), value, sql_string(message), level)


def _struct(f: Failing, field: str | None) -> str:
    name = f.field or (NO_VALUE if field is None else sql_string(field))
    return f"named_struct('kind', {f.kind}, 'field', {name}, 'value', {f.value}, 'message', {f.message})"


def first_error(failures: Sequence[Named], *, texts: bool = True) -> str:
    """The error of a record: a CASE over all failures, each with the column being computed. Without `texts` it only
    says that there is one: SQL for the text of a float is long, and Spark compiles it whether or not it ever runs."""
    if not failures:
        return NO_ERROR
    arms = " ".join(f"WHEN {f.when} THEN {_struct(f, name) if texts else _FLAG}" for f, name in failures)
    return f"CASE {arms} END"


def passed_on(struct: str, level: int) -> Failing:
    """A failure found elsewhere (in a lambda, in Python), as an error struct."""
    return Failing(f"{struct} IS NOT NULL", f"{struct}.kind", f"{struct}.value", f"{struct}.message", level)


def passed_on_whole(struct: str, level: int) -> Failing:
    """Like `passed_on`, for an error that already names the column being computed."""
    return replace(passed_on(struct, level), field=f"{struct}.field")
