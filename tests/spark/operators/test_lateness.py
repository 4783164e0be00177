"""Late records, against a model that takes one record after the other."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections import Counter
from typing import Any

import pytest

from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain import explain
from clinker_spark.spark.scan.csv import source as csv_source
from tests.support.sessions import quick

EPOCH = dt.datetime(1970, 1, 1)
HOUR = dt.timedelta(hours=1)
HEAD = """
pipeline: { name: test }
nodes:
  - type: source
    name: a
    config: { path: a.csv, type: csv, watermark: { column: at }, schema: SCHEMA }
  - type: source
    name: b
    config: { path: b.csv, type: csv, watermark: { column: at, delay: 20m }, schema: SCHEMA }
  - { type: merge, name: both, inputs: [a, b] }
""".replace("SCHEMA", "{ id: int, user: string, at: nullable(date_time), v: int }")
TAIL = "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"
WINDOWS: dict[str, tuple[str, dict[str, dt.timedelta], dt.timedelta]] = {
    "tumbling": ("tumbling: { size: 1h }", {"size": HOUR}, dt.timedelta(0)),
    "hopping": ("hopping: { size: 1h, slide: 25m }", {"size": HOUR, "slide": HOUR * 25 / 60}, HOUR / 6),
    "gaps": ("hopping: { size: 20m, slide: 1h }", {"size": HOUR / 3, "slide": HOUR}, dt.timedelta(0)),
    "session": ("session: { gap: 15m }", {"gap": HOUR / 4}, HOUR / 2),
}


def pipeline(reads: str) -> str:
    text = HEAD
    for name, (window, _, lateness) in WINDOWS.items():
        allowed = f"allowed_lateness: {int(lateness.total_seconds())}s" if lateness else ""
        text += f"""
  - type: aggregate
    name: {name}
    input: {reads}
    config:
      group_by: [user]
      time_window: {{ {window}, late: dead_letter }}
      {allowed}
      cxl: |
        emit n = count(*)
        emit total = sum(10 / v)
        emit ids = collect(id.to_string()).join(";")
  - {{ type: output, name: {name}_out, input: {name}, config: {{ type: csv, path: {name}.csv }} }}
"""
    return text + TAIL


def generated(seed: int, count: int) -> list[dict[str, Any]]:
    """Times that go on, with some that lie behind; some null, some records that cannot be added up."""
    rng = random.Random(seed)
    rows = []
    for i in range(count):
        at = EPOCH + dt.timedelta(minutes=4 * i - rng.choice([0, 0, 0, 5, 45, 90, 200]))
        rows.append(
            {
                "id": 1000 * seed + i,
                "user": rng.choice(["u", "w"]),
                "at": None if rng.random() < 0.05 else at,
                "v": 0 if rng.random() < 0.05 else 1,
            }
        )
    return rows


def model(streams: dict[str, list[dict[str, Any]]], name: str) -> tuple[Counter[tuple[Any, ...]], list[int]]:
    """The records of each window, and those that are late, in the order of arrival."""
    _, spec, lateness = WINDOWS[name]
    latest: dict[str, dt.datetime] = {}
    windows: dict[tuple[Any, ...], list[int]] = {}
    kept: list[tuple[str, dt.datetime, int]] = []
    late = []
    for source, rows in streams.items():
        for row in rows:
            if row["v"] == 0 or row["at"] is None:  # fails, or is in no window
                continue
            at = row["at"] - (HOUR / 3 if source == "b" else dt.timedelta(0))
            mark = min(latest.values()) if len(latest) == len(streams) else None
            closed = lambda end, mark=mark: mark is not None and end + lateness <= mark  # noqa: E731
            if name == "session":
                if closed(at + spec["gap"]):
                    late.append(row["id"])
                    continue
                kept.append((row["user"], at, row["id"]))
            else:
                step = spec.get("slide", spec["size"])
                start = EPOCH + (at - EPOCH) // step * step
                starts = []
                while start + spec["size"] > at:
                    starts.append(start)
                    start -= step
                still = [s for s in starts if not closed(s + spec["size"])]
                if starts and not still:
                    late.append(row["id"])
                    continue
                for s in still:
                    windows.setdefault((row["user"], s), []).append(row["id"])
            latest[source] = max(at, latest.get(source, at))
    if name == "session":
        before: dict[str, tuple[dt.datetime, tuple[Any, ...]]] = {}
        for user, at, number in sorted(kept, key=lambda k: k[1]):
            key = (user, at)
            if user in before and at - before[user][0] <= spec["gap"]:
                key = before[user][1]
            before[user] = (at, key)
            windows.setdefault(key, []).append(number)
    return Counter((key[0], len(ids), ";".join(map(str, sorted(ids)))) for key, ids in windows.items()), late


CASES = [("a", 1), ("both", 1), ("both", 7)]
if os.environ.get("CLINKER_CASES") == "all":
    CASES = [(reads, pieces) for reads in ("a", "both") for pieces in range(1, 8)]


@pytest.mark.parametrize(("reads", "pieces"), CASES)
def test_what_is_late_is_what_the_model_says(
    bench: Any, reads: str, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = {"a": generated(1, 60)} | ({"b": generated(2, 60)} if reads == "both" else {})
    for name in ("a", "b"):
        lines = [
            f"{r['id']},{r['user']},{'' if r['at'] is None else r['at'].isoformat()},{r['v']}\n"
            for r in streams.get(name, ())
        ]
        bench.file(f"{name}.csv", "id,user,at,v\n" + "".join(lines))
    if pieces > 1:
        bench.spark = quick(bench.spark)
        bench.spark.conf.set("spark.sql.shuffle.partitions", str(pieces))
        defaults: Any = csv_source.read_csv.__kwdefaults__
        monkeypatch.setitem(defaults, "smallest", 1)
        monkeypatch.setitem(defaults, "target", 300)
    report = bench.run(pipeline(reads))
    letters = bench.letters()
    assert report.dead_letters == len(letters)
    for name in WINDOWS:
        windows, late = model(streams, name)
        rows = [line.split(",") for line in bench.text(f"{name}.csv").splitlines()[1:]]
        found = Counter((user, int(n), ";".join(sorted(ids.split(";"), key=int))) for user, n, _, ids in rows)
        assert found == windows, name
        stage = f"time_window:{name}"
        said = [row for row in letters if row["_cxl_dlq_stage"] == stage]
        assert sorted(int(row["id"]) for row in said) == sorted(late), name
        assert all(row["_cxl_dlq_error_category"] == "late_record" for row in said)
        assert len(late) > 3 or name == "gaps"
    assert {letter.stage for letter in report.letters} >= {"time_window:tumbling", "aggregate:tumbling"}


def test_the_plan_says_what_is_late(tmp_path: Any) -> None:
    (tmp_path / "p.yaml").write_text(pipeline("both"))
    text = explain(prepare(tmp_path / "p.yaml"), "text")
    assert "late: a dead letter when the watermark has passed the end of the window, more than 0:10:00 ago" in text
    assert "watermark: the latest time so far, of a, b the least" in text


def test_lateness_has_no_effect_where_all_records_count(tmp_path: Any) -> None:
    text = pipeline("a").replace(", late: dead_letter", "")
    (tmp_path / "p.yaml").write_text(text)
    warnings = prepare(tmp_path / "p.yaml").file.warnings
    assert [(w.code, "allowed_lateness" in w.message) for w in warnings if w.code == "W027"] == [("W027", True)] * 2
