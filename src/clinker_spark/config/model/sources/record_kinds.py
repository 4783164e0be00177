"""`schema:` of text files that hold several kinds of records: a header, details, a trailer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from clinker_spark.config.model.base import Finding, Model
from clinker_spark.config.model.schema import SCHEMA_FORMS, Column, Columns, SchemaSpec, check_columns, column_list
from clinker_spark.config.model.sources.envelope import Envelope
from clinker_spark.config.values import Count, FlagText, Natural, Words
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import Kind, Type, unify

KEYS = ("discriminator", "records", "structure")
RECORD_TYPE = "record_type"
"""The column that says of which kind a record is."""
FORMATS = ("csv", "fixed_width")


class _ColumnsInAnyForm:
    """A list of columns, or a mapping of names to types, as in other schemas."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(column_list, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        body = {"anyOf": [{"type": "string"}, {"type": "object"}]}
        return {"anyOf": [handler(schema), {"type": "object", "additionalProperties": body, "minProperties": 1}]}


_COLUMNS = _ColumnsInAnyForm()


class Discriminator(Model):
    """Where a line says of which kind it is."""

    field: Words | None = None
    """Delimited text: the column, which stands at the same place in every kind."""
    start: Natural | None = None
    """Fixed width: the first byte, counted from 0."""
    width: Count | None = None
    """Fixed width: the number of bytes."""


class RecordKind(Model):
    """One kind of records."""

    id: Words
    """What the column record_type says for these records."""
    tag: FlagText
    """What stands at the place of the discriminator."""
    description: FlagText | None = None
    """What it is, for people."""
    columns: Annotated[Columns, _COLUMNS, Field(min_length=1)]
    """Its columns, as a list or a mapping of names to types; in delimited text all of them, in their order."""


class Trailer(Model):
    """A kind of records that ends a file, and says how many records it has."""

    record: Words
    """The kind, by its id."""
    count: Words
    """Its column with the number of the records before it, without those that the envelope reads."""


class RecordKinds(Model):
    """Several kinds of records in one file. Each line becomes a record with the columns of all kinds."""

    union_tag: ClassVar[str] = "kinds"
    discriminator: Discriminator
    """Where a line says of which kind it is."""
    records: Annotated[tuple[RecordKind, ...], Field(min_length=1)]
    """The kinds."""
    structure: tuple[Trailer, ...] = ()
    """What each file must end with: - { record: trailer, count: number }. Such lines are no records."""

    @property
    def columns(self) -> Columns:
        """The columns of all records: record_type, and those of all kinds, which are null in other kinds."""
        found = {RECORD_TYPE: Column(name=RECORD_TYPE, type="string")}
        for kind in self.records:
            for column in kind.columns:
                own = {"start": None, "width": None, "end": None, "source_name": None, "nullable": True}
                known = found.setdefault(column.name, column.model_copy(update=own))
                if known.name != RECORD_TYPE and shared_type(known, column) not in (None, known.data_type.unwrap()):
                    found[column.name] = column.model_copy(update=own)
        return tuple(found.values())

    def left_out(self, envelope: Envelope | None) -> frozenset[str]:
        """The ids of the kinds that are no records of their own: sections of the envelope, and trailers."""
        tags = {s.extract.record_type for s in envelope.sections.values()} if envelope is not None else set()
        read = {kind.id for kind in self.records if kind.tag in tags}
        return frozenset(read | {trailer.record for trailer in self.structure})

    def problems(self, kind: str, envelope: Envelope | None) -> Iterator[Finding]:
        """What is wrong with them, for files of a format."""
        if kind not in FORMATS:
            message = f"records of several kinds are lines of text, and the format is {kind}"
            yield Finding("E342", message, (), f"only sources of type {' and '.join(FORMATS)} can have them")
            return
        yield from self._check_discriminator(kind)
        seen: dict[tuple[str, str], int] = {}
        types: dict[str, tuple[int, Column]] = {}
        for i, record in enumerate(self.records):
            at = ("records", i)
            for key, text in (("id", record.id), ("tag", record.tag)):
                if (key, text) in seen:
                    see = (("records", seen[key, text], key), "the first one")
                    yield Finding("E342", f"two kinds have the {key} '{text}'", (*at, key), "change one", see=see)
                seen.setdefault((key, text), i)
            for finding in check_columns(record.columns, fixed_width=kind == "fixed_width"):
                yield finding.under(*at, "columns")
            for j, column in enumerate(record.columns):
                yield from self._check_column(column, types.setdefault(column.name, (i, column)), (*at, "columns", j))
        yield from self._check_references(envelope)

    def _check_discriminator(self, kind: str) -> Iterator[Finding]:
        found = self.discriminator
        at = ("discriminator",)
        if kind == "fixed_width":
            if found.start is None or found.width is None or found.field is not None:
                help_text = "write discriminator: { start: 0, width: 1 }"
                yield Finding("E342", "lines of fixed width say their kind at a 'start', with a 'width'", at, help_text)
            return
        if found.field is None or found.start is not None or found.width is not None:
            help_text = "write discriminator: { field: name }, with a column of all kinds"
            yield Finding("E342", "delimited lines say their kind in a 'field'", at, help_text)
            return
        places = {_place(record.columns, found.field) for record in self.records}
        if None in places:
            [lacks, *_] = [record.id for record in self.records if _place(record.columns, found.field) is None]
            message = f"the kind '{lacks}' has no column '{found.field}', which says the kind"
            yield Finding("E342", message, (*at, "field"), "give all kinds this column, at the same place")
        elif len(places) > 1:
            message = f"'{found.field}' does not stand at the same place in all kinds"
            yield Finding("E342", message, (*at, "field"), "the kind must be known before the columns are")

    def _check_column(self, column: Column, first: tuple[int, Column], at: tuple[str | int, ...]) -> Iterator[Finding]:
        if column.name == RECORD_TYPE:
            says_kind = self.discriminator.field in (column.name, column.source_name)
            if not says_kind or column.data_type.unwrap().kind is not Kind.STRING:
                message = f"'{RECORD_TYPE}' is the column that says the kind of a record"
                help_text = "declare it as string" if says_kind else "give it another name"
                yield Finding("E342", message, (*at, "name"), help_text)
        if column.data_type.kind in (Kind.ARRAY, Kind.MAP):
            message = f"'{column.name}' cannot be of type {column.data_type}, where a file has several kinds of records"
            yield Finding("E342", message, (*at, "name"), "declare it as string, and take it apart in a transform")
        if shared_type(first[1], column) is None:
            see = (("records", first[0]), f"here it is {first[1].data_type.unwrap()}")
            message = f"'{column.name}' has different types in two kinds: {column.data_type.unwrap()}"
            yield Finding("E342", message, (*at, "name"), "give one of them another name", see=see)

    def _check_references(self, envelope: Envelope | None) -> Iterator[Finding]:
        ids = {record.id: record for record in self.records}
        for i, trailer in enumerate(self.structure):
            at = ("structure", i)
            record = ids.get(trailer.record)
            if record is None:
                help_text = did_you_mean(trailer.record, ids) or f"the kinds are {', '.join(ids)}"
                yield Finding("E342", f"there is no kind '{trailer.record}'", (*at, "record"), help_text)
                continue
            types = {column.name: column.data_type.unwrap().kind for column in record.columns}
            if types.get(trailer.count) is not Kind.INT:
                what = "is not an int" if trailer.count in types else f"is no column of '{trailer.record}'"
                help_text = did_you_mean(trailer.count, types) or "name the column with the number of records"
                yield Finding("E342", f"'{trailer.count}' {what}", (*at, "count"), help_text)
        if envelope is not None and len(self.left_out(envelope)) == len(self.records):
            message = "no kind is left for records: all of them are parts of the envelope, or trailers"
            yield Finding("E342", message, ("records",), "add a kind, or take a section away")


