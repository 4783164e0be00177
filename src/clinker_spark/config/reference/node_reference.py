"""The reference of node types, for people: made from the models, with the docstrings of their fields."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from clinker_spark.config.model.base import Model
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.node_types import NODE_TYPES, NodeType
from clinker_spark.config.reference.json_schema import field_docs
from clinker_spark.config.refused import FOR_PEOPLE, REFUSED


def reference() -> str:
    """The page with all types."""
    head = (
        "# Node types\n\n"
        "Every node has a `type`, a `name` and, but for sources, inputs. "
        "[Pipelines](pipelines.md) tells what they are for; this page lists what can be written.\n"
    )
    return "\n".join([head, *(entry(row) for row in NODE_TYPES.values())])


def entry(row: NodeType) -> str:
    """The entry of one type."""
    parts = [f"## {row.word}\n", f"{_about(row.model)}\n"]
    if row.aliases:
        parts.append(f"Also written {', '.join(f'`type: {word}`' for word in row.aliases)}.\n")
    parts.append(_table(_keys(row.model, "")))
    variants = {_word(model): [*_keys(model, "config.")] for model in _variants(row.model)}
    if variants:
        common = [key for key in next(iter(variants.values())) if all(key in keys for keys in variants.values())]
        parts += ["In every format:\n", _table(common)]
        for word, keys in variants.items():
            if own := [key for key in keys if key not in common]:
                parts += [f"With `config.type: {word}`:\n", _table(own)]
    return "\n".join(parts)


def _about(model: type[Model]) -> str:
    return (inspect.getdoc(model) or "").replace("\n", " ")


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = ["| Key | What it is |", "|---|---|", *(f"| `{key}` | {about} |" for key, about in rows)]
    return "\n".join(lines) + "\n"


def _keys(model: type[Model], prefix: str) -> Iterator[tuple[str, str]]:
    """Every key and what to say about it; the keys of `config:` and `options:` one by one, if there is only one kind
    of them."""
    docs = field_docs(model)
    hidden = {"type", *REFUSED.get(model, ())}
    hidden |= {"name", *FOR_PEOPLE[NodeModel]} if issubclass(model, NodeModel) else set()
    for name, info in model.model_fields.items():
        if name in hidden:
            continue
        key = prefix + (info.alias or name)
        inner = _model(info.annotation)
        if name in ("config", "options") and inner is not None:
            yield from _keys(inner, f"{key}.")
            continue
        about = docs.get(name) or (_about(inner) if inner is not None else "")
        yield key, f"{about} {_values(info)}".strip().replace("|", "\\|")


def _values(info: Any) -> str:
    """What a key can be, and what it is when it is not given."""
    parts = []
    if get_origin(info.annotation) is Literal:
        parts.append(f"One of {', '.join(f'`{value}`' for value in get_args(info.annotation))}.")
    default = info.get_default(call_default_factory=True) if not info.is_required() else None
    if info.is_required():
        parts.append("Required.")
    elif isinstance(default, str | int | float) and default != "":
        parts.append(f"Default: `{str(default).lower() if isinstance(default, bool) else default}`.")
    return " ".join(parts)


def _models(annotation: Any) -> list[type[Model]]:
    options = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return [option for option in options if inspect.isclass(option) and issubclass(option, Model)]


def _model(annotation: Any) -> type[Model] | None:
    """The one model that a value is, if it is one."""
    found = _models(annotation)
    return found[0] if len(found) == 1 else None


def _variants(model: type[Model]) -> list[type[Model]]:
    """The models that `config.type` chooses from."""
    found = _models(model.model_fields["config"].annotation)
    return found if len(found) > 1 else []


def _word(model: type[Model]) -> str:
    return str(get_args(model.model_fields["type"].annotation)[0])
