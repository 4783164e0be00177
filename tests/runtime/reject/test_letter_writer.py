"""The store of letters and where they go, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.reject.letter_writer import letter_files
from clinker_spark.runtime.reject.saved_letters import Saved, save_table
from clinker_spark.spark.rejects.letters import LetterCount

SCHEMA = pa.schema(
    [
        *(("source", pa.int32()), ("file", pa.int32()), ("row", pa.int64()), ("stage", pa.int32())),
        *((name, pa.string()) for name in ("category", "field", "message")),
        ("tie", pa.list_(pa.int64())),
        ("trigger", pa.bool_()),
    ]
)
PIPELINE = """
pipeline: {{ name: p }}
nodes:
  - {{ type: source, name: a, config: {{ type: csv, path: a.csv, schema: [{{ name: id, type: int }}] }} }}
  - {{ type: source, name: b, config: {{ type: csv, path: b.csv, schema: [{{ name: id, type: int }}] }} }}
  - {{ type: output, name: x, input: a, config: {{ type: csv, path: x.csv }} }}
  - {{ type: output, name: y, input: b, config: {{ type: csv, path: y.csv }} }}
error_handling: {{ strategy: continue, dlq: {dlq} }}
"""


def planned(folder: Path, dlq: str) -> Plan:
    path = folder / "p.yaml"
    path.write_text(PIPELINE.format(dlq=dlq))
    return prepare(path)


def saved(folder: Path, *rows: dict[str, Any]) -> Saved:
    usual = dict.fromkeys(SCHEMA.names) | {"stage": 0, "category": "c", "message": "m", "tie": [], "trigger": True}
    nobody: Any = None
    return save_table(pa.Table.from_pylist([usual | row for row in rows], SCHEMA), folder / "letters", nobody)


@pytest.mark.parametrize(
    ("dlq", "files"),
    [
        ("{ path: all.csv }", [("all.csv", (), True, 6)]),
        (
            "{ path: all.csv, per_source: { b: { path: b.csv } } }",
            [("b.csv", (1,), False, 2), ("all.csv", (1,), True, 4)],
        ),
        ("{ path: all.csv, per_source: { a: { max_rate: 0.9 } } }", [("all.csv", (), True, 6)]),
    ],
)
def test_sources_may_have_files_of_their_own(tmp_path: Path, dlq: str, files: list[Any]) -> None:
    counts = [LetterCount(0, 0, "c", 1), LetterCount(1, 1, "c", 2), LetterCount(None, 2, "c", 3)]
    found = letter_files(planned(tmp_path, dlq), counts)
    assert [(f.path, f.sources, f.others, sum(c.count for c in f.counts)) for f in found] == files


def test_no_file_without_letters(tmp_path: Path) -> None:
    plan = planned(tmp_path, "{ path: all.csv, per_source: { b: { path: b.csv } } }")
    assert [file.path for file in letter_files(plan, [LetterCount(1, 1, "c", 2)])] == ["b.csv"]


def test_the_order_of_letters(tmp_path: Path) -> None:
    places = [(None, None, None, 3, []), (1, 0, 1, 0, []), (0, 1, 1, 2, [2]), (0, 1, 1, 2, [1, 5]), (0, 0, 9, 0, [])]
    rows = [dict(zip(("source", "file", "row", "stage", "tie"), place, strict=True)) for place in places]
    letters = saved(tmp_path, *({**row, "message": str(i)} for i, row in enumerate(rows)))
    assert letters.in_order("message")["message"].to_pylist() == ["4", "3", "2", "1", "0"]
    assert letters.first()["message"] == "4"


def test_the_first_letter_of_a_category(tmp_path: Path) -> None:
    made = {"source": None, "category": "miss", "message": "made"}
    rows = [made, {"source": 0, "file": 0, "row": 1}, {"source": 0, "file": 0, "row": 2, "category": "miss"}]
    letters = saved(tmp_path, *rows)
    assert letters.first("miss")["row"] == 2
    assert [(c.source, c.category, c.count) for c in letters.counts()] == [
        (0, "c", 1),
        (0, "miss", 1),
        (None, "miss", 1),
    ]
