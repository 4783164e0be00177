"""The JSON Schema of pipeline files, for editors: made from the models, with the docstrings of their fields.

The docstrings are read from the source here and only here: pydantic would do it while the models are defined, and
every command would pay for it.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from functools import cache, reduce
from itertools import pairwise
from operator import or_
from typing import Annotated, Any

from pydantic import Field, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import CoreSchema

from clinker_spark.config.model.base import Model
from clinker_spark.config.model.documents.files import CompositionDocument, PipelineDocument
from clinker_spark.config.node_types import NODE_TYPES
from clinker_spark.config.refused import REFUSED, default_of

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
        for name in REFUSED.get(model, ()):
            self._refuse(found["properties"], model, name)
        return found

    def _refuse(self, properties: dict[str, Any], model: type[Model], name: str) -> None:
        """A key that only its default value is allowed for: without one, it is as unknown as any other."""
        default = default_of(model, name)
        described = properties.pop(model.model_fields[name].alias or name)
        if isinstance(default, str | int | float):
            about = f"{described['description']} Not supported yet: {REFUSED[model][name]}."
            properties[name] = {"const": default, "default": default, "description": about}


def json_schema(document: str = "pipeline") -> dict[str, Any]:
    """The schema of a kind of file: pipeline or composition."""
    model = DOCUMENTS[document]
    found = _with_node_types(model).model_json_schema(by_alias=True, schema_generator=_Generate)
    definitions = dict(sorted(found.pop("$defs", {}).items()))
    head = {"$schema": DIALECT, "title": _TITLES[document], "description": inspect.getdoc(model)}
    return {**head, **{k: v for k, v in found.items() if k not in head}, "$defs": definitions}


def _with_node_types(document: type[Model]) -> type[Model]:
    """The document whose nodes are of the types that there are now: `type` says which."""
    models = (row.model for row in NODE_TYPES.values())
    node: Any = Annotated[reduce(or_, models), Field(discriminator="type")]
    nodes: Any = (Annotated[tuple[node, ...], Field(min_length=1)], ...)
    return create_model(document.__name__, __base__=document, __doc__=document.__doc__, nodes=nodes)


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
    """Drop titles and nulls, which say nothing to a person, and give bounds their names in JSON Schema. Alternatives
    become conditions, so that what is wrong inside one of them is said there, and not of all of them together."""
    if isinstance(schema, dict):
        _by_discriminator(schema)
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
            elif key not in ("default", "examples", "enum", "const", "required"):
                _tidy(value)
        _by_json_type(schema)
    elif isinstance(schema, list):
        for item in schema:
            _tidy(item)


def _by_discriminator(schema: dict[str, Any]) -> None:
    """Node types and file formats: `type` says which of the alternatives counts."""
    if "discriminator" not in schema:
        return
    found = schema.pop("discriminator")
    key, mapping = found["propertyName"], found["mapping"]
    del schema["oneOf"]
    schema["type"] = "object"
    schema["required"] = [key]
    schema["properties"] = {key: {"enum": list(mapping)}}
    schema["allOf"] = [
        {"if": {"properties": {key: {"const": value}}, "required": [key]}, "then": {"$ref": reference}}
        for value, reference in mapping.items()
    ]


def _by_json_type(schema: dict[str, Any]) -> None:
    """A list, a mapping or a text: what it is says which of the alternatives counts."""
    options = schema.get("anyOf")
    if not isinstance(options, list):
        return
    kinds = ["object" if "$ref" in option else option.get("type") for option in options]
    if len({*kinds}) < len(kinds) or None in kinds or not {*kinds} & {"object", "array"}:
        return
    del schema["anyOf"]
    schema["type"] = kinds
    plain = ({"type": "string"}, {"type": "object"})
    cases = [
        {"if": {"type": kind}, "then": option}
        for kind, option in zip(kinds, options, strict=True)
        if option not in plain
    ]
    if cases:
        schema["allOf"] = cases


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
