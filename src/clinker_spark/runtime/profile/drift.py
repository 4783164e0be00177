"""What the files of a pipeline hold now, compared with the schemas that it declares for them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from clinker_spark.config.model.schema import Column, layout
from clinker_spark.core.errors import ClinkerError
from clinker_spark.core.types import Kind
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.discover.sources import discover, is_remote
from clinker_spark.runtime.profile.kind_drift import kinds_of
from clinker_spark.runtime.profile.proposals import arrow_word
from clinker_spark.runtime.profile.samples import MOST_RECORDS, Sample, sample_of
from clinker_spark.runtime.profile.shapes import Shape, record_file
from clinker_spark.runtime.profile.types import guess_texts, guess_values
from clinker_spark.spark.build.source_columns import conventions_of
from clinker_spark.spark.scan.csv.header import file_name
from clinker_spark.spark.scan.files import SourceFile, parquet_parts
from clinker_spark.spark.scan.fixed.rows import FixedReader
from clinker_spark.spark.scan.json.values import ABSENT, JsonColumn
from clinker_spark.spark.scan.record_plan import PIECE
from clinker_spark.spark.scan.text.cleaning import Cleaning
from clinker_spark.spark.scan.text.values import TextColumn


@dataclass
class ColumnDrift:
    """A column that is not as declared. `files` are those where it is so, the first one first."""

    name: str
    what: str
    """`undeclared`, `missing` or `values`; of files with several kinds of records also `tag`, lines of a kind that is
    not declared, and `lines`, those that do not have the columns of their kind."""
    files: list[str] = field(default_factory=list)
    looks_like: str | None = None
    declared: str | None = None
    bad: int = 0
    seen: int = 0
    example: str | None = None


@dataclass
class SourceDrift:
    """What differs in the files of one source."""

    name: str
    policy: str
    files: int = 0
    records: int = 0
    columns: list[ColumnDrift] = field(default_factory=list)
    covered: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By declared column: how many values fit its type, of how many."""
    problems: list[str] = field(default_factory=list)
    """Files that cannot be read at all."""

    @property
    def any(self) -> bool:
        return bool(self.columns or self.problems)

    def note(self, name: str, what: str, file: str) -> ColumnDrift:
        for found in self.columns:
            if (found.name, found.what) == (name, what):
                break
        else:
            found = ColumnDrift(name, what)
            self.columns.append(found)
        if file not in found.files:
            found.files.append(file)
        return found


def drift_of(plan: Plan, base: Path, most: int = MOST_RECORDS) -> list[SourceDrift]:
    """For each source: what its files have that is not declared, lack, or hold in another type. The first `most`
    records of each file are looked at. Raises `ClinkerError` where there are no files."""
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    found = []
    for node in plan.sources:
        if node.reader == "dataset":
            continue
        made = SourceDrift(node.name, node.config.on_unmapped.mode)
        for file in discover(node, base, now).files:
            made.files += 1
            try:
                _look_at(plan, node, file, made, most)
            except ClinkerError as error:
                made.problems.append(error.diagnostics[0].message)
            except (pa.ArrowException, OSError) as error:
                made.problems.append(f"cannot read '{file.name}': {str(error).splitlines()[0]}")
        found.append(made)
    return found


def _look_at(plan: Plan, node: SourcePlan, file: SourceFile, made: SourceDrift, most: int) -> None:
    if is_remote(file.path):
        made.problems.append(f"'{file.name}' is not on this machine: it is not looked at")
    elif node.kinds is not None:
        _look_at_kinds(plan, node, file, made, most)
    elif node.config.type == "parquet":
        for part in [stamp.path for stamp in file.stamps] or parquet_parts(file.path):
            _compare_table(node, file.name, pq.read_schema(part), made)
    else:
        options = {k: v for k, v in node.config.options.model_dump().items() if v is not None}
        shape = Shape(node.config.type, options, places=_places(node))
        declared = frozenset(file_name(column) for column in node.columns)
        sample = sample_of(record_file(Path(file.path), node.config.compression, file.name), shape, most, declared)
        if shape.format == "fixed_width" or not options.get("has_header", True):
            _rename(node, sample)
        if shape.format == "fixed_width":
            _as_fixed(plan, node, sample)
        made.records += sample.records
        _compare(plan, node, file.name, sample, made)


def _as_fixed(plan: Plan, node: SourcePlan, sample: Sample) -> None:
    """Cells as their columns are read: without what fills them up, and dates that may be digits only."""
    formats = tuple(plan.file.settings.date_formats)
    reader = FixedReader.of(node.columns, node.config.options, conventions_of(node, "drop", formats), PIECE)
    for declared, column in zip(node.columns, reader.columns, strict=True):
        values = sample.columns.get(file_name(declared))
        if values is not None:
            trimmed = iter(column.trimmed(pa.array([v for v in values if v is not ABSENT], pa.string())).to_pylist())
            sample.columns[file_name(declared)] = [v if v is ABSENT else next(trimmed) for v in values]
            sample.converters[declared.name] = column.text


