"""Declared columns: their names, types, formats and, for fixed-width files, their places in the line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from clinker_spark.config.column_types import read_type
from clinker_spark.config.model.base import Finding, Gone, Model, not_yet
from clinker_spark.config.values import Bool, Count, FlagText, Natural, Text, Words, problem, read_text
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import MAX_SCALE, Kind, Type, array_of
from clinker_spark.cxl.dates.formats import check_format

_DECIMAL_DIGITS = re.compile(r"decimal\(\s*([0-9]+)\s*,\s*[0-9]+\s*\)", re.ASCII)
MAX_PRECISION = 38
_WARN = {"warn": "a warning about texts that were cut is"}


def _type_text(text: str) -> str:
    read_type(text)
    return text


def _short_form(value: Any) -> Any:
    """`{ nullable: int }` as `nullable(int)`."""
    if isinstance(value, dict) and len(value) == 1:
        (word, inner), *_ = value.items()
        inner = _short_form(inner)
        if word in ("nullable", "array", "map") and isinstance(inner, str):
            return f"{word}({inner})"
    return value


TypeText = Annotated[Text, AfterValidator(_type_text), BeforeValidator(_short_form)]


_ATTRIBUTES = {
    key: Gone(f"'{key}' of a column is not supported", help_text, "E009")
    for key, help_text in {
        "alias": "write that name as 'name:', and the name in the file as 'source_name:'",
        "coerce": "remove it: values are always read as the type of their column",
        "default": "add nullable: true, and write emit x = x ?? 0 in a transform",
        "enum": "check the values with 'validations:' of a transform",
        "inherits": "write out here what the column takes over",
        "path": "write the name in the file as 'source_name:'; what stands deeper is a.b",
        "record": "write the change where the columns of that kind of records are declared",
        "required": "columns must have a value; nullable: true is for one that may be empty",
    }.items()
}
"""What other versions say about columns, and what to write instead."""


class _Named(Model):
    """What is said about one column."""

    name: Words
    """The name of the column in programs."""
    type: TypeText | None = None
    """string, int, float, decimal, decimal(scale), bool, date, date_time, array(T), map(T), any or nullable(T)."""

    gone: ClassVar[dict[str, Gone]] = _ATTRIBUTES


class Described(_Named):
    """What the values of a column are."""

    source_name: Words | None = None
    """The name in the file, if it is another one."""
    nullable: Bool | None = None
    """May the value be empty? The same as type nullable(T)."""
    format: Words | None = None
    """The format of a date or date_time, such as %d/%m/%Y. No other is tried then."""
    precision: Annotated[Count, Field(le=MAX_PRECISION)] | None = None
    """The most digits a decimal may have."""
    scale: Annotated[Natural, Field(le=MAX_SCALE)] | None = None
    """The digits of a decimal after the point."""
    multiple: Bool | None = None
    """Are there several values, each of the type? The same as type array(T)."""
    truncation: Annotated[Literal["error", "silent"] | None, not_yet(_WARN)] = None
    """Fixed width: what happens to a text that is too long for its field."""
    long_unique: Bool = False
    """A hint that values are long and never repeat. It changes nothing here."""


class _Placed(Model):
    """Where a column stands in a fixed-width line."""

    start: Natural | None = None
    """Fixed width: the first byte, counted from 0."""
    width: Count | None = None
    """Fixed width: the number of bytes."""
    end: Count | None = None
    """Fixed width: the byte after the last one; instead of width."""
    justify: Literal["left", "right"] | None = None
    """Fixed width: the side of the field on which the text stands."""
    pad: FlagText | None = None
    """Fixed width: the character that fills the field, a blank if not given."""
    trim: Bool | None = None
    """Fixed width: remove the padding on reading."""


class Column(_Placed, Described):
    """A column that a file has."""

    type: TypeText
    """string, int, float, decimal, decimal(scale), bool, date, date_time, array(T), map(T), any or nullable(T)."""

    example: ClassVar[str] = "{ name: id, type: int }"

    @property
    def data_type(self) -> Type:
        """The type, with the scale and the nullability that stand beside it."""
        found = read_type(self.type)
        if found.kind is Kind.DECIMAL and self.scale is not None:
            found = replace(found, scale=self.scale)
        if self.multiple:
            return array_of(found.unwrap()).as_nullable() if found.nullable or self.nullable else array_of(found)
        return found.as_nullable() if self.nullable else found

    @property
    def digits(self) -> int | None:
        """The most digits a decimal may have, from `precision` or from decimal(precision, scale)."""
        match = _DECIMAL_DIGITS.search(self.type)
        return self.precision or (int(match[1]) if match else None)

    def check(self) -> Iterator[Finding]:
        kind = self.data_type.kind
        if self.name.startswith("$"):
            yield Finding("E226", f"column '{self.name}' has a reserved name", ("name",), "names do not start with '$'")
        if kind is not Kind.DECIMAL:
            for key in ("precision", "scale"):
                if getattr(self, key) is not None:
                    help_text = f"remove it, or declare the column as decimal; its type is {self.type}"
                    yield Finding("E226", f"'{key}' belongs to decimals", (key,), help_text, on_key=True)
        elif (self.digits or MAX_PRECISION) < (self.data_type.scale or 0) or (self.digits or 1) > MAX_PRECISION:
            message = f"a decimal of {self.digits} digits cannot have {self.data_type.scale or 0} after the point"
            yield Finding("E226", message, ("type",), f"the precision counts all digits, at most {MAX_PRECISION}")
        yield from self._check_format(kind)
        if self.pad is not None and (len(self.pad) > 1 or not self.pad.isascii()):
            yield Finding("E226", "'pad' must be one ASCII character", ("pad",), 'write pad: "0" or pad: " "')
        if self.end is not None and (self.start is None or self.width is not None or self.end <= self.start):
            help_text = "give start with either width or end, and an end after the start"
            yield Finding("E226", f"the place of column '{self.name}' is not clear", ("end",), help_text, on_key=True)

    def _check_format(self, kind: Kind) -> Iterator[Finding]:
        if self.format is None:
            return
        if kind not in (Kind.DATE, Kind.DATETIME):
            help_text = f"remove it, or declare the column as date or date_time; its type is {self.type}"
            yield Finding("E226", "'format' belongs to dates", ("format",), help_text, on_key=True)
        elif (reason := check_format(self.format, kind)) is not None:
            yield Finding("E226", reason, ("format",), "write a strftime format, such as %d/%m/%Y")


Columns = tuple[Column, ...]


class _ColumnsOrPath:
    """`schema:` is a list of columns, a mapping of names to types, or the path of a file with either."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        columns = handler.generate_schema(Columns)

        def read(value: Any, validate: core_schema.ValidatorFunctionWrapHandler) -> Any:
            if value == "generated":
                raise problem("E009", "schemas made from the format are not supported yet", "list the columns")
            return read_text(value) if isinstance(value, str) else validate(column_list(value))

        return core_schema.no_info_wrap_validator_function(read, columns)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        columns = handler(schema["schema"])
        path = {"type": "string", "description": "The path of a *.schema.yaml file."}
        body = {"anyOf": [{"type": "string"}, {"type": "object"}]}
        types = {"type": "object", "additionalProperties": body, "description": "Names and their types."}
        return {"anyOf": [columns, types, path]}


