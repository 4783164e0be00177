"""Schemas for `cxl`: column names and types from a YAML or JSON file, or from the command line itself.

>>> {name: str(t) for name, t in load_schema("price: float, tags: array(string)").items()}
{'price': 'Float', 'tags': 'Array(String)'}
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

from clinker_spark.cli.cxl.sources import given_text, read_text
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.core.span import Source, Span
from clinker_spark.core.type_words import read_type
from clinker_spark.core.types import Kind, Type

Node: TypeAlias = Any
"""A node of PyYAML's graph: `id` is scalar, sequence or mapping."""

_SHAPE_HELP = "write one `column: type` per line"
_LISTS = ("fields", "columns", "schema")
_MAX_TEXT, _MAX_DEPTH = 2**20, 50


@dataclass(frozen=True)
class _Entry:
    """One column as it is written, each part with its place."""

    name: str
    name_span: Span
    type: str
    type_span: Span


def load_schema(given: str) -> dict[str, Type]:
    """The schema that `--schema` asks for: a file if there is one of that name, else the text itself."""
    given_text(given, "--schema")
    if not os.path.exists(given) and (":" in given or given.strip() in ("", "{}")):
        source = Source("<schema>", given)
        return _Reader(source).read(_inline(source))
    source = Source(given, read_text(given, "E226").removeprefix("\ufeff"))
    reader = _Reader(source)
    return reader.read(reader.document())


def _inline(source: Source) -> Iterator[_Entry]:
    """`price: float, qty: int`, optionally in braces and with quotes, so that small JSON objects work too."""
    text = source.text
    start, end = 0, len(text)
    if text.strip().startswith("{") and text.strip().endswith("}"):
        start, end = text.index("{") + 1, text.rindex("}")
    for piece in _split(text, start, end):
        name, colon, _ = text[piece.start : piece.end].partition(":")
        if not colon:
            raise InputError([_shape(source, piece, f"'{name.strip()}' has no type")])
        middle = piece.start + len(name)
        name_span, type_span = _trim(text, piece.start, middle), _trim(text, middle + 1, piece.end)
        yield _Entry(_slice(text, name_span), name_span, _slice(text, type_span), type_span)


def _split(text: str, start: int, end: int) -> Iterator[Span]:
    """The parts between commas and line ends that stand outside parentheses."""
    depth, begin = 0, start
    for i in range(start, end + 1):
        char = text[i] if i < end else ","
        depth += (char == "(") - (char == ")")
        if char in ",\n" and (depth <= 0 or i == end):
            if text[begin:i].strip():
                yield Span(begin, i)
            begin = i + 1


