"""Declared schemas: columns in the pipeline itself, or in a `*.schema.yaml` file beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinker_spark.config.errors import ConfigError
from clinker_spark.config.files import Unreadable, read_text
from clinker_spark.config.findings.translate import finding_at, validate, value_span
from clinker_spark.config.model.base import Finding
from clinker_spark.config.model.schema import Column, Columns, FieldPlace, FieldPlaces, column_list, places_map
from clinker_spark.config.model.sources.record_kinds import RecordKinds, is_kinds
from clinker_spark.config.tree.yaml import Document, KeyPath, Mapping, parse_yaml
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.span import Source
from clinker_spark.core.types import Type

LISTS = ("columns", "fields", "schema")
"""Keys under which a schema file may have its list."""


@dataclass(frozen=True, eq=False)
class DeclaredSchema:
    """Columns and where they are declared: in `document`, at `path`."""

    columns: Columns
    document: Document
    path: KeyPath
    kinds: RecordKinds | None = None
    """Several kinds of records, whose columns these are."""

    @property
    def source(self) -> Source:
        return self.document.source

    def types(self) -> dict[str, Type]:
        """The names and types, in order."""
        return {column.name: column.data_type for column in self.columns}

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


def declared_schema(
    spec: Columns | RecordKinds | str,
    owner: Any,
    document: Document,
    path: KeyPath,
    folder: Path,
    found: list[Diagnostic],
) -> DeclaredSchema | None:
    """The columns that a `schema:` at `path` means. The model that it belongs to says what is wrong with them.

    Columns in the file itself have been checked with everything else there.
    """
    if isinstance(spec, RecordKinds):
        return DeclaredSchema(spec.columns, document, path, spec)
    if not isinstance(spec, str):
        return DeclaredSchema(spec, document, path)
    check_kinds: Callable[[RecordKinds], Iterator[Finding]] | None = getattr(owner, "check_kinds", None)
    schema = _read_file(spec, document, path, folder, found, kinds=check_kinds is not None)
    if schema is None:
        return None
    before = len(found)
    kinds = schema.kinds
    checked = owner.check_schema(schema.columns) if kinds is None or check_kinds is None else check_kinds(kinds)
    for finding in checked:
        if finding.at[:1] == ("schema",):
            inside = None if finding.see is None else (finding.see[0][1:], finding.see[1])
            moved = Finding(finding.code, finding.message, finding.at[1:], finding.help, finding.on_key, inside)
            found.append(finding_at(moved, schema.document, schema.path))
        else:
            found.append(finding_at(finding, document, path[:-1]))
    return schema if len(found) == before else None


def _read_file(
    spec: str, document: Document, path: KeyPath, folder: Path, found: list[Diagnostic], *, kinds: bool
) -> DeclaredSchema | None:
    place = value_span(document, path)
    schema = _parsed(spec, document, path, folder, found)
    if schema is None:
        return None
    where, data = _list(schema)
    if data is None or isinstance(data, str):
        message = f"the schema '{spec}' has no columns"
        help_text = "write a list there: - { name: id, type: int }"
        found.append(Diagnostic("E157", message, document.source, place, help_text))
        return None
    if is_kinds(data):
        if not kinds:
            found.append(Diagnostic("E342", "only sources have several kinds of records", document.source, place))
            return None
        several = validate(RecordKinds, schema, where, found, data, check=False)
        return None if several is None else DeclaredSchema(several.columns, schema, where, several)
    columns = _columns(data, schema, where, found)
    return None if columns is None else DeclaredSchema(columns, schema, where)


def _parsed(spec: str, document: Document, path: KeyPath, folder: Path, found: list[Diagnostic]) -> Document | None:
    """A file that a pipeline names; None if it cannot be read, which is noted then."""
    try:
        text = read_text(folder / spec)
    except Unreadable as error:
        message = f"cannot read the schema '{spec}': {error.reason}"
        # What was meant stands in the same folder; it is named as it would be written here.
        help_text = (error.help or "the path starts from the folder of this file").replace(f"'{folder}/", "'")
        found.append(Diagnostic("E157", message, document.source, value_span(document, path), help_text))
        return None
    try:
        return parse_yaml(Source(str(folder / spec), text))
    except ConfigError as error:
        found += error.diagnostics
        return None


def with_places(owner: Any, document: Document, path: KeyPath, folder: Path, found: list[Diagnostic]) -> Any:
    """The settings of a source with the places of its columns, if a file has them (`format_schema` is its path)."""
    spec = getattr(owner, "format_schema", None)
    if not isinstance(spec, str):
        return owner
    file = _parsed(spec, document, (*path, "format_schema"), folder, found)
    if file is None:
        return None
    data = places_map(file.data())
    if not isinstance(data, dict) or "fields" not in data:
        message = f"the schema '{spec}' has no fields"
        help_text = "write there: fields: [{ name: id, start: 0, width: 4 }]"
        where = value_span(document, (*path, "format_schema"))
        found.append(Diagnostic("E157", message, document.source, where, help_text))
        return None
    places = _places(data["fields"], file, found)
    if places is None:
        return None
    owner = owner.model_copy(update={"format_schema": places})
    if isinstance(owner.schema_, tuple):  # it was not looked at before its places were known
        found += (finding_at(finding, document, path) for finding in owner.check_schema(owner.schema_))
    return owner


def _places(fields: Any, file: Document, found: list[Diagnostic]) -> FieldPlaces | None:
    at: KeyPath = ("fields",) if isinstance(file.root, Mapping) else ()
    if not isinstance(fields, list):
        help_text = "write a list: fields: [{ name: id, start: 0, width: 4 }]"
        found.append(Diagnostic("E157", "the fields are no list", file.source, file.head_span(at), help_text))
        return None
    made = [validate(FieldPlace, file, (*at, i), found, item) for i, item in enumerate(fields)]
    return None if None in made else FieldPlaces(fields=tuple(place for place in made if place is not None))


def _list(schema: Document) -> tuple[KeyPath, Any]:
    """The path and the content of the list of columns in a schema file."""
    root = schema.root
    if isinstance(root, Mapping):
        for key in LISTS:
            value = root.get(key)
            if value is not None and not isinstance(value.data(), str):
                return (key,), value.data()
    return (), schema.data()


def _columns(data: Any, schema: Document, where: KeyPath, found: list[Diagnostic]) -> Columns | None:
    result: list[Column] = []
    before = len(found)
    if isinstance(data, dict):
        data = column_list({key: value for key, value in data.items() if key != "_notes"})
    if not isinstance(data, list):
        found.append(Diagnostic("E157", "a schema is a list of columns", schema.source, schema.head_span(where)))
        return None
    for i, item in enumerate(data):
        column = validate(Column, schema, (*where, i), found, item, check=False)
        if column is not None:
            result.append(column)
    return tuple(result) if len(found) == before else None
