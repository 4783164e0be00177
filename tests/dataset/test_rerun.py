"""The original as a third voice, where it is installed: `CLINKER_RERUN` is a Python with rerun-sdk[catalog]==0.41.0."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.dataset.selection import Query
from tests.dataset.model import Event, recorded, rows_of

PYTHON = os.environ.get("CLINKER_RERUN")
pytestmark = pytest.mark.skipif(not PYTHON, reason="CLINKER_RERUN names no Python with rerun-sdk")
PROGRAM = """
import json, os, sys
import numpy as np
import rerun as rr
folder = sys.argv[1]
asked = json.load(open(os.path.join(folder, "asked.json")))
recordings = {}
for event in asked["events"]:
    segment = event["segment"]
    if segment not in recordings:
        recordings[segment] = rr.RecordingStream("test", recording_id=segment, send_properties=False)
        recordings[segment].save(os.path.join(folder, segment + ".rrd"))
    stream = recordings[segment]
    stream.reset_time()
    for name, value in event["indexes"].items():
        stream.set_time(name, sequence=value)
    values = {name: np.array(value, dtype=np.int64) for name, value in event["components"].items()}
    stream.log(event["entity"], rr.AnyValues(**values), static=not event["indexes"])
paths = []
for segment, stream in recordings.items():
    stream.flush()
    paths.append(os.path.join(folder, segment + ".rrd"))
recordings.clear()
stream = None
found = []
with rr.server.Server(host="127.0.0.1", datasets={"ds": paths}) as server:
    dataset = server.client().get_dataset("ds")
    for query in asked["queries"]:
        values = query["values"]
        frame = dataset.reader(index=query["index"], fill_latest_at=query["fill"],
                               using_index_values=None if values is None else np.array(values, dtype=np.int64))
        rows = [row for batch in frame.execute_stream() for row in batch.to_pyarrow().to_pylist()]
        rows.sort(key=lambda row: (row["rerun_segment_id"], row[query["index"]]))
        for row in rows:
            row["segment"] = row.pop("rerun_segment_id")
            row.pop("log_time", None), row.pop("log_tick", None)
        found.append(rows)
print(json.dumps(found))
"""


@pytest.mark.parametrize("seed", range(6))
def test_the_original_gives_the_same_rows(tmp_path: Path, seed: int) -> None:
    """Values are lists there. Filters and clears, in which it is wrong, are left alone, and empty lists, which its
    `log` does not take from here (the tables of `test_semantics` have one)."""
    chance = random.Random(seed)
    events = []
    for _ in range(60):
        indexes = chance.choice([{"frame": 1}, {"frame": 1}, {"frame": 1, "other": 1}, {"other": 1}])
        size = chance.choice([1, 1, 1, 2])
        values = [chance.randint(0, 99) for _ in range(size)]
        name = chance.choice(["v", "w"])
        entity = chance.choice(["/a", "/a/b", "/c"])
        at = {index: chance.randint(0, 20) for index in indexes}
        events.append(Event(chance.choice(["s1", "s2"]), entity, at, {name: values}))
    events.append(Event("s1", "/c", {}, {"w": [7]}))
    events.append(Event("s2", "/still", {}, {"v": [8]}))
    queries: list[dict[str, Any]] = [
        {"index": index, "fill": fill, "values": values}
        for index in ("frame", "other")
        for fill in (False, True)
        for values in (None, [0, 3, 4, 9, 19, 30])
    ]
    asked = {"events": [vars(event) for event in events], "queries": queries}
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    assert PYTHON is not None
    done = subprocess.run([PYTHON, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout.strip().splitlines()[-1])
    dataset = recorded(tmp_path, events, ("frame", "other"))
    for query, expected in zip(queries, theirs, strict=True):
        ours = rows_of(dataset, Query(query["index"], fill=query["fill"], values=query["values"]))
        assert ours == [{name: row.get(name) for name in ours[0]} for row in expected], query
        assert {name for row in expected for name in row} <= set(ours[0]), query