def _trim(text: str, start: int, end: int) -> Span:
    """A part without the blanks and the quotes around it."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end = start + len(piece.strip())
    if end - start >= 2 and text[start] in "\"'" and text[end - 1] == text[start]:
        start, end = start + 1, end - 1
    return Span(start, end)


def _slice(text: str, span: Span) -> str:
    return text[span.start : span.end]


def _shape(source: Source, span: Span | None, message: str) -> Diagnostic:
    return Diagnostic("E226", message, source, span, _SHAPE_HELP)


class _Reader:
    """Reads one schema and keeps all that is wrong with it, so that one run shows everything."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: list[Diagnostic] = []

    def read(self, entries: Iterable[_Entry]) -> dict[str, Type]:
        schema: dict[str, Type] = {}
        for entry in entries:
            if not entry.name:
                self.found.append(_shape(self.source, entry.name_span, "a column has no name"))
            elif entry.name in schema:
                self.found.append(_shape(self.source, entry.name_span, f"column '{entry.name}' is there twice"))
            else:
                schema[entry.name] = self._type(entry)
        if self.found:
            raise InputError(self.found)
        return schema

    # ---------------------------------------------------------------- types

    def _type(self, entry: _Entry) -> Type:
        found = read_type(entry.type)
        if isinstance(found, Type):
            return found
        message = f"column '{entry.name}': {found.reason.format(shown=repr(_shorten(entry.type)))}"
        self._problem(found.code, entry, message, found.help)
        return Type(Kind.ANY)

    def _problem(self, code: str, entry: _Entry, message: str, help_text: str) -> None:
        self.found.append(Diagnostic(code, message, self.source, entry.type_span, help_text))

    # ---------------------------------------------------------------- files

    def document(self) -> Iterator[_Entry]:
        """The entries of a YAML or JSON file: a mapping, or a list of {name, type}, alone or under `fields:`."""
        root = self._compose()
        if root is None:  # an empty file: a record without columns
            return
        value = _only_list(root) or root
        if value.id == "mapping":
            yield from self._mapping(value)
        elif value.id == "sequence":
            yield from self._sequence(value)
        else:
            self.found.append(_shape(self.source, _span(root), "a schema is a mapping of column names to types"))

    def _compose(self) -> Node | None:
        import yaml  # some 15 ms, and only schema files need it

        # JSON may be indented with tabs, which YAML refuses; one blank for each keeps every place where it is.
        text = self.source.text
        text = text.replace("\t", " ") if text.lstrip()[:1] in ("{", "[") else text
        if len(text) > _MAX_TEXT or max(accumulate(map(_nesting, text)), default=0) > _MAX_DEPTH:
            # PyYAML takes quadratic time for nested brackets, and a schema has two levels.
            raise InputError([_shape(self.source, None, "the file is too large or nested too deeply for a schema")])
        try:
            return yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            span = None if mark is None else Span(mark.index, mark.index + 1)
            reason = error.problem or error.context
            raise InputError([_shape(self.source, span, f"this is not YAML: {reason}")]) from None
        except yaml.YAMLError as error:
            reason = str(error).split("\n", 1)[0]
            raise InputError([_shape(self.source, None, f"this is not YAML: {reason}")]) from None
        except RecursionError:
            raise InputError([_shape(self.source, None, "the file is nested too deeply for a schema")]) from None

    def _mapping(self, node: Node) -> Iterator[_Entry]:
        for key, value in node.value:
            if key.id != "scalar":
                self.found.append(_shape(self.source, _span(key), "a column name must be a text"))
                continue
            yield from self._entry(key, value)

    def _sequence(self, node: Node) -> Iterator[_Entry]:
        for item in node.value:
            parts = _members(item)
            if "name" not in parts or "type" not in parts or parts["name"].id != "scalar":
                self.found.append(_shape(self.source, _span(item), "each entry of the list needs a name and a type"))
                continue
            yield from self._entry(parts["name"], item)

    def _entry(self, key: Node, value: Node) -> Iterator[_Entry]:
        parts = _members(value)
        spelled = value.value if value.id == "scalar" else _spell(parts)
        if spelled is None:
            self.found.append(_shape(self.source, _span(value), f"column '{key.value}' has no type"))
            return
        at = value if value.id == "scalar" else parts["type"]
        yield _Entry(str(key.value), _span(key), spelled, _span(at))


def _nesting(char: str) -> int:
    return (char in "[{") - (char in "]}")


def _only_list(root: Node) -> Node | None:
    """The list in a file such as `fields: [...]`; a mapping of columns may well have one called `fields`."""
    members = _members(root)
    found = [members[name] for name in _LISTS if name in members and members[name].id == "sequence"]
    return found[0] if found else None


def _members(node: Node) -> dict[str, Any]:
    return {k.value: v for k, v in node.value if k.id == "scalar"} if node.id == "mapping" else {}


def _spell(parts: dict[str, Any]) -> str | None:
    """The long form `{type: decimal, scale: 2, nullable: true}` as one type word."""
    words = {name: node.value for name, node in parts.items() if node.id == "scalar"}
    if "type" not in words:
        return None
    spelled = str(words["type"])
    if spelled.strip() == "decimal" and "scale" in words:
        spelled = f"decimal({words['scale']})"
    return f"nullable({spelled})" if str(words.get("nullable")).lower() == "true" else spelled


def _span(node: Node) -> Span:
    start, end = node.start_mark.index, node.end_mark.index
    return Span(start, max(start, end))


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "…"
