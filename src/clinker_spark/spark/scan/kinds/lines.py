"""Lines of several kinds: which kind each is, and its cells as columns that all kinds share.

The lines of a kind are taken together and parsed as its own columns say; then they are put back among the others. What
a kind does not have is null in its records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.record_kinds import RECORD_TYPE, RecordKind
from clinker_spark.plan.nodes.source import PlannedKinds
from clinker_spark.spark.scan.csv.dialect import CsvDialect
from clinker_spark.spark.scan.fixed.rows import FixedReader
from clinker_spark.spark.scan.record_batches import Error, Rows, structural
from clinker_spark.spark.scan.record_plan import BOM, PIECE, RecordFile, RecordPlan, RecordSplit, line_pieces
from clinker_spark.spark.scan.request import Conventions
from clinker_spark.spark.scan.text.values import TextColumn


@dataclass(frozen=True)
class DelimitedKind:
    """The columns of a kind of delimited lines."""

    id: str
    columns: tuple[TextColumn, ...]
    dialect: CsvDialect
    encoding: str

    def value_text(self, name: str, text: str | None) -> str | None:
        """The text of a value as it is converted."""
        [cleaning] = [column.cleaning for column in self.columns if column.name == name]
        return None if text is None else cleaning.clean_text(text)

    def rows(self, plan: RecordPlan, lines: list[bytes]) -> Rows:
        rows = Rows(len(lines))
        cells = self._cells(lines, rows)
        wanted = {name for name, _ in plan.fields}
        for column, text in zip(self.columns, cells, strict=True):
            typed = column.convert(text)
            if typed.failed is not None:
                for row in np.flatnonzero(typed.failed.to_numpy(zero_copy_only=False)).tolist():
                    rows.errors.setdefault(row, column.error(text[row].as_py()))
            if column.name in wanted:
                rows.values[column.name] = typed.values
            if plan.record:
                rows.texts[column.name] = text
        return rows

    def _cells(self, lines: list[bytes], rows: Rows) -> list[pa.Array]:
        """The texts of each column; null in lines that do not have all of them, which are errors."""
        text = self._texts(lines, rows)
        width = len(self.columns)
        parts = pc.split_pattern(text, self.dialect.delimiter)
        counts = np.array(pc.fill_null(pc.list_value_length(parts), 0))
        quoted = np.flatnonzero(np.array(pc.fill_null(pc.match_substring(text, self.dialect.quote), False)))
        own: dict[int, list[str]] = {}
        for row in quoted.tolist():
            if any(not closed for _, _, closed in self.dialect.quoted(lines[row])):
                rows.errors.setdefault(row, structural("a quote of the line is not closed", text[row].as_py()))
                counts[row] = -1
                continue
            own[row] = self.dialect.cells(text[row].as_py())
            counts[row] = len(own[row])
        for row in np.flatnonzero((counts != width) & (counts >= 0)).tolist():
            if row not in rows.errors:
                message = f"the line has {_values(counts[row])}, records of kind '{self.id}' have {width}"
                rows.errors[row] = structural(message, text[row].as_py())
        good = counts == width
        plain = good.copy()
        plain[quoted] = False
        flat = pc.list_flatten(parts.filter(pa.array(plain)))
        places = np.full(len(lines), -1, dtype=np.int64)
        places[plain] = np.arange(int(plain.sum()))
        others = [row for row in own if good[row]]
        places[others] = int(plain.sum()) + np.arange(len(others))
        taken = pa.array(places, mask=places < 0)
        found = []
        for i in range(width):
            column = flat.take(pa.array(np.arange(i, len(flat), width))) if len(flat) else pa.array([], pa.string())
            if others:
                column = pa.concat_arrays([column, pa.array([own[row][i] for row in others], pa.string())])
            found.append(column.take(taken))
        return found

    def _texts(self, lines: list[bytes], rows: Rows) -> pa.Array:
        if self.encoding in ("utf-8", "ascii"):
            data = pa.array(lines, pa.binary())
            try:
                if self.encoding == "utf-8" or b"".join(lines).isascii():
                    return data.cast(pa.string())
            except pa.ArrowInvalid:
                pass
        texts: list[str | None] = []
        for row, line in enumerate(lines):
            try:
                texts.append(line.decode(self.encoding))
            except UnicodeDecodeError:
                texts.append(None)
                value = line.decode(self.encoding, "replace")
                rows.errors[row] = structural(f"the line is not {self.encoding}", value)
        return pa.array(texts, pa.string())


@dataclass(frozen=True)
class FixedKind:
    """The columns of a kind of fixed-width lines."""

    id: str
    reader: FixedReader

    def value_text(self, name: str, text: str | None) -> str | None:
        """The text of a value as it is converted."""
        [column] = [column for column in self.reader.columns if column.text.name == name]
        return None if text is None else column.text.cleaning.clean_text(column.trimmed(pa.array([text]))[0].as_py())

    def rows(self, plan: RecordPlan, lines: list[bytes]) -> Rows:
        # Lines are often filled up to one length for all kinds.
        return self.reader.records(plan, lines)


@dataclass(frozen=True)
class KindReader:
    """Parses the splits of a plan."""

    kinds: tuple[DelimitedKind | FixedKind, ...]
    planned: PlannedKinds
    separator: bytes
    encoding: str
    dialect: CsvDialect | None
    """That of delimited lines."""
    has_header: bool
    """May the first line be the names of columns? It is if its tag is the name of the discriminator."""
    arrow: Mapping[str, pa.DataType]
    """The types of the columns that all records have."""
    piece: int = PIECE
    wrong: tuple[str | None, ...] = ()
    """By file: what is wrong with it as a whole."""

    @classmethod
    def of(cls, planned: PlannedKinds, options: Any, conventions: Conventions, **what: Any) -> KindReader:
        dialect: CsvDialect | None = what["dialect"]
        kinds: list[DelimitedKind | FixedKind] = []
        for kind in planned.spec.records:
            if dialect is None:
                fixed = FixedReader.of(kind.columns, options, conventions, PIECE)
                kinds.append(FixedKind(kind.id, fixed))
            else:
                columns = tuple(_column(column, conventions) for column in kind.columns)
                kinds.append(DelimitedKind(kind.id, columns, dialect, options.encoding))
        return cls(tuple(kinds), planned, encoding=options.encoding, **what)

    def rows(self, plan: RecordPlan, split: RecordSplit) -> Iterator[Rows]:
        file = plan.files[split.file]
        for lines, kinds in self.lines(file, split):
            kept = [i for i, kind in enumerate(kinds) if kind is None or kind.id not in self.planned.left_out]
            if kept:
                yield self._rows(plan, [lines[i] for i in kept], [kinds[i] for i in kept])
        if self.wrong and self.wrong[split.file] is not None and split.end in (None, file.size):
            yield self._of_file(plan, self.wrong[split.file] or "")

    def count(self, file: RecordFile, split: RecordSplit) -> int:
        """How many records a split has."""
        left_out = self.planned.left_out
        kept = (sum(k is None or k.id not in left_out for k in kinds) for _, kinds in self.lines(file, split))
        return sum(kept) + bool(self.wrong and self.wrong[split.file] and split.end in (None, file.size))

    def lines(self, file: RecordFile, split: RecordSplit) -> Iterator[tuple[list[bytes], list[RecordKind | None]]]:
        """Lines, and the kind of each; None where no kind has the tag."""
        first, header = not split.start, self.has_header and not split.start
        for data in line_pieces(file, split, self.separator, self.piece):
            data, first = (data.removeprefix(BOM) if first else data), False
            lines = data.split(self.separator)
            if self.dialect is not None:
                lines = [line.removesuffix(b"\r") for line in lines]
            lines = [line for line in lines if line.strip()]
            if header and lines:
                names = self.planned.spec.discriminator.field or ""
                lines, header = lines[self.tag(lines[0]) == names :], False
            yield lines, [self._by_tag.get(self.tag(line)) for line in lines]

    @cached_property
    def _by_tag(self) -> dict[str, RecordKind]:
        return {kind.tag.strip(): kind for kind in self.planned.spec.records}

    @cached_property
    def _place(self) -> tuple[int, int]:
        """The bytes of the tag, or the number of its column."""
        found = self.planned.spec.discriminator
        if self.dialect is None:
            return found.start or 0, (found.start or 0) + (found.width or 0)
        names = [(column.name, column.source_name) for column in self.planned.spec.records[0].columns]
        return next(i for i, both in enumerate(names) if found.field in both), 0

    def tag(self, line: bytes) -> str:
        """What stands at the place of the discriminator."""
        if self.dialect is None:
            return line[slice(*self._place)].decode(self.encoding, "replace").strip()
        place = self._place[0]
        if self.dialect.quote.encode() in line:
            cells = self.dialect.cells(line.decode(self.encoding, "replace"))
            return cells[place].strip() if place < len(cells) else ""
        parts = line.split(self.dialect.delimiter.encode(), place + 1)
        return parts[place].decode(self.encoding, "replace").strip() if place < len(parts) else ""

    def kind_of(self, line: bytes) -> str | None:
        """The id of the kind of a line; None where no kind has its tag."""
        kind = self._by_tag.get(self.tag(line))
        return None if kind is None else kind.id

    def with_tag(self, line: bytes, kind: str) -> bytes:
        """A fixed-width line that says its kind. In delimited lines, the kind is a cell like any other."""
        [tag] = [found.tag for found in self.planned.spec.records if found.id == kind]
        if self.dialect is not None or self.tag(line) == tag.strip():
            return line
        start, end = self._place
        return line[:start].ljust(start) + tag.encode(self.encoding).ljust(end - start) + line[end:]

    def _rows(self, plan: RecordPlan, lines: list[bytes], kinds: Sequence[RecordKind | None]) -> Rows:
        rows = Rows(len(lines))
        ids = [None if kind is None else kind.id for kind in kinds]
        parts: list[tuple[list[int], Rows]] = []
        for reader in self.kinds:
            mine = [i for i, known in enumerate(ids) if known == reader.id]
            if mine:
                made = reader.rows(plan, [lines[i] for i in mine])
                parts.append((mine, made))
                rows.errors |= {mine[row]: error for row, error in made.errors.items()}
        unknown = [i for i, known in enumerate(ids) if known is None]
        rows.errors |= {i: self._of_no_kind(lines[i]) for i in unknown}
        order = np.argsort(np.array([i for mine, _ in parts for i in mine] + unknown, dtype=np.int64))
        for name, _ in plan.fields:
            found = [made.values.get(name) for _, made in parts]
            rows.values[name] = _together(found, parts, unknown, order, self.arrow[name])
        said = pa.array(ids, pa.string())
        if RECORD_TYPE in rows.values:
            rows.values[RECORD_TYPE] = said
        if plan.record:
            for name in plan.names:
                texts = [made.texts.get(name) for _, made in parts]
                rows.texts[name] = _together(texts, parts, unknown, order, pa.string())
            rows.lines = lines
            rows.texts[RECORD_TYPE] = said  # the id, also where the discriminator has this name and says the tag
        return rows

    def _of_no_kind(self, line: bytes) -> Error:
        message = f"no kind of record has the tag '{self.tag(line)}'; the tags are {', '.join(self._by_tag)}"
        return structural(message, line.decode(self.encoding, "replace"))

    def _of_file(self, plan: RecordPlan, message: str) -> Rows:
        """One more record of a file that is wrong as a whole: an error, and nothing else."""
        rows = Rows(1, errors={0: structural(message)})
        rows.values = {name: pa.nulls(1, self.arrow[name]) for name, _ in plan.fields}
        rows.texts = {name: pa.nulls(1, pa.string()) for name in plan.names} if plan.record else {}
        return rows


def structure_problem(reader: KindReader, file: RecordFile) -> str | None:
    """What a file lacks that its trailer should say; None when it is as it must be."""
    spec, left_out = reader.planned.spec, reader.planned.left_out
    trailers = {trailer.record: trailer for trailer in spec.structure}
    records, ended = 0, False
    said: dict[str, bytes] = {}
    for lines, kinds in reader.lines(file, RecordSplit(0)):
        for line, kind in zip(lines, kinds, strict=True):
            name = None if kind is None else kind.id
            if name in trailers:
                if name in said:
                    return f"the file has more than one record of kind '{name}'"
                said[name] = line
                ended = True
            elif ended:
                return "there are records behind its trailer"
            else:
                records += name not in left_out
    for name, trailer in trailers.items():
        if name not in said:
            return f"the file has no record of kind '{name}': its end may be missing"
        count = cell_of(reader, name, said[name], trailer.count)
        if count is None:
            return f"'{trailer.count}' of its record of kind '{name}' is no number"
        if count != records:
            return f"its record of kind '{name}' counts {count} records, and there are {records}"
    return None


def cell_of(reader: KindReader, kind: str, line: bytes, column: str) -> Any:
    """The value of a column of one line; None where it has none, or one of another type."""
    [mine] = [found for found in reader.kinds if found.id == kind]
    types = {c.name: c.data_type for r in reader.planned.spec.records if r.id == kind for c in r.columns}
    rows = mine.rows(RecordPlan((), (), ((column, str(types[column])),), None), [line])
    return None if rows.errors else rows.values[column][0].as_py()


def first_line(reader: KindReader, file: RecordFile, tag: str) -> dict[str, tuple[str | None, Any]]:
    """The texts and the values of the first line with a tag, by column; nothing where there is none."""
    for lines, kinds in reader.lines(file, RecordSplit(0)):
        for line, kind in zip(lines, kinds, strict=True):
            if kind is not None and kind.tag == tag:
                [mine] = [found for found in reader.kinds if found.id == kind.id]
                fields = tuple((column.name, str(column.data_type)) for column in kind.columns)
                rows = mine.rows(RecordPlan((), (), fields, None, record=True), [line])
                texts = {name: text[0].as_py() for name, text in rows.texts.items()}
                return {
                    name: (None if text is None else mine.value_text(name, text), rows.values[name][0].as_py())
                    for name, text in texts.items()
                }
    return {}


def _together(
    found: Sequence[pa.Array | None],
    parts: Sequence[tuple[list[int], Rows]],
    unknown: Sequence[int],
    order: np.ndarray,
    arrow: pa.DataType,
) -> pa.Array:
    """The values of the kinds in the order of their lines."""
    arrays = [
        # Ints of one kind are floats where another kind has floats.
        pa.nulls(len(mine), arrow) if part is None else pc.cast(part, arrow, safe=False) if part.type != arrow else part
        for part, (mine, _) in zip(found, parts, strict=True)
    ]
    return pa.concat_arrays([*arrays, pa.nulls(len(unknown), arrow)]).take(pa.array(order))


def _column(column: Column, conventions: Conventions) -> TextColumn:
    cleaning = conventions.cleaning
    if column.trim is not None:
        cleaning = replace(cleaning, trim=column.trim)
    return TextColumn.of(column, conventions.date_formats, cleaning)


def _values(count: int) -> str:
    return "1 value" if count == 1 else f"{count} values"
