"""The first records of a file, column by column, as a source with some format and options would read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from clinker_spark.runtime.profile.shapes import Shape, beginning, first_rows
from clinker_spark.spark.scan.json.documents import decoder, records, shape_of
from clinker_spark.spark.scan.json.lines import lines_of, parse_lines
from clinker_spark.spark.scan.json.values import ABSENT, undeclared
from clinker_spark.spark.scan.record_plan import BOM, RecordFile
from clinker_spark.spark.scan.text.values import TextColumn
from clinker_spark.spark.scan.xml.records import XmlShape, xml_records

MOST_RECORDS = 10_000


@dataclass
class Sample:
    """Values of some records by column; ABSENT where a record does not have it."""

    columns: dict[str, list[Any]] = field(default_factory=dict)
    records: int = 0
    broken: int = 0
    """Lines that are no records: with too many or too few values, or no JSON."""
    typed: bool = False
    """Have the values types of their own?"""
    converters: dict[str, TextColumn] = field(default_factory=dict)
    """By column: how a text becomes a value, where the format has a way of its own."""

    def add(self, record: dict[str, Any]) -> None:
        for name in record:
            if name not in self.columns:
                self.columns[name] = [ABSENT] * self.records
        self.records += 1
        for name, values in self.columns.items():
            values.append(record.get(name, ABSENT))


def sample_of(
    file: RecordFile, shape: Shape, most: int = MOST_RECORDS, declared: frozenset[str] = frozenset()
) -> Sample:
    """The first records of a file. `declared` are names that are read as they are, also where they hold objects."""
    made = Sample(typed=shape.format == "json")
    found: Iterable[dict[str, Any]]
    if shape.format == "json":
        found = _json(file, shape, declared, made)
    elif shape.format == "xml":
        found = _xml(file, shape)
    elif shape.format == "fixed_width":
        found = _fixed(file, shape)
    else:
        found = _csv(file, shape, made, most)
    for record in islice(found, most):
        made.add(record)
    return made


def _json(file: RecordFile, shape: Shape, declared: frozenset[str], made: Sample) -> Iterator[dict[str, Any]]:
    path = tuple(shape.options["record_path"].split(".")) if shape.options.get("record_path") else ()
    kind = "object" if path else shape.options.get("format") or shape_of(file.open)

    def flat(record: dict[str, Any]) -> dict[str, Any]:
        kept = {name: record[name] for name in declared if name in record}
        return {**kept, **undeclared(record, declared)}

    if kind == "ndjson":
        lines = lines_of(_whole_lines(file).removeprefix(BOM))
        found, errors = parse_lines(lines, decoder(exact=True))
        made.broken = len(errors)
        yield from (flat(record) for i, record in enumerate(found) if i not in errors)
        return
    for value, _, _ in records(file, kind, path, exact=True):
        if isinstance(value, dict):
            yield flat(value)
        else:
            made.broken += 1


def _xml(file: RecordFile, shape: Shape) -> Iterator[dict[str, Any]]:
    path = shape.options.get("record_path")
    prefix = shape.options.get("attribute_prefix", "@")
    strip = shape.options.get("namespace_handling", "strip") == "strip"
    yield from xml_records(file, XmlShape(tuple(path.strip("/").split("/")) if path else (), prefix, strip))


def _fixed(file: RecordFile, shape: Shape) -> Iterator[dict[str, Any]]:
    encoding = shape.options.get("encoding", "utf-8")
    for line in _whole_lines(file).splitlines():
        if line.strip():
            cells = (line[start:end].decode(encoding, "replace") for start, end in shape.places)
            yield {f"column_{i}": cell.strip() for i, cell in enumerate(cells, 1)}


def _csv(file: RecordFile, shape: Shape, made: Sample, most: int) -> Iterator[dict[str, Any]]:
    encoding = shape.options.get("encoding", "utf-8")
    text = _whole_lines(file, encoding).removeprefix(BOM).decode(encoding, "replace")
    rows = first_rows(text, shape.options.get("delimiter", ","), most + 1)
    if not rows:
        return
    names = rows[0]
    if not shape.options.get("has_header", True):
        names = [f"column_{i}" for i in range(1, max(map(len, rows)) + 1)]
    else:
        rows = rows[1:]
    made.columns = {name: [] for name in names}  # also where no line has as many values
    for row in rows:
        if len(row) != len(names):
            made.broken += 1
        else:
            yield dict(zip(names, row, strict=True))


def _whole_lines(file: RecordFile, encoding: str = "utf-8") -> bytes:
    """The beginning of a file up to the end of a line."""
    data = beginning(file)
    if file.size <= len(data) and file.compression == "none":
        return data
    end = data.rfind(b"\n") + 1
    return data[:end] if end and not encoding.startswith("utf-16") else data
