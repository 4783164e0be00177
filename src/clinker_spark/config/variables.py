"""`$vars`: the types and values of what is declared, and overriding them from the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from clinker_spark.config.errors import ConfigError
from clinker_spark.config.model.documents.variable import NAME, VarDecl, read_value
from clinker_spark.config.model.transform import Declaration
from clinker_spark.config.tree.scalars import Plain
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.span import Source, Span
from clinker_spark.core.types import Type, parse_type


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
