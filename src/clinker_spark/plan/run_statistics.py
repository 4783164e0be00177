"""What the last run of a pipeline found out about its data: for the next plan of the same file.

It is a small JSON file in the user's cache folder. Without it, or when it cannot be read, plans are made from the
sizes of files alone; what a run gives out never depends on it.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MOST_SHOWN = 3


@dataclass(frozen=True)
class Sketch:
    """About the keys of an input that was looked up. `heavy` pairs values with how often they came, at least."""

    distinct: int | None
    heavy: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class RunStatistics:
    """The records of each source, and the keys of the inputs of combines (`combine/input/column`)."""

    rows: dict[str, int] = field(default_factory=dict)
    keys: dict[str, Sketch] = field(default_factory=dict)


def statistics_file(pipeline: Path) -> Path:
    """Where it is kept."""
    folder = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    name = hashlib.sha256(str(pipeline.absolute()).encode()).hexdigest()[:24]
    return Path(folder).expanduser() / "clinker" / "statistics" / f"{name}.json"


def recall(pipeline: Path) -> RunStatistics:
    """What is known from the last run; nothing when there was none."""
    try:
        data: Any = json.loads(statistics_file(pipeline).read_text(encoding="utf-8"))
        keys = {
            str(name): Sketch(item["distinct"], tuple((str(value), int(count)) for value, count in item["heavy"]))
            for name, item in data["keys"].items()
        }
        return RunStatistics({str(name): int(count) for name, count in data["rows"].items()}, keys)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError):
        return RunStatistics()


def encoded(found: RunStatistics) -> bytes:
    """What is kept for the next run."""
    return json.dumps(asdict(found), ensure_ascii=False).encode()