SCHEMA_FORMS = _ColumnsOrPath()
SchemaSpec = Annotated[Columns | str, SCHEMA_FORMS]
"""Columns, or the path of a file that has them."""


def column_list(value: Any) -> Any:
    """A mapping of names to types as a list of columns."""
    if not isinstance(value, dict):
        return value
    if value.keys() == {"fields"} and isinstance(value["fields"], list):  # as other versions write it
        return value["fields"]
    if value.keys() & {"discriminator", "records", "structure"}:
        raise problem("E342", "only sources have several kinds of records", "declare one list of columns")
    return [
        {"name": name, **body} if isinstance(body, dict) and "name" not in body else {"name": name, "type": body}
        for name, body in value.items()
    ]


class FieldPlace(_Placed, _Named):
    """The bytes of a field of a fixed-width line."""

    type: Text | None = None
    """What it is in the file. The type of the column is that of the schema."""


class FieldPlaces(Model):
    """The places of the columns of a fixed-width file, apart from their types."""

    fields: tuple[FieldPlace, ...]
    """Each with its name and place."""


class _PlacesOrPath:
    """`format_schema:` is `{ fields: [...] }`, the list alone, or the path of a file with either."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def read(value: Any, validate: core_schema.ValidatorFunctionWrapHandler) -> Any:
            return read_text(value) if isinstance(value, str) else validate(places_map(value))

        return core_schema.no_info_wrap_validator_function(read, handler.generate_schema(FieldPlaces))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        places = handler(schema["schema"])
        fields = {"type": "array", "items": handler(FieldPlace.__pydantic_core_schema__)}
        path = {"type": "string", "description": "The path of a file with the places."}
        return {"anyOf": [places, fields, path]}


def places_map(value: Any) -> Any:
    """A list of places as `{ fields: [...] }`."""
    return {"fields": value} if isinstance(value, list) else value


PLACES_FORMS = _PlacesOrPath()
PlacesSpec = Annotated[FieldPlaces | str, PLACES_FORMS]
"""Places, or the path of a file that has them."""


class ColumnPatch(_Placed, Described):
    """What is different about a column of a schema, or one more column, which needs a type."""

    drop: Bool = False
    """Leave the column out."""


_PLACE = ("start", "width", "end", "justify", "pad", "trim")
LAYOUT_KEYS = (*_PLACE, "truncation")
"""Keys of columns that only fixed-width files have a use for."""


def given(model: Model, keys: Sequence[str]) -> dict[str, Any]:
    """Those of the keys that have a value."""
    return {key: value for key in keys if (value := getattr(model, key)) is not None}


def patched(columns: Columns, patches: Sequence[ColumnPatch], places: FieldPlaces | None = None) -> Columns:
    """A schema with the places that stand beside it, and with what is different about some columns."""
    if not patches and places is None:
        return columns
    changes = ("type", "source_name", "nullable", "format", "precision", "scale", "multiple", "truncation", *_PLACE)
    found = {column.name: column for column in columns}
    for place in places.fields if places is not None else ():
        if place.name in found:
            found[place.name] = found[place.name].model_copy(update=given(place, _PLACE))
    for patch in patches:
        if patch.drop:
            found.pop(patch.name, None)
        elif patch.name in found:
            found[patch.name] = found[patch.name].model_copy(update=given(patch, changes))
        elif patch.type is not None:
            found[patch.name] = Column(name=patch.name, **given(patch, changes))
    return tuple(found.values())


def check_patches(columns: Columns, patches: Sequence[ColumnPatch]) -> Iterator[Finding]:
    """Patches of columns that are not there."""
    known = {column.name for column in columns}
    for i, patch in enumerate(patches):
        if patch.name not in known and (patch.drop or patch.type is None):
            message = f"the schema has no column '{patch.name}'"
            help_text = did_you_mean(patch.name, known) or "a column that is added needs a type"
            yield Finding("E226", message, ("schema_overrides", i, "name"), help_text)


def check_columns(columns: Sequence[Column], *, fixed_width: bool = False) -> Iterator[Finding]:
    """What is wrong between the columns of one schema; `at` starts with the column's position."""
    if not columns:
        yield Finding("E201", "the schema has no columns", (), "list the columns: - { name: id, type: int }")
    seen: dict[str, int] = {}
    physical: dict[str, int] = {}
    for i, column in enumerate(columns):
        for finding in column.check():
            yield finding.under(i)
        if column.name in seen:
            see = ((seen[column.name], "name"), "first declared here")
            yield Finding(
                "E226", f"column '{column.name}' is declared twice", (i, "name"), "rename one of them", see=see
            )
        elif (column.source_name or column.name) in physical:
            read = column.source_name or column.name
            see = ((physical[read], "name"), "read here as well")
            yield Finding("E226", f"two columns read '{read}' of the file", (i,), "read it once", on_key=True, see=see)
        seen.setdefault(column.name, i)
        physical.setdefault(column.source_name or column.name, i)
    if fixed_width:
        yield from _check_layout(columns)


def layout(columns: Sequence[Column]) -> list[tuple[int, int]]:
    """The bytes (from, to) of each column of a fixed-width line. One without a start follows the one before."""
    places: list[tuple[int, int]] = []
    for column in columns:
        start = column.start if column.start is not None else (places[-1][1] if places else 0)
        places.append((start, column.end if column.end is not None else start + (column.width or 0)))
    return places


def _check_layout(columns: Sequence[Column]) -> Iterator[Finding]:
    for i, column in enumerate(columns):
        if column.width is None and column.end is None:
            help_text = "give it start and width, both in bytes: { start: 0, width: 12 }"
            yield Finding("E226", f"column '{column.name}' has no place in the line", (i, "name"), help_text)
            return
    places = sorted((place, i) for i, place in enumerate(layout(columns)))
    for ((_, end), before), ((start, _), after) in pairwise(places):
        if start < end:
            names = f"'{columns[before].name}' and '{columns[after].name}'"
            see = ((before, "name"), f"ends before byte {end}")
            message = f"columns {names} overlap"
            yield Finding("E226", message, (after, "name"), f"start the later one at byte {end}", see=see)
