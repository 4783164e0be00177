"""The JSON Schema of pipeline files, for editors: made from the models, with the docstrings of their fields.

The docstrings are read from the source here and only here: pydantic would do it while the models are defined, and
every command would pay for it.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import CoreSchema

from clinker_spark.config.model.base import Model
from clinker_spark.config.model.nodes import CompositionDocument, PipelineDocument

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DOCUMENTS: dict[str, type[Model]] = {"pipeline": PipelineDocument, "composition": CompositionDocument}
_BOUNDS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
_NULL = {"type": "null"}
_TITLES = {"pipeline": "Clinker pipeline", "composition": "Clinker composition"}


class _Generate(GenerateJsonSchema):
    """pydantic's generator, with what our models add and without what only it needs."""

    def generate(self, schema: CoreSchema, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        found = super().generate(schema, mode)
        _tidy(found)
        return found

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        found = super().model_schema(schema)
        model = schema["cls"]
        docs = field_docs(model)
        for name, info in model.model_fields.items():
            described = found.get("properties", {}).get(info.alias or name)
            if isinstance(described, dict) and name in docs:
                described["description"] = docs[name]
        return found


def json_schema(document: str = "pipeline") -> dict[str, Any]:
    """The schema of a kind of file: pipeline or composition."""
    model = DOCUMENTS[document]
    found = model.model_json_schema(by_alias=True, schema_generator=_Generate)
    definitions = dict(sorted(found.pop("$defs", {}).items()))
    head = {"$schema": DIALECT, "title": _TITLES[document], "description": inspect.getdoc(model)}
    return {**head, **{k: v for k, v in found.items() if k not in head}, "$defs": definitions}


def json_schema_text(document: str = "pipeline") -> str:
    """The schema as a file."""
    return json.dumps(json_schema(document), indent=2, ensure_ascii=False) + "\n"


def field_docs(model: type[Any]) -> dict[str, str]:
    """The docstring after each field, those of its bases included."""
    docs: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, Model):
            docs |= _class_docs(base)
    return docs


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _class_docs(model: type[Any]) -> dict[str, str]:
    node = _classes(model.__module__).get(model.__name__)
    docs: dict[str, str] = {}
    body = node.body if node is not None else []
    for field, after in pairwise(body):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docs[name] = inspect.cleandoc(text).replace("\n", " ")
    return docs


def _tidy(schema: Any) -> None:
    """Drop titles and nulls, which say nothing to a person, and give bounds their names in JSON Schema."""
    if isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        _without_null(schema)
        for ours, theirs in _BOUNDS.items():
            if ours in schema:
                schema[theirs] = schema.pop(ours)
        for key, value in schema.items():
            if key in ("properties", "$defs") and isinstance(value, dict):
                for item in value.values():
                    _tidy(item)
            elif key not in ("default", "examples", "enum", "const", "required", "discriminator"):
                _tidy(value)
    elif isinstance(schema, list):
        for item in schema:
            _tidy(item)


def _without_null(schema: dict[str, Any]) -> None:
    """A key that has no value is left out, not written as null."""
    if schema.get("default", ...) is None:
        del schema["default"]
    options = schema.get("anyOf")
    if not isinstance(options, list) or _NULL not in options:
        return
    rest = [option for option in options if option != _NULL]
    if len(rest) == 1:
        del schema["anyOf"]
        schema.update({key: value for key, value in rest[0].items() if key not in schema})
    else:
        schema["anyOf"] = rest
