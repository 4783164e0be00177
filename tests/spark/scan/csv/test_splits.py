"""Byte ranges of delimited files: every one starts where a record starts, whatever is quoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinker_spark.spark.scan.csv.dialect import CsvDialect
from clinker_spark.spark.scan.csv.splits import byte_ranges

DIALECT = CsvDialect(",", '"')

PLAIN = b"".join(b"%d,name %d\n" % (i, i) for i in range(40))
QUOTED = b"".join(b'%d,"a\nb ""%d"" \n,c"\n' % (i, i) for i in range(40))
STRAY = b"".join(b'%d,5" pipe\n%d,"two\nlines"\n' % (i, i) for i in range(20))
CRLF = PLAIN.replace(b"\n", b"\r\n")


def record_starts(data: bytes) -> set[int]:
    starts, at = {0}, 0
    while at < len(data):
        at, _ = DIALECT.record_end(data, at)
        starts.add(at)
    return starts


@pytest.mark.parametrize("data", [PLAIN, QUOTED, STRAY, CRLF, PLAIN + b"41,no newline"])
@pytest.mark.parametrize("pieces", [1, 2, 7, 30])
def test_ranges_start_at_records_and_cover_the_file(tmp_path: Path, data: bytes, pieces: int) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes(data)
    ranges = byte_ranges(str(path), 0, DIALECT, parallelism=1, target=-(-len(data) // pieces), smallest=1).ranges
    assert [r[0] for r in ranges] == [0, *(r[1] for r in ranges[:-1])]
    assert ranges[-1][1] == len(data)
    assert all(start < end for start, end in ranges)
    if not data.endswith(b"newline"):
        assert {start for start, _ in ranges} <= record_starts(data)
    assert min(pieces, 20) <= len(ranges) <= pieces  # two wanted places can fall into one record


def test_small_files_are_not_cut_and_large_ones_keep_all_workers_busy(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes(PLAIN)
    assert len(byte_ranges(str(path), 0, DIALECT, parallelism=8).ranges) == 1
    assert len(byte_ranges(str(path), 0, DIALECT, parallelism=4, smallest=10).ranges) == 4
    assert byte_ranges(str(path), len(PLAIN), DIALECT, parallelism=4).ranges == []


def test_a_quote_that_is_never_closed_takes_its_line(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes(PLAIN + b'1,"open\n' + PLAIN)
    found = byte_ranges(str(path), 0, DIALECT, parallelism=8, smallest=1)
    assert len(found.ranges) == 8 and not found.clean
    assert {start for start, _ in found.ranges} <= record_starts(path.read_bytes())


def test_the_end_of_a_record() -> None:
    assert DIALECT.record_end(b'a,"x\n",b\nc', 0) == (9, True)
    assert DIALECT.record_end(b'5" a\nb', 0) == (5, True)
    assert DIALECT.record_end(b'"a\nb', 0) == (3, False)
    assert DIALECT.record_end(b'"a\nb', 0, complete=False) == (-1, True)
    assert DIALECT.record_end(b'ab\n"c\n"\n', 3) == (8, True)
