"""XML as flat records: the elements below a record by dotted names, attributes with a prefix, in constant memory.

The parser is Expat itself: it knows the line of an error, and can refuse entities before it expands one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.parsers import expat

from clinker_spark.spark.scan.record_plan import BOM, READ_ERRORS, RecordFile, malformed, reason_of

CHUNK = 1 << 16
Cell = str | list[str]
Record = dict[str, Cell]
"""The text under each name; a list of texts if the element repeats."""


GROUP = "\0"
"""Before the name under which a record has the groups of an element."""


class _Refused(Exception):
    """Something that is XML, and not read."""


@dataclass(frozen=True)
class XmlShape:
    """Where records are, and how names are made."""

    path: tuple[str, ...] = ()
    """From the root to a record; without it, the children of the root are the records."""
    prefix: str = "@"
    strip: bool = True
    groups: tuple[str, ...] = ()
    """Elements inside of records whose texts are kept apart, for each of them."""

    def name(self, tag: str) -> str:
        return tag.rpartition(":")[2] if self.strip else tag


class _Handler:
    """Collects the records of one document in `done`.

    Expat calls it three times per element, so it keeps to plain variables: what is open is a list of name, text and
    whether there are elements inside, and names are put together once.
    """

    def __init__(self, shape: XmlShape, parser: Any) -> None:
        self.shape = shape
        self.parser = parser
        self.done: list[Record] = []
        self.start, self.text, self.end = self._handlers()

    def _handlers(self) -> tuple[Any, Any, Any]:
        shape, done = self.shape, self.done
        path, record_depth = shape.path, len(shape.path) or 2
        names: dict[tuple[str, str], str] = {}
        groups = frozenset(shape.groups)
        record: Record | None = None
        into: Record = {}  # the record, or the group that is open
        record_tag = ""
        top: list[Any] = ["", "", False]
        open_elements: list[list[Any]] = []
        depth = matched = 0  # outside of records: what is open, and how much of it follows the path

        def add(name: str, text: str) -> None:
            before = into.get(name)
            if before is None:
                into[name] = text
            elif isinstance(before, list):
                before.append(text)
            else:
                into[name] = [before, text]

        def add_attributes(prefix: str, attributes: list[str]) -> None:
            for i in range(0, len(attributes), 2):
                key = attributes[i]
                if key != "xmlns" and not key.startswith("xmlns:"):
                    add(f"{prefix}{shape.prefix}{shape.name(key)}", attributes[i + 1])

        def start_outside(tag: str, attributes: list[str]) -> None:
            nonlocal depth, matched, record, record_tag, top, into
            depth += 1
            name = shape.name(tag)
            if matched == depth - 1:
                if not path:
                    matched = min(depth, 2)
                elif depth <= len(path) and path[depth - 1] == name:
                    matched = depth
                elif depth == 1:
                    raise self.refused(f"begins with '{name}', and record_path with '{path[0]}'")
            if depth == matched == record_depth:
                record, record_tag, top = {}, name, ["", "", False]
                into = record
                add_attributes("", attributes)

        def start(tag: str, attributes: list[str]) -> None:
            nonlocal top, into
            if record is None:
                start_outside(tag, attributes)
                return
            top[2] = True
            known = (top[0], tag)
            name = names.get(known)
            if name is None:
                own = shape.name(tag)
                name = names[known] = f"{top[0]}.{own}" if top[0] else own
            open_elements.append(top)
            top = [name, "", False]
            if name in groups:
                into = {}
                record.setdefault(GROUP + name, []).append(into)  # type: ignore[union-attr, arg-type]
            if attributes:
                add_attributes(name + ".", attributes)

        def text(data: str) -> None:
            if record is not None:
                top[1] += data

        def end(tag: str) -> None:
            nonlocal depth, matched, record, top, into
            if open_elements:
                name, found, has_elements = top
                # Blanks between elements are layout; a text beside them is not.
                # So is the empty text of a group that has attributes.
                is_layout = has_elements or (name in groups and bool(into))
                if not is_layout or found.strip():
                    add(name, found)
                if name in groups and record is not None:
                    into = record
                top = open_elements.pop()
                return
            if record is not None:
                if not top[2] and top[1].strip():
                    add(record_tag, top[1])
                done.append(record)
                record = None
            depth -= 1
            matched = min(matched, depth)

        return start, text, end

    def refused(self, what: str) -> _Refused:
        # The parser stands elsewhere once the exception has left it.
        return _Refused(f"{what} (line {self.parser.CurrentLineNumber}, column {self.parser.CurrentColumnNumber + 1})")

    def refuse_entity(self, name: str, *_: Any) -> None:
        raise self.refused(f"declares the entity '{name}', which is not read")

    def skip_entity(self, name: str, *_: Any) -> None:
        raise self.refused(f"uses the entity '{name}', which it does not declare")


def xml_records(file: RecordFile, shape: XmlShape, chunk: int = CHUNK) -> Iterator[Record]:
    """The records of a file, one by one. Raises InputError where it is not XML."""
    parser = expat.ParserCreate()
    handler = _Handler(shape, parser)
    parser.buffer_text = True
    parser.ordered_attributes = True
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.CharacterDataHandler = handler.text
    parser.EntityDeclHandler = handler.refuse_entity
    parser.SkippedEntityHandler = handler.skip_entity
    with file.open() as opened:
        blank = True
        while True:
            try:
                data = bytes(opened.read(chunk))
            except READ_ERRORS as error:
                raise malformed(file.name, f"cannot be read to its end: {reason_of(error)}") from None
            blank = blank and not data.strip().removeprefix(BOM).strip()
            if blank and not data:  # an empty file has no records
                return
            try:
                if not blank:
                    parser.Parse(data, not data)
            except expat.ExpatError as error:
                where = f"line {error.lineno}, column {error.offset + 1}"
                raise malformed(file.name, f"is not XML, {where}: {expat.ErrorString(error.code)}") from None
            except (LookupError, ValueError) as error:  # an encoding that is not known, or of several bytes
                raise malformed(file.name, f"cannot be decoded: {error}") from None
            except _Refused as refused:
                raise malformed(file.name, str(refused)) from None
            yield from handler.done
            handler.done.clear()  # the list itself stays: the handlers know it
            if not data:
                return
