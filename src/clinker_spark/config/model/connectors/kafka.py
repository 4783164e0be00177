"""Kafka: a topic as a source, and as an output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from clinker_spark.config.model.base import Finding, Model, without_effect
from clinker_spark.config.model.connectors.settings import Settings, check_settings
from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.formats import Character
from clinker_spark.config.values import Count, Words, problem, read_int, shown
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import Kind, Type

_OWN = (
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "auto.offset.reset",
    "enable.partition.eof",
    "isolation.level",
    "transactional.id",
    "enable.idempotence",
    "allow.auto.create.topics",
)
ABOUT = {
    "key": Kind.STRING,
    "headers": Kind.MAP,
    "topic": Kind.STRING,
    "partition": Kind.INT,
    "offset": Kind.INT,
    "timestamp": Kind.DATETIME,
}
"""What stands around the value of a message, and the type of a column that holds it."""
_WORDS = {Kind.STRING: "string", Kind.MAP: "map(string)", Kind.INT: "int", Kind.DATETIME: "date_time"}


class LetterTopic(Model):
    """The topic that dead letters of a stream go to, one object of JSON each."""

    brokers: Words
    """Where the cluster is reached: host:port, or several with commas between them."""
    topic: Words
    """The topic to write. It must be there."""
    client: Settings = Field(default_factory=dict)
    """Settings of the client by its own names; secrets as { env: NAME }."""

    def check(self) -> Iterator[Finding]:
        yield from check_settings("client", self.client, _OWN)


class MessageText(Model):
    """How a line of CSV is written, if messages are such lines."""

    delimiter: Character = ","
    """The character between two values."""
    quote_char: Character = '"'
    """The character around values that contain delimiters or line ends."""


class MessageLine(Model):
    """How a line of CSV is written, if messages are such lines."""

    delimiter: Character = ","
    """The character between two values."""


class Metadata(Model):
    """Columns that hold what stands around the value of a message: their names in the schema."""

    key: Words | None = None
    """The column for the key; a string."""
    headers: Words | None = None
    """The column for the headers; a map(string)."""
    topic: Words | None = None
    """The column for the name of the topic; a string."""
    partition: Words | None = None
    """The column for the number of the partition; an int."""
    offset: Words | None = None
    """The column for the offset in the partition; an int."""
    timestamp: Words | None = None
    """The column for the time that the broker knows; a date_time in UTC."""

    @property
    def columns(self) -> dict[str, str]:
        """By column: what it holds."""
        return {name: what for what in ABOUT if (name := getattr(self, what)) is not None}


def _read_start(value: Any) -> Any:
    if isinstance(value, dict):
        found = {}
        for partition, offset in value.items():
            if not str(partition).isdigit():
                raise problem("E007", f"'{partition}' is no number of a partition", "write { 0: 1500, 1: 1320 }")
            found[str(partition)] = read_int(offset)
        return found
    if value in ("earliest", "latest"):
        return str(value)
    help_text = "write earliest, latest, or { partition: offset }"
    raise problem("E007", f"a stream cannot start at {shown(value)}", help_text)


_START_SCHEMA: dict[str, Any] = {
    "anyOf": [{"enum": ["earliest", "latest"]}, {"type": "object", "additionalProperties": {"type": "integer"}}]
}
Start = Annotated[Any, BeforeValidator(_read_start), WithJsonSchema(_START_SCHEMA)]


class TopicRead(Model):
    """A topic that is read."""

    brokers: Words
    """Where the cluster is reached: host:port, or several with commas between them."""
    topic: Words
    """The topic to read, all of its partitions."""
    format: Literal["json", "csv", "raw"] = "json"
    """What the value of a message is: an object of JSON, a line of CSV, or the text of one column."""
    options: MessageText = Field(default_factory=MessageText)
    metadata: Metadata = Field(default_factory=Metadata)
    start: Start = "earliest"
    """Where a stream begins that has no checkpoint: earliest, latest, or { partition: offset }."""
    max_messages: Count = 500_000
    """About the most messages that one batch reads."""
    connector: Literal["auto", "python", "jvm"] = "auto"
    """Who reads: python is the package confluent-kafka, and so is auto; jvm, Spark's own connector, is not supported
    yet."""
    client: Settings = Field(default_factory=dict)
    """Settings of the client by its own names, such as security.protocol; secrets as { env: NAME }."""

    def check_topic(self) -> Iterator[Finding]:
        if self.format != "csv":
            yield from without_effect(self.options, ("delimiter", "quote_char"), "messages are no CSV", "options")
        if self.connector == "jvm":
            message = "'connector: jvm' is not supported yet: topics are read by the Python package confluent-kafka"
            yield Finding("E009", message, ("connector",), "write auto or python, or remove the key")
        if isinstance(self.start, dict):
            for partition, offset in self.start.items():
                if offset < 0:
                    yield Finding("E007", "offsets begin at 0", ("start", partition), "write earliest, or an offset")
        yield from check_settings("client", self.client, _OWN)

    def check_messages(self, columns: tuple[Column, ...]) -> Iterator[Finding]:
        """Can the columns hold what messages have?"""
        types = {column.name: column.data_type for column in columns}
        for name, what in self.metadata.columns.items():
            at = ("metadata", what)
            if name not in types:
                help_text = did_you_mean(name, types) or f"declare it: {name}: {_WORDS[ABOUT[what]]}"
                yield Finding("E529", f"the schema has no column '{name}'", at, help_text)
            elif types[name].kind is not ABOUT[what] or types[name].is_dynamic:
                help_text = f"declare '{name}' as {_WORDS[ABOUT[what]]}"
                yield Finding("E529", f"'{name}' is {types[name]}, which cannot hold the {what}", at, help_text)
        values = [name for name in types if name not in self.metadata.columns]
        if self.format == "raw" and len(values) != 1:
            message = f"the text of a raw message is one column, and the schema has {len(values)}"
            yield Finding("E529", message, ("schema",), "declare one, or use format: csv", on_key=True)

    @property
    def place(self) -> str:
        return f"{self.brokers}/{self.topic}"


class TopicWrite(Model):
    """A topic that is written."""

    brokers: Words
    """Where the cluster is reached: host:port, or several with commas between them."""
    topic: Words
    """The topic to write. It must be there."""
    format: Literal["json", "csv", "raw"] = "json"
    """What the value of a message is: an object of JSON, a line of CSV, or the text of one column."""
    options: MessageLine = Field(default_factory=MessageLine)
    key: Words | None = None
    """The column whose text is the key of the message: equal keys go to one partition. Its value has the column too."""
    headers: Words | None = None
    """The column, a map(string), that becomes the headers of the message. It is not written as a column."""
    on_forgotten: Literal["stop", "write"] = "stop"
    """What happens when the broker no longer knows which batch it has: stop, or write the batch, maybe once more."""
    client: Settings = Field(default_factory=dict)
    """Settings of the client by its own names, such as security.protocol; secrets as { env: NAME }."""

    def check_topic(self) -> Iterator[Finding]:
        if self.format != "csv":
            yield from without_effect(self.options, ("delimiter",), "messages are no CSV", "options")
        yield from check_settings("client", self.client, _OWN)

    def check_columns(self, types: Mapping[str, Type]) -> Iterator[Finding]:
        for key, name, kind in (("key", self.key, None), ("headers", self.headers, Kind.MAP)):
            if name is None:
                continue
            if name not in types:
                help_text = did_you_mean(name, types) or f"the columns are {', '.join(types)}"
                yield Finding("E529", f"there is no column '{name}'", (key,), help_text)
            elif kind is not None and (types[name].kind is not kind or types[name].element != Type(Kind.STRING)):
                message = f"headers are a map(string), and '{name}' is {types[name]}"
                yield Finding("E529", message, (key,), "choose another column")
            elif kind is None and (types[name].kind in (Kind.ARRAY, Kind.MAP) or types[name].is_dynamic):
                yield Finding("E529", f"'{name}' is {types[name]}, which is no key", (key,), "choose another column")
        values = [name for name in types if name not in (self.headers, *([self.key] if self.format == "raw" else []))]
        if self.format == "raw" and len(values) != 1:
            message = f"the text of a raw message is one column, and there are {len(values)}: {', '.join(values)}"
            yield Finding("E529", message, ("format",), "choose one with 'mapping' and include_unmapped: false")

    @property
    def place(self) -> str:
        return f"{self.brokers}/{self.topic}"
