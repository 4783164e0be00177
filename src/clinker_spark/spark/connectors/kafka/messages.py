"""Messages as records: what a message says, in the columns that every reader gives.

The value of a message is an object of JSON, a line of CSV, or a text. What cannot be read is an error of its record, as
in a file: the same rules, the same words. Columns may also hold what stands around the value: the key, the headers,
topic, partition, offset and time of a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from clinker_spark.config.model.schema import Column
from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.spark.scan.csv.dialect import CsvDialect
from clinker_spark.spark.scan.csv.header import file_name
from clinker_spark.spark.scan.json.documents import decoder
from clinker_spark.spark.scan.json.lines import parse_lines
from clinker_spark.spark.scan.json.values import JsonColumn, json_cell, lookup, undeclared
from clinker_spark.spark.scan.record_batches import Error, Rows, batch_of, missing, string_array, structural
from clinker_spark.spark.scan.record_plan import RecordPlan
from clinker_spark.spark.scan.request import ReadRequest
from clinker_spark.spark.scan.text.streams import MARK, utf8_with_marks
from clinker_spark.spark.scan.text.values import TextColumn

TOGETHER = 4096
"""So many messages become one batch: if one of them is broken, so many are looked at one by one."""
_NO_TIME = 0


@dataclass(frozen=True)
class Envelope:
    """The messages of a request: how values are written, and which columns are about the message itself."""

    format: str
    """json, csv or raw."""
    about: Mapping[str, str]
    """By column: key, headers, topic, partition, offset or timestamp."""
    delimiter: str = ","
    quote: str = '"'


@dataclass(frozen=True)
class MessageReader:
    """Makes records of messages. It goes to tasks."""

    envelope: Envelope
    columns: tuple[Column, ...]
    json: tuple[JsonColumn, ...]
    texts: tuple[TextColumn, ...]
    rejects: bool = False
    """Is a field that no column reads an error of its message?"""

    @classmethod
    def of(cls, request: ReadRequest, envelope: Envelope) -> MessageReader:
        formats, cleaning = request.conventions.date_formats, request.conventions.cleaning
        return cls(
            envelope,
            request.columns,
            tuple(JsonColumn.of(column, formats, cleaning) for column in request.columns),
            tuple(TextColumn.of(column, formats, cleaning) for column in request.columns),
            request.conventions.on_unmapped == "reject",
        )

    def rows(self, plan: RecordPlan, messages: Sequence[Any]) -> Rows:
        """The records of messages (of `confluent_kafka`)."""
        values = [message.value() for message in messages]
        errors: dict[int, Error] = {}
        texts = [_text(value) for value in values]
        rows = Rows(len(messages), errors=errors)
        if self.envelope.format == "json":
            self._objects(plan, rows, texts)
        else:
            self._cells(plan, rows, texts)
        self._about(plan, rows, messages)
        if plan.record:
            rows.lines = values
        return rows

    # ------------------------------------------------------------ values

    def _objects(self, plan: RecordPlan, rows: Rows, texts: Sequence[str | None]) -> None:
        exact = plan.record or any(column.type.kind is Kind.DECIMAL for column in self.json)
        lines = ["{}" if text is None else text for text in texts]
        found, errors = parse_lines(lines, decoder(exact=exact), "message")
        rows.errors.update(errors)
        for row, text in enumerate(texts):
            if text is None:
                rows.errors[row] = structural("the message has no value")
        if self.rejects:
            known = frozenset(file_name(c) for c in self.columns if c.name not in self.envelope.about)
            for row, record in enumerate(found):
                for name in undeclared(record, known):
                    rows.errors.setdefault(row, structural("the schema does not declare this field", name=name))
                    break
        for column, declared in zip(self.json, self.columns, strict=True):
            if column.name not in self.envelope.about:
                place = file_name(declared)
                self._put(plan, rows, column, [lookup(record, place) for record in found])

    def _cells(self, plan: RecordPlan, rows: Rows, texts: Sequence[str | None]) -> None:
        own = [column for column in self.texts if column.name not in self.envelope.about]
        cells = [self._split(row, text, len(own), rows.errors) for row, text in enumerate(texts)]
        for i, column in enumerate(own):
            text = pa.array([found[i] if i < len(found) else None for found in cells], pa.string())
            converted = column.convert(text)
            if converted.failed is not None:
                for row in np.flatnonzero(converted.failed.to_numpy(zero_copy_only=False)).tolist():
                    rows.errors.setdefault(row, column.error(text[row].as_py() or ""))
            if column.name in {name for name, _ in plan.fields}:
                rows.values[column.name] = converted.values
            if plan.record:
                rows.texts[column.name] = text

    def _split(self, row: int, text: str | None, width: int, errors: dict[int, Error]) -> list[str | None]:
        """The values of a message, null for each that it does not have."""
        if text is None:
            if self.envelope.format == "csv":
                errors[row] = structural("the message has no value")
            elif not self._raw.type.nullable:
                errors[row] = missing(self._raw.name, self._raw.type, "null")
            return []
        if MARK in text:
            errors[row] = structural("the message is not UTF-8", text)
            return []
        if self.envelope.format == "raw":
            return [text]
        cells, problem = self._line(text)
        if problem is None and len(cells) != width:
            values = f"{len(cells)} value" if len(cells) == 1 else f"{len(cells)} values"
            problem = f"the message has {values}, the schema has {width}"
        if problem is not None:
            errors[row] = structural(problem, text)
        return list(cells)

    def _line(self, text: str) -> tuple[list[str], str | None]:
        quote, delimiter = self.envelope.quote, self.envelope.delimiter
        text = text.removesuffix("\n").removesuffix("\r")
        if quote not in text and "\n" not in text and "\r" not in text:
            return text.split(delimiter), None
        dialect = CsvDialect(delimiter, quote)
        end, closed = dialect.record_end(text.encode(), 0)
        if not closed:
            return [], "a quote of the message is not closed"
        if end >= 0:
            return [], "the message has more than one line"
        return dialect.cells(text), None

    @property
    def _raw(self) -> TextColumn:
        return next(column for column in self.texts if column.name not in self.envelope.about)

    # ------------------------------------------------------------ what stands around them

    def _about(self, plan: RecordPlan, rows: Rows, messages: Sequence[Any]) -> None:
        for column in self.json:
            what = self.envelope.about.get(column.name)
            if what is None:
                continue
            if what in ("key", "headers"):
                found = [_OF_MESSAGE[what](message) for message in messages]
                for row, value in enumerate(found):
                    if MARK in str(value):
                        found[row] = None
                        words = "key of the message is" if what == "key" else "headers of the message are"
                        rows.errors.setdefault(row, structural(f"the {words} not UTF-8", name=column.name))
                self._put(plan, rows, column, found)
            elif what == "timestamp":
                self._put_times(plan, rows, column, messages)
            else:
                self._put(plan, rows, column, [_OF_MESSAGE[what](message) for message in messages])

    def _put_times(self, plan: RecordPlan, rows: Rows, column: JsonColumn, messages: Sequence[Any]) -> None:
        times = [None if kind == _NO_TIME else millis for kind, millis in map(_stamp, messages)]
        values = pa.array(times, pa.timestamp("ms")).cast(column.arrow)
        if values.null_count and not column.type.nullable:
            for row, time in enumerate(times):
                if time is None:
                    rows.errors.setdefault(row, missing(column.name, column.type, "null"))
        if column.name in {name for name, _ in plan.fields}:
            rows.values[column.name] = values
        if plan.record:
            rows.texts[column.name] = values.cast(pa.string())

    def _put(self, plan: RecordPlan, rows: Rows, column: JsonColumn, values: list[Any]) -> None:
        typed = column.convert(values)
        for row, error in typed.errors.items():
            rows.errors.setdefault(row, error)
        if column.name in {name for name, _ in plan.fields}:
            rows.values[column.name] = typed.values
        if plan.record:
            rows.texts[column.name] = string_array([json_cell(value) for value in values])


def message_plan(request: ReadRequest, envelope: Envelope) -> RecordPlan:
    """The columns that the records of a request have."""
    return RecordPlan(
        (),
        tuple(column.name for column in request.columns),
        tuple((column.name, physical(column.data_type)) for column in request.selected),
        MessageReader.of(request, envelope),
        typed=True,
        positions=request.positions,
        record=request.record,
    )


def message_batches(plan: RecordPlan, fetched: Iterable[Sequence[Any]], file: int = 0) -> Iterator[pa.RecordBatch]:
    """The records of messages of one partition. The number of a record is the offset of its message."""
    for messages in fetched:
        offsets = np.fromiter((message.offset() for message in messages), dtype=np.int64, count=len(messages))
        yield batch_of(plan, plan.reader.rows(plan, messages), file, offsets)


def _text(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return utf8_with_marks(value, "utf-8").decode()


def _headers(message: Any) -> dict[str, str | None]:
    return {name: _text(value) for name, value in message.headers() or ()}


def _stamp(message: Any) -> tuple[int, int]:
    return message.timestamp()


_OF_MESSAGE: dict[str, Callable[[Any], Any]] = {
    "key": lambda message: _text(message.key()),
    "headers": _headers,
    "topic": lambda message: message.topic(),
    "partition": lambda message: message.partition(),
    "offset": lambda message: message.offset(),
}
