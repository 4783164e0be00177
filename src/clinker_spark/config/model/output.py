"""`type: output` (or `sink`): where records go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from clinker_spark.config.model.base import ONE_OR_MORE, STRING, Also, Finding, Gone, Model, without_effect
from clinker_spark.config.model.connectors.demo import ConsoleWrite
from clinker_spark.config.model.connectors.kafka import TopicWrite
from clinker_spark.config.model.connectors.postgres import TableWrite
from clinker_spark.config.model.documents.pipeline import FanoutPolicy
from clinker_spark.config.model.join_values import NO_JOINS, JoinList, check_joined_columns, check_joins
from clinker_spark.config.model.node import InputNode
from clinker_spark.config.model.order import SortOrder
from clinker_spark.config.model.output_formats import (
    CsvWrite,
    FixedWidthWrite,
    JsonWrite,
    ParquetWrite,
    XmlWrite,
    check_framing,
)
from clinker_spark.config.model.schema import LAYOUT_KEYS, Column, SchemaSpec, check_columns
from clinker_spark.config.paths.templates import PER_FILE, TemplateError, Token, naming_problem, parse_template
from clinker_spark.config.tree.yaml import Mapping
from clinker_spark.config.values import Bool, Count, Natural, Size, Words, problem, shown
from clinker_spark.core.types import Type

_SORTED = ("order", "sort_order", "split", "include_header")
_OF_FILES = (
    *_SORTED,
    "schema_",
    "if_exists",
    "unique_suffix_width",
    "write_meta",
    "include_correlation_keys",
    "join_values",
    "reconstruct_envelope",
)
DEFAULT_NAMING = "{stem}_{seq:04}.{ext}"


class Mapped(Model):
    """A column of the file and the column it comes from."""

    output: Words
    source: Words


def _read_mapped(value: Any) -> Any:
    if isinstance(value, str):
        return {"output": value, "source": value}
    if isinstance(value, dict):
        if len(value) != 1:
            raise problem("E364", "an item of 'mapping' is one column", "write '- column' or '- new_name: column'")
        (output, source), *_ = value.items()
        return {"output": output, "source": source}
    raise problem(
        "E364", f"an item of 'mapping' is a column, not {shown(value)}", "write '- column' or '- new_name: column'"
    )


def _read_mapping(value: Any) -> Any:
    if isinstance(value, dict):
        return [{output: source} for output, source in value.items()]
    return value


class _Item(Also):
    """Only the written forms are for people; the model is not one of them."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        rename = {"type": "object", "additionalProperties": STRING, "minProperties": 1, "maxProperties": 1}
        return {"anyOf": [STRING, rename]}


_RENAMES = {
    "type": "object",
    "additionalProperties": STRING,
    "description": "New names and the columns they come from.",
}
MappedColumns = Annotated[tuple[Annotated[Mapped, _Item(_read_mapped)], ...], Also(_read_mapping, _RENAMES)]


class Split(Model):
    """Several files instead of one."""

    max_records: Count | None = None
    """The most records of a file."""
    max_bytes: Size | None = None
    """The size after which a new file is begun."""
    group_key: Words | None = None
    """A column whose equal values stay in one file."""
    naming: Words = DEFAULT_NAMING
    """The names of the files."""
    repeat_header: Bool = True
    """Write the header line in every file."""
    oversize_group: Literal["warn", "error", "allow"] = "warn"
    """What happens when one group is larger than a file may be."""

    def check(self) -> Iterator[Finding]:
        if self.max_records is None and self.max_bytes is None:
            help_text = "add max_records or max_bytes"
            yield Finding("E007", "'split' does not say when to begin a new file", (), help_text, on_key=True)
        if self.max_bytes == 0:
            yield Finding("E215", "'max_bytes' must not be 0", ("max_bytes",), "write a size such as 100MB")
        if (reason := naming_problem(self.naming)) is not None:
            yield Finding("E367", f"'naming' cannot be used: {reason}", ("naming",), f"the default is {DEFAULT_NAMING}")


