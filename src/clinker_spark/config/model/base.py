"""What all models share: strict keys, frozen values, findings that a single field cannot have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from clinker_spark.config.values import problem


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with a model whose fields are each right. `at` is the way to it from the model."""

    code: str
    message: str
    at: tuple[str | int, ...] = ()
    help: str | None = None
    on_key: bool = False
    """Point at the key, not at its value."""
    see: tuple[tuple[str | int, ...], str] | None = None
    """A further place, with what to say there."""

    def under(self, *prefix: str | int) -> Finding:
        """The same finding, seen from further up."""
        see = None if self.see is None else ((*prefix, *self.see[0]), self.see[1])
        return replace(self, at=(*prefix, *self.at), see=see)


@dataclass(frozen=True, slots=True)
class Gone:
    """A key that some version of the language had, and what to do instead."""

    message: str
    help: str
    code: str = "E005"


class Model(BaseModel):
    """The base of every model. A docstring after a field is its description in the JSON Schema."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, hide_input_in_errors=True)

    gone: ClassVar[dict[str, Gone]] = {}
    """Keys that are refused with an explanation of their own."""
    later: ClassVar[dict[str, str]] = {}
    """Keys that are not supported yet, and what they are about."""

    example: ClassVar[str] = ""
    """How it is written in one line, for those who wrote something else."""

    def check(self) -> Iterator[Finding]:
        """What is wrong between the fields. Called when all of them are right."""
        yield from ()


def without_effect(model: Model, keys: Iterable[str], why: str, *at: str | int) -> Iterator[Finding]:
    """A warning for each of these keys that is given another value than its default, and that nothing looks at here.

    `at` is the way from whoever checks to the model."""
    for name in keys:
        if name in model.model_fields_set:
            info = type(model).model_fields[name]
            if getattr(model, name) != info.get_default(call_default_factory=True):
                key = info.alias or name
                yield Finding("W027", f"'{key}' has no effect here: {why}", (*at, key), "remove the key", on_key=True)


class Also:
    """Another way to write a value: `read` turns it into the usual one, `schemas` describe it to editors."""

    def __init__(self, read: Callable[[Any], Any], *schemas: dict[str, Any]) -> None:
        self.read = read
        self.schemas = schemas

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        usual = handler(schema)
        return {"anyOf": [usual, *self.schemas]} if self.schemas else usual


def not_yet(wanted: dict[str, str]) -> BeforeValidator:
    """Refuse values that a later version will know, with E009: value (or `{}` for a mapping) -> what it is about."""

    def read(value: Any) -> Any:
        about = wanted.get("{}") if isinstance(value, dict) else wanted.get(value) if isinstance(value, str) else None
        if about is not None:
            raise problem("E009", f"{about} not supported yet", "remove the key to use the default")
        return value

    return BeforeValidator(read)


STRING = {"type": "string"}


def as_list(value: Any) -> Any:
    """`x` as `[x]`."""
    return [value] if isinstance(value, str) else value


ONE_OR_MORE = Also(as_list, STRING)
