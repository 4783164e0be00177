"""`validations:` of a transform: named checks and conditions, as programs that say whether a record is good."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clinker_spark.config.model.transform import TransformNode, Validation
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.cxl.conditions import as_program, compile_condition
from clinker_spark.cxl.errors import CxlError
from clinker_spark.plan.bind.node import NodeBinder
from clinker_spark.plan.columns import OK_COLUMN
from clinker_spark.plan.nodes.base import Schema
from clinker_spark.plan.nodes.record_rules import Check


@dataclass(frozen=True)
class NamedCheck:
    """A check with a name: the arguments it needs, and the CXL condition it stands for."""

    args: tuple[str, ...]
    condition: Callable[[str, Mapping[str, Any]], str]
    says: str


def _literal(value: Any) -> str:
    return "null" if value is None else json.dumps(value, ensure_ascii=False)


def _range(field: str, args: Mapping[str, Any]) -> str:
    return f"{field} >= {_literal(args['min'])} and {field} <= {_literal(args['max'])}"


def _one_of(field: str, args: Mapping[str, Any]) -> str:
    return " or ".join(f"{field} == {_literal(value)}" for value in args["values"]) or "false"


NAMED: dict[str, NamedCheck] = {
    "not_null": NamedCheck((), lambda f, a: f"{f} != null", "must not be null"),
    "not_empty": NamedCheck((), lambda f, a: f'{f} != null and {f}.to_string() != ""', "must not be empty"),
    "positive": NamedCheck((), lambda f, a: f"{f} > 0", "must be above 0"),
    "not_negative": NamedCheck((), lambda f, a: f"{f} >= 0", "must not be below 0"),
    "min": NamedCheck(("min",), lambda f, a: f"{f} >= {_literal(a['min'])}", "is too small"),
    "max": NamedCheck(("max",), lambda f, a: f"{f} <= {_literal(a['max'])}", "is too large"),
    "range": NamedCheck(("min", "max"), _range, "is out of range"),
    "one_of": NamedCheck(("values",), _one_of, "is none of the allowed values"),
    "matches": NamedCheck(("pattern",), lambda f, a: f"{f}.matches({_literal(a['pattern'])})", "has another form"),
    "min_length": NamedCheck(("length",), lambda f, a: f"{f}.length() >= {_literal(a['length'])}", "is too short"),
    "max_length": NamedCheck(("length",), lambda f, a: f"{f}.length() <= {_literal(a['length'])}", "is too long"),
}


def bind_checks(binder: NodeBinder, node: TransformNode, schema: Schema) -> tuple[Check, ...] | None:
    """The checks of a transform against the columns it leaves; None when one is wrong, which is noted then."""
    result = [_bind(binder, validation, i, schema) for i, validation in enumerate(node.config.validations)]
    return None if any(check is None for check in result) else tuple(check for check in result if check is not None)


def _bind(binder: NodeBinder, validation: Validation, i: int, schema: Schema) -> Check | None:
    at: tuple[str | int, ...] = ("config", "validations", i)
    named = NAMED.get(validation.check_)
    if validation.field is not None and validation.field not in schema:
        help_text = did_you_mean(validation.field, schema) or f"the columns are {', '.join(schema)}"
        binder.problem("E203", f"there is no column '{validation.field}'", *at, "field", help=help_text)
        return None
    says = f"the record fails '{validation.check_}'"
    if named is not None:
        problem = _arguments(validation, named)
        if problem is not None:
            binder.problem("E017", problem[0], *at, "check", help=problem[1])
            return None
        assert validation.field is not None
        text = named.condition(validation.field, validation.args or {})
        says = f"'{validation.field}' {named.says}"
        try:
            condition = compile_condition(text, dict(schema), name=binder.name)
        except CxlError as error:
            message = f"'{validation.check_}' does not fit column '{validation.field}': {error.diagnostics[0].message}"
            binder.problem("E017", message, *at, "check", help=error.diagnostics[0].help)
            return None
    else:
        if validation.check_.isidentifier() and (validation.args or validation.check_ not in schema):
            help_text = did_you_mean(validation.check_, NAMED) or f"the checks are {', '.join(NAMED)}; or a condition"
            binder.problem("E017", f"there is no check '{validation.check_}'", *at, "check", help=help_text)
            return None
        condition = binder.compile(*at, "check", schema=schema, condition=True)
        if condition is None:
            return None
        if validation.args:
            message = "'args' has no effect here: a condition has its values in it"
            binder.problem("W027", message, *at, "args", help="remove the key", key=True)
    plain = "".join(c if c.isalnum() else "_" for c in validation.check_)
    name = (
        validation.name
        or f"{validation.field + ':' if validation.field else ''}{plain if named is None else validation.check_}"
    )
    return Check(
        name=name,
        field=validation.field,
        program=as_program(schema, [(OK_COLUMN, condition.value)]),
        severity=validation.severity,
        message=validation.message or says,
    )


def _arguments(validation: Validation, named: NamedCheck) -> tuple[str, str] | None:
    if validation.field is None:
        return f"'{validation.check_}' needs a 'field'", "name the column that it looks at"
    given = set(validation.args or {})
    wanted = set(named.args)
    if given != wanted:
        shown = ", ".join(f"{name}: ..." for name in named.args)
        help_text = f"write args: {{ {shown} }}" if named.args else "remove 'args'"
        return f"'{validation.check_}' takes {', '.join(named.args) or 'no arguments'}", help_text
    if validation.check_ == "one_of" and not isinstance((validation.args or {})["values"], list | tuple):
        return "'values' must be a list", "write args: { values: [a, b] }"
    return None
