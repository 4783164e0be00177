"""Every example with a pipeline, against its expected files; some of them also cut into other numbers of tasks."""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from clinker_spark.runtime.run.report import RunReport

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/pipeline.yaml"))
EXIT = "exit"
"""The file in `expected/` with the exit code, and the code of the error if nothing is published."""
LETTERS = "dead-letters.csv"
NEW_IN_EVERY_RUN = ("_cxl_dlq_id", "_cxl_dlq_timestamp")


@dataclass(frozen=True)
class Outcome:
    exit_code: int
    error: str | None
    files: dict[str, Any]


def copied(name: str, folder: Path) -> Path:
    """A copy of the example; the path of its pipeline."""
    shutil.copytree(EXAMPLES / name, folder / name, ignore=shutil.ignore_patterns("out", "expected"))
    return folder / name / "pipeline.yaml"


def run_example(name: str, spark: SparkSession, folder: Path) -> Outcome:
    """What a run of a copy of the example gives: the exit code, and the files by their names."""
    return outcome_of(copied(name, folder), spark)[0]


def outcome_of(pipeline: Path, spark: SparkSession) -> tuple[Outcome, RunReport | None]:
    """What a run gives; also its report, if it published."""
    from clinker_spark.runtime.run.pipeline import run

    report, error = None, None
    try:
        report = run(prepare(pipeline), spark)
        code = report.exit_code
    except ClinkerError as failure:
        code, error = failure.exit_code, failure.diagnostics[0].code
    return Outcome(code, error, contents(pipeline.parent / "out")), report


def expected(name: str) -> Outcome:
    folder = EXAMPLES / name / "expected"
    said: dict[str, str] = {}
    if (folder / EXIT).exists():
        lines = (folder / EXIT).read_text(encoding="utf-8").splitlines()
        said = dict(line.split(": ") for line in lines)
    files = contents(folder)
    files.pop(EXIT, None)
    return Outcome(int(said.get("exit", "0")), said.get("code"), files)


def contents(folder: Path) -> dict[str, Any]:
    """All files, without the manifests, which say when."""
    found = [p for p in sorted(folder.rglob("*")) if p.is_file() and not p.name.startswith(".clinker-manifest-")]
    return {str(path.relative_to(folder)): content(path) for path in found}


def content(path: Path) -> Any:
    if path.suffix == ".parquet":  # the bytes name the versions of their writers
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        return [(field.name, str(field.type)) for field in table.schema], table.to_pylist()
    data = path.read_bytes()
    return without_marks(data) if path.name == LETTERS else data


def without_marks(data: bytes) -> bytes:
    """Dead letters without what no two runs have in common."""
    header, *rows = csv.reader(io.StringIO(data.decode(), newline=""))
    kept = [i for i, column in enumerate(header) if column not in NEW_IN_EVERY_RUN]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([row[i] for i in kept] for row in [header, *rows])
    return text.getvalue().encode()


@pytest.mark.parametrize("name", NAMES)
def test_example_has_a_page(name: str) -> None:
    page = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    assert f"$ clinker run examples/{name}/pipeline.yaml" in page
    assert f"]({name}/README.md)" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------- the same bytes, however the work is cut

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
"""Every example in every way takes a quarter of an hour; without it, each in one way."""
USUAL = (None, True)
WAYS = [USUAL, *((pieces, adaptive) for pieces in (1, 2, 7) for adaptive in (True, False))]
CASES = (
    [(name, *way) for name in NAMES for way in WAYS]
    if EVERYTHING
    else [(name, *WAYS[i % len(WAYS)]) for i, name in enumerate(NAMES)]
)


@pytest.fixture
def cut(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int, bool], None]]:
    """Sets the number of pieces of every CSV file and of every shuffle, and whether Spark may join the latter."""
    from clinker_spark.spark.scan.csv import planning

    keys = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")
    before = {key: spark.conf.get(key) for key in keys}
    ranges = planning.byte_ranges

    def set_pieces(pieces: int, adaptive: bool) -> None:
        def pieces_of(path: str, start: int, dialect: Any, **_: int) -> Any:
            return ranges(path, start, dialect, parallelism=pieces, target=1 << 40, smallest=1)

        monkeypatch.setattr(planning, "byte_ranges", pieces_of)
        spark.conf.set("spark.sql.shuffle.partitions", str(pieces))
        spark.conf.set("spark.sql.adaptive.enabled", str(adaptive).lower())

    yield set_pieces
    for key, value in before.items():
        spark.conf.set(key, value)


@pytest.mark.parametrize(("name", "pieces", "adaptive"), CASES)
def test_example(
    name: str, pieces: int | None, adaptive: bool, cut: Callable[[int, bool], None], spark: SparkSession, tmp_path: Path
) -> None:
    if pieces is not None:
        cut(pieces, adaptive)
    assert run_example(name, spark, tmp_path) == expected(name)


def test_files_are_cut_into_pieces(cut: Callable[[int, bool], None], spark: SparkSession, tmp_path: Path) -> None:
    """Or else the test above would prove nothing."""
    from clinker_spark.spark.scan.csv import planning
    from clinker_spark.spark.scan.csv.dialect import CsvDialect

    cut(7, True)
    file = tmp_path / "lines.csv"
    file.write_bytes(b"abc,1\n" * 70)
    found = planning.byte_ranges(str(file), 0, CsvDialect(",", '"'), parallelism=1, target=1, smallest=1)
    assert len(found.ranges) == 7