def _look_at_kinds(plan: Plan, node: SourcePlan, file: SourceFile, made: SourceDrift, most: int) -> None:
    found = kinds_of(plan, node, file, most)
    made.records += found.records
    if found.problem is not None:
        made.problems.append(f"'{file.name}': {found.problem}")
    for tag, lines in found.tags.items():
        made.note(tag, "tag", file.name).bad += lines
    cleaning = Cleaning(node.config.trim, tuple(node.config.null_values))
    formats = tuple(plan.file.settings.date_formats)
    for kind, sample in found.samples():
        if sample.broken:
            note = made.note(kind.id, "lines", file.name)
            note.bad, note.seen = note.bad + sample.broken, note.seen + sample.broken + sample.records
        for column in kind.columns:
            named = column.model_copy(update={"name": f"{kind.id}.{column.name}", "source_name": None})
            _check_values(named, sample.columns[column.name], sample, cleaning, formats, file.name, made)


def _places(node: SourcePlan) -> tuple[tuple[int, int], ...]:
    return tuple(layout(node.columns)) if node.config.type == "fixed_width" else ()


def _rename(node: SourcePlan, sample: Sample) -> None:
    """Files without names have the declared ones, in their order."""
    names = [file_name(column) for column in node.columns]
    known = dict(zip(sample.columns, names, strict=False))
    sample.columns = {known.get(name, name): values for name, values in sample.columns.items()}


def _compare(plan: Plan, node: SourcePlan, file: str, sample: Sample, made: SourceDrift) -> None:
    cleaning = Cleaning(node.config.trim, tuple(node.config.null_values))
    formats = tuple(plan.file.settings.date_formats)
    declared = {file_name(column): column for column in node.columns}
    for name, values in sample.columns.items():
        if name not in declared:
            present = [value for value in values if value is not ABSENT]
            made.note(name, "undeclared", file).looks_like = _likeness(present, sample, cleaning)
    for name, column in declared.items():
        found = sample.columns.get(name)
        if found is None and (sample.records or sample.columns):
            made.note(column.name, "missing", file).declared = column.type
        elif found:
            _check_values(column, found, sample, cleaning, formats, file, made)


def _check_values(
    column: Column,
    values: list[Any],
    sample: Sample,
    cleaning: Cleaning,
    formats: tuple[str, ...],
    file: str,
    made: SourceDrift,
) -> None:
    bad = list(_unfit(column, values, sample, cleaning, formats))
    fine, seen = made.covered.get(column.name, (0, 0))
    made.covered[column.name] = fine + len(values) - len(bad), seen + len(values)
    if bad:
        note = made.note(column.name, "values", file)
        note.declared, note.bad, note.seen = column.type, note.bad + len(bad), note.seen + len(values)
        value = values[bad[0]]
        note.example = note.example or ("nothing" if value in (None, ABSENT, "") else repr(value)[:60])
        note.looks_like = _likeness(values, sample, cleaning)


def _likeness(values: list[Any], sample: Sample, cleaning: Cleaning) -> str:
    """What values look like, as a column would declare it: dates that are not ISO 8601 have a format."""
    texts = [value for value in values if isinstance(value, str)]
    guess = guess_values(values) if sample.typed else guess_texts(texts, cleaning)
    return guess.type if guess.format is None else f"{guess.type} with format: {guess.format}"


def _unfit(
    column: Column, values: list[Any], sample: Sample, cleaning: Cleaning, formats: tuple[str, ...]
) -> Iterator[int]:
    """The places of values that a run would not read."""
    if sample.typed:
        yield from JsonColumn.of(column, formats, cleaning).convert(values).errors
        return
    if column.data_type.kind is Kind.ARRAY or any(isinstance(value, list) for value in values):
        return  # the elements of XML that repeat: a run says what is wrong with them
    texts = [None if value is ABSENT else value for value in values]
    converter = sample.converters.get(column.name) or TextColumn.of(column, formats, cleaning)
    found = converter.convert(pa.array(texts, pa.string()))
    missing = not column.data_type.nullable
    for i, text in enumerate(texts):
        if (text is None and missing) or (text is not None and found.failed is not None and found.failed[i].as_py()):
            yield i


def _compare_table(node: SourcePlan, file: str, schema: pa.Schema, made: SourceDrift) -> None:
    declared = {file_name(column): column for column in node.columns}
    for name in schema.names:
        if name not in declared:
            made.note(name, "undeclared", file).looks_like = arrow_word(schema.field(name).type)
    for name, column in declared.items():
        if name not in schema.names:
            made.note(column.name, "missing", file).declared = column.type
            continue
        has, want = arrow_word(schema.field(name).type), column.data_type
        word = has.partition("(")[0]
        wanted = "date_time" if want.kind is Kind.DATETIME else want.kind.name.lower()
        if (
            not want.is_dynamic
            and word not in (wanted, "any")
            and not (word == "int" and wanted in ("float", "decimal"))
        ):
            note = made.note(column.name, "values", file)
            note.declared, note.looks_like = column.type, has
