"""Fixed-width files as records: places, padding, encodings and lengths without Spark; one read through Spark."""

from __future__ import annotations

import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.formats import FixedWidthRead
from clinker_spark.core.errors import InputError
from clinker_spark.spark.scan.fixed.source import fixed_plan
from clinker_spark.spark.scan.record_batches import read_batches
from clinker_spark.spark.scan.request import ReadRequest, SourceFile
from tests.support.read_requests import read_request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID = Column(name="id", type="int", start=0, width=4)
NAME = Column(name="name", type="string", start=4, end=10)


def write(folder: Path, data: bytes | str, name: str = "f.dat") -> SourceFile:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return SourceFile(str(path), name)


def request(files: Any, columns: tuple[Column, ...] = (ID, NAME), *, options: Any = None, **more: Any) -> ReadRequest:
    return read_request(files, columns, FixedWidthRead(**(options or {})), **more)


def rows(req: ReadRequest, pieces: int = 1, piece: int = 1 << 20) -> list[dict[str, Any]]:
    size = max(sum(Path(f.path).stat().st_size for f in req.files), 1)
    plan = fixed_plan(req, parallelism=1, target=-(-size // pieces), smallest=1, piece=piece)
    return [row for split in plan.splits for batch in read_batches(plan, split) for row in batch.to_pylist()]


def bare(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(v for k, v in row.items() if not k.startswith("$")) for row in found]


def error(row: dict[str, Any]) -> tuple[Any, ...] | None:
    e = row["$error"]
    return None if e is None else (e["kind"], e["field"], e["value"], e["message"])


@pytest.mark.parametrize(("separator", "end"), [("lf", "\n"), ("crlf", "\r\n"), ("none", "")])
def test_line_ends_splits_and_pieces(tmp_path: Path, separator: str, end: str) -> None:
    lines = [f"{i:4}{'n' + str(i):6}" if i % 5 else "x   bad   " for i in range(50)]
    options = {"line_separator": separator}
    for last in (end, "", "\n" if not end else end * 3):
        file = write(tmp_path, end.join(lines) + last)
        once = rows(request(file, options=options, positions=True, record=True))
        assert bare(once) == [(i, f"n{i}") if i % 5 else (None, "bad") for i in range(50)]
        assert [row["$row"] for row in once] == list(range(1, 51))
        assert once[7]["$record"] == {"id": "   7", "name": "n7    "}
        for pieces, piece in ((3, 25), (11, 1 << 20)):
            assert rows(request(file, options=options, positions=True, record=True), pieces, piece) == once
        assert rows(request(file, options=options, positions=True, record=True, limit=20), 4) == once[:20]
        packed = write(tmp_path, gzip.compress(Path(file.path).read_bytes()), "f.gz")
        assert rows(request(packed, options=options, positions=True, record=True), 1, 33) == once


def one(tmp_path: Path, text: str | bytes, column: Column, **options: Any) -> dict[str, Any]:
    (row,) = rows(request(write(tmp_path, text), (column,), options=options, record=True))
    return row


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("  7 ", {"type": "int"}, "type_coercion_failure"),  # numbers stand on the right
        ("   7", {"type": "int"}, 7),
        ("7   ", {"type": "int", "justify": "left"}, 7),
        ("0007", {"type": "int", "pad": "0"}, 7),
        ("-007", {"type": "int", "pad": "0"}, -7),
        ("0000", {"type": "int", "pad": "0"}, 0),
        ("    ", {"type": "nullable(int)", "pad": "0"}, None),
        ("01.5", {"type": "decimal(2)", "pad": "0"}, Decimal("1.50")),
        ("***7", {"type": "int", "pad": "*"}, 7),
        ("****", {"type": "int", "pad": "*"}, "missing_required_field"),
        ("    ", {"type": "int"}, "missing_required_field"),
        ("    ", {"type": "nullable(int)"}, None),
        ("    ", {"type": "string"}, ""),
        ("    ", {"type": "nullable(string)"}, None),
        (" ab ", {"type": "string"}, " ab"),
        (" ab ", {"type": "string", "justify": "right"}, "ab "),
        ("ab__", {"type": "string", "pad": "_"}, "ab"),
        (" ab ", {"type": "string", "trim": False}, " ab "),
        ("   7", {"type": "int", "trim": False}, "type_coercion_failure"),
        ("20240229", {"type": "date"}, dt.date(2024, 2, 29)),
        ("2024-02-29", {"type": "date"}, dt.date(2024, 2, 29)),
        ("29022024", {"type": "date", "format": "%d%m%Y"}, dt.date(2024, 2, 29)),
        ("20240229", {"type": "date", "format": "%d%m%Y"}, "type_coercion_failure"),
        ("20240229070809", {"type": "date_time"}, dt.datetime(2024, 2, 29, 7, 8, 9)),
    ],
)
def test_fields(tmp_path: Path, text: str, column: dict[str, Any], expected: Any) -> None:
    row = one(tmp_path, text, Column(name="v", width=len(text), **column))
    if isinstance(expected, str) and expected.endswith(("_failure", "_field")):
        assert row["v"] is None and row["$error"]["kind"] == expected and row["$error"]["field"] == "v"
    else:
        assert (row["v"], row["$error"]) == (expected, None)
    assert row["$record"] == {"v": text}


