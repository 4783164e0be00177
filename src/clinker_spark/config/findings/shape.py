"""The way of a pydantic error through the models: which place in the file it means, and which model stands there.

A location such as `("config", "csv", "options", "delimitr")` names keys, positions and the tags of unions. Only the
models tell them apart, and only they know which keys would have been right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from clinker_spark.config.model.base import Model


@dataclass(frozen=True, slots=True)
class Place:
    """A location without tags, and the models on the way to it, outermost first (path to the model, model)."""

    path: tuple[str | int, ...]
    models: tuple[tuple[tuple[str | int, ...], type[Model]], ...]

    @property
    def around(self) -> tuple[tuple[tuple[str | int, ...], type[Model]], ...]:
        """The models that contain the place: for a missing key, not the model that should have been there."""
        return tuple((path, model) for path, model in self.models if len(path) < len(self.path)) or self.models[:1]


def follow(root: type[Model], location: Sequence[str | int]) -> Place:
    """Walk down from a model."""
    path: list[str | int] = []
    models: list[tuple[tuple[str | int, ...], type[Model]]] = [((), root)]
    here: Any = root
    for step in location:
        options = members(here)
        if len(options) > 1:  # a union of models: this step is the tag that chose one
            here = next((model for model in options if step in tags(model)), options[0])
            if is_model(here):  # or it is a list of them
                models.append((tuple(path), here))
            continue
        if step == "[key]":
            continue
        path.append(step)
        here = _inside(here, step)
        found = members(here)
        if len(found) == 1 and is_model(found[0]):
            models.append((tuple(path), found[0]))
    return Place(tuple(path), tuple(models))


def keys(model: type[Model]) -> dict[str, Any]:
    """The keys of a model as they are written, with their annotations."""
    return {info.alias or name: info.annotation for name, info in model.model_fields.items()}


def members(annotation: Any) -> list[Any]:
    """The types that a value may have, without None, and without texts beside models."""
    annotation = _bare(annotation)
    if get_origin(annotation) in (Union, UnionType):
        parts = [part for option in get_args(annotation) for part in members(option)]
        rich = [part for part in parts if is_model(part) or get_origin(part) is tuple]
        return rich or parts[:1]
    return [] if annotation is NoneType else [annotation]


def tags(model: Any) -> tuple[Any, ...]:
    """The values of `type` that choose a model in a union, or what it is called there."""
    if is_model(model) and (tag := getattr(model, "union_tag", None)) is not None:
        return (tag,)
    info = model.model_fields.get("type") if is_model(model) else None
    return get_args(info.annotation) if info is not None and get_origin(info.annotation) is Literal else ()


def is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Model)


def _bare(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _inside(annotation: Any, step: str | int) -> Any:
    options = members(annotation)
    here = options[0] if options else None
    if here is not None and is_model(here):
        return keys(here).get(str(step))
    arguments = get_args(here)
    if get_origin(here) is tuple and arguments and isinstance(step, int):
        return arguments[0] if Ellipsis in arguments else arguments[min(step, len(arguments) - 1)]
    if get_origin(here) is dict:
        return arguments[1]
    return None
