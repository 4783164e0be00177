"""A pipeline run by both engines: everything that a user could see of it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.scan.csv import source as csv_source
from clinker_spark.spark.session.small_inputs import SETTING

Seen = tuple[dict[str, bytes], list[dict[str, str]], Any, Any, Any]
"""Files, dead letters, numbers of nodes, numbers of sources, balances."""


def letters(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return [
            {k: v for k, v in row.items() if k not in ("_cxl_dlq_id", "_cxl_dlq_timestamp")}
            for row in csv.DictReader(file)
        ]


@contextmanager
def sizes(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, small: bool, whole: bool = False, target: int = 4_000
) -> Iterator[None]:
    """CSV files are cut into splits of `target` bytes; `whole`: into one each; `small`: one task reads all of them."""
    before = spark.conf.get(SETTING, None)
    spark.conf.set(SETTING, str(4 << 20) if small else "0")
    target, smallest = (1 << 30, 1 << 30) if whole else (target, 1)
    monkeypatch.setattr(csv_source.read_csv, "__kwdefaults__", {"target": target, "smallest": smallest})
    try:
        yield
    finally:
        spark.conf.unset(SETTING) if before is None else spark.conf.set(SETTING, before)


def seen_with(spark: SparkSession, folder: Path, write: Callable[[Path], None], text: str, engine: str) -> Seen:
    """What a run of a pipeline gives, in a folder of its own with the files of `write`."""
    folder = folder / engine
    folder.mkdir()
    write(folder)
    given = {path.name for path in folder.iterdir()}
    (folder / "p.yaml").write_text(text.replace("ENGINE", engine))
    plan = prepare(folder / "p.yaml")
    flow = plan.facts.flow
    assert bool(flow.fragments or flow.totals) == (engine == "vector"), flow.unfit
    report = run(plan, spark, Options())
    written = [p for p in sorted(folder.iterdir()) if p.name[0] != "." and p.stem not in ("p", "dead")]
    files = {p.name: p.read_bytes() for p in written if p.name not in given}
    numbers = [(n.name, n.took, n.passed, n.dropped, n.failed) for n in report.nodes]
    sources = [(s.name, s.records, s.dead_letters) for s in report.sources]
    balances = [balance.as_dict() for balance in report.balances]
    return files, letters(folder / "dead.csv"), numbers, sources, balances


def both_engines(spark: SparkSession, folder: Path, write: Callable[[Path], None], text: str) -> Seen:
    """What both give, which must be the same. `ENGINE` in the text is replaced."""
    of_spark, of_vector = (seen_with(spark, folder, write, text, engine) for engine in ("spark", "vector"))
    assert list(of_spark[0]) == list(of_vector[0])
    for name, content in of_spark[0].items():
        assert content == of_vector[0][name], name
    assert of_spark[1] == of_vector[1]
    assert of_spark[2:] == of_vector[2:]
    return of_vector
