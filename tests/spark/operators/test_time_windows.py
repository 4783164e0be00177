"""Aggregates with windows over time."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain import explain
from clinker_spark.runtime.reject.replay import replay_plan
from clinker_spark.spark.scan.csv import source as csv_source
from tests.support.sessions import quick

HEAD = """
pipeline: { name: test }
nodes:
  - type: source
    name: a
    config: { path: a.csv, type: csv, watermark: { column: at }, schema: SCHEMA }
  - type: source
    name: b
    config:
      type: csv
      path: b.csv
      watermark: { column: at, delay: 5s }
      schema: SCHEMA
  - { type: merge, name: both, inputs: [b, late] }
  - { type: transform, name: late, input: a, config: { cxl: "emit at = null" } }
""".replace("SCHEMA", "{ user: string, at: nullable(date_time), v: int }")
A = """user,at,v
u2,2026-01-01T10:30:00,7
u1,2026-01-01T10:05:00,10
u1,2026-01-01T11:10:00,15
u1,2026-01-01T10:42:00,20
u2,1969-12-31T23:59:59.5,1
u2,,100
u10,2026-01-01T11:00:00,x
"""
B = "user,at,v\nu1,2026-01-01T10:05:05,1\nu10,2026-01-01T10:00:00,2\nu1,2026-01-01T10:52:05,3\n"
TAIL = "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"


def windows(name: str, reads: str, window: str, more: str = "") -> str:
    return f"""
  - type: aggregate
    name: {name}
    input: {reads}
    config:
      group_by: [user]
      time_window: {{ {window} }}
      {more}
      cxl: |
        emit total = sum(v)
        emit n = count(*)
        filter v != 99
  - {{ type: output, name: {name}_out, input: {name}, config: {{ type: csv, path: {name}.csv }} }}
