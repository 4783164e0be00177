"""YAML as a tree that remembers where everything stands.

Built from the events of PyYAML's parser (libyaml's when it is there), not from its constructor: a constructor loses
the places, reads `no` as a bool and `12:30` as a number, and takes the last of two equal keys. Here a scalar is its
text and its style; what kind of value it is decides whoever wants one (`scalars.py`).

>>> doc = parse_yaml(Source("p.yaml", "nodes:\\n  - {name: a, keep: no}\\n"))
>>> doc.data()
{'nodes': [{'name': 'a', 'keep': 'no'}]}
>>> doc.span_of(("nodes", 0, "name")), doc.key_span(("nodes", 0, "keep"))
(Span(start=18, end=19), Span(start=21, end=25))
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from clinker_spark.config.errors import ConfigError
from clinker_spark.config.tree.scalar_text import ScalarText
from clinker_spark.config.tree.scalars import Plain, is_null
from clinker_spark.config.tree.yaml_problems import forbidden_character, syntax_problem
from clinker_spark.core.diagnostics import Diagnostic, Label
from clinker_spark.core.span import Source, Span

KeyPath = tuple[str | int, ...]
"""The way from the top of a document to a value: keys and positions."""

MAX_DEPTH = 64
MAX_NODES = 200_000
"""How many values a file may have when its aliases are written out. A few lines of aliases can stand for billions."""

_LOADER = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))
_PREFIX = re.compile(r"(?:[&!][^\s,\[\]{}]*(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n?|\n))*[ \t]*)+")


@dataclass(slots=True, eq=False)
class Scalar:
    """A text. `style` is `'`, `"`, `|`, `>` or empty for plain; `string` says that it cannot be anything else."""

    text: str
    span: Span
    style: str = ""
    string: bool = False
    size: int = 1

    def data(self) -> Any:
        if self.string:
            return self.text
        return None if is_null(self.text) else Plain(self.text)


@dataclass(slots=True, eq=False)
class Entry:
    """A key and its value."""

    key: Scalar
    value: Node


@dataclass(slots=True, eq=False)
class Mapping:
    span: Span
    entries: dict[str, Entry] = field(default_factory=dict)
    size: int = 1

    def data(self) -> Any:
        return {name: entry.value.data() for name, entry in self.entries.items()}

    def get(self, name: str) -> Node | None:
        entry = self.entries.get(name)
        return None if entry is None else entry.value


@dataclass(slots=True, eq=False)
class Items:
    """A sequence."""

    span: Span
    items: list[Node] = field(default_factory=list)
    size: int = 1

    def data(self) -> Any:
        return [item.data() for item in self.items]


Node = Scalar | Mapping | Items


@dataclass(frozen=True, eq=False)
class Document:
    """A parsed file. `root` is None when nothing but comments is in it."""

    source: Source
    root: Node | None

    def data(self) -> Any:
        """The content as dicts, lists, None and texts; unquoted texts are `Plain`."""
        return None if self.root is None else self.root.data()

    def node(self, path: Sequence[str | int]) -> Node | None:
        """The value at a path, or None when there is none."""
        found = list(self._walk(path))
        return found[-1][1] if len(found) == len(path) + 1 else None

    def nearest(self, path: Sequence[str | int]) -> Node | None:
        """The value at a path, or the last one on the way to it."""
        return self._deepest(path)[1]

    def span_of(self, path: Sequence[str | int]) -> Span:
        """The span of a value; of the nearest one around it when the path goes further than the file."""
        _, node = self._deepest(path)
        return node.span if node is not None else Span(0, 0)

    def key_span(self, path: Sequence[str | int]) -> Span:
        """The span of the key that leads to a value; of the value itself when it is an item of a sequence."""
        key, node = self._deepest(path)
        if key is not None:
            return key.span
        return node.span if node is not None else Span(0, 0)

    def head_span(self, path: Sequence[str | int]) -> Span:
        """A short span that stands for a whole value: its key, or the first line of an item."""
        key, node = self._deepest(path)
        if key is not None:
            return key.span
        if node is None:
            return Span(0, 0)
        if isinstance(node, Mapping) and node.entries:
            first = next(iter(node.entries.values()))
            return self._one_line(first.key.span.to(first.value.span))
        return self._one_line(node.span)

    def text_at(self, path: Sequence[str | int]) -> ScalarText | None:
        """The scalar at a path with its way back into the file."""
        node = self.node(path)
        if not isinstance(node, Scalar):
            return None
        return ScalarText(self.source, node.text, node.span, node.style)

    def _deepest(self, path: Sequence[str | int]) -> tuple[Scalar | None, Node | None]:
        *_, last = self._walk(path)
        return last

    def _walk(self, path: Sequence[str | int]) -> Iterator[tuple[Scalar | None, Node | None]]:
        """(key, value) from the top down to the path's end, or as far as the file goes."""
        node = self.root
        yield None, node
        for step in path:
            entry = _step(node, step)
            if entry is None:
                return
            key, node = entry
            yield key, node

    def _one_line(self, span: Span) -> Span:
        end = self.source.text.find("\n", span.start, span.end)
        return span if end < 0 else Span(span.start, span.start + len(self.source.text[span.start : end].rstrip()))


