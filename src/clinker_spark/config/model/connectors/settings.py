"""Settings that are passed on to a client by its own names, and secrets, which stand in the environment."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from clinker_spark.config.model.base import Finding, Model
from clinker_spark.config.values import Words, problem, shown

_SECRET = re.compile(r"password|passwd|passfile|secret|\.pem$|token(?!\.endpoint)|credential|oauthbearer\.config", re.I)
_HELP = "write { env: NAME }, and set the variable NAME where the stream is started"


class FromEnvironment(Model):
    """A value that a variable of the environment holds."""

    env: Words
    """The name of the variable."""


def _read_settings(value: Any) -> Any:
    if not isinstance(value, dict):
        raise problem(
            "E007", f"'{{key}}' must be a mapping, not {shown(value)}", "write name: value, one below another"
        )
    return {str(name): _read_setting(str(name), setting) for name, setting in value.items()}


def _read_setting(name: str, value: Any) -> str | FromEnvironment:
    if isinstance(value, FromEnvironment):
        return value
    if isinstance(value, dict) and list(value) == ["env"] and isinstance(value["env"], str) and value["env"]:
        return FromEnvironment(env=str(value["env"]))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise problem("E007", f"the setting '{name}' must be a text or {{ env: NAME }}, not {shown(value)}", _HELP)


_ENV_SCHEMA = {
    "type": "object",
    "properties": {"env": {"type": "string"}},
    "required": ["env"],
    "additionalProperties": False,
}
_SETTING = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}, _ENV_SCHEMA]}
Settings = Annotated[
    dict[str, str | FromEnvironment],
    BeforeValidator(_read_settings),
    WithJsonSchema({"type": "object", "additionalProperties": _SETTING}),
]
"""Settings of a client by its own names."""


def check_settings(key: str, settings: Mapping[str, str | FromEnvironment], own: Collection[str]) -> Iterator[Finding]:
    """Secrets that stand in the file, and settings that are not for users to make."""
    for name, value in settings.items():
        if name in own:
            yield Finding("E007", f"'{name}' is set by clinker", (key, name), "remove it", on_key=True)
        elif isinstance(value, str) and _SECRET.search(name):
            yield Finding("E528", f"'{name}' is a secret, and stands in the file", (key, name), _HELP)