"""


def test_windows_follow_each_other_overlap_and_last_as_long_as_records_come(bench: Any) -> None:
    bench.file("a.csv", A)
    bench.file("b.csv", B)
    report = bench.run(
        HEAD
        + windows("tumbling", "a", "tumbling: { size: 1h }", "allowed_lateness: 5m")
        + windows("hopping", "a", "hopping: { size: 1h, slide: 30m }")
        + windows("sessions", "both", "session: { gap: 10m }")
        + TAIL
    )
    assert report.dead_letters == 1
    # By start, then by first appearance; the record before 1970 is in the hour before it, that without a time in none.
    assert bench.text("tumbling.csv") == "user,total,n\nu2,1,1\nu2,7,1\nu1,30,2\nu1,15,1\n"
    assert bench.text("hopping.csv").splitlines()[1:] == [
        "u2,1,1",
        "u2,1,1",
        "u1,10,1",
        "u2,7,1",
        "u1,30,2",
        "u2,7,1",
        "u1,35,2",
        "u1,15,1",
    ]
    # The delay puts u1 of b at 10:05 exactly; 10:42 and 10:52 are ten minutes apart, which is not more than the gap.
    # u10 comes before u2: keys sort as texts. A column that is rewritten later is not the time of the record.
    assert bench.text("sessions.csv").splitlines()[1:] == [
        "u1,11,2",
        "u1,23,2",
        "u1,15,1",
        "u10,2,1",
        "u2,1,1",
        "u2,7,1",
    ]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ((", watermark: { column: at }", ""), "E156"),
        (("input: a\n    config:\n      group_by", "input: n\n    config:\n      group_by"), "E156"),
        (("size: 1h", "size: 30d, slide: 1ms"), "E007"),
        (("time_window", "strategy: streaming\n      time_window"), "E451"),
    ],
)
def test_what_windows_need(tmp_path: Any, change: tuple[str, str], code: str) -> None:
    total = '\n  - { type: aggregate, name: n, input: a, config: { group_by: [user], cxl: "emit v = sum(v)" } }\n'
    kind = "hopping" if "slide" in change[1] else "tumbling"
    text = (HEAD + total + windows("w", "a", f"{kind}: {{ size: 1h }}") + TAIL).replace(*change)
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    [found] = caught.value.diagnostics
    assert found.code == code and found.help and found.span


def test_the_plan_shows_the_windows(tmp_path: Any) -> None:
    text = HEAD + windows("w", "a", "hopping: { size: 1h, slide: 5m }") + TAIL
    (tmp_path / "p.yaml").write_text(text)
    plan = prepare(tmp_path / "p.yaml")
    assert "windows: hopping, size 1:00:00, slide 0:05:00" in explain(plan, "text")
    assert replay_plan(plan)["b"].config.watermark == plan["b"].config.watermark  # replayed records have a time, too


# ---------------------------------------------------------------- generated records, against a model

EPOCH = dt.datetime(1970, 1, 1)
MINUTE = dt.timedelta(minutes=1)
DELAY = 90 * MINUTE / 60
KINDS = {
    "tumbling": ("tumbling: { size: 1h }", 60, 60),
    "overlapping": ("hopping: { size: 1h, slide: 25m }", 60, 25),
    "gaps": ("hopping: { size: 20m, slide: 1h }", 20, 60),
    "sessions": ("session: { gap: 15m }", 15, 0),
}
Row = tuple[int, str, dt.datetime | None]


def generated(cases: int) -> list[Row]:
    """Records of many users, mixed: with equal times and without one, before 1970, at the ends of windows."""
    rng = random.Random(18)
    rows: list[tuple[str, dt.datetime | None]] = []
    for case in range(cases):
        base = rng.choice([-300, 0, 600])
        for _ in range(rng.randrange(1, 9)):
            minutes = base + rng.choice([0, 5, 15, 16, 25, 60, 61, 75, 120, rng.randrange(300)])
            shift = rng.choice([dt.timedelta(0), DELAY, dt.timedelta(microseconds=1), -dt.timedelta(microseconds=1)])
            rows.append((f"u{case}", None if rng.random() < 0.06 else EPOCH + minutes * MINUTE + shift))
    rng.shuffle(rows)
    return [(i, user, at) for i, (user, at) in enumerate(rows)]


def model(rows: list[Row], size: int, slide: int) -> Iterator[tuple[dt.datetime, str, list[int]]]:
    """Windows by their definition, each with its records in order of arrival. Sessions have a gap and no slide."""
    timed = [(i, user, at - DELAY) for i, user, at in rows if at is not None]
    for user in dict.fromkeys(user for _, user, _ in timed):
        mine = [(at, i) for i, name, at in timed if name == user]
        if not slide:
            mine.sort()
            ends = [n for n, ((a, _), (b, _)) in enumerate(itertools.pairwise(mine), 1) if b - a > size * MINUTE]
            for first, last in itertools.pairwise([0, *ends, len(mine)]):
                session = mine[first:last]
                yield session[0][0], user, sorted(i for _, i in session)
            continue
        lowest, highest = min(mine)[0] - size * MINUTE, max(mine)[0]
        step = (lowest - EPOCH) // (slide * MINUTE)
        while (start := EPOCH + step * slide * MINUTE) <= highest:
            if found := [i for at, i in mine if start <= at < start + size * MINUTE]:
                yield start, user, found
            step += 1


@pytest.mark.parametrize("pieces", range(1, 8) if os.environ.get("CLINKER_CASES") == "all" else (1, 7))
def test_windows_hold_what_the_model_says(bench: Any, pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All records count, however late they come; and windows leave in the order of their times."""
    rows = generated(300)
    bench.file("a.csv", "id,user,at\n" + "".join(f"{i},{u},{'' if t is None else t.isoformat()}\n" for i, u, t in rows))
    text = """
pipeline: { name: test }
nodes:
  - type: source
    name: a
    config:
      type: csv
      path: a.csv
      watermark: { column: at, delay: 90s }
      schema: { id: int, user: string, at: nullable(date_time) }
"""
    for name, (window, _, _) in KINDS.items():
        program = 'emit n = count(*)\n        emit ids = collect(id.to_string()).join(";")'
        text += windows(name, "a", window).replace("emit total = sum(v)\n        emit n = count(*)", program)
    if pieces > 1:
        bench.spark = quick(bench.spark)
        bench.spark.conf.set("spark.sql.shuffle.partitions", str(pieces))
        defaults: Any = csv_source.read_csv.__kwdefaults__
        monkeypatch.setitem(defaults, "smallest", 1)
        monkeypatch.setitem(defaults, "target", 3000)
    report = bench.run(text.replace("        filter v != 99\n", ""))
    assert report.dead_letters == 0
    for name, (_, size, slide) in KINDS.items():
        expected = list(model(rows, size, slide))
        # By start, then by first appearance; sessions by user.
        expected.sort(key=lambda w: (w[1], w[0]) if name == "sessions" else (w[0], w[2][0]))
        lines = [f"{u},{len(ids)},{';'.join(map(str, ids))}" for _, u, ids in expected]
        assert bench.text(f"{name}.csv").splitlines()[1:] == lines, name
