"""Findings of pydantic and of the models' own checks, as diagnostics in plain words at their places in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from clinker_spark.config.findings.shape import Place, follow, is_model, keys, members
from clinker_spark.config.model.base import Finding, Model
from clinker_spark.config.model.documents.files import LATER_FORMATS
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.refused import refused_keys
from clinker_spark.config.tree.yaml import Document, KeyPath, Mapping, Scalar
from clinker_spark.config.values import shown
from clinker_spark.core.diagnostics import Diagnostic, Label, Severity
from clinker_spark.core.diagnostics.suggest import did_you_mean, nearest
from clinker_spark.core.span import Span

M = TypeVar("M", bound=Model)

_QUOTED = re.compile(r"'([^']*)'")
_ADD = {
    "config": "add 'config:' with the settings of the node below it",
    "cxl": "add 'cxl: |' with the program below it",
    "default": "add 'default:' with the name of the branch for records that match no condition",
    "group_by": "add 'group_by: [column]'; [] makes one group of everything",
    "input": "add 'input:' with the name of the node that is read",
    "path": "add 'path:' with the file",
    "propagate_ck": "add 'propagate_ck: driver', or all, or { named: [column] }",
    "schema": "add 'schema:' with the columns: - { name: id, type: int }",
    "type": "add 'type:'",
    "use": "add 'use:' with the path of the *.comp.yaml file",
}
_ADD_TO_NODE = {
    "inputs": "add 'inputs: [a, b]' with the names of the nodes that are read",
    "name": "add 'name:' with a name that no other node has",
}
_MAPPINGS = {
    "'input'": "name the inputs: { orders: orders, products: products }",
    "'inputs'": "name the ports: { rows: orders }",
    "'conditions'": "name the branches: { big: amount > 1000 }",
}


def validate(
    model: type[M],
    document: Document,
    path: KeyPath,
    found: list[Diagnostic],
    data: Any = None,
    *,
    check: bool = True,
    shape: type[Model] | None = None,
) -> M | None:
    """The model of what stands at a path; None, and everything that is wrong, when it is none.

    `data` is what to read when it is not simply what stands there; `shape` is the model to explain errors by.
    """
    node = document.node(path)
    try:
        value = model.model_validate(data if data is not None or node is None else node.data())
    except ValidationError as error:
        found += _diagnostics(error, shape or model, document, path)
        return None
    if check:
        found += (finding_at(finding, document, path) for finding in findings(value))
    return value


def findings(value: Any, path: KeyPath = ()) -> Iterator[Finding]:
    """What the models themselves have to say, theirs and that of all models inside them."""
    if isinstance(value, Model):
        for finding in _once(list(value.check()), list(refused_keys(value))):
            yield finding.under(*path)
        for name, info in type(value).model_fields.items():
            if info.alias != "schema":  # columns are checked by what they belong to
                yield from findings(getattr(value, name), (*path, info.alias or name))
    elif isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from findings(item, (*path, i))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from findings(item, (*path, key))


def _once(own: list[Finding], refused: list[Finding]) -> Iterator[Finding]:
    """A wrong value of a key that is refused anyway is told as what it is; what the key lacks is not worth telling."""
    keys = {finding.at for finding in refused}
    kept = [finding for finding in own if finding.code != "E006" or finding.at not in keys]
    yield from kept
    told = {finding.at for finding in kept}
    yield from (finding for finding in refused if finding.at not in told)


def finding_at(finding: Finding, document: Document, base: KeyPath) -> Diagnostic:
    """A finding at its place in the file."""
    path = (*base, *finding.at)
    span = document.head_span(path) if finding.on_key else value_span(document, path)
    labels: tuple[Label, ...] = ()
    if finding.see is not None:
        there = (*base, *finding.see[0])
        named = there[-1:] in (("name",), ("path",))  # what is meant is not the key but what it says
        labels = (Label(document.span_of(there) if named else document.head_span(there), finding.see[1]),)
    severity = Severity.WARNING if finding.code.startswith("W") else Severity.ERROR
    return Diagnostic(
        finding.code, finding.message, document.source, span, finding.help, severity=severity, labels=labels
    )


def value_span(document: Document, path: KeyPath) -> Span:
    """The span of a value; of its key when it has none, or stands over many lines."""
    node = document.node(path)
    if node is None:  # one value in the place of a list of them
        around = document.nearest(path)
        node = around if isinstance(around, Scalar) else None
    if isinstance(node, Scalar) and (node.text or node.string):
        return node.span
    if node is not None and "\n" not in document.source.text[node.span.start : node.span.end] and node.size > 1:
        return node.span
    return document.head_span(path)


# ---------------------------------------------------------------- pydantic's errors


def _diagnostics(error: ValidationError, model: type[Model], document: Document, base: KeyPath) -> Iterator[Diagnostic]:
    details = error.errors(include_url=False)
    meant = set()
    for detail in details:
        if detail["type"] == "extra_forbidden":
            place = follow(model, detail["loc"])
            meant.add((place.path[:-1], nearest(str(place.path[-1]), keys(place.around[-1][1]))))
    for detail in details:
        path = follow(model, detail["loc"]).path
        # A key that is there under a wrong name is told once, where it stands.
        if detail["type"] != "missing" or (path[:-1], path[-1]) not in meant:
            yield _diagnostic(detail, model, document, base)


def _diagnostic(detail: ErrorDetails, model: type[Model], document: Document, base: KeyPath) -> Diagnostic:
    place = follow(model, detail["loc"])
    path = (*base, *place.path)
    context = detail.get("ctx") or {}
    kind, given = detail["type"], detail["input"]
    span = value_span(document, path)
    code, message, help_text = "E007", "", None
    if kind == "missing":
        span = document.head_span(path[:-1])
        code, message, help_text = _missing(place, document, base)
    elif kind == "extra_forbidden":
        span = document.key_span(path)
        code, message, help_text = _unknown(place, document, base)
    elif kind.startswith(("E", "W")) and "message" in context:
        label = key_name(path)
        code, message, help_text = kind, str(context["message"]).replace("'{key}'", label), context["help"] or None
    elif kind == "union_tag_invalid" and isinstance(document.node((*path, "type")), Scalar):
        span = value_span(document, (*path, "type"))
        code, message, help_text = _unknown_format(str(context["tag"]), str(context["expected_tags"]))
    elif kind == "union_tag_not_found" and isinstance(given, dict):
        span = document.head_span(path)
        code, message, help_text = (
            "E006",
            f"'type' is missing in {key_name(path)}",
            "add 'type: csv', or another format",
        )
    else:
        if kind == "union_tag_invalid":
            kind, given, path = "string_type", given.get("type"), (*path, "type")
            span = value_span(document, path)
        message, help_text = _unusable(kind, given, context, key_name(path))
        example = place.models[-1][1].example if place.models[-1][0] == place.path else ""
        help_text = f"write {example}" if example and kind == "model_type" else help_text
    return Diagnostic(code, message, document.source, span, help_text)


def _missing(place: Place, document: Document, base: KeyPath) -> tuple[str, str, str]:
    *_, (inside, model) = place.around
    key = str(place.path[-1])
    code = "E201" if key == "schema" else "E006"
    if isinstance(place.path[-1], int):
        return "E007", f"{key_name((*base, *place.path[:-1]))} has too few values", "write one more"
    where = owner((*base, *inside), document)
    of_nodes = _ADD_TO_NODE if issubclass(model, NodeModel) else {}
    return code, f"'{key}' is missing{where}", of_nodes.get(key) or _ADD.get(key, f"add '{key}:'")


def _unknown(place: Place, document: Document, base: KeyPath) -> tuple[str, str, str]:
    *_, (inside, model) = place.around
    key = str(place.path[-1])
    if key in model.gone:
        gone = model.gone[key]
        return gone.code, gone.message, gone.help
    if key in model.later:
        return "E009", f"'{key}' is not supported yet: {model.later[key]}", "remove the key"
    where = owner((*base, *inside), document)
    return "E005", f"unknown key '{key}'{where}", _key_help(key, place)


def _key_help(key: str, place: Place) -> str:
    """Where the key belongs, or what it was meant to be."""
    *above, (here, model) = place.around
    own = keys(model)
    for name, annotation in own.items():  # one level too high
        if any(is_model(option) and key in keys(option) for option in members(annotation)):
            return f"'{key}' belongs under '{name}:'"
    for path, parent in reversed(above):  # one level too low
        if key in keys(parent) and path != here:
            return f"'{key}' belongs beside '{here[len(path)]}:', not under it"
    return did_you_mean(key, own) or f"the keys here are {', '.join(own)}"


def _unknown_format(tag: str, expected: str) -> tuple[str, str, str]:
    known = _QUOTED.findall(expected)
    if tag in LATER_FORMATS:
        return "E009", f"the format {tag} is not supported yet", f"the formats are {', '.join(known)}"
    help_text = did_you_mean(tag, known) or f"the formats are {', '.join(known)}"
    return "E007", f"there is no format {shown(tag)}", help_text


def _unusable(kind: str, given: Any, context: dict[str, Any], key: str) -> tuple[str, str | None]:
    """Message and help for a value that is not what is wanted."""
    if kind == "literal_error":
        known = _QUOTED.findall(str(context["expected"]))
        choice = f"'{known[0]}'" if len(known) == 1 else f"one of {', '.join(known)}"
        word = given if isinstance(given, str) else ""
        close = nearest(word, known)
        help_text = f"did you mean '{close}'?" if close else f"write {either(known)}"
        return f"{key} must be {choice}, not {shown(given)}", help_text
    if kind in ("model_type", "model_attributes_type", "dict_type", "mapping_type", "union_tag_not_found"):
        help_text = _MAPPINGS.get(key, "write 'key: value' lines below it, indented")
        return f"{key} must be a mapping, not {shown(given)}", help_text
    if kind in ("tuple_type", "list_type"):
        help_text = f"write [{given}]" if isinstance(given, str) and len(given) < 40 else "write a list: [a, b]"
        return f"{key} must be a list, not {shown(given)}", help_text
    if kind == "string_type":
        return f"{key} must be a text, not {shown(given)}", "write one value without brackets"
    if kind in ("too_short", "string_too_short"):
        return f"{key} must not be empty", "add what it should contain, or remove the key"
    if kind == "too_long":
        return f"{key} has too many values", f"at most {context.get('max_length')} are allowed"
    for part, words, name in (
        ("greater_than_equal", "at least", "ge"),
        ("less_than_equal", "at most", "le"),
        ("greater_than", "more than", "gt"),
        ("less_than", "less than", "lt"),
    ):
        if kind == part:
            return (
                f"{key} must be {words} {context[name]}, not {shown(given)}",
                f"write a number of {words} {context[name]}",
            )
    return f"{key} cannot be {shown(given)}", None


# ---------------------------------------------------------------- names


def either(words: list[str]) -> str:
    """`a, b or c`."""
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def key_name(path: KeyPath) -> str:
    """A value as a message names it: `'config'`, `item 2 of 'group_by'`, `node 3`."""
    if not path:
        return "the file"
    last = path[-1]
    if isinstance(last, str):
        return f"'{last}'"
    if path == ("nodes", last):
        return f"node {last + 1}"
    return f"item {last + 1} of {key_name(path[:-1])}"


def owner(path: KeyPath, document: Document) -> str:
    """` in node 'orders'`, ` in 'pipeline'`, or nothing at the top of the file."""
    if len(path) >= 2 and path[0] == "nodes" and isinstance(path[1], int):
        node = document.node(path[:2])
        name = node.get("name") if isinstance(node, Mapping) else None
        title = f"node '{name.text}'" if isinstance(name, Scalar) and name.text else f"node {path[1] + 1}"
        inside = [part for part in path[2:] if isinstance(part, str)]
        return f" in '{inside[-1]}' of {title}" if inside else f" in {title}"
    words = [part for part in path if isinstance(part, str)]
    return f" in '{words[-1]}'" if words else ""
