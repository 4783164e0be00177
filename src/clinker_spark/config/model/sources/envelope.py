"""`envelope:`: what a file says about all of its records, before or behind them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field

from clinker_spark.config.column_types import read_type
from clinker_spark.config.model.base import Finding, Model
from clinker_spark.config.model.schema import TypeText
from clinker_spark.config.values import FlagText, Words
from clinker_spark.core.types import Kind, Type

TYPES = (Kind.STRING, Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.DATE, Kind.DATETIME)
SEVERAL = frozenset({Kind.ARRAY, Kind.MAP})
_SEVERAL = {"json": SEVERAL, "xml": frozenset({Kind.ARRAY})}
"""By format: the fields of its sections that have several values; in XML, elements that repeat."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Extract(Model):
    """Where a section stands in a file."""

    json_pointer: Words | None = None
    """The keys that lead to an object of a JSON document: /header, or /meta/batch."""
    xml_path: Words | None = None
    """The elements that lead from the root to one of an XML document: Orders/Header."""

    record_type: FlagText | None = None
    """The tag of the line, in a text file with several kinds of records."""

    later: ClassVar[dict[str, str]] = {"segment": "sections of formats with segments"}

    @property
    def path(self) -> tuple[str, ...]:
        """The names on the way."""
        if self.record_type is not None:
            return (self.record_type,)
        if self.json_pointer is not None:
            return tuple(part.replace("~1", "/").replace("~0", "~") for part in self.json_pointer.split("/")[1:])
        return tuple((self.xml_path or "").strip("/").split("/"))

    def check(self) -> Iterator[Finding]:
        if [self.json_pointer, self.xml_path, self.record_type].count(None) != 2:
            help_text = (
                "write extract: { json_pointer: /header }, or { xml_path: Orders/Header }, or { record_type: H }"
            )
            message = "a section stands at a 'json_pointer' or an 'xml_path', or in lines of a 'record_type'"
            yield Finding("E007", message, (), help_text)
        if self.json_pointer is not None and (not self.json_pointer.startswith("/") or "" in self.path):
            help_text = "write the keys, each behind a slash: /header"
            yield Finding("E363", f"'{self.json_pointer}' leads to no key", ("json_pointer",), help_text)
        if self.xml_path is not None and ("" in self.path or len(self.path) < 2):
            help_text = "write the elements from the root on, with slashes: Orders/Header"
            yield Finding("E363", f"'{self.xml_path}' leads to no element", ("xml_path",), help_text)


class Section(Model):
    """A part of a file, and what is read of it."""

    extract: Extract
    fields: Annotated[dict[str, TypeText], Field(min_length=1)]
    """Names of the section, each with its type. What is not there is null."""

    def check(self) -> Iterator[Finding]:
        for name, text in self.fields.items():
            t = read_type(text)
            several = t.kind in (Kind.ARRAY, Kind.MAP) and not t.is_dynamic and t.element is not None
            if (t.element if several else t).kind not in TYPES:  # type: ignore[union-attr]
                message = f"'{name}' cannot be of type {text}"
                help_text = "write string, int, float, bool, date or date_time; or array(int), map(string) and the like"
                yield Finding("E007", message, ("fields", name), help_text)


def value_of(path: str) -> str:
    """How programs name a value of a file.

    >>> value_of("head.batch")
    '$doc.head.batch'
    """
    return f"$doc.{path}"


class Envelope(Model):
    """What a file says about all of its records."""

    sections: Annotated[dict[str, Section], Field(min_length=1)]
    """Parts of the file. Programs read $doc.section.field."""

    @property
    def types(self) -> dict[str, Type]:
        """By `section.field`."""
        return {
            f"{section}.{name}": read_type(text).as_nullable()
            for section, found in self.sections.items()
            for name, text in found.fields.items()
        }

    def check(self) -> Iterator[Finding]:
        for section, found in self.sections.items():
            for name in (section, *found.fields):
                if not _NAME.fullmatch(name):
                    at = ("sections", section) if name == section else ("sections", section, "fields", name)
                    message = f"programs cannot name '{name}' in $doc"
                    yield Finding("E007", message, at, "use letters, digits and '_'", on_key=True)


def check_envelope(envelope: Envelope, kind: str, key: str | None) -> Iterator[Finding]:
    """Can a format have such sections? `key` is the one that leads to them there."""
    if key is None:
        message = f"the lines of a {kind} file are all records: there is no envelope"
        help_text = "declare the kinds of its lines: schema: { discriminator: ..., records: [...] }"
        if kind not in ("csv", "fixed_width"):
            help_text = "remove the key"
        yield Finding("E007", message, ("envelope",), help_text, on_key=True)
        return
    for name, section in envelope.sections.items():
        if getattr(section.extract, key) is None:
            at = ("envelope", "sections", name, "extract")
            yield Finding("E007", f"the sections of a {kind} file stand at a '{key}'", at, f"write {key}: ...")
        for field, text in section.fields.items():
            if read_type(text).kind in SEVERAL - _SEVERAL.get(kind, frozenset()):
                where = ("envelope", "sections", name, "fields", field)
                help_text = "write the type of one value"
                yield Finding("E007", f"a section of a {kind} file has no value of type {text}", where, help_text)
