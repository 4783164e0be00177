"""The stages of a run, as data: what explain prints and what the executor does, in this order.

1. `Find`: the files of each source. `CheckOrder`: are those sorted that are said to be? `Values`: variables that other
   nodes read, each with a job of its own.
2. `Write`: one Spark job for each output, into an attempt folder, with a count of the records that fail.
   `LogRecords`: log lines for single records, each rule with a job of its own.
3. `Letters`: always there; it has something to do only if some failed. What CSV readers kept, if these are all; else
   the same nodes again, for the failures alone.
4. `Publish`: everything is renamed to its place.
"""

from __future__ import annotations

from dataclasses import dataclass

from clinker_spark.config.model.order import SortField


@dataclass(frozen=True)
class Find:
    """List the files of a source."""

    source: str
    pattern: str


@dataclass(frozen=True)
class CheckOrder:
    """Compare neighbours: are the files of a source sorted as declared?"""

    source: str
    order: tuple[str, ...]
    on_unsorted: str


@dataclass(frozen=True)
class Values:
    """Find the last value of the variables that a transform writes for the pipeline or for a file."""

    transform: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Write:
    """One job: from the sources to the lines of an output."""

    output: str
    nodes: tuple[str, ...]
    """The nodes that run in it, sources first."""
    shuffles: tuple[str, ...]
    """Those of them that exchange records between tasks, and the sort at the end if there is one."""
    order: str
    """Why the records come out in order."""
    fallible: tuple[str, ...]
    """The nodes at which a record can fail."""
    python: tuple[str, ...]
    """The nodes that run Python code over Arrow batches."""


@dataclass(frozen=True)
class LogRecords:
    """Jobs that find the records a transform's log speaks of, one for each rule."""

    transform: str
    events: tuple[str, ...]


@dataclass(frozen=True)
class Letters:
    """The second pass."""

    strategy: str
    paths: tuple[str, ...]
    groups: bool = False
    """Records that belong to a failure are withheld, and the outputs are written again without them."""


@dataclass(frozen=True)
class Publish:
    """Rename the files to their places."""

    outputs: tuple[str, ...]


Stage = Find | CheckOrder | Values | Write | LogRecords | Letters | Publish


def sort_words(item: SortField) -> str:
    """`day desc nulls first`: a sort column in words."""
    direction = " desc" if item.order == "desc" else ""
    return f"{item.field}{direction}{' nulls first' if item.null_order == 'first' else ''}"
