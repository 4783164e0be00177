"""`pipeline:` and `error_handling:`: what holds for the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from clinker_spark.config.model.base import Also, Finding, Gone, Model, without_effect
from clinker_spark.config.model.connectors.kafka import LetterTopic
from clinker_spark.config.model.documents.variable import VarDecl, check_names
from clinker_spark.config.values import Bool, Count, Float, Fraction, Natural, PathText, Rate, Size, Text, Words
from clinker_spark.cxl.dates.formats import check_format

FanoutPolicy = Literal["any", "all", "primary"]


def _without_default(schema: dict[str, Any]) -> None:
    """A limit that is not given is a share of the machine; the default of the model stands for that."""
    schema.pop("default", None)


class Memory(Model):
    """How much memory the run may use, and what happens when it comes near the limit."""

    limit: Size = Field(default=512 * 1024**2, json_schema_extra=_without_default)
    """The memory of the run, such as 2G: all processes together, or on a cluster those of each executor. By default
    60 % of what the machine has."""
    backpressure: Literal["pause", "spill", "both"] = "pause"
    """Near the limit: pause the sources, spill to disk, or both."""
    resume_threshold: Float = 0.70
    """The share of the limit below which paused sources go on; between 0 and 0.80."""

    @property
    def declared_limit(self) -> int | None:
        """The limit, if there is one."""
        return self.limit if "limit" in self.model_fields_set else None

    def check(self) -> Iterator[Finding]:
        if not 0 < self.resume_threshold < 0.80:
            message = f"'resume_threshold' must lie between 0 and 0.80, not be {self.resume_threshold}"
            yield Finding("E324", message, ("resume_threshold",), "0.70 is the default")
        if not self.limit:
            yield Finding("E215", "'limit' must not be 0", ("limit",), "write a size such as 512M or 2G")


class Concurrency(Model):
    """How much of the machine the run uses."""

    threads: Count | None = None
    """The number of tasks that run at the same time; by default one per core."""
    chunk_size: Count | None = None
    """The number of records that are handled together."""


class Metrics(Model):
    """Where the numbers of each run are kept."""

    spool_dir: PathText | None = None
    """A folder that gets one file per run."""


class Settings(Model):
    """What holds for the whole pipeline."""

    name: Words
    """The name of the pipeline in reports and metrics."""
    description: Text | None = None
    memory: Memory = Field(default_factory=Memory)
    batch_size: Count = Field(default=2048, json_schema_extra=_without_default)
    """The most records that readers hand on together; between two such batches they can be made to wait. By default as
    many as suit the format. It never changes the output."""
    vars: dict[str, VarDecl] = Field(default_factory=dict)
    """Variables that programs read as $vars.name."""
    date_formats: tuple[Words, ...] = ()
    """The formats tried, in order, when a text becomes a date without a format of its own."""
    rules_path: PathText | None = None
    """The folder of the CXL modules that programs use."""
    engine: Literal["auto", "spark", "vector"] = "auto"
    """What computes records: `auto` keeps them in the workers that read the files, as far as everything that happens to
    them has a vector form, and gives them to Spark else; `spark` always does that; `vector` refuses a pipeline of which
    no output can be written by the workers. The bytes are the same."""
    concurrency: Concurrency = Field(default_factory=Concurrency)
    metrics: Metrics = Field(default_factory=Metrics)

    gone: ClassVar[dict[str, Gone]] = {
        "date_locale": Gone(
            "'date_locale' is not supported", "give dates a 'format' in the schema; names are English", "E119"
        ),
        "log_rules": Gone("'log_rules' is not supported", "write 'log:' in the transform", "E124"),
        "include_provenance": Gone(
            "'include_provenance' is not supported", "set 'write_meta: true' on the output", "E125"
        ),
        "nodes": Gone(
            "'nodes' does not belong in 'pipeline'", "write 'nodes:' at the start of a line, as 'pipeline:' is"
        ),
        "error_handling": Gone(
            "'error_handling' does not belong in 'pipeline'", "write it at the start of a line, as 'pipeline:' is"
        ),
    }

    @property
    def declared_batch_size(self) -> int | None:
        """The size of batches, if the pipeline names one."""
        return self.batch_size if "batch_size" in self.model_fields_set else None

    def check(self) -> Iterator[Finding]:
        for finding in check_names(list(self.vars), "variable"):
            yield finding.under("vars")
        for i, text in enumerate(self.date_formats):
            reason = check_format(text)
            if reason is not None:
                yield Finding("E007", reason, ("date_formats", i), "write a strftime format, such as %d/%m/%Y")


class SourceDlq(Model):
    """The dead letters of one source."""

    path: Words | None = None
    """The file for the dead letters of this source."""
    max_rate: Rate | None = None
    """The share of this source's records that may fail before the run is aborted."""
    min_records: Natural | None = None
    """The number of records before the rate counts."""


class Dlq(Model):
    """Dead letters: the records that failed, with the reason."""

    path: Words | None = None
    """The CSV file for dead letters. Without it they are only counted."""
    topic: LetterTopic | None = None
    """Streams: the topic of Kafka for dead letters, instead of files."""
    include_reason: Bool = True
    """Write the category and the message of the error."""
    include_source_row: Bool = True
    """Write the columns of the record as it was read."""
    include_retracted: Bool = True
    """Write the records that were retracted from an aggregate, too."""
    max_rate: Rate | None = None
    """The share of records that may fail before the run is aborted, such as 0.05 or 5%."""
    min_records: Natural = 100
    """The number of records before the rate counts."""
    per_source: dict[str, SourceDlq] = Field(default_factory=dict)
    """Settings for single sources, by the name of the node."""

    def check(self) -> Iterator[Finding]:
        if self.path is not None and self.topic is not None:
            see = (("path",), "and here a file")
            message = "dead letters go to a file or to a topic, not to both"
            yield Finding("E007", message, ("topic",), "keep one of them", on_key=True, see=see)


def _strategy(value: Any) -> Any:
    return "continue" if value == "best_effort" else value


class ErrorHandling(Model):
    """What happens when records fail."""

    strategy: Annotated[
        Literal["fail_fast", "continue"], Also(_strategy, {"type": "string", "const": "best_effort"})
    ] = "fail_fast"
    """Stop at the first record that fails, or write it to the dead letters and go on (also spelled best_effort)."""
    dlq: Dlq = Field(default_factory=Dlq)
    type_error_threshold: Fraction | None = None
    """The share of records with values of the wrong type above which the run is aborted."""
    max_group_buffer: Count = 100_000
    """The most records of one correlation group."""
    correlation_fanout_policy: FanoutPolicy = "any"
    """Which records of a failed group are withheld."""
    retraction_scope: Literal["record", "group"] = "record"
    """What an aggregate loses when a record fails: that record, or its whole group."""
    unreadable_key: Literal["warn", "stop"] = "warn"
    """What happens when a broken record's correlation key cannot be read: a warning, or nothing is published."""

    gone: ClassVar[dict[str, Gone]] = {
        "correlation_key": Gone(
            "'correlation_key' does not belong in 'error_handling'",
            "write it in the 'config:' of the source it is about",
        ),
    }

    def check(self) -> Iterator[Finding]:
        if self.strategy == "fail_fast":
            why = "'strategy: fail_fast' stops at the first record that fails, and writes no dead letters"
            yield from without_effect(self.dlq, Dlq.model_fields, why, "dlq")