def check_sections(kinds: RecordKinds, envelope: Envelope) -> Iterator[Finding]:
    """Sections that are records of a kind; `at` is the way from the source."""
    tags = {record.tag: record for record in kinds.records}
    for name, section in envelope.sections.items():
        at = ("envelope", "sections", name)
        record = tags.get(section.extract.record_type or "")
        if record is None:
            message = f"no kind of record has the tag '{section.extract.record_type}'"
            help_text = did_you_mean(section.extract.record_type or "", tags) or f"the tags are {', '.join(tags)}"
            yield Finding("E342", message, (*at, "extract", "record_type"), help_text)
            continue
        columns = [column.name for column in record.columns]
        for field in section.fields:
            if field not in columns:
                help_text = did_you_mean(field, columns) or f"its columns are {', '.join(columns)}"
                message = f"records of kind '{record.id}' have no column '{field}'"
                yield Finding("E342", message, (*at, "fields", field), help_text, on_key=True)


def shared_type(a: Column, b: Column) -> Type | None:
    """The type of a column that two kinds have: both have the same, or one has ints and the other floats."""
    one, other = a.data_type.unwrap(), b.data_type.unwrap()
    if one == other:
        return one
    return unify(one, other) if {one.kind, other.kind} == {Kind.INT, Kind.FLOAT} else None


def _place(columns: Sequence[Column], name: str) -> int | None:
    return next((i for i, column in enumerate(columns) if name in (column.name, column.source_name)), None)


def is_kinds(value: Any) -> bool:
    """Is a `schema:` one of several kinds?"""
    return isinstance(value, dict) and bool(value.keys() & set(KEYS))


class _ColumnsKindsOrPath:
    """`schema:` of a source: a list of columns, a mapping of names to types, several kinds of records, or a path."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        columns = handler.generate_schema(SchemaSpec)
        kinds = handler.generate_schema(RecordKinds)
        choices = {"columns": columns, RecordKinds.union_tag: kinds}
        return core_schema.tagged_union_schema(choices, lambda v: RecordKinds.union_tag if is_kinds(v) else "columns")

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        choices = schema["choices"]
        kinds = handler(choices[RecordKinds.union_tag])
        forms = SCHEMA_FORMS.__get_pydantic_json_schema__(choices["columns"], handler)["anyOf"]
        named = {"anyOf": [{"required": [key]} for key in KEYS]}
        return {
            "anyOf": [
                {"type": "object", "if": named, "then": kinds, "else": form} if form.get("type") == "object" else form
                for form in forms
            ]
        }


SourceSchema = Annotated[Columns | RecordKinds | str, _ColumnsKindsOrPath()]
"""Columns, several kinds of records, or the path of a file that has either."""
