"""`clinker.toml`: what holds for all pipelines of a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from clinker_spark.config.model.base import Finding, Model
from clinker_spark.config.paths.patterns import glob_problem
from clinker_spark.config.values import Bool, Duration, Natural, PathText, Size, Words, problem, shown

GB = 1000**3
_MAX_BYTES = {"max_attempt_bytes": 16, "retained_byte_limit": 64, "min_free_bytes": 64, "sweep_byte_limit": 64}


class Spill(Model):
    """Where intermediate data goes when it does not fit in memory."""

    dir: PathText | None = None
    """The folder; by default that of the system for temporary files."""
    disk_cap_bytes: Size | None = None
    """The most disk space, such as 100GB."""
    compress: Literal["auto", "on", "off"] = "auto"


class Staging(Model):
    """Local copies of input files."""

    enabled: Bool = False
    dir: PathText | None = None
    """The folder for the copies."""
    disk_cap_bytes: Size | None = None
    """The most disk space of one run."""
    verify: Literal["blake3", "none"] = "blake3"
    """How a copy is compared with the original."""
    on_existing: Literal["overwrite", "reuse", "error"] = "overwrite"
    """What happens when there is a copy already."""
    cleanup: Literal["on_success", "always", "never"] = "on_success"
    """When copies are removed."""
    patterns: tuple[Words, ...] = ()
    """Which files are copied: patterns for their paths or names."""
    format: Literal["original", "parquet"] = "original"
    """What a copy holds: the bytes of its original. The parsed form is not supported."""

    def check(self) -> Iterator[Finding]:
        if self.enabled and self.dir is None:
            help_text = 'add dir = "/var/tmp/clinker"'
            yield Finding("E006", "'dir' is missing in '[storage.staging]'", ("enabled",), help_text, on_key=True)
        if self.enabled and not self.patterns:
            message = "'patterns' is missing in '[storage.staging]': no file would be copied"
            yield Finding("E006", message, ("enabled",), 'add patterns = ["*"] to copy all files', on_key=True)
        for i, pattern in enumerate(self.patterns):
            wrong = glob_problem(pattern)
            if wrong is not None:
                help_text = "patterns are *, **, ?, [a-z] and {a,b}"
                yield Finding("E212", f"'{pattern}' is not a pattern: {wrong}", ("patterns", i), help_text)


class Publication(Model):
    """How finished outputs get to their places, and what is kept of runs that failed."""

    mode: Literal["direct", "local_then_publish"] = "direct"
    destination_profile: Literal["local", "nfs_v4_1", "smb_3_1_1"] = "local"
    local_spool_dir: PathText | None = None
    failed_retention_seconds: Annotated[Natural, Field(le=604_800)] = 86_400
    creation_grace_seconds: Annotated[Natural, Field(le=3600)] = 300
    max_attempt_bytes: Size = 4 * GB
    retained_byte_limit: Size = 8 * GB
    retained_attempt_limit: Annotated[Natural, Field(le=128)] = 8
    min_free_bytes: Size = 2 * GB
    sweep_entry_limit: Annotated[Natural, Field(le=10_000)] = 1000
    sweep_byte_limit: Size = 8 * GB
    sweep_time_limit_ms: Annotated[Natural, Field(le=30_000)] = 2000

    def check(self) -> Iterator[Finding]:
        for key, most in _MAX_BYTES.items():
            if getattr(self, key) > most * GB:
                yield Finding("E215", f"'{key}' must be at most {most}GB", (key,), f'write "{most}GB" or less')
        if self.mode == "local_then_publish" and self.local_spool_dir is None:
            help_text = 'add local_spool_dir, or write mode = "direct"'
            yield Finding("E006", "'local_spool_dir' is missing in '[storage.publication]'", ("mode",), help_text)
        if self.sweep_byte_limit < self.max_attempt_bytes + 4 * 1024**2 and "sweep_byte_limit" in self.model_fields_set:
            help_text = "allow 4 MiB more than max_attempt_bytes"
            yield Finding("E215", "'sweep_byte_limit' is smaller than one attempt", ("sweep_byte_limit",), help_text)


class Storage(Model):
    """Disk space that clinker uses."""

    spill: Spill = Field(default_factory=Spill)
    staging: Staging = Field(default_factory=Staging)
    publication: Publication = Field(default_factory=Publication)


class Channel(Model):
    """Where the settings of channels (tenants) are."""

    root: PathText = "channel"
    shard: Literal["none", "first-char", "hash"] = "none"


class Group(Model):
    """Where the settings of groups of channels are."""

    root: PathText = "group"


class Resource(Model):
    """A file that compositions know by name."""

    kind: Literal["file"]
    """What it is: a file."""
    path: PathText
    """The file, from the folder of clinker.toml on."""
    access: Literal["read", "write", "read-write"] = "read"
    """What may be done with it. Sources read it."""


class Catalog(Model):
    """Names for files of the workspace."""

    rules_root: PathText | None = None
    """The folder of the CXL modules."""
    rules: dict[str, Words] = Field(default_factory=dict)
    schemas: dict[str, PathText] = Field(default_factory=dict)
    compositions: dict[str, Words] = Field(default_factory=dict)
    pipelines: dict[str, Words] = Field(default_factory=dict)
    channels: dict[str, Words] = Field(default_factory=dict)
    resources: dict[str, Resource] = Field(default_factory=dict)
    """Files that calls of compositions name: [catalog.resources.prices] with kind = "file" and path."""


def _setting(value: Any) -> Any:
    """Spark takes texts; TOML has numbers and bools."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | str):
        return str(value)
    raise problem("E007", f"'{{key}}' must be a text, a number, true or false, not {shown(value)}", "put it in quotes")


class Spark(Model):
    """How Spark is started."""

    master: Words | None = None
    """local[*], local[2], spark://host:7077, yarn, ..."""
    remote: Words | None = None
    """A Spark Connect server: sc://host:15002."""
    conf: dict[str, Annotated[str, BeforeValidator(_setting)]] = Field(default_factory=dict)
    """Settings of Spark, by their names."""

    def check(self) -> Iterator[Finding]:
        if self.master is not None and self.remote is not None:
            see = (("master",), "and here the other")
            yield Finding(
                "E007", "'master' and 'remote' cannot both be given", ("remote",), "keep one", on_key=True, see=see
            )


class Session(Model):
    """Spark between two commands."""

    warm: Duration | None = None
    """Keep the session of a command for the next ones, until none came for so long: 10m."""


class WorkspaceConfig(Model):
    """The content of clinker.toml."""

    storage: Storage = Field(default_factory=Storage)
    channel: Channel = Field(default_factory=Channel)
    group: Group = Field(default_factory=Group)
    catalog: Catalog = Field(default_factory=Catalog)
    spark: Spark = Field(default_factory=Spark)
    session: Session = Field(default_factory=Session)
