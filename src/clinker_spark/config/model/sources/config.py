"""What all sources have in common: which files, which columns, and when they come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from clinker_spark.config.model.base import ONE_OR_MORE, Also, Finding, Gone, Model, not_yet, without_effect
from clinker_spark.config.model.order import SortOrder
from clinker_spark.config.model.schema import (
    LAYOUT_KEYS,
    Column,
    ColumnPatch,
    check_columns,
    check_patches,
    patched,
)
from clinker_spark.config.model.sources.envelope import Envelope, check_envelope
from clinker_spark.config.model.sources.formats import (
    NO_ARRAY_PATHS,
    check_line_options,
)
from clinker_spark.config.model.sources.keys import MODES, Files, OnUnmapped, Watermark, read_mode
from clinker_spark.config.model.sources.record_kinds import RecordKinds, SourceSchema, check_sections
from clinker_spark.config.model.sources.split_rows import NO_ROW_SPLITS, RowSplitList, check_row_splits
from clinker_spark.config.model.sources.split_values import NO_SPLITS, SplitList, check_splits
from clinker_spark.config.paths.patterns import glob_problem, regex_problem
from clinker_spark.config.values import Bool, FlagText, Moment, Size, Words
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import Kind, Type

MATCHERS = ("path", "glob", "regex", "paths")
_SEARCH_KEYS = ("exclude", "modified_after", "modified_before", "min_size", "max_size")
_OF_NAMED_FILES = ("on_bad_file", "only_new")
TEXT_KEYS = ("trim", "null_values")
_OF_FILES = (*MATCHERS, *_SEARCH_KEYS, "transport", "files", "compression", "sort_order", "on_unsorted")
_REST = {"rest": "sources that read from a web service are", "{}": "sources that read from a web service are"}


class SourceConfig(Model):
    """What all file formats share."""

    name: Words | None = None
    """The name of the source in $source.name and in dead letters; by default that of the node."""
    transport: Annotated[Literal["file"], not_yet(_REST)] = "file"
    """How the data is reached: files."""
    path: Words | None = None
    """The file to read."""
    glob: Words | None = None
    """A pattern of files to read: data/*.csv, or data/**/*.csv with folders."""
    regex: Words | None = None
    """A regular expression that the path of a file must match as a whole."""
    paths: Annotated[tuple[Words, ...], Field(min_length=1)] | None = None
    """The files to read, in this order."""
    resource: Words | None = None
    """In a composition: the slot for the file to read, which each call fills, in place of path."""
    exclude: tuple[Words, ...] = ()
    """Patterns of files to leave out."""
    modified_after: Moment | None = None
    """Only files changed after this date, or within this time: 2026-01-31, 7d."""
    modified_before: Moment | None = None
    """Only files changed before this date, or longer ago than this."""
    min_size: Size | None = None
    """Only files of at least this size."""
    max_size: Size | None = None
    """Only files of at most this size."""
    files: Files = Field(default_factory=Files)
    compression: Literal["auto", "none", "gzip", "bz2", "zstd"] = "auto"
    """How the files are compressed; auto goes by the end of their names."""
    trim: Bool = False
    """Remove blanks around texts before they are read."""
    null_values: Annotated[tuple[FlagText, ...], ONE_OR_MORE] = ()
    """Texts that stand for no value: ["", NA, "-"]."""
    schema_: SourceSchema = Field(alias="schema")
    """The columns: a list of { name, type }, or the path of a *.schema.yaml file. For text files with several kinds of
    records: { discriminator, records, structure }."""
    schema_overrides: tuple[ColumnPatch, ...] = ()
    """What is different about columns of the schema: - { name: id, type: string }, or - { name: old, drop: true }."""
    on_unmapped: Annotated[OnUnmapped, Also(read_mode, MODES)] = Field(default_factory=OnUnmapped)
    """What happens to columns of the file that the schema does not name; { mode: drop }, or drop alone."""
    correlation_key: Annotated[tuple[Words, ...], Field(min_length=1), ONE_OR_MORE] | None = None
    """The column or columns whose values make records belong together: if one fails, all are withheld."""
    sort_order: SortOrder = ()
    """The order in which each file is sorted already."""
    on_unsorted: Literal["warn", "error"] = "warn"
    """What happens to a file that is not: sort it, or fail."""
    watermark: Watermark | None = None
    envelope: Envelope | None = None
    """What the files say about all of their records: programs read it as $doc.section.field."""
    split_values: SplitList = NO_SPLITS
    """Columns whose texts are several values: a;b;c. They have multiple: true in the schema."""
    split_to_rows: RowSplitList = NO_ROW_SPLITS
    """Fields with several values that become a record each: [lines]. For JSON and XML."""
    dlq_granularity: Literal["record", "document"] = "record"
    """What one bad record sends to the dead letters: itself, or all records of its file."""

    stream_only: ClassVar[bool] = False
    """Has it no end, so that only `clinker stream` can read it?"""
    finite_only: ClassVar[bool] = False
    """Has it an end, so that only `clinker run` can read it?"""
    gone: ClassVar[dict[str, Gone]] = {
        "array_paths": NO_ARRAY_PATHS,
    }
    section_key: ClassVar[str | None] = None
    """The key that leads to a section of the envelope of such a file."""

    @property
    def place(self) -> str:
        """What is read, for people."""
        return str(self.path or self.glob or self.regex or ", ".join(self.paths or ()))

    def check(self) -> Iterator[Finding]:
        yield from self._check_matchers()
        yield from self._check_filters()
        if isinstance(self.schema_, RecordKinds):
            yield from self.check_kinds(self.schema_)
        elif not isinstance(self.schema_, str):
            if not isinstance(getattr(self, "format_schema", None), str):  # else what is in that file comes first
                yield from self.check_schema(self.schema_)
            yield from self._check_places(self.schema_)
            yield from check_patches(self.schema_, self.schema_overrides)
        if not self.sort_order:
            yield from without_effect(self, ("on_unsorted",), "there is no 'sort_order'")

    def adjusted(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """The columns with what `schema_overrides` and `format_schema` say about them."""
        return patched(columns, self.schema_overrides, getattr(self, "format_schema", None))

    def _check_no_file(self, why: str) -> Iterator[Finding]:
        for key in _OF_FILES:
            if key in self.model_fields_set:
                yield Finding("E007", f"{why}, and has no '{key}'", (key,), "remove it", on_key=True)

    def _check_places(self, columns: tuple[Column, ...]) -> Iterator[Finding]:
        """Keys of columns that are about other formats. A schema file may well be shared with one of these."""
        fixed = getattr(self, "type", None) == "fixed_width"
        keys = ("truncation",) if fixed else LAYOUT_KEYS
        why = "it is about writing" if fixed else "only fixed-width files have it"
        for i, column in enumerate(columns):
            yield from without_effect(column, keys, why, "schema", i)

    def check_kinds(self, kinds: RecordKinds) -> Iterator[Finding]:
        """The same for several kinds of records."""
        kind = str(getattr(self, "type", ""))
        problems = [finding.under("schema") for finding in kinds.problems(kind, self.envelope)]
        yield from problems
        if problems:
            return
        if self.envelope is not None:
            yield from check_envelope(self.envelope, kind, "record_type")
            yield from check_sections(kinds, self.envelope)
        for key in ("split_values", "split_to_rows", "schema_overrides", "format_schema"):
            if getattr(self, key, None):
                message = f"'{key}' is about one list of columns, and the schema has several kinds of records"
                yield Finding("E342", message, (key,), "remove it", on_key=True)
        yield from check_line_options(self.options)  # type: ignore[attr-defined]
        yield from self._check_references(kinds.columns)

    def check_schema(self, columns: tuple[Column, ...]) -> Iterator[Finding]:
        """What is wrong with the columns, and with what refers to them. Also for columns that came from a file."""
        columns = self.adjusted(columns)
        if self.envelope is not None:
            yield from check_envelope(self.envelope, str(getattr(self, "type", "")), self.section_key)
        for finding in check_columns(columns, fixed_width=getattr(self, "type", None) == "fixed_width"):
            yield finding.under("schema")
        yield from check_splits(str(getattr(self, "type", "")), columns, self.split_values)
        yield from check_row_splits(str(getattr(self, "type", "")), columns, self.split_to_rows)
        yield from self._check_references(columns)

    def _check_references(self, columns: tuple[Column, ...]) -> Iterator[Finding]:
        types = {column.name: column.data_type for column in columns}
        known = ", ".join(types)
        for i, name in enumerate(self.correlation_key or ()):
            if name not in types:
                help_text = did_you_mean(name, types) or f"the schema has {known}"
                yield Finding("E153", f"the schema has no column '{name}'", ("correlation_key", i), help_text)
        for i, item in enumerate(self.sort_order):
            if item.field not in types:
                help_text = did_you_mean(item.field, types) or f"the schema has {known}"
                yield Finding("E007", f"the schema has no column '{item.field}'", ("sort_order", i, "field"), help_text)
            elif not _has_order(types[item.field]):
                message = f"values of type {types[item.field]} have no order"
                help_text = "sort by other columns; a decimal needs a scale, as in decimal(2)"
                yield Finding("E007", message, ("sort_order", i, "field"), help_text)
            if item.null_order == "drop":
                help_text = "write first or last; a filter can leave records out"
                yield Finding("E007", "a source cannot drop records", ("sort_order", i, "null_order"), help_text)
        if self.watermark is not None:
            column = types.get(self.watermark.column)
            at = ("watermark", "column")
            if column is None:
                help_text = did_you_mean(self.watermark.column, types) or f"the schema has {known}"
                yield Finding("E154", f"the schema has no column '{self.watermark.column}'", at, help_text)
            elif column.kind not in (Kind.DATE, Kind.DATETIME):
                message = f"the time of an event must be a date or a date_time, not {column}"
                yield Finding("E155", message, at, f"declare '{self.watermark.column}' as date_time")

    def _check_matchers(self) -> Iterator[Finding]:
        given = [key for key in (*MATCHERS, "resource") if getattr(self, key) is not None]
        if not given:
            message = "the source does not say what to read"
            yield Finding("E211", message, (), "add one of path, glob, regex or paths", on_key=True)
        for key in given[1:]:
            see = ((given[0],), "the first one")
            message = f"a source takes one of path, glob, regex and paths; here are {' and '.join(given)}"
            yield Finding("E210", message, (key,), "keep one of them", on_key=True, see=see)
        for at, text in [(("glob",), self.glob), *((("exclude", i), text) for i, text in enumerate(self.exclude))]:
            if text is not None and (reason := glob_problem(text)) is not None:
                yield Finding(
                    "E212", f"'{text}' is not a pattern: {reason}", at, "patterns are *, **, ?, [a-z] and {a,b}"
                )
        if self.regex is not None and (reason := regex_problem(self.regex)) is not None:
            help_text = "'.' stands for any character, '.*' for any text; write '\\.' for a dot"
            yield Finding("E213", f"'{self.regex}' is not a regular expression: {reason}", ("regex",), help_text)

    def _check_filters(self) -> Iterator[Finding]:
        if self.min_size is not None and self.max_size is not None and self.min_size > self.max_size:
            yield Finding("E215", "'min_size' is larger than 'max_size': no file fits", ("min_size",), "swap them")
        if self.glob is None and self.regex is None:
            why = "the files are named, not searched for"
            yield from without_effect(self, _SEARCH_KEYS, why)
            chosen = [key for key in Files.model_fields if key not in _OF_NAMED_FILES]
            yield from without_effect(self.files, chosen, why, "files")


def _has_order(t: Type) -> bool:
    if t.kind is Kind.DECIMAL:
        return t.scale is not None
    return t.kind not in (Kind.ARRAY, Kind.MAP) and not t.is_dynamic