def test_lines_of_the_wrong_length(tmp_path: Path) -> None:
    found = rows(request(write(tmp_path, "   1a     \n   2b\n   3c     more\n   4d     \r\n\n   5e     "), record=True))
    # Of a broken line, the columns that are all there are known: its key may be among them. Bytes that no column has
    # are never read, also behind the last one.
    assert bare(found) == [(1, "a"), (2, None), (3, "c"), (4, "d"), (5, "e")]
    broken = ("structural_validation", None, "   2b", "the line has 5 bytes, the schema has 10")
    assert [row["$error"] and error(row) for row in found] == [None, broken, None, None, None]
    assert found[1]["$record"] == {"id": "   2", "name": "b"}
    (_, last) = rows(request(write(tmp_path, "   1a        2"), options={"line_separator": "none"}))
    assert error(last) == ("structural_validation", None, "   2", "the last record has 4 bytes, the schema has 10")


def test_bytes_and_encodings(tmp_path: Path) -> None:
    text = "   1é    \n   2ab    \n"  # é has two bytes
    assert bare(rows(request(write(tmp_path, b"\xef\xbb\xbf" + text.encode())))) == [(1, "é"), (2, "ab")]
    latin = "   1éà    \n".encode("latin-1")
    assert bare(rows(request(write(tmp_path, latin), options={"encoding": "latin-1"}))) == [(1, "éà")]
    row = rows(request(write(tmp_path, latin)))[0]
    assert error(row) == ("structural_validation", "name", "\ufffd\ufffd    ", "the value is not utf-8")
    assert row["id"] == 1


def test_filler_and_order_of_columns(tmp_path: Path) -> None:
    columns = (Column(name="b", type="string", start=6, width=2), Column(name="a", type="int", start=0, width=2))
    for mode in ("auto_widen", "reject", "drop"):
        found = rows(request(write(tmp_path, "12....xy\n"), columns, on_unmapped=mode))
        assert found == [{"b": "xy", "a": 12, "$error": None}]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    file = write(tmp_path, "x")
    cases: list[tuple[ReadRequest, str]] = [
        (request(file, options={"encoding": "utf-16"}), "E007"),
        (request(file, (Column(name="v", type="array(int)", width=3),)), "E226"),
        (request(SourceFile(str(tmp_path / "no"), "no")), "E229"),
        (request(SourceFile("hdfs://h/f", "f")), "E248"),
    ]
    for req, code in cases:
        with pytest.raises(InputError) as caught:
            fixed_plan(req, parallelism=1)
        assert [d.code for d in caught.value.diagnostics] == [code]


def test_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    from clinker_spark.spark.scan.formats import read

    files = (
        write(tmp_path, "".join(f"{i:4}{'n':6}\n" for i in range(20)), "b.dat"),
        write(tmp_path, "  20x     \nbad\n", "a.dat"),
    )
    scan = read(spark, "fixed_width", request(files, arrival=True, positions=True, record=True))
    assert (scan.widened, scan.row_offsets) == ((), (0, 20))
    found = scan.frame.collect()
    assert [row["id"] for row in found] == [*range(21), None]
    assert found[21]["$error"]["kind"] == "structural_validation" and (found[21]["$file"], found[21]["$row"]) == (1, 2)
    arrivals = [row["$arrival"] for row in found]
    assert arrivals == sorted(set(arrivals))