def _step(node: Node | None, step: str | int) -> tuple[Scalar | None, Node] | None:
    if isinstance(node, Items) and isinstance(step, int):
        return (None, node.items[step]) if 0 <= step < len(node.items) else None
    if isinstance(node, Mapping) and isinstance(step, int):  # a mapping that is read as a list of its entries
        entries = list(node.entries.values())
        if len(entries) == 1 and entries[0].key.text == "fields" and isinstance(entries[0].value, Items):
            return _step(entries[0].value, step)  # another way to write a list of columns
        return (entries[step].key, entries[step].value) if 0 <= step < len(entries) else None
    if isinstance(node, Mapping) and str(step) in node.entries:
        entry = node.entries[str(step)]
        return entry.key, entry.value
    return None


def parse_yaml(source: Source) -> Document:
    """Read a text. Raises `ConfigError` with every problem that does not stop the parser, and the first that does."""
    bad = forbidden_character(source)
    if bad is not None:
        raise ConfigError([bad])
    builder = _Builder(source)
    try:
        for event in yaml.parse(source.text, Loader=_LOADER):
            builder.take(event)
    except _Stop:
        pass
    except yaml.YAMLError as error:
        raise ConfigError([*builder.found, syntax_problem(error, source)]) from None
    if builder.found:
        raise ConfigError(builder.found)
    return Document(source, builder.root)


