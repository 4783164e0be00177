"""JSON documents read as a stream: the records of an array one by one, wherever in the document the array stands.

Only what is being parsed is in memory. A value that does not end within the text at hand is tried again with twice
as much, so that even a single huge record costs no more than a few passes.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, BinaryIO

from clinker_spark.core.errors import InputError
from clinker_spark.spark.scan.record_plan import BOM, READ_ERRORS, RecordFile, malformed, reason_of
from clinker_spark.spark.scan.text.streams import TextStream

CHUNK = 1 << 18
_NEAR = 16  # an escape, a literal or the start of a number cut off by the end of the text
_LONGEST_LINE = 64 << 20
_BLANKS = " \t\r\n"


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def decoder(*, exact: bool) -> json.JSONDecoder:
    """A strict decoder; `exact` keeps the digits of numbers with a fraction."""
    return json.JSONDecoder(parse_float=Decimal if exact else None, parse_constant=_no_constant)


class Document:
    """A document at the place where it is being read."""

    def __init__(self, file: RecordFile, *, exact: bool, chunk: int = CHUNK) -> None:
        self.name = file.name
        self.stream = TextStream(file.path, file.compression, "utf-8", file.name)
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._json = decoder(exact=exact)
        self._chunk = chunk
        self._text = ""
        self._at = 0
        self._ended = False
        self._lines = 0
        self._columns = 0
        self._read(len(BOM))
        self._text = self._text.removeprefix("\ufeff")

    @property
    def marked(self) -> bool:
        """Were there bytes so far that are no UTF-8?"""
        return self.stream.marked

    def close(self) -> None:
        self.stream.close()

    def _read(self, size: int) -> None:
        try:
            data = self.stream.read(size)
        except READ_ERRORS as error:
            raise malformed(self.name, f"cannot be read to its end: {reason_of(error)}") from None
        self._ended = len(data) < size
        done = self._text[: self._at]
        if newlines := done.count("\n"):
            self._lines += newlines
            self._columns = 0
        self._columns += len(done) - done.rfind("\n") - 1
        self._text = self._text[self._at :] + self._decode(data, self._ended)
        self._at = 0

    def fail(self, what: str, at: int | None = None) -> InputError:
        before = self._text[: self._at if at is None else at]
        newlines = before.count("\n")
        column = len(before) - before.rfind("\n") + (0 if newlines else self._columns)
        return malformed(self.name, f"is not JSON, line {self._lines + newlines + 1}, column {column}: {what}")

    def peek(self) -> str:
        """The next character that is not blank, "" at the end."""
        while True:
            text = self._text
            while self._at < len(text) and text[self._at] in _BLANKS:
                self._at += 1
            if self._at < len(text):
                return text[self._at]
            if self._ended:
                return ""
            self._read(self._chunk)

    def accept(self, char: str) -> bool:
        if self.peek() != char:
            return False
        self._at += 1
        return True

    def expect(self, char: str, where: str) -> None:
        if not self.accept(char):
            found = f"'{c}'" if (c := self.peek()) else "the end of the file"
            raise self.fail(f"'{char}' is missing {where}, there is {found}")

    def value(self) -> tuple[Any, str]:
        """The next value, and its text."""
        if not self.peek():
            raise self.fail("the file ends where a value is missing")
        while True:
            try:
                found, end = self._json.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                incomplete = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _NEAR
                if self._ended or not incomplete:
                    raise self.fail(error.msg.lower(), error.pos) from None
            except RecursionError:
                raise self.fail("it is nested too deeply") from None
            except ValueError as error:
                raise self.fail(str(error)) from None
            else:
                if end < len(self._text) or self._ended:  # a number may go on behind the end of the text
                    text = self._text[self._at : end]
                    self._at = end
                    return found, text
            self._read(max(self._chunk, len(self._text) - self._at))

    def elements(self) -> Iterator[tuple[Any, str]]:
        """The elements of the array that stands here."""
        self.expect("[", "before the records")
        if self.accept("]"):
            return
        while True:
            yield self.value()
            if self.accept("]"):
                return
            self.expect(",", "between two records")

    def end(self) -> None:
        if self.peek():
            raise self.fail("something follows after the end of the document")

    def at_path(self, path: Sequence[str]) -> Iterator[tuple[Any, str]]:
        """The records under a path of keys: the elements of an array, or one object. The whole document is read."""
        found = False
        for records in self._at_path(path, 0):
            found = True
            yield from records
        if not found:
            where = ".".join(path)
            raise malformed(self.name, f"has no '{where}', where the records should be", "correct options.record_path")
        self.end()

    def _at_path(self, path: Sequence[str], depth: int) -> Iterator[Iterator[tuple[Any, str]]]:
        if depth == len(path):
            yield self._records(".".join(path))
            return
        if self.peek() != "{":
            where = f"'{'.'.join(path[:depth])}'" if depth else "the document"
            help_text = "options.record_path is made of the keys of objects"
            raise malformed(self.name, f"has no '{'.'.join(path)}': {where} is not an object", help_text)
        self.accept("{")
        if self.accept("}"):
            return
        while True:
            if self.peek() != '"':
                raise self.fail("a key in quotes is missing")
            key, _ = self.value()
            self.expect(":", "after a key")
            if key == path[depth]:
                yield from self._at_path(path, depth + 1)
            else:
                self._skip()
            if self.accept("}"):
                return
            self.expect(",", "between two fields")

    def _skip(self) -> None:
        """Pass over a value; over an array element by element, since it may be all records of the file."""
        if self.peek() != "[":
            self.value()
            return
        for _ in self.elements():
            pass

    def section(self, path: Sequence[str]) -> Any:
        """The first object under a path of keys; None where there is none."""
        for found in self._at_path(path, 0):
            return next((value for value, _ in found), None)
        return None

    def _records(self, where: str) -> Iterator[tuple[Any, str]]:
        first = self.peek()
        if first == "[":
            yield from self.elements()
            return
        value, text = self.value()
        if isinstance(value, dict):
            yield value, text
        elif value is not None:
            help_text = "options.record_path leads to the array of records"
            raise malformed(self.name, f"has something else than an array at '{where}'", help_text)


def records(
    file: RecordFile, shape: str, path: Sequence[str], *, exact: bool, chunk: int = CHUNK
) -> Iterator[tuple[Any, str, bool]]:
    """The records of a document that is not ndjson: value, text, and whether the text may hold marks."""
    document = Document(file, exact=exact, chunk=chunk)
    try:
        if not document.peek():  # an empty file has no records
            return
        if path:
            found = document.at_path(path)
        elif shape == "array":
            found = document.elements()
        else:
            found = iter([document.value()])
        for value, text in found:
            yield value, text, document.marked
        if not path:
            document.end()
    finally:
        document.close()


def shape_of(opened: Callable[[], BinaryIO]) -> str:
    """array, ndjson or object, by how the file begins. A single object on a single line counts as ndjson."""
    size = 1 << 16
    while True:
        with opened() as file:
            data = file.read(size)
        text = data.removeprefix(BOM).lstrip()
        if text[:1] == b"[":
            return "array"
        if text[:1] != b"{":  # nothing, or lines that are no records
            return "ndjson"
        line, newline, rest = text.partition(b"\n")
        if not newline and len(data) == size and size < _LONGEST_LINE:
            size *= 8
            continue
        # A first line that is a record, or looks like one with another one below it, and is damaged.
        follows = line.rstrip().endswith(b"}") and rest.lstrip()[:1] == b"{"
        return "ndjson" if follows or _is_json(line) else "object"


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
