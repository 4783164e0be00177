"""The system variables: namespaces, their members and types, and the context that gives them values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.core.types import BOOL, DATETIME, INT, STRING, Type

PIPELINE_MEMBERS: Mapping[str, Type] = {
    "name": STRING,
    "execution_id": STRING,
    "batch_id": STRING,
    "start_time": DATETIME,
}
# Running totals have no meaning in a parallel run; reading one is a compile-time error.
RUNNING_TOTALS = ("total_count", "ok_count", "dlq_count", "filtered_count", "distinct_count")

SOURCE_MEMBERS: Mapping[str, Type] = {
    "file": STRING,
    "row": INT,
    "path": STRING,
    "count": INT.as_nullable(),
    "batch": STRING.as_nullable(),
    "ingestion_timestamp": DATETIME,
    "name": STRING,
}

META_MEMBERS: Mapping[str, Type] = {"synthetic": BOOL, "synthesized_by": STRING, "mutated_by": STRING}
"""What a reshape says about each of its records."""

SCOPES = ("pipeline", "source", "record")
NAMESPACES = ("pipeline", "source", "record", "vars", "config", "doc", "meta", "window")

_EPOCH = dt.datetime(1970, 1, 1)
_ZERO_UUID = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class Context:
    """The values of one evaluation. `now` is the run's start time, the same for every record (naive UTC)."""

    now: dt.datetime = _EPOCH
    pipeline: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)
    vars: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    doc: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)

    def get(self, namespace: str, path: tuple[str, ...]) -> Any:
        """The value of a system variable; null when it has none yet."""
        if namespace == "now":
            return self.now
        value: Any = getattr(self, namespace)
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        return value


def default_context(name: str = "<inline>", now: dt.datetime | None = None) -> Context:
    """What `cxl eval` and previews run with."""
    now = now or dt.datetime.now(dt.UTC).replace(tzinfo=None, microsecond=0)
    return Context(
        now=now,
        pipeline={"name": "cxl-eval", "execution_id": _ZERO_UUID, "batch_id": _ZERO_UUID, "start_time": now},
        source={"file": name, "path": name, "name": name, "row": 1, "ingestion_timestamp": now},
    )
