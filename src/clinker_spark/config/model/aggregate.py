"""`type: aggregate`: one record per group."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Literal

from clinker_spark.config.model.base import Finding, Model, without_effect
from clinker_spark.config.model.node import InputNode
from clinker_spark.config.values import Duration, Text, Words

MOST_WINDOWS = 10_000
"""That a record can be in: it is counted in each of them."""


class Tumbling(Model):
    """Windows that follow each other."""

    size: Duration
    """The length of a window."""


class Hopping(Model):
    """Windows that overlap."""

    size: Duration
    """The length of a window."""
    slide: Duration
    """The time from the start of one window to that of the next."""


class Session(Model):
    """Windows that last as long as records keep coming."""

    gap: Duration
    """The time without records that ends a window."""


class TimeWindow(Model):
    """Groups over time: one of tumbling, hopping and session."""

    tumbling: Tumbling | None = None
    hopping: Hopping | None = None
    session: Session | None = None
    late: Literal["keep", "dead_letter"] = "keep"
    """What becomes of a record that comes after its window was closed: it counts like others, since a run reads all
    records anyway; or it is a dead letter."""

    @property
    def window(self) -> Tumbling | Hopping | Session:
        """The one that is given."""
        found = self.tumbling or self.hopping or self.session
        assert found is not None
        return found

    def check(self) -> Iterator[Finding]:
        kinds = ("tumbling", "hopping", "session")
        given = [kind for kind in kinds if getattr(self, kind) is not None]
        if len(given) != 1:
            at = (given[1],) if given else ()
            help_text = "write one of tumbling: { size: 1h }, hopping: { size: 1h, slide: 5m }, session: { gap: 10m }"
            yield Finding(
                "E007", "a time window is exactly one of tumbling, hopping and session", at, help_text, on_key=True
            )
        for kind in given:
            model = getattr(self, kind)
            for key in type(model).model_fields:
                if getattr(model, key) <= dt.timedelta(0):
                    yield Finding("E214", f"'{key}' must not be 0", (kind, key), "write a duration such as 1h")
        if self.hopping is not None and self.hopping.slide * MOST_WINDOWS < self.hopping.size:
            message = f"a record would be in more than {MOST_WINDOWS:,} windows"
            yield Finding("E007", message, ("hopping", "slide"), "write a longer slide, or a shorter size")


class AggregateConfig(Model):
    """The groups, and what is computed for each."""

    group_by: tuple[Words, ...]
    """The columns whose values make a group; [] is one group of everything."""
    cxl: Text
    """The program: emits with sum, count, avg, min, max, collect, ..."""
    strategy: Literal["auto", "hash", "streaming"] = "auto"
    """How groups are found. streaming needs input that is sorted by the group."""
    documents: Literal["separate", "together"] | None = None
    """Whether each file has groups of its own. Without it, the files of one source are separate (glob, regex, paths),
    and those of merged sources with one file each are together."""
    time_window: TimeWindow | None = None
    """Groups over time as well."""
    allowed_lateness: Duration | None = None
    """How long after its end a window still takes records; of effect with late: dead_letter."""

    def check(self) -> Iterator[Finding]:
        seen: dict[str, int] = {}
        for i, name in enumerate(self.group_by):
            if name in seen:
                see = (("group_by", seen[name]), "first named here")
                yield Finding("E007", f"'{name}' is in 'group_by' twice", ("group_by", i), "remove one", see=see)
            seen.setdefault(name, i)
        if self.allowed_lateness is not None and self.time_window is None:
            help_text = "add 'time_window', or remove this"
            yield Finding(
                "E007", "'allowed_lateness' needs a 'time_window'", ("allowed_lateness",), help_text, on_key=True
            )
        elif self.time_window is not None and self.time_window.late == "keep":
            why = (
                "without late: dead_letter in 'time_window' no record is late in a run, and in a stream the 'delay' of "
                "the sources says how long a window takes records"
            )
            yield from without_effect(self, ("allowed_lateness",), why)


class AggregateNode(InputNode):
    """Makes one record of each group."""

    type: Literal["aggregate"]
    config: AggregateConfig
