"""XML files as a DataFrame: one record per element of a path. A file is one task: nobody can start in its middle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from clinker_spark.config.model.schema import Column
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.core.types import ANY, Kind
from clinker_spark.spark.scan.csv.header import file_name
from clinker_spark.spark.scan.record_batches import Error, Rows, missing, string_array, structural, widened_array
from clinker_spark.spark.scan.record_plan import (
    RecordFile,
    RecordPlan,
    RecordSplit,
    local_files,
    reject_undeclared,
    with_splits,
)
from clinker_spark.spark.scan.record_source import scan_of
from clinker_spark.spark.scan.request import Conventions, ReadRequest, Scan
from clinker_spark.spark.scan.text.cleaning import NO_CLEANING, Cleaning
from clinker_spark.spark.scan.text.rows_of_values import ValueRows
from clinker_spark.spark.scan.text.values import TextColumn
from clinker_spark.spark.scan.xml.records import CHUNK, GROUP, Cell, Record, XmlShape, xml_records

_TOGETHER = 4096


def read_xml(spark: SparkSession, request: ReadRequest) -> Scan:
    """The records of XML files. Raises InputError for files that cannot be read or do not fit."""
    return scan_of(spark, xml_plan(request), request)


@dataclass(frozen=True)
class XmlColumn:
    """A column, and the texts it is made of. `text` reads one of them, also those of an array."""

    name: str
    place: str
    text: TextColumn
    is_array: bool
    required: bool

    @classmethod
    def of(cls, column: Column, conventions: Conventions) -> XmlColumn:
        date_formats = conventions.date_formats
        text = TextColumn.of(column, date_formats, conventions.cleaning)
        t = column.data_type
        required = not t.nullable and not t.is_dynamic
        if t.kind is not Kind.ARRAY or t.is_dynamic:
            return cls(column.name, file_name(column), text, False, required)
        element = t.element or ANY
        formats = tuple(date_formats) if element.kind in (Kind.DATE, Kind.DATETIME) else ()
        return cls(column.name, file_name(column), replace(text, type=element, formats=formats), True, required)

    def convert(self, found: Sequence[Cell | None], errors: dict[int, Error]) -> pa.Array:
        return self._array(found, errors) if self.is_array else self._scalar(found, errors)

    def _scalar(self, found: Sequence[Cell | None], errors: dict[int, Error]) -> pa.Array:
        texts = string_array([cell[0] if isinstance(cell, list) else cell for cell in found])
        typed = self.text.convert(texts)
        if typed.failed is not None:
            for row in np.flatnonzero(typed.failed.to_numpy(zero_copy_only=False)).tolist():
                errors.setdefault(row, self.text.error(texts[row].as_py()))
        if self.required and texts.null_count:
            for row in np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False)).tolist():
                errors.setdefault(row, missing(self.name, self.text.type))
        return typed.values

    def _array(self, found: Sequence[Cell | None], errors: dict[int, Error]) -> pa.Array:
        """No element is an empty array, since XML has no other way to write one; null where the column allows it."""
        lists = [cell if isinstance(cell, list) else [] if cell is None else [cell] for cell in found]
        offsets = np.concatenate([[0], np.cumsum([len(texts) for texts in lists])]).astype(np.int32)
        texts = string_array([text for texts in lists for text in texts])
        typed = self.text.convert(texts)
        bad = np.zeros(len(found), dtype=bool)
        if typed.failed is not None:
            for place in np.flatnonzero(typed.failed.to_numpy(zero_copy_only=False)).tolist():
                row = int(np.searchsorted(offsets, place, side="right")) - 1
                errors.setdefault(row, self.text.error(texts[place].as_py()))
                bad[row] = True
        values = pa.ListArray.from_arrays(pa.array(offsets), typed.values)
        if not self.required:
            bad |= np.array([cell is None for cell in found], dtype=bool)
        return values.take(pa.array(np.arange(len(found)), mask=bad)) if bad.any() else values


@dataclass(frozen=True)
class XmlReader:
    """Parses the files of a plan."""

    shape: XmlShape
    columns: tuple[XmlColumn, ...]
    chunk: int = CHUNK
    cleaning: Cleaning = NO_CLEANING
    splits: tuple[ValueRows, ...] = ()
    """Elements that become a record each."""

    def rows(self, plan: RecordPlan, split: RecordSplit) -> Iterator[Rows]:
        held: list[Record] = []
        for record in self.records(plan.files[split.file]):
            held.append(record)
            if len(held) >= _TOGETHER:
                yield self._rows(plan, held)
                held = []
        yield self._rows(plan, held)

    def records(self, file: RecordFile) -> Iterator[Record]:
        """The records of a file, or what they become."""
        for record in xml_records(file, self.shape, self.chunk):
            found = [record]
            for split in self.splits:
                values = record.get(GROUP + split.field, [])
                found = [made for each in found for made in split.xml_rows(each, values)]  # type: ignore[arg-type]
            for made in found:
                for split in self.splits:
                    made.pop(GROUP + split.field, None)
                yield made

    def _rows(self, plan: RecordPlan, records: list[Record]) -> Rows:
        rows = Rows(len(records), errors=self._repeated(plan, records))
        wanted = {name for name, _ in plan.fields}
        for column in self.columns:
            found = [record.get(column.place) for record in records]
            values = column.convert(found, rows.errors)
            if column.name in wanted:
                rows.values[column.name] = values
            if plan.record:
                rows.texts[column.name] = string_array([_text(cell) for cell in found])
        if plan.widened:
            rows.widened = widened_array(
                [
                    {name: self._cleaned(_text(record[name])) for name in plan.widened if name in record}
                    for record in records
                ]
            )
        return rows

    def _cleaned(self, text: str | None) -> str | None:
        return self.cleaning.clean_text(text) if self.cleaning and text is not None else text

    def _repeated(self, plan: RecordPlan, records: list[Record]) -> dict[int, Error]:
        """The records with an element several times that a column or the output can hold once."""
        arrays = {column.place for column in self.columns if column.is_array}
        single = ({column.place for column in self.columns} | set(plan.widened)) - arrays
        errors: dict[int, Error] = {}
        for row, record in enumerate(records):
            if list not in set(map(type, record.values())):
                continue
            for place, texts in record.items():
                if isinstance(texts, list) and place in single:
                    message = f"'{place}' is there {len(texts)} times; declare it as an array to read all of them"
                    errors[row] = structural(message, texts[1], self._column(place))
                    break
        return errors

    def _column(self, place: str) -> str:
        return next((column.name for column in self.columns if column.place == place), place)


def xml_plan(request: ReadRequest, *, chunk: int = CHUNK) -> RecordPlan:
    """Look at the files; those with undeclared elements that must be known are read once more for it."""
    problems = [_unusable_type(column) for column in request.columns if not _can_hold(column)]
    if problems:
        raise InputError(problems)
    files = local_files(request, "XML")
    splits = request.conventions.row_splits
    reader = XmlReader(
        replace(shape_of_options(request.options), groups=tuple(split.field for split in splits)),
        tuple(XmlColumn.of(column, request.conventions) for column in request.columns),
        chunk,
        request.conventions.cleaning,
        splits,
    )
    widened, counts = _undeclared(request, files, reader)
    plan = RecordPlan.of(request, files, reader, widened=widened)

    def count(split: RecordSplit) -> int:
        known = counts.get(split.file)
        return sum(1 for _ in reader.records(files[split.file])) if known is None else known

    return with_splits(plan, [RecordSplit(i) for i in range(len(files))], request.readers.limit, count)


def shape_of_options(options: Any) -> XmlShape:
    """Where the records of a file are, and how their parts are named."""
    path = tuple(options.record_path.strip("/").split("/")) if options.record_path else ()
    return XmlShape(path, options.attribute_prefix, options.namespace_handling == "strip")


def _undeclared(
    request: ReadRequest, files: tuple[RecordFile, ...], reader: XmlReader
) -> tuple[tuple[str, ...], dict[int, int]]:
    """The names that are carried along, and how many records each file has. `drop` needs neither."""
    counts: dict[int, int] = {}
    if request.conventions.on_unmapped == "drop":
        return (), counts
    declared = {column.place for column in reader.columns}
    everywhere: dict[str, None] = {}
    problems: list[Diagnostic] = []
    for i, file in enumerate(files):
        names: dict[str, None] = {}
        counts[i] = 0
        for record in reader.records(file):
            counts[i] += 1
            if not record.keys() <= names.keys():
                names |= dict.fromkeys(record)
        extra = [name for name in names if name not in declared]
        if request.conventions.on_unmapped == "reject":
            problems += reject_undeclared(request, file.name, extra)
        everywhere |= dict.fromkeys(extra)
    if problems:
        raise InputError(problems)
    return tuple(everywhere), counts


def _can_hold(column: Column) -> bool:
    t = column.data_type
    if t.kind is Kind.ARRAY and t.element is not None:
        t = t.element
    return t.is_dynamic or t.kind not in (Kind.ARRAY, Kind.MAP)


def _unusable_type(column: Column) -> Diagnostic:
    message = f"column '{column.name}' is declared as {column.type}, which an XML file cannot hold"
    help_text = "declare the elements inside of it as columns of their own, with dots: address.city"
    return Diagnostic("E226", message, help=help_text)


def _text(cell: Cell | None) -> str | None:
    return "; ".join(cell) if isinstance(cell, list) else cell
