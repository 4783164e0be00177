"""How many failures are too many, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.errors import DataError
from clinker_spark.runtime.reject import thresholds
from clinker_spark.spark.rejects.letters import LetterCount
from clinker_spark.spark.scan.files import SourceFile

PIPELINE = """
pipeline: {{ name: p }}
nodes:
  - {{ type: source, name: a, config: {{ type: csv, path: a.csv, schema: [{{ name: id, type: int }}] }} }}
  - {{ type: source, name: b, config: {{ type: csv, path: b.csv, schema: [{{ name: id, type: int }}] }} }}
  - {{ type: transform, name: t, input: a, config: {{ cxl: "emit x = 1 / id" }} }}
  - {{ type: output, name: x, input: t, config: {{ type: csv, path: x.csv }} }}
  - {{ type: output, name: y, input: b, config: {{ type: csv, path: y.csv }} }}
error_handling: {{ strategy: continue, {handling} }}
"""
RECORDS = {"a": 100, "b": 10}
LETTERS = [LetterCount(0, 0, "type_coercion_failure", 4), LetterCount(0, 2, "expression_error", 5)]
LETTERS += [LetterCount(1, 1, "type_coercion_failure", 2)]
FILES = {"a": (SourceFile("/d/a.csv", "a.csv"),), "b": (SourceFile("/d/b.csv", "b.csv"),)}


def planned(folder: Path, handling: str) -> Plan:
    path = folder / "p.yaml"
    path.write_text(PIPELINE.format(handling=handling))
    return prepare(path)


def records(source: str | None) -> int:
    return sum(RECORDS.values()) if source is None else RECORDS[source]


@pytest.mark.parametrize(
    ("handling", "codes"),
    [
        ("dlq: { path: d.csv }", []),
        ("dlq: { path: d.csv, max_rate: 0.11 }", []),
        ("dlq: { path: d.csv, max_rate: 0.1 }", ["E315"]),  # reached is too many
        ("dlq: { path: d.csv, max_rate: 0.1, min_records: 111 }", []),
        ("dlq: { path: d.csv, min_records: 5, per_source: { b: { max_rate: 0.2 }, a: { max_rate: 0.1 } } }", ["E316"]),
        ("dlq: { path: d.csv, min_records: 50, per_source: { b: { max_rate: 0.2 } } }", []),
        ("dlq: { path: d.csv, min_records: 50, per_source: { b: { max_rate: 0.2, min_records: 5 } } }", ["E316"]),
        ("dlq: { path: d.csv }, type_error_threshold: 0.06", []),
        ("dlq: { path: d.csv }, type_error_threshold: 0.05", ["E368"]),  # only what readers could not read
        ("dlq: { path: d.csv, max_rate: 0.01 }, type_error_threshold: 0.01", ["E315", "E368"]),
    ],
)
def test_rates(tmp_path: Path, handling: str, codes: list[str]) -> None:
    plan = planned(tmp_path, handling)
    if not codes:
        thresholds.check(plan, LETTERS, records)
        return
    with pytest.raises(DataError) as error:
        thresholds.check(plan, LETTERS, records)
    assert [found.code for found in error.value.diagnostics] == codes


def test_nothing_is_counted_that_nobody_asks_for(tmp_path: Path) -> None:
    def asked(source: str | None) -> int:
        raise AssertionError(source)

    thresholds.check(planned(tmp_path, "dlq: { path: d.csv }"), LETTERS, asked)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"source": 0, "file": 0, "row": 7, "field": "x"}, "a.csv, row 7: field 'x': no (11 records fail in all)"),
        ({"source": None, "file": None, "row": None, "field": None}, "no (11 records fail in all)"),
    ],
)
def test_the_first_failure_in_words(tmp_path: Path, row: dict[str, object], message: str) -> None:
    plan = planned(tmp_path, "dlq: { path: d.csv }")
    found = thresholds.first_failure(plan, {**row, "stage": 2, "message": "no"}, FILES, LETTERS)
    assert (found.code, found.message) == ("E409", message)
    assert thresholds.first_miss(plan, {**row, "stage": 2, "message": "no"}, FILES).code == "E319"