class OutputConfig(Model):
    """What all file formats share."""

    name: Words | None = None
    """The name of the output in reports; by default that of the node."""
    path: Words
    """The file to write; one that ends in / is a folder of parts. {tokens} such as {timestamp} are filled in."""
    include_unmapped: Bool = True
    """Write all columns, or only those that the node before this one emits."""
    include_header: Bool = True
    """CSV: write the names of the columns first."""
    mapping: MappedColumns | None = None
    """The columns to write, in order: - column, or - new_name: column."""
    exclude: tuple[Words, ...] = ()
    """Columns to leave out."""
    order: Literal["source", "any"] = "source"
    """Write records in the order of the sources, or in any."""
    sort_order: SortOrder = ()
    """Sort the records by these columns."""
    preserve_nulls: Bool = False
    """JSON: write columns without a value as null."""
    include_correlation_keys: Bool = False
    """Write the hidden columns of the correlation keys."""
    schema_: SchemaSpec | None = Field(default=None, alias="schema")
    """Columns with the scale or the place in the line they are written with."""
    split: Split | None = None
    correlation_fanout_policy: FanoutPolicy | None = None
    """Which records of a failed group are withheld."""
    if_exists: Literal["overwrite", "error", "unique_suffix", "append"] = "overwrite"
    """What happens when the file is there already; append adds to it: records to a file, files to a folder."""
    unique_suffix_width: Natural = 0
    """The digits of the number that unique_suffix adds."""
    write_meta: Bool = False
    """Write a .meta.json file beside the output."""
    reconstruct_envelope: Bool = False
    """Write the records of each document between its header and its footer (`options.envelope`)."""
    join_values: JoinList = NO_JOINS
    """CSV and XML: how the values of arrays are written."""

    stream_only: ClassVar[bool] = False
    """Can only `clinker stream` write it?"""

    @property
    def place(self) -> str:
        """What is written, for people."""
        return str(self.path)

    def check_columns(self, types: dict[str, Type]) -> Iterator[Finding]:
        """What is wrong with the columns that are written, by the names they have there."""
        yield from check_joined_columns(self.join_values, types)

    def check(self) -> Iterator[Finding]:
        per_file = False
        try:
            tokens = parse_template(self.path)
        except TemplateError as error:
            yield Finding("E007", f"'path' cannot be used: {error}", ("path",), error.help)
        else:
            per_file = any(isinstance(token, Token) and token.name in PER_FILE for token in tokens)
            if any(isinstance(token, Token) and (token.name, token.args) == ("channel", ()) for token in tokens):
                message = "'{channel}' is not supported yet: channels and groups"
                yield Finding("E009", message, ("path",), "remove the token")
            if self.if_exists != "unique_suffix" and any(isinstance(t, Token) and t.name == "n" for t in tokens):
                message = "'{n}' is nothing here: it is the number of if_exists: unique_suffix"
                yield Finding("W027", message, ("path",), "write if_exists: unique_suffix, or remove the token")
        if self.path.endswith("/") and (self.split is not None or per_file):
            message = "a folder of parts is neither split nor made for each input file"
            at = ("split",) if self.split is not None else ("path",)
            yield Finding("E007", message, at, "remove the / at the end of 'path'", on_key=self.split is not None)
        elif self.split is not None and per_file:
            message = "an output for each input file cannot be split as well"
            see = (("path",), "one file for each input file")
            help_text = "remove 'split', or the {source_file} or {source_path} in 'path'"
            yield Finding("E007", message, ("split",), help_text, on_key=True, see=see)
        yield from self._check_append(per_file)
        yield from self._check_mapping()
        yield from check_joins(getattr(self, "type", ""), self.join_values)
        yield from check_framing(self, per_file=per_file)
        if self.order == "any" and self.sort_order:
            see = (("sort_order",), "the order it is to have")
            message = "'order: any' leaves the order open, and 'sort_order' asks for one"
            yield Finding("E007", message, ("order",), "remove one of them", on_key=True, see=see)
        if self.schema_ is not None and not isinstance(self.schema_, str):
            yield from self.check_schema(self.schema_)
        yield from self._check_effects()

    def _check_append(self, per_file: bool) -> Iterator[Finding]:
        if self.if_exists != "append":
            return
        at = ("if_exists",)
        if self.split is not None or per_file:
            what = "the files of a split" if self.split is not None else "the file of each input file"
            help_text = "write one file, or a folder of parts: a path that ends in /"
            yield Finding("E009", f"adding to {what} is not supported yet", at, help_text)
        elif getattr(self, "type", None) == "parquet" and not self.path.endswith("/"):
            message = "nothing can be added to a Parquet file: what is in it stands at its end"
            yield Finding("E007", message, at, "write a folder of parts: a path that ends in /")

    def _check_effects(self) -> Iterator[Finding]:
        """Keys that are about another format, or about another key that is not there."""
        kind = getattr(self, "type", None)
        if kind != "csv":
            yield from without_effect(self, ("include_header",), "only CSV files have a header line")
        if kind not in ("json", "xml"):
            yield from without_effect(self, ("preserve_nulls",), "every column of such a file is written")
        if kind == "parquet":
            yield from without_effect(self, ("schema_",), "Parquet keeps the types of the records")
        if self.if_exists != "unique_suffix":
            yield from without_effect(self, ("unique_suffix_width",), "it goes with if_exists: unique_suffix")
        if self.split is not None:
            if kind != "csv":
                yield from without_effect(self.split, ("repeat_header",), "only CSV files have a header line", "split")
            if self.split.group_key is None:
                yield from without_effect(self.split, ("oversize_group",), "there is no 'group_key'", "split")
        columns = () if isinstance(self.schema_, str | None) else self.schema_
        keys = ("trim",) if kind == "fixed_width" else LAYOUT_KEYS
        why = "it is about reading" if kind == "fixed_width" else "only fixed-width files have it"
        for i, column in enumerate(columns):
            yield from without_effect(column, keys, why, "schema", i)

    def check_schema(self, columns: tuple[Column, ...]) -> Iterator[Finding]:
        """What is wrong with the columns. Also for columns that came from a file."""
        for finding in check_columns(columns, fixed_width=getattr(self, "type", None) == "fixed_width"):
            yield finding.under("schema")
        for i, column in enumerate(columns):
            joined = any(join.field == (column.source_name or column.name) for join in self.join_values)
            if column.multiple and not joined:
                message = f"nothing says how the values of '{column.name}' are written into one field"
                help_text = f"add join_values: [{column.source_name or column.name}], or remove the key"
                yield Finding("E362", message, ("schema", i, "multiple"), help_text, on_key=True)

    def _check_mapping(self) -> Iterator[Finding]:
        if self.mapping is None:
            return
        if not self.mapping:
            yield Finding(
                "E364", "'mapping' lists no column", ("mapping",), "remove the key to write all columns", on_key=True
            )
        seen: dict[str, int] = {}
        for i, item in enumerate(self.mapping):
            at = ("mapping", i)
            if item.output in seen:
                see = (("mapping", seen[item.output]), "first written here")
                yield Finding("E364", f"column '{item.output}' is written twice", at, "rename one", see=see)
            if item.source in self.exclude:
                see = (("exclude", self.exclude.index(item.source)), "left out here")
                message = f"column '{item.source}' is written and excluded"
                yield Finding("E364", message, at, "remove it from one of the two", see=see)
            seen.setdefault(item.output, i)


