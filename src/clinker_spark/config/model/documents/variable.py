"""Variables: their types, their values, and those that a pipeline declares in `vars:`.

>>> from clinker_spark.config.tree.scalars import Plain
>>> read_value("date", "2026-01-31"), read_value("int", Plain("5"))
(datetime.date(2026, 1, 31), 5)
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal

from clinker_spark.config.model.base import Finding, Model
from clinker_spark.config.tree.scalars import as_bool, as_float, as_int
from clinker_spark.config.values import Text, shown

VarType = Literal["string", "int", "float", "bool", "date", "date_time"]
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_HELP = {
    "int": "write a whole number, such as 5",
    "float": "write a number, such as 0.5",
    "bool": "write true or false",
    "date": "write a date, such as 2026-01-31",
    "date_time": "write a date and a time, such as 2026-01-31T08:00:00",
    "string": "write a text",
}


def read_value(kind: VarType, given: Any) -> Any:
    """A value of the declared type from what stands in the file. Raises ValueError with what to write."""
    found: Any = None
    if kind == "string" and isinstance(given, str):
        found = str(given)
    elif kind == "bool":
        found = as_bool(given)
    elif kind == "int":
        found = as_int(given)
        found = found if found is not None and -(2**63) <= found < 2**63 else None
    elif kind == "float":
        found = as_float(given)
    elif kind in ("date", "date_time") and isinstance(given, str):
        found = _moment(kind, given)
    if found is None:
        raise ValueError(_HELP[kind])
    return found


def _moment(kind: str, text: str) -> dt.date | None:
    try:
        if kind == "date":
            return dt.date.fromisoformat(text)
        found = dt.datetime.fromisoformat(text)
        return found if found.tzinfo is None else found.astimezone(dt.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


class VarDecl(Model):
    """A variable that programs read as $vars.name."""

    type: VarType
    """string, int, float, bool, date or date_time."""
    default: Any = None
    """Its value, unless --set gives another one."""
    description: Text | None = None

    example: ClassVar[str] = "{ type: int, default: 5 }"

    def check(self) -> Iterator[Finding]:
        yield from check_default(self.type, self.default)

    @property
    def value(self) -> Any:
        """The default as a value of the declared type; None when there is none."""
        return None if self.default is None else read_value(self.type, self.default)


def check_default(kind: VarType, default: Any) -> Iterator[Finding]:
    """Is a default of its declared type?"""
    if default is None:
        return
    try:
        read_value(kind, default)
    except ValueError as error:
        yield Finding("E014", f"the default {shown(default)} is no {kind}", ("default",), str(error))


def check_names(names: Iterable[str], what: str) -> Iterator[Finding]:
    """Names that programs use must be words."""
    for name in names:
        if not NAME.fullmatch(name):
            help_text = "use letters, digits and '_', and no digit at the start"
            yield Finding("E014", f"'{name}' cannot name a {what}", (name,), help_text, on_key=True)
