"""What whoever starts a run adds to its plan, and what programs read of that."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinker_spark.cxl.system import Context
from clinker_spark.plan.graph import Plan
from clinker_spark.spark.scan.files import SourceFile

if TYPE_CHECKING:
    from clinker_spark.runtime.reject.replay_files import Feed
    from clinker_spark.runtime.run.report import RunReport

Listener = Callable[[str, dict[str, Any]], None]
"""Told what happens: an event and its details."""


@dataclass
class Options:
    """What the command line adds to a plan."""

    execution_id: str = field(default_factory=lambda: str(uuid7()))
    batch_id: str = ""
    now: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC).replace(tzinfo=None))
    base: Path | None = None
    """What relative paths start from; by default the folder of the pipeline."""
    force: bool = False
    full: bool = False
    """Read all files, also those that earlier runs read, and write the outputs that they were added to anew."""
    files: dict[str, tuple[SourceFile, ...]] | None = None
    """Files to read instead of those the sources name (replays); other sources read their own."""
    replay: str | None = None
    """For replays: write outputs `beside` the old ones, or `append` to them."""
    round: int = 1
    """For replays: which files they write, `out-replay.csv` or `out-replay-2.csv` and so on."""
    feed: Feed | None = None
    """For replays: which letters the records of `files` come from."""
    lock_wait: float = 10.0
    """How many seconds to wait for another run that writes the same outputs."""
    spool: Path | None = None
    """A folder that gets a file with the numbers of the run; by default `metrics.spool_dir` of the pipeline."""
    beside: dict[str, Path] = field(default_factory=dict)
    """What the command writes besides the outputs, by option: it must be none of their files, and none that is read."""
    begun: Callable[[RunReport], None] | None = None
    """Gets the report of the run before there is anything in it: of a run that fails, that is all there is."""
    measure: bool = False
    """Find out what the run uses: memory over time, and time, memory and spill of each node."""

    @property
    def kind(self) -> str:
        """What sort of run it is, in a word or two."""
        return "replay" if self.replay is not None else "all files" if self.full else "new files"

    @property
    def adds(self) -> bool:
        """Do outputs with `if_exists: append` keep what is there? A replay has ways of its own."""
        return self.replay is None and not self.full


def contexts(plan: Plan, options: Options) -> dict[str, Context]:
    """What the programs of each node read besides columns."""
    from clinker_spark.runtime.run.variables import with_defaults  # loads Spark, which a dry run does without

    batch = options.batch_id or options.execution_id
    pipeline = {
        "name": plan.file.settings.name,
        "execution_id": options.execution_id,
        "batch_id": batch,
        "start_time": options.now,
    }
    source = {"batch": batch, "ingestion_timestamp": options.now}
    context = with_defaults(plan, Context(options.now, pipeline, source, vars=plan.vars))
    return {node.name: context for node in plan.nodes}


def spool_folder(plan: Plan, options: Options) -> Path | None:
    """Where the file with the numbers of a run goes, if anywhere: the options win, and a path in the pipeline starts
    from its folder."""
    written = plan.file.settings.metrics.spool_dir
    return options.spool or (None if written is None else plan.file.folder / written)


def uuid7() -> uuid.UUID:
    """An identifier that sorts by the time it was made."""
    stamp = int(time.time() * 1000)
    random = uuid.uuid4().int
    value = (stamp << 80) | (7 << 76) | ((random >> 66 & 0xFFF) << 64) | (2 << 62) | (random & (2**62 - 1))
    return uuid.UUID(int=value)