class CsvOutput(OutputConfig):
    """Delimited text with a header line."""

    type: Literal["csv"]
    """The file format."""
    options: CsvWrite = Field(default_factory=CsvWrite)


class JsonOutput(OutputConfig):
    """JSON: an array of objects, or one object per line."""

    type: Literal["json"]
    """The file format."""
    options: JsonWrite = Field(default_factory=JsonWrite)


class XmlOutput(OutputConfig):
    """XML: one element per record."""

    type: Literal["xml"]
    """The file format."""
    options: XmlWrite = Field(default_factory=XmlWrite)


class FixedWidthOutput(OutputConfig):
    """Lines whose columns stand at fixed bytes; the schema gives the places."""

    type: Literal["fixed_width"]
    """The file format."""
    options: FixedWidthWrite = Field(default_factory=FixedWidthWrite)

    def check(self) -> Iterator[Finding]:
        yield from super().check()
        if self.schema_ is None:
            help_text = "add 'schema:' with start and width of each column"
            yield Finding("E201", "fixed-width output needs a schema", (), help_text, on_key=True)


class ParquetOutput(OutputConfig):
    """Parquet files."""

    type: Literal["parquet"]
    """The file format."""
    options: ParquetWrite = Field(default_factory=ParquetWrite)
    partition_by: Annotated[tuple[Words, ...], ONE_OR_MORE] = ()
    """Columns whose values are folders inside of the folder, as in day=2026-01-31/part-00000.parquet."""

    def check(self) -> Iterator[Finding]:
        yield from super().check()
        if self.partition_by and not self.path.endswith("/"):
            message = "'partition_by' makes folders, and 'path' is one file"
            yield Finding("E007", message, ("partition_by",), "end the path with a /", on_key=True)
        for i, name in enumerate(self.partition_by):
            if name in self.partition_by[:i]:
                yield Finding("E007", f"'{name}' is listed twice", ("partition_by", i), "list each column once")


