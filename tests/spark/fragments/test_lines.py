"""The lines of a fragment against the interpreter and Python's own csv module: values and text, without Spark."""

from __future__ import annotations

import csv
import datetime as dt
import io
import math
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from clinker_spark.core.types import DATE
from clinker_spark.cxl.builtins.text import datetime_text, float_text, json_text, to_text
from clinker_spark.cxl.errors import EvalError
from clinker_spark.cxl.system import default_context
from clinker_spark.cxl.vector.forms.text import text_of
from clinker_spark.plan.columns import FAILED_COLUMN, WIDENED_COLUMN
from clinker_spark.plan.prepare import prepare
from clinker_spark.spark.build.source_columns import conventions_of
from clinker_spark.spark.fragments.lines import lines_of
from clinker_spark.spark.fragments.runner import Runner
from clinker_spark.spark.fragments.steps import FragmentSteps, Places
from clinker_spark.spark.fragments.task import LineFormat
from clinker_spark.spark.scan.csv.planning import make_plan
from clinker_spark.spark.scan.csv.records import read_split
from clinker_spark.spark.scan.request import CsvExtras, ReadRequest, SourceFile
from tests.spark.fragments.pipelines import ONE_OUTPUT, pipeline, write_files


def _read(source: Any, path: Path, wanted: frozenset[str], cells: Any) -> tuple[tuple[str, ...], list[pa.RecordBatch]]:
    request = ReadRequest(
        source="s",
        files=(SourceFile(str(path), path.name, path.stat().st_size),),
        columns=source.columns,
        options=source.config.options,
        conventions=conventions_of(source, "auto_widen", ()),
        wanted=wanted,
        csv=CsvExtras(cells=cells, only_flags=True),
    )
    plan = make_plan(request, parallelism=2, target=4_000, smallest=1)
    return plan.widened, [batch for split in plan.splits for batch in read_split(plan, split)]


def _text(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return datetime_text(value, "T")
    return format(value, "f") if isinstance(value, Decimal) else to_text(value)


def _json(value: Any) -> str:
    if isinstance(value, float):
        return float_text(value) + (".0" if value.is_integer() else "")
    if isinstance(value, bool | int):
        return to_text(value)
    return json_text(datetime_text(value) if isinstance(value, dt.datetime) else _text(value))


def _line(kind: str, members: list[tuple[str, Any]]) -> str | None:
    if kind in ("csv", "semicolons"):
        written = io.StringIO()
        csv.writer(written, delimiter=";" if kind == "semicolons" else ",").writerow([_text(v) for _, v in members])
        return written.getvalue()[:-2]
    if any(isinstance(v, float) and not math.isfinite(v) for _, v in members):
        return None  # it fails
    return "{" + ",".join(f"{json_text(name)}:{_json(v)}" for name, v in members if v is not None) + "}"


@pytest.mark.parametrize("kind", ["csv", "semicolons", "ndjson"])
def test_lines(kind: str, tmp_path: Path) -> None:
    write_files(tmp_path, 11, 1_500)
    (tmp_path / "p.yaml").write_text(pipeline("csv", ONE_OUTPUT, kind, "vector"))
    plan, context = prepare(tmp_path / "p.yaml"), default_context("x")
    builder: Any = SimpleNamespace(plan=plan, context=lambda node: context)
    source, output = plan.source("s"), plan.output("out")
    passed = plan.facts.columns.pass_through.get("s")
    wanted = frozenset(source.schema) if passed is None else passed.columns
    widened, batches = _read(source, tmp_path / "in.csv", wanted, () if passed is None else passed.runs)
    steps = FragmentSteps(builder, plan.facts.flow.fragments["out"], Places(), {"s": widened})
    found = [row for batch in Runner(steps.task(source)).run(batches) for row in batch.to_pylist()]
    lines = "\n".join(row["value"] for row in found if row["value"] is not None)
    program: Any = plan["priced"]
    expected = []
    for batch in _read(source, tmp_path / "in.csv", frozenset(source.schema), ())[1]:
        for record in batch.to_pylist():
            failed, more = record.pop(FAILED_COLUMN), dict(record.pop(WIDENED_COLUMN) or ())
            try:
                outcome = None if failed else program.program.execution(context).run(record)
            except EvalError:
                continue
            if outcome is None or outcome.skipped is not None:
                continue
            row = {**record, **outcome.rows[0]}
            members = [(name, row[column]) for name, column in output.columns]
            line = _line(kind, members + [(name, more.get(name)) for name in widened])
            expected += [] if line is None else [line]
    assert len(expected) > 300
    assert lines == "\n".join(expected)
    counts = dict(zip(("rows", "failed", "bytes"), found[-1]["counts"][-3:], strict=True))
    assert counts["rows"] == len(expected) and counts["failed"] > 100 and not counts["bytes"]


def test_each_record_has_a_line_even_without_columns() -> None:
    frame = pl.DataFrame({"a": [1, 2, 3]})
    for kind, text in (("csv", ""), ("json", "{}")):
        for end in ("", "\n"):
            assert lines_of(frame, LineFormat(kind, ()), end)[0].to_list() == [text + end] * 3


def test_dates_close_together_and_far_apart() -> None:
    """A few days are looked up in a table, others become texts one by one."""
    near = [dt.date(2023, 12, 30) + dt.timedelta(days=i * 7 % 5) for i in range(40)]
    far = [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31)]
    for dates in (near, far, [None, *near, None], [None, *far], [None], []):
        frame = pl.DataFrame({"d": pl.Series(dates, dtype=pl.Date)})
        found = frame.select(text_of(pl.col("d"), DATE))["d"].to_list()
        assert found == [None if date is None else to_text(date) for date in dates]
