"""JSON files as a DataFrame: arrays of records, one record per line, or an object with the records inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.core.fast_paths import taken
from clinker_spark.core.types import Kind, Type
from clinker_spark.spark.scan.csv.header import file_name
from clinker_spark.spark.scan.csv.splits import SMALLEST, TARGET
from clinker_spark.spark.scan.json.documents import decoder, records, shape_of
from clinker_spark.spark.scan.json.lines import byte_lines, check_objects, count_lines, lines_of, parse_lines
from clinker_spark.spark.scan.json.names import (
    READ_WHOLE,
    Names,
    names_at_a_glance,
    names_of_document,
    names_of_lines,
)
from clinker_spark.spark.scan.json.values import JsonColumn, json_cell, json_text, lookup, undeclared
from clinker_spark.spark.scan.json.whole import WholeLines
from clinker_spark.spark.scan.record_batches import Error, Rows, string_array, structural, widened_array
from clinker_spark.spark.scan.record_plan import (
    BOM,
    FRAGMENT_PIECE,
    PIECE,
    RecordFile,
    RecordPlan,
    RecordSplit,
    line_pieces,
    line_splits,
    local_files,
    reject_undeclared,
    with_splits,
)
from clinker_spark.spark.scan.record_source import parallelism_of, scan_of
from clinker_spark.spark.scan.request import ReadRequest, Scan, Unforeseen
from clinker_spark.spark.scan.text.cleaning import NO_CLEANING, Cleaning
from clinker_spark.spark.scan.text.rows_of_values import ValueRows, json_rows
from clinker_spark.spark.scan.text.streams import MARK

_TOGETHER = 4096


def read_json(spark: SparkSession, request: ReadRequest) -> Scan:
    """The records of JSON files. Raises InputError for files that cannot be read or do not fit."""
    piece = PIECE if request.fragment is None else FRAGMENT_PIECE
    return scan_of(spark, json_plan(request, parallelism=parallelism_of(spark), piece=piece), request)


@dataclass(frozen=True)
class JsonReader:
    """Parses the splits of a plan. `shapes` are by file, `columns` and `places` by declared column."""

    shapes: tuple[str, ...]
    path: tuple[str, ...]
    columns: tuple[JsonColumn, ...]
    places: tuple[str, ...]
    """The name of each column in the file."""
    exact: bool = False
    """Are the digits of numbers with a fraction needed?"""
    piece: int = PIECE
    cleaning: Cleaning = NO_CLEANING
    splits: tuple[ValueRows, ...] = ()
    """Fields whose values become records."""
    in_pieces: bool = True
    """May lines be read many at once, where nothing is out of the ordinary?"""
    foreseen: tuple[frozenset[str] | None, ...] = ()
    """By file: the undeclared names that it may have; None where all that it has are known."""

    def rows(self, plan: RecordPlan, split: RecordSplit) -> Iterator[Rows]:
        file = plan.files[split.file]
        if self.shapes[split.file] == "ndjson":
            yield from self._rows_of_lines(plan, file, split)
            return
        values: list[Any] = []
        texts: list[str] = []
        marks: set[int] = set()
        for value, text, marked in records(file, self.shapes[split.file], self.path, exact=self.exact):
            if marked and MARK in text:
                marks.add(len(values))
            values.append(value)
            texts.append(text if type(value) is not dict or marked or plan.record else "")
            if len(values) >= _TOGETHER:
                yield self._document_rows(plan, values, texts, marks)
                values, texts, marks = [], [], set()
        yield self._document_rows(plan, values, texts, marks)

    def _rows_of_lines(self, plan: RecordPlan, file: RecordFile, split: RecordSplit) -> Iterator[Rows]:
        foreseen = self.foreseen[split.file] if self.foreseen else None
        whole = self._whole(plan, closed=foreseen is not None)
        first = not split.start
        # Python's objects take ten times the room of the bytes that they are made of.
        piece = self.piece if whole is not None and whole.usable else min(self.piece, PIECE)
        for data in line_pieces(file, split, b"\n", piece):
            data, first = (data.removeprefix(BOM) if first else data), False
            for part, made in [(data, None)] if whole is None else whole.parts(data):
                yield Rows(*made) if made is not None else self._line_by_line(plan, part, foreseen)

    def _whole(self, plan: RecordPlan, *, closed: bool) -> WholeLines | None:
        """What reads many lines at once, where nobody asks for more than their columns."""
        if not self.in_pieces or plan.record or plan.widened or self.cleaning or self.splits:
            return None
        return WholeLines(self.columns, self.places, plan.members, closed=closed)

    def _line_by_line(self, plan: RecordPlan, data: bytes, foreseen: frozenset[str] | None) -> Rows:
        found, errors = parse_lines(lines_of(data), decoder(exact=self.exact))
        if foreseen is not None:
            self._check(found, foreseen)
        return self._split_rows(plan, found, errors, byte_lines(data) if plan.record else [])

    def _check(self, found: Sequence[dict[str, Any]], foreseen: frozenset[str]) -> None:
        """Raises `Unforeseen` for names that nobody expected. Null where other records have an object is none."""
        declared = frozenset(self.places)
        objects = {name[:i] for name in foreseen for i, char in enumerate(name) if char == "."}
        for record in found:
            for name, value in undeclared(record, declared).items():
                if name not in foreseen and not (value is None and name in objects):
                    raise Unforeseen

    def count(self, file: RecordFile, split: RecordSplit) -> int:
        if self.shapes[split.file] == "ndjson":
            pieces = (data.removeprefix(BOM) for data in line_pieces(file, split, b"\n"))
            if not self.splits:
                return sum(map(count_lines, pieces))
            parser = decoder(exact=False)
            return sum(sum(map(self.count_rows, parse_lines(lines_of(data), parser)[0])) for data in pieces)
        found = records(file, self.shapes[split.file], self.path, exact=False)
        return sum(self.count_rows(value) for value, _, _ in found)

    def count_rows(self, value: Any) -> int:
        """How many records an object becomes; what is none is one, which fails."""
        return len(json_rows(value, self.splits)) if self.splits and type(value) is dict else 1

    def _document_rows(self, plan: RecordPlan, values: list[Any], texts: list[str], marks: set[int]) -> Rows:
        errors: dict[int, Error] = {row: structural("the record is not UTF-8", texts[row]) for row in marks}
        for row in marks:
            if type(values[row]) is dict:
                values[row] = {name: value for name, value in values[row].items() if MARK not in str(value)}
        check_objects(values, errors, texts)
        lines = [None if row in marks else text.encode() for row, text in enumerate(texts)] if plan.record else []
        return self._split_rows(plan, values, errors, lines)

    def _split_rows(
        self, plan: RecordPlan, found: list[dict[str, Any]], errors: dict[int, Error], lines: Sequence[bytes | None]
    ) -> Rows:
        """The rows of records, or of what they become. A line belongs to all records that it becomes: each of them says
        instead what a line would be that has nothing but it."""
        if self.splits:
            rows: list[tuple[dict[str, Any], bytes | None]] = []
            moved: dict[int, Error] = {}
            for i, record in enumerate(found):
                if i in errors:
                    moved[len(rows)] = errors[i]
                    rows.append((record, lines[i] if plan.record else None))
                    continue
                made = json_rows(record, self.splits)
                rows += [(row, (json_text(row) or "").encode() if plan.record else None) for row in made]
            found, errors, lines = [row for row, _ in rows], moved, [line for _, line in rows]
        made_rows = self._rows(plan, found, errors)
        made_rows.lines = lines if plan.record else None
        return made_rows

    def _rows(self, plan: RecordPlan, found: list[dict[str, Any]], errors: dict[int, Error]) -> Rows:
        rows = Rows(len(found), errors=errors)
        wanted = {name for name, _ in plan.fields}
        for column, place in zip(self.columns, self.places, strict=True):
            values = [lookup(record, place) for record in found]
            typed = column.convert(values)
            for row, error in typed.errors.items():
                errors.setdefault(row, error)
            if column.name in wanted:
                rows.values[column.name] = typed.values
            if plan.record:
                rows.texts[column.name] = string_array([json_cell(value) for value in values])
        if plan.widened:
            declared, carried = frozenset(self.places), frozenset(plan.widened)
            extras = [undeclared(record, declared) for record in found]
            if self.cleaning:
                extras = [self.cleaning.clean_value(extra) for extra in extras]
            rows.widened = widened_array(
                [{name: json_text(value) for name, value in extra.items() if name in carried} for extra in extras],
                typed=True,
            )
        return rows


def json_plan(
    request: ReadRequest, *, parallelism: int, target: int = TARGET, smallest: int = SMALLEST, piece: int = PIECE
) -> RecordPlan:
    """Look at the files and cut those that can be cut."""
    path = tuple(request.options.record_path.split(".")) if request.options.record_path else ()
    # With a path the document is an object, whatever stands at its end: an array of records, or one of them.
    shape = "object" if path else request.options.format
    files, conventions = local_files(request, "JSON"), request.conventions
    reader = JsonReader(
        tuple(shape or shape_of(file.open) for file in files),
        path,
        tuple(
            JsonColumn.of(column, request.conventions.date_formats, request.conventions.cleaning)
            for column in request.columns
        ),
        tuple(file_name(column) for column in request.columns),
        piece=piece,
        cleaning=conventions.cleaning,
        splits=conventions.row_splits,
        in_pieces=taken("whole_pieces"),
    )
    widened, counts, foreseen = _undeclared(request, files, reader)
    decimals = any(_has_decimal(column.type) for column in reader.columns)
    reader = replace(reader, exact=decimals or request.record or bool(widened), foreseen=foreseen)
    plan = RecordPlan.of(request, files, reader, widened=widened, typed=True)
    splits: list[RecordSplit] = []
    for i, file in enumerate(files):
        if reader.shapes[i] == "ndjson":
            splits += line_splits(i, file, b"\n", parallelism=parallelism, target=target, smallest=smallest)
        else:
            splits.append(RecordSplit(i))

    def count(split: RecordSplit) -> int:
        known = counts.get(split.file)
        return reader.count(files[split.file], split) if known is None else known

    return with_splits(plan, splits, request.readers.limit, count)


def _undeclared(
    request: ReadRequest, files: tuple[RecordFile, ...], reader: JsonReader
) -> tuple[tuple[str, ...], dict[int, int], tuple[frozenset[str] | None, ...]]:
    """The names that are carried along, the records of the files that had to be counted for it, and what files may
    have where that was a guess."""
    counts: dict[int, int] = {}
    if request.conventions.on_unmapped == "drop":
        return (), counts, ()
    if request.guess and request.conventions.on_unmapped == "auto_widen" and not reader.splits:
        guess = _guess(files, reader)
        if guess is not None:
            return guess[0], counts, guess[1]
    declared = frozenset(reader.places)
    everywhere = Names(declared)
    problems: list[Diagnostic] = []
    for i, file in enumerate(files):
        names = Names(declared) if request.conventions.on_unmapped == "reject" else everywhere
        if reader.shapes[i] == "ndjson":
            names_of_lines(file, names, reader.splits)
        else:
            counts[i] = names_of_document(file, reader.shapes[i], reader.path, names, reader.splits)
        if request.conventions.on_unmapped == "reject":
            problems += reject_undeclared(request, file.name, names.found)
    if problems:
        raise InputError(problems)
    return everywhere.found, counts, ()


def _guess(
    files: tuple[RecordFile, ...], reader: JsonReader
) -> tuple[tuple[str, ...], tuple[frozenset[str] | None, ...]] | None:
    """The names that a look at some places gives; None if that says too little. Those of a file must not be unknown
    until a later file is looked at: names are in order of appearance."""
    names = Names(frozenset(reader.places))
    foreseen: list[frozenset[str] | None] = []
    for file, shape in zip(files, reader.shapes, strict=True):
        if shape != "ndjson":
            return None
        if file.seekable and file.size <= READ_WHOLE:
            names_of_lines(file, names)
            foreseen.append(None)
            continue
        known = names_at_a_glance(file, names)
        if known is None:
            return None
        foreseen.append(known)
    return (names.found, tuple(foreseen)) if names.all_are_columns else None


def _has_decimal(t: Type) -> bool:
    return t.kind is Kind.DECIMAL or (t.element is not None and _has_decimal(t.element))