class KafkaOutput(TopicWrite, OutputConfig):
    """A topic of Kafka. Each batch is one transaction; only `clinker stream` can write it."""

    type: Literal["kafka"]
    """The kind of output."""
    path: Literal[""] = ""
    """A topic has none."""

    stream_only: ClassVar[bool] = True

    def check(self) -> Iterator[Finding]:
        yield from self._check_mapping()
        yield from without_effect(self, _OF_FILES, "a topic is no file")
        if self.format != "json":
            yield from without_effect(self, ("preserve_nulls",), "every column of such a message is written")
        yield from self.check_topic()


class PostgresOutput(TableWrite, OutputConfig):
    """A table of PostgreSQL. Each batch is one transaction; only `clinker stream` can write it."""

    type: Literal["postgres"]
    """The kind of output."""
    path: Literal[""] = ""
    """A table has none."""

    stream_only: ClassVar[bool] = True

    def check(self) -> Iterator[Finding]:
        yield from self._check_mapping()
        yield from without_effect(self, (*_OF_FILES, "preserve_nulls"), "a table is no file")
        yield from self.check_table()


class ConsoleOutput(ConsoleWrite, OutputConfig):
    """The first records of each batch, on the screen; only `clinker stream` can write it."""

    type: Literal["console"]
    """The kind of output."""
    path: Literal[""] = ""
    """The screen has none."""

    stream_only: ClassVar[bool] = True

    def check(self) -> Iterator[Finding]:
        yield from self._check_mapping()
        yield from without_effect(self, (*_OF_FILES, "preserve_nulls"), "the screen is no file")


AnyOutput = (
    CsvOutput | JsonOutput | XmlOutput | FixedWidthOutput | ParquetOutput | KafkaOutput | PostgresOutput | ConsoleOutput
)


class OutputNode(InputNode):
    """Writes records to files."""

    type: Literal["output", "sink"]
    config: Annotated[AnyOutput, Field(discriminator="type")]
    """What is written, in which format; 'type' is the format."""

    gone: ClassVar[dict[str, Gone]] = {
        "inputs": Gone("an output reads one node", "write 'input: node'; a merge before it brings several together")
    }

    @property
    def output_name(self) -> str:
        """The name of the output in reports."""
        return self.config.name or self.name

    @classmethod
    def ends_in(cls, node: Mapping) -> bool:
        return True
