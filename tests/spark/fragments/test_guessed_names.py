"""Undeclared names of JSON lines are looked for in a few places; the job sees all records, and begins again where that
was too little. Whatever stands where: the bytes are those of Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.formats import JsonRead
from clinker_spark.spark.scan.json import names, source
from clinker_spark.spark.scan.request import SourceFile, Unforeseen
from tests.spark.fragments.engines import both_engines, sizes
from tests.support.read_requests import read_request

PIPELINE = """
pipeline: { name: p, engine: ENGINE }
nodes:
  - type: source
    name: s
    config:
      { type: json, glob: "in*.json", options: { format: ndjson }, schema: { id: int, name: string } }
  - { type: transform, name: t, input: s, config: { cxl: "filter id != 3\\nemit part = 100 / (id - 7)" } }
  - { type: output, name: out, input: t, config: { type: csv, path: out.txt } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""
Changed = dict[int, Any]
CASES: dict[str, tuple[list[Changed], str]] = {
    "nothing else": ([{}], "holds"),
    "one at the beginning": ([{1: {"more": 1}}], "holds"),
    "one that no glance sees": ([{433: {"more": [1, 2.5]}}], "wrong"),
    "one beside a line that is none": ([{432: "{", 433: {"more": None}}], "wrong"),
    "one inside of another": ([{1: {"a": 1}, 433: {"b": {"c": 1}}}], "wrong"),
    "one that is null, and an object later": ([{1: {"a": None}, 433: {"a": {"b": 1}}}], "wrong"),
    "one that is an object, and a value later": ([{1: {"a": None}, 2: {"a": {"b": 1}}, 433: {"a": 2}}], "wrong"),
    "an object that is null elsewhere": ([{1: {"a": {"b": 1}}, 433: {"a": None}}], "holds"),
    "one that a glance sees": ([{i: {"more": i} for i in range(100, 500)}], "none"),
    "one in a broken line": ([{433: '{"id": 433, "more": 1, "x'}], "wrong"),
    "a later file": ([{433: {"b": 1}}, {1: {"a": 1}, 2: {"b": 1}}], "wrong"),
}
"""What stands in some lines of files; and what becomes of the guess: it holds, a worker sees that it does not, or there
is none as the glance says too little."""


def _files(folder: Path, case: str) -> list[Path]:
    found = []
    for i, changed in enumerate(CASES[case][0]):
        lines = []
        for number in range(600):
            other = changed.get(number, {})
            whole = json.dumps({"id": number, "name": f"name {number}", **({} if isinstance(other, str) else other)})
            lines.append(other if isinstance(other, str) else whole)
        found.append(folder / f"in{i}.json")
        found[-1].write_text("\n".join(lines) + "\n")
    return found


@pytest.fixture(autouse=True)
def _short_glances(monkeypatch: Any) -> None:
    monkeypatch.setattr(source, "READ_WHOLE", 0)
    for name, value in {"_BEGINNING": 800, "_SAMPLE": 100, "_SAMPLES": 4}.items():
        monkeypatch.setattr(names, name, value)
    monkeypatch.setattr(source.json_plan, "__kwdefaults__", {"target": 2_000, "smallest": 1, "piece": 500})


@pytest.mark.parametrize("case", CASES)
def test_names_are_those_of_all_records_or_somebody_says_so(case: str, tmp_path: Path) -> None:
    files = tuple(SourceFile(str(path), path.name) for path in _files(tmp_path, case))
    columns = (Column(name="id", type="int"), Column(name="name", type="nullable(string)"))
    request = read_request(files, columns, JsonRead(format="ndjson"))
    guessed = source.json_plan(replace(request, guess=True), parallelism=2)
    known = source.json_plan(request, parallelism=2)
    assert known.reader.foreseen == ()
    found = "none"
    if guessed.reader.foreseen:
        try:
            for split in guessed.splits:
                list(guessed.reader.rows(guessed, split))
            found = "holds"
        except Unforeseen:
            found = "wrong"
    assert found == CASES[case][1]
    assert found == "wrong" or guessed.widened == known.widened


@pytest.mark.parametrize(("case", "looks"), [("nothing else", [True, False]), ("a later file", [True, False, False])])
def test_the_bytes_are_those_of_spark(
    case: str, looks: list[bool], tmp_path: Path, spark: Any, monkeypatch: Any
) -> None:
    found: list[bool] = []
    undeclared = source._undeclared

    def looked_up(request: Any, *rest: Any) -> Any:
        found.append(request.guess)
        return undeclared(request, *rest)

    monkeypatch.setattr(source, "_undeclared", looked_up)
    with sizes(spark, monkeypatch, small=False):
        both_engines(spark, tmp_path, lambda folder: _files(folder, case) and None, PIPELINE)
    assert found[found.index(True) :] == looks  # the last time for the letters
