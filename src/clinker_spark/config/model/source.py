"""`type: source`: where records come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from clinker_spark.config.model.base import ONE_OR_MORE, Finding, Gone, without_effect
from clinker_spark.config.model.connectors.demo import RateRead
from clinker_spark.config.model.connectors.kafka import TopicRead
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.model.schema import (
    Column,
    PlacesSpec,
)
from clinker_spark.config.model.sources.config import TEXT_KEYS, SourceConfig
from clinker_spark.config.model.sources.formats import (
    CsvRead,
    FixedWidthRead,
    JsonRead,
    ParquetRead,
    XmlRead,
    check_json_path,
    check_xml_path,
)
from clinker_spark.config.model.sources.record_kinds import RecordKinds
from clinker_spark.config.values import Bool, FlagText, Words


class CsvSource(SourceConfig):
    """Delimited text with a header line."""

    type: Literal["csv"]
    """The file format."""
    options: CsvRead = Field(default_factory=CsvRead)


class JsonSource(SourceConfig):
    """JSON: an array of objects, one object per line, or an object with the records inside."""

    type: Literal["json"]
    """The file format."""
    options: JsonRead = Field(default_factory=JsonRead)

    section_key = "json_pointer"

    def check(self) -> Iterator[Finding]:
        yield from super().check()
        yield from check_json_path(self.options)
        if self.envelope is not None and self.options.format == "ndjson":
            message = "lines of JSON have no envelope: each is a record"
            yield Finding("E007", message, ("envelope",), "remove it, or the format", on_key=True)


class XmlSource(SourceConfig):
    """XML: one record per element of a path."""

    type: Literal["xml"]
    """The file format."""
    options: XmlRead = Field(default_factory=XmlRead)

    section_key = "xml_path"

    def check(self) -> Iterator[Finding]:
        yield from super().check()
        yield from check_xml_path(self.options)


class FixedWidthSource(SourceConfig):
    """Lines whose columns stand at fixed bytes."""

    type: Literal["fixed_width"]
    """The file format."""
    options: FixedWidthRead = Field(default_factory=FixedWidthRead)
    format_schema: PlacesSpec | None = None
    """The places of the columns, if they do not stand in the schema: { fields: [...] }, or the path of a file."""


class ParquetSource(SourceConfig):
    """Parquet files."""

    type: Literal["parquet"]
    """The file format."""
    options: ParquetRead = Field(default_factory=ParquetRead)

    def check(self) -> Iterator[Finding]:
        yield from super().check()
        yield from without_effect(self, ("compression",), "Parquet files say themselves how they are compressed")
        yield from without_effect(self, TEXT_KEYS, "the values of a Parquet file have types")


class DatasetSource(SourceConfig):
    """A dataset, a recording of many entities over time: the state of everything at each moment."""

    finite_only: ClassVar[bool] = True
    type: Literal["dataset"]
    """The file format."""
    index: Words | None = None
    """The index that orders the rows; without one, there is a row of static values for each segment."""
    entities: Annotated[tuple[Words, ...], ONE_OR_MORE] = ()
    """Which entities: paths, or patterns such as /arm/**; all, if none are named."""
    segments: Annotated[tuple[Words, ...], ONE_OR_MORE] | None = None
    """Which segments; all, if none are named."""
    range: Annotated[tuple[Any, ...], Field(min_length=2, max_length=2)] | None = None
    """The first and the last index value, both included; null is open: [30, null]."""
    values: Annotated[tuple[Any, ...], Field(min_length=1)] | None = None
    """Rows at exactly these index values."""
    every: FlagText | None = None
    """Rows at a steady pace: 10, or 100ms where the index is a time."""
    fill_latest_at: Bool = False
    """Fill cells with the newest value up to their row."""
    origin_time: Bool = False
    """For each value a column with the time at which it was logged: /arm:v@origin_time."""
    row_ids: Bool = False
    """For each value a column with the number of its event: /arm:v@row_id."""
    all_values: Bool = False
    """Arrays of all values of one time, not only the last."""

    def check(self) -> Iterator[Finding]:
        yield from super().check()
        yield from without_effect(self, ("compression", *TEXT_KEYS), "the values of a dataset have types of their own")
        if self.files.only_new:
            message = "'only_new' is not supported yet for datasets, which are one whole"
            yield Finding("E009", message, ("files", "only_new"), "remove the key", on_key=True)
        for key in ("glob", "regex", "paths"):
            if getattr(self, key) is not None:
                message = f"a dataset is one folder, and has no '{key}'"
                yield Finding("E210", message, (key,), "write path: and the folder of the dataset", on_key=True)
        if self.index is None:
            yield from without_effect(self, ("range", "values", "every", "origin_time"), "there is no 'index'")
        elif self.values is not None and self.every is not None:
            yield Finding(
                "E218", "'values' and 'every' exclude each other", ("every",), "keep one of them", on_key=True
            )

    @property
    def options(self) -> DatasetSource:
        """What the reader is asked for stands beside the other keys."""
        return self


class KafkaSource(TopicRead, SourceConfig):
    """A topic of Kafka. Only `clinker stream` can read it."""

    type: Literal["kafka"]
    """The kind of source."""

    stream_only: ClassVar[bool] = True

    def check(self) -> Iterator[Finding]:
        yield from self._check_no_file("a topic is no file")
        if isinstance(self.schema_, RecordKinds):
            yield from self.check_kinds(self.schema_)
        elif not isinstance(self.schema_, str):
            yield from self.check_schema(self.schema_)
            yield from self._check_places(self.schema_)
        yield from self.check_topic()

    def check_schema(self, columns: tuple[Column, ...]) -> Iterator[Finding]:
        yield from super().check_schema(columns)
        yield from self.check_messages(columns)


class RateSource(RateRead, SourceConfig):
    """Records that are made up, to try a stream. Only `clinker stream` can read it."""

    type: Literal["rate"]
    """The kind of source."""

    stream_only: ClassVar[bool] = True

    @property
    def options(self) -> RateRead:
        """What the reader is asked for stands beside the other keys."""
        return self

    def check(self) -> Iterator[Finding]:
        yield from self._check_no_file("what is made up is no file")
        if isinstance(self.schema_, RecordKinds):
            yield from self.check_kinds(self.schema_)
        elif not isinstance(self.schema_, str):
            yield from self.check_schema(self.schema_)

    def check_schema(self, columns: tuple[Column, ...]) -> Iterator[Finding]:
        yield from super().check_schema(columns)
        yield from self.check_made(columns)


AnySource = (
    CsvSource | JsonSource | XmlSource | FixedWidthSource | ParquetSource | DatasetSource | KafkaSource | RateSource
)


class SourceNode(NodeModel):
    """Reads records from files."""

    type: Literal["source"]
    config: Annotated[AnySource, Field(discriminator="type")]
    """What is read, in which format; 'type' is the format."""

    gone: ClassVar[dict[str, Gone]] = {
        key: Gone("a source reads files, not other nodes", f"remove '{key}'; the files stand in 'config:'")
        for key in ("input", "inputs")
    }

    @property
    def source_name(self) -> str:
        """What $source.name says."""
        return self.config.name or self.name