class _Stop(Exception):
    """Nothing after this can be read; the reason is in `found` already."""


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been seen yet."""

    node: Mapping | Items
    anchor: str | None
    flow: bool
    key: Scalar | None = None
    keyless: bool = False
    """The next value belongs to a key that could not be used."""
    merges: list[tuple[Scalar, Node]] = field(default_factory=list)
    extent: Span | None = None
    """From the first part to the last, as they stand here: an alias is where it is used."""


class _Builder:
    """Turns events into nodes. Iterative: the nesting of a file must not become that of our calls."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: list[Diagnostic] = []
        self.root: Node | None = None
        self.documents = 0
        self.count = 0
        self.open: list[_Open] = []
        self.anchors: dict[str, Node | None] = {}
        """None: the anchor's value is not complete yet."""

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            scalar = self._scalar(event)
            self._value(scalar, event.anchor, scalar.span)
        elif isinstance(event, yaml.MappingStartEvent):
            self._begin(Mapping(self._start(event)), event)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._begin(Items(self._start(event)), event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._end(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                self._stop("the file has more than one YAML document", event, "remove the line with '---'")

    # ---------------------------------------------------------------- nodes

    def _scalar(self, event: Any) -> Scalar:
        self.count += 1
        if self.count > MAX_NODES:
            self._stop("the file has too many values", event, f"{MAX_NODES} are allowed")
        forced = self._tag(event, ("tag:yaml.org,2002:str",))
        style = event.style or ""
        span = self._start(event)
        if style in ("|", ">"):
            # The parser ends a block scalar where the next token starts; the text ends before that.
            body = self.source.text[span.start : span.end]
            span = Span(span.start, span.start + len(body.rstrip(" \t\r\n")))
        return Scalar(event.value, span, style, forced or style != "")

    def _start(self, event: Any) -> Span:
        """The span of an event without the anchor and the tag in front of it."""
        start, end = event.start_mark.index, event.end_mark.index
        if event.anchor is not None or event.tag is not None:
            prefix = _PREFIX.match(self.source.text, start, end)
            if prefix is not None and prefix.end() < end:
                start = prefix.end()
        return Span(start, end)

    def _begin(self, node: Mapping | Items, event: Any) -> None:
        self._tag(event, ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"))
        if len(self.open) >= MAX_DEPTH:
            self._stop("the file is nested too deeply", event, f"{MAX_DEPTH} levels are allowed")
        if self.open and isinstance(self.open[-1].node, Mapping) and self.open[-1].key is None:
            self._problem("E000", "a key must be a text", node.span, "write a plain word before the colon")
            self.open[-1].keyless = True
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.open.append(_Open(node, event.anchor, flow=bool(event.flow_style)))

    def _end(self, event: Any) -> None:
        done = self.open.pop()
        node = done.node
        if isinstance(node, Mapping):
            self._merge(node, done.merges)
        if done.flow:
            node.span = Span(node.span.start, event.end_mark.index)
        elif done.extent is not None:  # the parser's mark is past the comments and blank lines that follow
            node.span = done.extent
        node.size = 1 + (
            sum(e.value.size for e in node.entries.values())
            if isinstance(node, Mapping)
            else sum(item.size for item in node.items)
        )
        self._value(node, done.anchor, node.span)

    def _value(self, node: Node, anchor: str | None, place: Span) -> None:
        if anchor is not None:
            self.anchors[anchor] = node
        if node.size > MAX_NODES:
            self._problem(
                "E000", "the file is too large when its aliases are written out", node.span, "use fewer aliases"
            )
            raise _Stop
        if not self.open:
            self.root = node
            return
        top = self.open[-1]
        top.extent = place if top.extent is None else Span(min(top.extent.start, place.start), place.end)
        if isinstance(top.node, Items):
            top.node.items.append(node)
        elif top.key is not None:
            self._entry(top, top.key, node)
            top.key = None
        elif top.keyless:
            # This is the collection that stood in the key's place; its value comes next and is dropped as well.
            top.keyless = False
            top.key = Scalar("", node.span, "skip")
        elif isinstance(node, Scalar):
            top.key = node
        else:  # an alias to a collection in the place of a key
            self._problem("E000", "a key must be a text", node.span, "write a plain word before the colon")
            top.key = Scalar("", node.span, "skip")

    def _entry(self, top: _Open, key: Scalar, value: Node) -> None:
        mapping = cast(Mapping, top.node)
        if key.style == "skip":
            return
        if key.text == "<<" and not key.string:
            top.merges.append((key, value))
            return
        if not key.text and not key.string:
            self._problem("E000", "a value has no key", key.span, "write a key before the colon")
            return
        first = mapping.entries.get(key.text)
        if first is not None:
            self.found.append(
                Diagnostic(
                    "E012",
                    f"key '{key.text}' is given twice",
                    self.source,
                    key.span,
                    "remove one of them",
                    labels=(Label(first.key.span, "first given here"),),
                )
            )
            return
        mapping.entries[key.text] = Entry(key, value)

    # ---------------------------------------------------------------- aliases

    def _alias(self, event: Any) -> None:
        span = Span(event.start_mark.index, event.end_mark.index)
        if event.anchor not in self.anchors:
            self._problem("E000", f"no anchor is named '{event.anchor}'", span, f"write &{event.anchor} before *")
            raise _Stop
        node = self.anchors[event.anchor]
        if node is None:
            self._problem("E000", f"anchor '{event.anchor}' contains itself", span, "write the value out")
            raise _Stop
        self._value(node, None, span)

    def _merge(self, mapping: Mapping, merges: list[tuple[Scalar, Node]]) -> None:
        for key, value in merges:
            for source in value.items if isinstance(value, Items) else [value]:
                if not isinstance(source, Mapping):
                    self._problem("E000", "only a mapping can be merged with '<<'", key.span, "write '<<: *anchor'")
                    continue
                for name, entry in source.entries.items():  # what the mapping says itself wins, then the first merge
                    mapping.entries.setdefault(name, entry)

    # ---------------------------------------------------------------- problems

    def _tag(self, event: Any, allowed: tuple[str, ...]) -> bool:
        if event.tag is None or event.tag == "!":
            return bool(event.tag)
        if event.tag not in allowed:
            start = event.start_mark.index
            span = Span(start, max(start + 1, min(event.end_mark.index, start + len(event.tag))))
            self._problem("E000", "tags have no meaning in this file", span, "remove the word that starts with '!'")
        return True

    def _problem(self, code: str, message: str, span: Span, help_text: str) -> None:
        self.found.append(Diagnostic(code, message, self.source, span, help_text))

    def _stop(self, message: str, event: Any, help_text: str) -> None:
        start = event.start_mark.index
        span = Span(start, min(start + 1, len(self.source.text)))
        self._problem("E000", message, span, help_text)
        raise _Stop
