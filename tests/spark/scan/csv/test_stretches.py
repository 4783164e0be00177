"""Cells that are copied from lines as they stand there are the cells that would be written for their values."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.formats import CsvRead
from clinker_spark.cxl.builtins.text import to_text
from clinker_spark.plan.columns import CELLS_PREFIX, FAILED_COLUMN
from clinker_spark.plan.facts import CellRun
from clinker_spark.spark.scan.csv.blocks import parsed_batches
from clinker_spark.spark.scan.csv.planning import make_plan
from clinker_spark.spark.scan.csv.records import read_split
from clinker_spark.spark.scan.csv.stretches import cells_between
from clinker_spark.spark.scan.request import SourceFile
from tests.support.read_requests import read_request

TYPES = {"a": "int", "b": "nullable(float)", "c": "string", "d": "nullable(int)"}
USUAL = {"a": ["1", "-20", "0"], "b": ["0.5", "10", "", "300", "-1.25"], "c": ["x", "", "straße"], "d": ["7", ""]}
ODD = {"a": ["007", "+3", "x"], "b": ["1.50", "1e3", ".5"], "c": ['"q,r"', 'in"side', "\r"], "d": ["-0", "1,2"]}
RUNS = [("a", "b", "c", "d"), ("a", "b"), ("b", "c"), ("c", "d"), ("a", "c"), ("b",), ("d", "a")]


def _file(rng: random.Random, odd: float) -> bytes:
    names = list(TYPES)
    line_end = "\r\n" if rng.random() < odd else "\n"
    lines = [",".join(names)]
    for _ in range(rng.randint(1, 12)):
        row = [rng.choice(ODD[name] if rng.random() < odd / 4 else USUAL[name]) for name in names]
        lines.append(",".join(row if rng.random() > odd / 5 else row[:2]))
        lines += [""] * (rng.randint(1, 30) if rng.random() < odd / 4 else 0)
    return (line_end.join(lines) + (line_end if rng.random() < 0.5 else "")).encode()


def _cell(value: object) -> str:
    text = "" if value is None else to_text(value)
    return '"' + text.replace('"', '""') + '"' if set(text) & set('",\r\n') else text


def test_cells_are_those_of_the_values(tmp_path: Path) -> None:
    rng = random.Random(5)
    columns = tuple(Column(name=name, type=kind) for name, kind in TYPES.items())
    copied = others = 0
    for i in range(400):
        run, odd = rng.choice(RUNS), 0.0 if rng.random() < 0.4 else 0.3
        path = tmp_path / f"{i}.csv"
        path.write_bytes(_file(rng, odd))
        file = SourceFile(str(path), path.name)
        request = read_request(file, columns, CsvRead(), cells=(CellRun(",", run),), only_flags=True)
        plan = make_plan(request, parallelism=1, target=rng.choice([40, 1 << 20]), smallest=1)
        block = rng.choice([64, 1 << 20])
        for split in plan.splits:
            for batch in read_split(plan, split, block):
                for row in batch.to_pylist():
                    if not row[FAILED_COLUMN]:
                        assert row[f"{CELLS_PREFIX}0"] == ",".join(_cell(row[name]) for name in run), path.read_bytes()
            for parsed in parsed_batches(plan, split, range(4), block):
                found = cells_between(parsed, [list(TYPES).index(name) for name in run], 4)
                copied, others = copied + (found is not None), others + (found is None)
    assert copied > 100
    assert others > 100


def test_some_of_the_records(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes(b"a,b\n1,x\n2,y\n3,z\n4,u\n")
    columns = (Column(name="a", type="int"), Column(name="b", type="string"))
    request = read_request(SourceFile(str(path), path.name), columns, CsvRead())
    [block] = parsed_batches(plan := make_plan(request, parallelism=1), plan.splits[0], range(2))
    for rows, expected in (([1, 2], ["2,y", "3,z"]), ([0, 2], None), ([3], ["4,u"])):
        some = {place: text.take(pa.array(rows)) for place, text in block.columns.items()}
        found = cells_between(replace(block, rows=len(rows), columns=some, records=block.records[rows]), [0, 1], 2)
        assert (None if found is None else found.to_pylist()) == expected


def test_blank_lines_are_no_cells(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    columns = (Column(name="a", type="string"), Column(name="b", type="string"))
    for blank in range(5):
        path.write_bytes(b"a,b\n,x\n" + b"\n" * blank + b",\n,y\n")
        request = read_request(SourceFile(str(path), path.name), columns, CsvRead())
        [block] = parsed_batches(plan := make_plan(request, parallelism=1), plan.splits[0], range(2))
        found = cells_between(block, [0, 1], 2)
        assert (None if found is None else found.to_pylist()) == (None if blank else [",x", ",", ",y"])
