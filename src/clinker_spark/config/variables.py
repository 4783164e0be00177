"""`$vars`: declared types, their values, and overriding them from the command line.

>>> read_value("date", "2026-01-31"), read_value("int", Plain("5"))
(datetime.date(2026, 1, 31), 5)
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from clinker_spark.config.errors import ConfigError
from clinker_spark.config.tree.scalars import Plain, as_bool, as_float, as_int
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.span import Source, Span
from clinker_spark.core.types import Type, parse_type

if TYPE_CHECKING:
    from clinker_spark.config.model.pipeline import VarDecl
    from clinker_spark.config.model.transform import Declaration

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


def variable_types(declared: Mapping[str, VarDecl | Declaration]) -> dict[str, Type]:
    """The CXL type of each variable; one without a default may be null."""
    types = {}
    for name, decl in declared.items():
        found = parse_type(decl.type)
        assert found is not None
        types[name] = found.as_nullable() if decl.default is None else found
    return types


def variable_values(declared: Mapping[str, VarDecl], overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The value of every variable: the override, else the default, else null."""
    return {name: (overrides or {}).get(name, decl.value) for name, decl in declared.items()}


def parse_overrides(declared: Mapping[str, VarDecl], given: Iterable[str]) -> dict[str, Any]:
    """The values of `--set vars.x=5` options, each of its declared type. Raises `ConfigError` with all problems."""
    values: dict[str, Any] = {}
    found: list[Diagnostic] = []
    for text in given:
        source = Source("--set", text)
        target, equals, spelled = text.partition("=")
        name = target.strip().removeprefix("$").removeprefix("vars.")
        if not equals or not NAME.fullmatch(name):
            help_text = "write --set vars.name=value"
            found.append(
                _problem(source, Span(0, len(text)), f"'{text}' is not of the form vars.name=value", help_text)
            )
        elif name not in declared:
            at = target.find(name)
            known = ", ".join(declared) or "none"
            help_text = did_you_mean(name, declared) or f"the pipeline declares {known}"
            found.append(_problem(source, Span(at, at + len(name)), f"no variable is named '{name}'", help_text))
        else:
            try:
                values[name] = read_value(declared[name].type, Plain(spelled))
            except ValueError as error:
                span = Span(len(text) - len(spelled), len(text))
                message = f"'{name}' is declared as {declared[name].type}, which '{spelled}' is not"
                found.append(_problem(source, span, message, str(error)))
    if found:
        raise ConfigError(found)
    return values


def _problem(source: Source, span: Span, message: str, help_text: str) -> Diagnostic:
    return Diagnostic("E015", message, source, span, help_text)
