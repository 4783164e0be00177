"""When a silent source speaks in the name of the others."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from clinker_spark.plan.prepare import prepare
from clinker_spark.plan.streams import StreamQuery, queries
from clinker_spark.streaming.watch.beats import Idleness, flush_beat

PIPELINE = """\
pipeline: { name: p }
nodes:
  - { type: source, name: a, config: { type: csv, glob: a.csv, watermark: { column: at, delay: 10s },
      schema: { k: string, at: date_time } } }
  - { type: source, name: b, config: { type: csv, glob: b.csv, watermark: { column: at, delay: 1s, idle_timeout: 1m },
      schema: { k: string, at: date_time } } }
  - { type: stream_join, name: j, input: { left: a, right: b },
      config: { left_keys: k, right_keys: k, time_window: 5s, late_rule: window } }
  - { type: output, name: out, input: j, config: { type: csv, path: out/ } }
"""


def query(folder: Path) -> StreamQuery:
    (folder / "p.yaml").write_text(PIPELINE)
    (found,) = queries(prepare(folder / "p.yaml"))
    return found


def test_a_source_speaks_when_it_has_been_silent_for_its_time(tmp_path: Path) -> None:
    now = 0.0
    idle = Idleness(query(tmp_path), clock=lambda: now)
    assert idle.beats() == {}
    idle.note("a", 100_000)
    now = 59.9
    idle.note("a", 90_000)  # out of order: the newest time stays
    assert idle.beats() == {}
    now = 60.0
    # The watermark of a is 100 s less 10 s and the window; that of b has to be the same.
    assert idle.beats() == {"b": 91_000}
    idle.note("b", 50_000)
    assert idle.beats() == {}
    now = 120.0
    assert idle.beats() == {"b": 91_000}


def test_nobody_speaks_for_a_source_that_was_never_heard(tmp_path: Path) -> None:
    now = 0.0
    idle = Idleness(query(tmp_path), clock=lambda: now)
    now = 100.0
    assert idle.beats() == {}


def test_a_flush_passes_everything_that_waits(tmp_path: Path) -> None:
    found = query(tmp_path)
    assert found.lag == dt.timedelta(seconds=5)
    # What waits until the watermark is 5 s later, which stays behind by 10 s and the window.
    assert flush_beat(found, 1_000) == 1_000 + 5_000 + 15_000 + 2


def test_each_join_of_a_chain_is_a_millisecond_behind_the_one_before(tmp_path: Path) -> None:
    """Without it, the newest record of all stayed in the last join (made-up pipeline 14)."""
    chain = PIPELINE.replace(
        "  - { type: output, name: out, input: j,",
        "  - { type: stream_join, name: j2, input: { left: j, right: b },\n"
        "      config: { left_keys: left_k, right_keys: k, time_window: 1s, left_prefix: '', right_prefix: z_ } }\n"
        "  - { type: output, name: out, input: j2,",
    )
    (tmp_path / "p.yaml").write_text(chain)
    (found,) = queries(prepare(tmp_path / "p.yaml"))
    assert flush_beat(found, 1_000) == 1_000 + 6_000 + 15_000 + 3
