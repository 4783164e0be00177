"""As much of JSON Schema as our schema uses, to compare what editors accept with what is loaded."""

from __future__ import annotations

import re
from typing import Any

_TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {
    "$defs", "$ref", "$schema", "additionalProperties", "anyOf", "const", "default", "description", "discriminator",
    "enum", "examples", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength",
    "minProperties", "minimum", "oneOf", "pattern", "prefixItems", "properties", "required", "title", "type",
}  # fmt: skip


def accepts(schema: Any, value: Any, root: Any) -> bool:
    """Is a value valid?"""
    if schema is True:
        return True
    if schema is False:
        return False
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema and not accepts(resolve(schema["$ref"], root), value, root):
        return False
    if "anyOf" in schema and not any(accepts(option, value, root) for option in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(accepts(option, value, root) for option in schema["oneOf"]) != 1:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    return (
        _is(schema.get("type"), value)
        and _bounds(schema, value)
        and (not isinstance(value, dict) or _object(schema, value, root))
        and (not isinstance(value, list) or _array(schema, value, root))
    )


def resolve(reference: str, root: Any) -> Any:
    found = root
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


def _is(name: str | None, value: Any) -> bool:
    if name is None:
        return True
    if name in ("integer", "number"):
        numbers = int if name == "integer" else int | float
        return isinstance(value, numbers) and not isinstance(value, bool)
    return isinstance(value, _TYPES[name])


def _bounds(schema: Any, value: Any) -> bool:
    if isinstance(value, str):
        return schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 10**9) and bool(
            re.search(schema.get("pattern", ""), value)
        )
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(schema.get("minimum", -(10**30)) <= value <= schema.get("maximum", 10**30))
    return True


def _object(schema: Any, value: dict[str, Any], root: Any) -> bool:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    return (
        all(name in value for name in schema.get("required", ()))
        and schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", 10**9)
        and all(accepts(properties.get(name, others), item, root) for name, item in value.items())
    )


def _array(schema: Any, value: list[Any], root: Any) -> bool:
    first = schema.get("prefixItems", [])
    return (
        schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 10**9)
        and all(accepts(s, item, root) for s, item in zip(first, value, strict=False))
        and all(accepts(schema.get("items", True), item, root) for item in value[len(first) :])
    )
