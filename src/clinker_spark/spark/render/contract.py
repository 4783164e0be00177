"""What a file format is given and what it answers. Kept apart from `rendering`, which knows the formats."""

from __future__ import annotations

from dataclasses import dataclass

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.core.types import Type
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.lower.plan import Failing

NAN = "nan_in_output_field"
UNWRITABLE = "validation_failure"


@dataclass(frozen=True)
class OutColumn:
    """A column of the file: its name there, its CXL type, and a cheap SQL text that reads it (it is repeated)."""

    name: str
    type: Type
    sql: str
    cells: str | None = None
    """For CSV: SQL for the finished cell, together with those of the next columns where it is the same."""
    json: str | None = None
    """For JSON: SQL for the finished value, where the source had one; `type` and `sql` are those of its text."""
    failing: tuple[tuple[Failing, str | None], ...] = ()
    """Why a value that became this text cannot be written."""


@dataclass(frozen=True)
class Rendering:
    """A file is `prefix`, the lines with `separator` between them, `suffix`; or `empty` if there are no records."""

    line: str
    """SQL text: one record as STRING, never null where `error` is null."""
    error: str | None
    """SQL text: null, or an ERROR_TYPE struct for a record that cannot be written. None: all records can."""
    prefix: bytes
    separator: bytes
    suffix: bytes
    empty: bytes
    repeat_prefix: bool
    """Does each of several split files need the prefix? Else only the first may have it."""


def unwritable(when: str, value: str, message: str, kind: str = UNWRITABLE) -> Failing:
    """A record that cannot be written where the condition `when` holds; `value` is SQL text, `message` is text."""
    return Failing(when, f"'{kind}'", value, sql_string(message))


def refuse(code: str, message: str, help_text: str) -> InputError:
    """What is wrong with the output as a whole, found before anything runs. The caller knows the place."""
    return InputError([Diagnostic(code, message, help=help_text)])
