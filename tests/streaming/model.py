"""Stream joins in plain Python, and events that try their edges."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

START = dt.datetime(2026, 1, 1, 10)
MS = dt.timedelta(milliseconds=1)
Pair = tuple[int | None, int | None]


@dataclass(frozen=True)
class Event:
    """A record: who it is, what it is joined by, and when it happened."""

    id: int
    key: str | None
    at: dt.datetime
    n: int = 0

    def line(self) -> str:
        record = {"id": self.id, "k": self.key, "at": self.at.isoformat(timespec="milliseconds"), "n": self.n}
        return json.dumps(record) + "\n"


def joined(
    left: Sequence[Event],
    right: Sequence[Event],
    kind: str,
    least: dt.timedelta,
    most: dt.timedelta,
    where: Callable[[Event, Event], bool] = lambda a, b: True,
) -> Counter[Pair]:
    """What comes out, by the ids of both records."""
    found: Counter[Pair] = Counter()
    matched: set[tuple[str, int]] = set()
    for a in left:
        for b in right:
            if a.key is not None and a.key == b.key and least <= b.at - a.at <= most and where(a, b):
                found[a.id, b.id] += 1
                matched |= {("left", a.id), ("right", b.id)}
    if kind in ("left", "full"):
        found.update((a.id, None) for a in left if ("left", a.id) not in matched)
    if kind in ("right", "full"):
        found.update((None, b.id) for b in right if ("right", b.id) not in matched)
    return found


def events(seed: int, count: int, edges: Sequence[dt.timedelta]) -> tuple[list[Event], list[Event]]:
    """Two sides with ties, nulls, several records of one key at one moment, and right records that lie exactly at
    `edges` from left ones."""
    rng = random.Random(seed)
    left: list[Event] = []
    right: list[Event] = []
    keys = [*"abcde", None]
    for i in range(count):
        at = START + rng.randrange(0, 60_000) * MS
        key = rng.choice(keys)
        left.append(Event(i, key, at, rng.randrange(10)))
        for edge in rng.sample(list(edges), 2):
            right.append(
                Event(len(right), key if rng.random() < 0.8 else rng.choice(keys), at + edge, rng.randrange(10))
            )
        if rng.random() < 0.2:  # twice, in all but its id
            left.append(Event(count + i, key, at, rng.randrange(10)))
    return left, right


def arrivals(seed: int, side: Sequence[Event], delay: dt.timedelta) -> list[Event]:
    """The order in which they come: none is older than the newest one before it by more than the delay."""
    rng = random.Random(seed)
    return sorted(side, key=lambda e: e.at + rng.randrange(0, delay // MS + 1) * MS)


def write_files(folder: Path, side: Sequence[Event], files: int) -> None:
    """In the order given, cut into files."""
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-len(side) // files)
    for i in range(files):
        text = "".join(event.line() for event in side[i * size : (i + 1) * size])
        (folder / f"{i:04}.jsonl").write_text(text)


def read_pairs(paths: Sequence[Path]) -> dict[int, Counter[Pair]]:
    """The pairs in files of lines, by their case."""
    found: dict[int, Counter[Pair]] = defaultdict(Counter)
    for path in paths:
        for line in path.read_text().splitlines():
            record = json.loads(line)
            found[record.get("case", 0)][record.get("left_id"), record.get("right_id")] += 1
    return found
