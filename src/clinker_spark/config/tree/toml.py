r"""TOML as the same kind of tree as YAML. `tomllib` reads the values; where they stand is found here.

>>> doc = parse_toml(Source("clinker.toml", "[spark]\nmaster = \"local[2]\"\n"))
>>> doc.data()
{'spark': {'master': 'local[2]'}}
>>> doc.span_of(("spark", "master"))
Span(start=17, end=27)
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any

from clinker_spark.config.errors import ConfigError
from clinker_spark.config.tree.yaml import Document, Entry, Items, KeyPath, Mapping, Node, Scalar
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.span import Source, Span

_AT = re.compile(r"\(at (?:line (\d+), column (\d+)|end of document)\)$")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)+")
_BLANK = re.compile(r"[ \t]*")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}|\'\'\'(?:[^\']|\'(?!\'\'))*\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)
_WORD = re.compile(r"[A-Za-z0-9_-]+")
_OTHER = re.compile(r"[^,\]}#\r\n]+")
_HELP = "write 'key = value' lines, texts in double quotes, and [tables] on lines of their own"


@dataclass(slots=True, eq=False)
class Native(Scalar):
    """A value that has its type already."""

    value: Any = None

    def data(self) -> Any:
        return self.value


def parse_toml(source: Source) -> Document:
    """Read a text. Raises `ConfigError` with E013."""
    try:
        data = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([_syntax_problem(error, source)]) from None
    except RecursionError:
        raise ConfigError([Diagnostic("E013", "the file is nested too deeply", source, Span(0, 0), _HELP)]) from None
    places = _Scanner(source.text).scan()
    return Document(source, _node(data, (), places, Span(0, 0)))


def _syntax_problem(error: tomllib.TOMLDecodeError, source: Source) -> Diagnostic:
    text = str(error)
    found = _AT.search(text)
    message = _AT.sub("", text).strip().lower()
    at = len(source.text.rstrip())
    if found is not None and found[1]:
        lines = source.text.split("\n")
        at = sum(len(line) + 1 for line in lines[: int(found[1]) - 1]) + int(found[2]) - 1
    at = min(at, len(source.text))
    return Diagnostic("E013", f"this is not TOML: {message}", source, Span(at, min(at + 1, len(source.text))), _HELP)


Places = dict[KeyPath, tuple[Span, Span]]
"""The spans of the key and of the value at a path."""


def _node(value: Any, path: KeyPath, places: Places, around: Span) -> Node:
    key, span = places.get(path, (around, around))
    if isinstance(value, dict):
        node = Mapping(span)
        for name, item in value.items():
            inside = (*path, name)
            key_span = places.get(inside, (key, span))[0]
            node.entries[name] = Entry(Scalar(name, key_span, string=True), _node(item, inside, places, span))
            node.size += 1
        return node
    if isinstance(value, list):
        items = [_node(item, (*path, i), places, span) for i, item in enumerate(value)]
        return Items(span, items, 1 + len(items))
    return Native(str(value), span, string=True, value=value)


class _Scanner:
    """Finds keys and values in a text that is known to be TOML."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places: Places = {}
        self.arrays: dict[KeyPath, int] = {}

    def scan(self) -> Places:
        table: KeyPath = ()
        self._skip()
        while self.at < len(self.text):
            before = self.at
            table = self._header() if self.text[self.at] == "[" else table
            if before == self.at:
                self._pair(table)
            self._skip()
            if self.at == before:  # not what we think it is: better no places than no end
                break
        return self.places

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _blank(self) -> None:
        found = _BLANK.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _header(self) -> KeyPath:
        start = self.at
        double = self.text.startswith("[[", self.at)
        self.at += 2 if double else 1
        names = self._key()
        path: KeyPath = ()
        for name, span in names:
            path = self._inside((*path, name))
            self.places.setdefault(path, (span, span))
        close = self.text.find("]", self.at)
        self.at = (close if close >= 0 else self.at) + (2 if double else 1)
        span = Span(start, min(self.at, len(self.text)))
        if double:
            bare = (*path[:-1], names[-1][0]) if names and path[-1:] == (names[-1][0],) else path[:-1]
            self.arrays[bare] = self.arrays.get(bare, -1) + 1
            path = (*bare, self.arrays[bare])
            self.places[path] = (span, span)
        return path

    def _inside(self, path: KeyPath) -> KeyPath:
        """A name that stands for a list of tables means the last of them."""
        return (*path, self.arrays[path]) if path in self.arrays else path

    def _key(self) -> list[tuple[str, Span]]:
        names = []
        while self.at < len(self.text):
            self._blank()
            found = _STRING.match(self.text, self.at) or _WORD.match(self.text, self.at)
            if found is None:
                break
            names.append((found[0].strip("\"'"), Span(found.start(), found.end())))
            self.at = found.end()
            self._blank()
            if not self.text.startswith(".", self.at):
                break
            self.at += 1
        return names

    def _pair(self, table: KeyPath) -> None:
        names = self._key()
        path = table
        for name, span in names:
            path = (*path, name)
            self.places.setdefault(path, (span, span))
        self._blank()
        if not names or not self.text.startswith("=", self.at):
            return
        self.at += 1
        self._blank()
        key = self.places[path][0]
        self.places[path] = (key, self._value(path))

    def _value(self, path: KeyPath) -> Span:
        start = self.at
        opening = self.text[self.at : self.at + 1]
        if opening in ("[", "{"):
            self.at += 1
            index = 0
            while True:
                self._skip()
                if self.at >= len(self.text) or self.text[self.at] in "]}":
                    break
                before = self.at
                if self.text[self.at] == ",":
                    self.at += 1
                elif opening == "{":
                    self._pair(path)
                else:
                    span = self._value((*path, index))
                    self.places[(*path, index)] = (span, span)
                    index += 1
                if self.at == before:
                    break
            self.at = min(self.at + 1, len(self.text))
        else:
            found = _STRING.match(self.text, self.at) or _OTHER.match(self.text, self.at)
            self.at = found.end() if found else self.at
        return Span(start, start + len(self.text[start : self.at].rstrip()))
