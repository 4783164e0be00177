"""Sources: files that are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.record_kinds import RecordKinds
from clinker_spark.core.types import Kind
from clinker_spark.plan.columns import CK_PREFIX
from clinker_spark.plan.facts import Keys, Required, Sorting
from clinker_spark.plan.memory import SOURCE, Holder
from clinker_spark.plan.nodes.base import PlanNode

_PACKED = 10
"""Compressed files may hold so many times their size."""
_PACKED_NAMES = (".gz", ".zst", ".bz2", ".lz4", ".snappy", ".xz", ".zip")


TYPED = ("parquet", "dataset")
"""Formats whose values have types: few of them can be wrong."""


@dataclass(frozen=True)
class PlannedKinds:
    """The kinds of records in the files of a source."""

    spec: RecordKinds
    left_out: frozenset[str] = frozenset()
    """The ids of those that are no records of their own: sections of the envelope, and trailers."""
    whole: bool = True
    """Are the files whole? The lines of a replay are not all that a trailer has counted."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SourcePlan(PlanNode):
    """Reads files. `config` is the model with the format, the matcher and the options."""

    kind = "source"
    mark = "●"
    shape = "cylinder"
    verb = "read"
    category = None
    made_category = None
    failure_key = ("config", "schema")

    config: Any
    columns: tuple[Column, ...]
    source_name: str
    index: int
    """The position among the sources: dead letters come in this order."""
    kinds: PlannedKinds | None = None
    """The kinds of records, where files have several."""
    unfed: bool = False
    """Is it an input port of a composition that nothing feeds: columns, and no record?"""

    stage = "source"
    takes_each_alone = True
    exchanges = False
    multiplies = False
    conserves = True
    one_for_one = True
    mixes_files = False

    @property
    def reader(self) -> str:
        """Which reader has its files: that of the format, or of lines of several kinds."""
        return str(self.config.type) if self.kinds is None else "kinds"

    @property
    def by_document(self) -> bool:
        """Does one failure divert all records of its file?"""
        return bool(self.config.dlq_granularity == "document")

    @property
    def several_files(self) -> bool:
        """May it read more than one file? Then every file is a document of its own."""
        return self.config.path is None and not self.unfed and not self.config.stream_only

    @property
    def only_new(self) -> bool:
        """Does it read only the files that no earlier run read?"""
        return bool(self.config.files.only_new)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """`$ck.order_id` for a source with `correlation_key: order_id`."""
        return tuple(CK_PREFIX + name for name in self.config.correlation_key or ())

    @property
    def can_fail(self) -> bool:
        if str(self.config.type) not in TYPED:
            return True
        return any(checked_in_parquet(c) for c in self.columns if c.name not in self.bounded)

    @property
    def bounded(self) -> Mapping[str, Kind]:
        """The columns by which its reader can leave out records without reading them."""
        return always_there(self.config, self.columns)

    @property
    def holder(self) -> Holder:
        return SOURCE

    def unpacked(self, name: str, size: int) -> int:
        """About how much there is to read of a file, given its name and the bytes that it has on disk."""
        packed = self.config.type == "parquet" or self.config.compression not in ("auto", "none")
        return size * (_PACKED if packed or name.endswith(_PACKED_NAMES) else 1)

    @property
    def widens(self) -> bool:
        return bool(self.config.on_unmapped.mode == "auto_widen" and self.reader not in ("fixed_width", "kinds"))

    @property
    def cannot_widen(self) -> bool:
        """Should it carry undeclared columns along, and has a format without any?"""
        return bool(self.config.on_unmapped.mode == "auto_widen" and self.reader == "fixed_width")

    @property
    def python_reasons(self) -> tuple[str, ...]:
        kind = str(self.config.type)
        if kind == "dataset":
            return ("rows of a dataset are assembled by Python",)
        if self.config.stream_only:
            return (f"messages of {kind} are read and parsed by Python",)
        return () if kind == "parquet" else (f"{kind} files are parsed by Python",)

    @property
    def vector_reason(self) -> str | None:
        kind = str(self.config.type)
        return (
            None
            if kind in ("csv", "json", "xml", "fixed_width")
            else f"a source of type {kind} gives no batches of text"
        )

    def in_order(self, before: Sequence[bool]) -> bool:
        return True

    def sorting(self, before: Sequence[Sorting]) -> Sorting:
        return tuple(self.config.sort_order)

    def keys(self, before: Sequence[Keys]) -> Keys:
        columns = {CK_PREFIX + name: self.schema[name] for name in self.config.correlation_key or ()}
        return Keys(columns, (self.name,) if columns else (), True, (*self.schema, *columns))

    def event_column(self, before: Sequence[str | None]) -> str | None:
        return None if self.config.watermark is None else str(self.config.watermark.column)

    def several_documents(self, before: Sequence[bool]) -> bool:
        return self.several_files

    def completed(self, need: Required) -> Required:
        if not need.event:
            return need
        return replace(need, columns=need.columns | {self.config.watermark.column})

    @property
    def tag(self) -> str:
        return f"source:{self.config.type}"

    @property
    def files_read(self) -> str:
        return str(self.config.place)

    def property_lines(self, need: Required) -> Iterator[str]:
        if self.by_document:
            yield "  failures: one sets aside all records of its file"
        if self.only_new:
            yield "  files: only those that no earlier run read"
        read = [name for name in self.schema if name in need.columns]
        yield f"  read: {', '.join(read) or '<none>'}{'' if len(read) < len(self.schema) else ' (all)'}"

        if self.kinds is not None:
            for kind in self.kinds.spec.records:
                what = " (no record)" if kind.id in self.kinds.left_out else ""
                yield f"  kind {kind.id}: lines with {kind.tag!r}{what}: {', '.join(c.name for c in kind.columns)}"
        for split in self.config.split_to_rows:
            yield f"  rows: one for each value of '{split.field}'"
        for name, section in self.config.envelope.sections.items() if self.config.envelope is not None else ():
            yield f"  envelope: $doc.{name} at {'/'.join(section.extract.path)}: {', '.join(section.fields)}"

    def details(self) -> dict[str, Any]:
        new = {"only_new": True} if self.only_new else {}
        whole = {"dlq_granularity": "document"} if self.by_document else {}
        return {"format": self.config.type, "files": self.files_read, **new, **whole}


def always_there(config: Any, columns: Iterable[Column]) -> dict[str, Kind]:
    """The columns of a source that have a value in each record: every row of a dataset query has a segment and a value
    of the queried index."""
    if config.type != "dataset" or config.index is None:
        return {}
    kinds = {config.index: (Kind.INT, Kind.DATETIME), "segment": (Kind.STRING,)}
    named = [(column.name, column.data_type, kinds.get(column.source_name or column.name, ())) for column in columns]
    return {name: kind.kind for name, kind, known in named if kind.kind in known and not kind.is_dynamic}


def checked_in_parquet(column: Column) -> bool:
    """Can a value of a Parquet file be wrong for a column? A null where none may be, or a number with more digits."""
    kind = column.data_type
    return not kind.is_dynamic and (not kind.nullable or (kind.kind is Kind.DECIMAL and kind.scale is not None))
