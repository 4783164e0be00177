"""Keys of sources that are models of their own: which files, undeclared columns, the time of an event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from clinker_spark.config.model.base import Finding, Model
from clinker_spark.config.values import Bool, Count, Duration, Words


class Files(Model):
    """Which of the files that were found are read, and in what order."""

    sort_by: Literal["name", "created", "modified"] = "name"
    """The order of the files."""
    sort_order: Literal["asc", "desc"] = "asc"
    """Upward or downward."""
    take_first: Count | None = None
    """Read only the first so many files."""
    take_last: Count | None = None
    """Read only the last so many files."""
    recursive: Bool | None = None
    """Look into folders inside folders; by default where the pattern asks for it."""
    on_no_match: Literal["error", "warn", "skip"] = "error"
    """What happens when there is no file."""
    on_bad_file: Literal["stop", "skip"] = "stop"
    """What happens when a file cannot be read: stop the run, or read the others and make it one dead letter."""
    only_new: Bool = False
    """Read only the files that no run before this one read: those that published what they made of them."""

    def check(self) -> Iterator[Finding]:
        if self.take_first is not None and self.take_last is not None:
            see = (("take_first",), "and here the first")
            message = "'take_first' and 'take_last' cannot both be given"
            yield Finding("E218", message, ("take_last",), "keep one of them", on_key=True, see=see)


class OnUnmapped(Model):
    """What happens to columns of the file that the schema does not name."""

    mode: Literal["auto_widen", "drop", "reject"] = "auto_widen"
    """Carry them along to the output, leave them out, or fail."""


def read_mode(value: Any) -> Any:
    """`on_unmapped: drop` as `on_unmapped: { mode: drop }`."""
    return {"mode": value} if isinstance(value, str) else value


MODES = {"type": "string", "enum": ["auto_widen", "drop", "reject"]}


class Watermark(Model):
    """The time of an event, for windows over time."""

    column: Words
    """The column with the time: a date or a date_time."""
    delay: Duration | None = None
    """How late a record may come."""
    idle_timeout: Duration | None = None
    """After this time without records, the source no longer holds up the others. A run of files waits for all."""
