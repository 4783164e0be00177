"""The original as a third voice, where it is installed, here or in the Python that `CLINKER_RERUN` names:
rerun-sdk[catalog]==0.41.0. Its recordings, imported, give the rows that it gives itself."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.dataset.files.manifest import Dataset
from clinker_spark.dataset.selection import Query
from clinker_spark.runtime.dataset.imports import import_events
from tests.dataset.model import Event, recorded, rows_of

HERE = importlib.util.find_spec("rerun") is not None
CATALOG = HERE and importlib.util.find_spec("datafusion") is not None
PYTHON = os.environ.get("CLINKER_RERUN") or (sys.executable if CATALOG else None)
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


SEEDS = 6 if os.environ.get("CLINKER_CASES") == "all" else 2


@pytest.mark.skipif(not PYTHON, reason="rerun-sdk[catalog] is not installed")
@pytest.mark.parametrize("seed", range(SEEDS))
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
    asked_of = [dataset]
    if HERE:
        place = str(tmp_path / "recordings")
        import_events(place, [str(path) for path in sorted(tmp_path.glob("*.rrd"))])
        asked_of.append(Dataset.open(place))
    for (query, expected), dataset in itertools.product(zip(queries, theirs, strict=True), asked_of):
        ours = rows_of(dataset, Query(query["index"], fill=query["fill"], values=query["values"]))
        for row in ours:  # the recording has these besides
            row.pop("log_time", None), row.pop("log_tick", None)
        assert ours == [{name: row.get(name) for name in ours[0]} for row in expected], query
        assert {name for row in expected for name in row} <= set(ours[0]), query
