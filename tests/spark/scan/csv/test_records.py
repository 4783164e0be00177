"""CSV files as batches, without Spark: splits, encodings, headers, and records that cannot be used."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.formats import CsvRead
from clinker_spark.core.errors import InputError
from clinker_spark.spark.scan.csv.planning import make_plan
from clinker_spark.spark.scan.csv.records import read_split
from clinker_spark.spark.scan.group_sizes import ONE_IN, largest_group
from clinker_spark.spark.scan.request import ReadRequest, SourceFile
from tests.support.read_requests import read_request

ID, NAME = Column(name="id", type="int"), Column(name="name", type="string")
QTY = Column(name="qty", type="nullable(int)")


def write(folder: Path, data: bytes | str, name: str = "f.csv") -> SourceFile:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return SourceFile(str(path), name)


def request(files: Any, columns: tuple[Column, ...] = (ID, NAME), *, options: Any = None, **more: Any) -> ReadRequest:
    return read_request(files, columns, CsvRead(**(options or {})), **more)


def rows(req: ReadRequest, pieces: int = 1, block: int = 1 << 20) -> list[dict[str, Any]]:
    """All records, from about so many splits."""
    size = max(sum(Path(f.path).stat().st_size for f in req.files), 1)
    plan = make_plan(req, parallelism=1, target=-(-size // pieces), smallest=1)
    return [row for split in plan.splits for batch in read_split(plan, split, block) for row in batch.to_pylist()]


def bare(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(v for k, v in row.items() if not k.startswith("$")) for row in found]


def errors(found: list[dict[str, Any]]) -> list[tuple[Any, ...] | None]:
    return [
        None if (e := row["$error"]) is None else (e["kind"], e["field"], e["value"], e["message"]) for row in found
    ]


def problems(req: ReadRequest) -> list[tuple[str, str, str | None]]:
    with pytest.raises(InputError) as caught:
        make_plan(req, parallelism=1)
    return [(d.code, d.message, d.help) for d in caught.value.diagnostics]


KINDS = ('{i},"two\nlines, ""{i}"""\n', "{i},plain\n", "x{i},bad\n", "{i}\n", "\n", "{i},a,b\n")
MIXED = "id,name\n" + "".join(KINDS[i % 6].format(i=i) for i in range(60))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("block", [48, 1 << 20])
def test_any_number_of_splits_and_blocks_gives_the_same_rows(tmp_path: Path, newline: str, block: int) -> None:
    file = write(tmp_path, MIXED.replace("\n", newline))
    once = rows(request(file, positions=True, record=True))
    assert len(once) == 50
    assert [row["$row"] for row in once] == list(range(1, 51))
    for pieces in (2, 7):
        assert rows(request(file, positions=True, record=True), pieces, block) == once
    assert rows(request(file)) == [{k: row[k] for k in ("id", "name", "$error")} for row in once]


def test_bad_rows_stay_in_their_place(tmp_path: Path) -> None:
    found = rows(request(write(tmp_path, "id,name\n1,a\npending,b\n2\n3,c,d\n,e\n4,f\n")))
    assert bare(found) == [(1, "a"), (None, "b"), (None, None), (None, None), (None, "e"), (4, "f")]
    assert errors(found) == [
        None,
        ("type_coercion_failure", "id", "pending", "cannot convert 'pending' to Int"),
        ("structural_validation", None, "2", "the row has 1 value, the header has 2"),
        ("structural_validation", None, "3,c,d", "the row has 3 values, the header has 2"),
        ("missing_required_field", "id", "", "'id' is empty, and its type Int is not nullable"),
        None,
    ]


def test_only_ragged_rows(tmp_path: Path) -> None:
    found = rows(request(write(tmp_path, "id,name\n1\n2\n3\n")))
    assert [e[2] for e in errors(found) if e] == ["1", "2", "3"]
    assert len(errors(rows(request(write(tmp_path, "id,name\n" + "x" * 500))))[0][2]) == 200  # type: ignore[index]


def test_the_first_bad_column_of_a_record_is_told(tmp_path: Path) -> None:
    found = rows(request(write(tmp_path, "qty,name,id\nx,a,y\n"), (ID, NAME, QTY)))
    assert bare(found) == [(None, "a", None)]
    assert errors(found)[0][1:3] == ("id", "y")  # type: ignore[index]


def test_declared_types_hold_for_columns_that_nobody_wants(tmp_path: Path) -> None:
    found = rows(request(write(tmp_path, "id,name\nx,a\n2,b\n"), wanted=frozenset({"name"})))
    assert bare(found) == [("a",), ("b",)]
    assert [e and e[1] for e in errors(found)] == ["id", None]
    assert bare(rows(request(write(tmp_path, "id,name\n1,a\n2,b\n"), wanted=frozenset()))) == [(), ()]


def test_empty_cells_and_missing_columns(tmp_path: Path) -> None:
    files = [write(tmp_path, "name,id,qty\n,1,\n", "a.csv"), write(tmp_path, "id,name\n2,b\n", "b.csv")]
    req = request(files, (ID, NAME, QTY), positions=True)
    found = rows(req)
    assert bare(found) == [(1, "", None), (2, "b", None)]
    assert [(row["$file"], row["$row"]) for row in found] == [(0, 1), (1, 1)]
    assert errors(found) == [None, None]


def test_names_in_the_file(tmp_path: Path) -> None:
    columns = (Column(name="id", type="int", source_name="Order No"), NAME)
    assert bare(rows(request(write(tmp_path, '"Order No",name\n1,a\n'), columns))) == [(1, "a")]


@pytest.mark.parametrize("options", [{"delimiter": ";", "quote_char": "'"}, {"delimiter": "\t", "quote_char": "'"}])
def test_delimiter_and_quote(tmp_path: Path, options: dict[str, str]) -> None:
    d = options["delimiter"]
    file = write(tmp_path, f"id{d}name\n1{d}'a{d}''b'''\n2{d}\"c\n")
    assert bare(rows(request(file, options=options), 2)) == [(1, f"a{d}'b'"), (2, '"c')]


def test_byte_order_mark_and_blank_lines(tmp_path: Path) -> None:
    file = write(tmp_path, b"\xef\xbb\xbf\n\nid,name\n\n1,a\n\r\n\n2,b\n\n")
    assert bare(rows(request(file))) == bare(rows(request(file), 3)) == [(1, "a"), (2, "b")]
    file = write(tmp_path, b"\xef\xbb\xbf1,a\n")
    assert bare(rows(request(file, options={"has_header": False}))) == [(1, "a")]


def test_lines_that_end_with_a_return_alone(tmp_path: Path) -> None:
    assert bare(rows(request(write(tmp_path, "id,name\r1,a\r2,b\r"), positions=True), 2)) == [(1, "a"), (2, "b")]


def test_a_very_long_ragged_row(tmp_path: Path) -> None:
    found = rows(request(write(tmp_path, "id,name\n" + "x" * 200_000 + "\n1,a\n"), record=True), block=1024)
    assert bare(found) == [(None, None), (1, "a")]


def test_no_header(tmp_path: Path) -> None:
    found = rows(request(write(tmp_path, "1,a\n2,b,c\n3,d"), options={"has_header": False}), 2)
    assert bare(found) == [(1, "a"), (None, None), (3, "d")]
    assert errors(found)[1][3] == "the row has 3 values, the schema has 2"  # type: ignore[index]
    assert rows(request(write(tmp_path, ""), options={"has_header": False})) == []


def test_header_only(tmp_path: Path) -> None:
    assert rows(request(write(tmp_path, "id,name"))) == rows(request(write(tmp_path, "id,name\n\n"))) == []
    assert rows(request(write(tmp_path, gzip.compress(b"id,name\n"), "f.csv.gz"))) == []


@pytest.mark.parametrize(("suffix", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("zst", None)])
def test_compressed_files(tmp_path: Path, suffix: str, pack: Any) -> None:
    plain = rows(request(write(tmp_path, MIXED), positions=True))
    data = pack(MIXED.encode()) if pack else pa.compress(MIXED.encode(), "zstd", asbytes=True)
    named, unnamed = write(tmp_path, data, f"g.csv.{suffix}"), write(tmp_path, data, "unnamed")
    kind = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}[suffix]
    assert rows(request(named, positions=True), block=64) == plain
    assert rows(request(unnamed, positions=True, compression=kind)) == plain
    assert problems(request(write(tmp_path, "id,name\n", f"not.{suffix}")))[0][0] == "E229"


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "utf-16", "utf-16-le", "cp437"])
def test_other_encodings(tmp_path: Path, encoding: str) -> None:
    file = write(tmp_path, "id,name\n1,café\n2,ñ\n".encode(encoding))
    assert bare(rows(request(file, options={"encoding": encoding}))) == [(1, "café"), (2, "ñ")]
    packed = write(tmp_path, gzip.compress("id,name\n1,café\n".encode(encoding)), "f.gz")
    assert bare(rows(request(packed, options={"encoding": encoding}))) == [(1, "café")]


@pytest.mark.parametrize("packed", [False, True])
def test_bytes_that_are_no_text(tmp_path: Path, packed: bool) -> None:
    data = b"id,name,more\n1,caf\xc3\xa9,x\n2,b\xe9d,x\n3,c,\xff\n4\xff\n5,\xf0\x9f\x98\x80,x\n"
    file = write(tmp_path, gzip.compress(data), "f.gz") if packed else write(tmp_path, data)
    for pieces in (1, 3):
        found = rows(request(file, on_unmapped="drop"), pieces)
        assert bare(found) == [(1, "café"), (2, None), (3, "c"), (None, None), (5, "😀")]
        assert errors(found) == [
            None,
            ("structural_validation", "name", "b\ufffdd", "the value is not utf-8"),
            ("structural_validation", None, "\ufffd", "the value is not utf-8"),
            ("structural_validation", None, "4\ufffd", "the row has 1 value, the header has 3"),
            None,
        ]
    found = rows(request(write(tmp_path, b"id,name\n1,\xc3\xa9\n2,b\n"), options={"encoding": "ascii"}))
    assert [e and e[3] for e in errors(found)] == ["the value is not ascii", None]


def test_undeclared_columns_are_carried_along(tmp_path: Path) -> None:
    files = [
        write(tmp_path, "extra,id,name,city\nfoo,1,a,Paris\nx\n", "a.csv"),
        write(tmp_path, "id,name\n2,b\n", "b.csv"),
        write(tmp_path, "id,name,zip,city\n3,c,,Rome\n", "c.csv"),
    ]
    plan = make_plan(request(files), parallelism=1)
    assert plan.widened == ("extra", "city", "zip")
    found = rows(request(files))
    widened = [None if (w := row["$widened"]) is None else dict(w) for row in found]
    assert widened == [{"extra": "foo", "city": "Paris"}, None, None, {"zip": "", "city": "Rome"}]
    assert "$widened" not in rows(request(files, on_unmapped="drop"))[0]
    assert "$widened" not in rows(request(files[1]))[0]


def test_the_record_as_it_stood_in_the_file(tmp_path: Path) -> None:
    columns = (ID, NAME, QTY)
    found = rows(
        request(write(tmp_path, "name,id\na,007\nb,x\nonly\n"), columns, record=True, wanted=frozenset({"qty"}))
    )
    assert [row["$record"] for row in found] == [
        {"id": "007", "name": "a", "qty": None},
        {"id": "x", "name": "b", "qty": None},
        {"id": None, "name": "only", "qty": None},
    ]


@pytest.mark.parametrize("limit", [0, 1, 25, 50, 1000])
def test_limit(tmp_path: Path, limit: int) -> None:
    req = request([write(tmp_path, MIXED, "a.csv"), write(tmp_path, gzip.compress(MIXED.encode()), "b.gz")])
    every = rows(req)
    limited = request(req.files, limit=limit)
    assert rows(limited) == rows(limited, 7) == every[:limit]


def test_long_values(tmp_path: Path) -> None:
    long = "y" * 5000
    file = write(tmp_path, f"id,name\n1,a\n2,{long}\n3\n4,b\n")
    assert bare(rows(request(file), block=64)) == [(1, "a"), (2, long), (None, None), (4, "b")]


def test_headers_that_do_not_fit(tmp_path: Path) -> None:
    assert problems(request(write(tmp_path, "id,nmae\n"))) == [
        ("E228", "'f.csv' has no column 'name'", "did you mean 'nmae'?")
    ]
    assert problems(request(write(tmp_path, "id,name,id\n")))[0][:2] == ("E228", "the header of 'f.csv' has 'id' twice")
    assert problems(request(write(tmp_path, "")))[0][1] == "'f.csv' has no header line: the file is empty"
    assert problems(request(write(tmp_path, b"id,n\xffame\n")))[0][1] == "the header of 'f.csv' is not utf-8"
    rejected = problems(request(write(tmp_path, "id,name,city\n"), on_unmapped="reject"))
    assert rejected[0][1] == "'f.csv' has the column 'city', which the schema does not declare"
    both = [write(tmp_path, "id\n", "a.csv"), write(tmp_path, "name\n", "b.csv")]
    assert [p[1] for p in problems(request(both))] == ["'a.csv' has no column 'name'", "'b.csv' has no column 'id'"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing = SourceFile(str(tmp_path / "missing.csv"), "missing.csv")
    assert problems(request(missing))[0][:2] == ("E229", "cannot read 'missing.csv': no such file or directory")
    assert problems(request(SourceFile(str(tmp_path), "folder")))[0][0] == "E229"


def test_columns_that_no_csv_file_can_hold(tmp_path: Path) -> None:
    file = write(tmp_path, "id,tags\n1,x\n")
    assert problems(request(file, (ID, Column(name="tags", type="array(string)"))))[0][0] == "E226"


@pytest.mark.parametrize("pieces", [1, 5])
def test_readers_guess_how_large_groups_are(tmp_path: Path, pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Groups come in turn, as often as samples are taken: a fixed step would see one of them and no other.
    ids = [f"{'0' * (i % 3)}7" if i % ONE_IN == 3 else str(100 + i % ONE_IN) for i in range(64_000)]
    ids += [str(1000 + i) for i in range(20_000)] + [""] * 3000
    file = write(tmp_path, "id,name\n" + "".join(f"{key},n\n" for key in ids))
    prefix = str(tmp_path / "s@")
    req = request(file, (QTY.model_copy(update={"name": "id"}), NAME), aside=prefix, watched=("id",))
    plan = make_plan(req, parallelism=1, target=-(-Path(file.path).stat().st_size // pieces), smallest=1)
    assert largest_group(prefix, len(plan.splits)) is None
    for split in plan.splits:
        assert sum(batch.num_rows for batch in read_split(plan, split)) > 0
    largest = largest_group(prefix, len(plan.splits))
    assert largest is not None and 1000 <= largest <= 3000
    # With room for a few groups only, the guess may grow but never shrink.
    monkeypatch.setattr("clinker_spark.spark.scan.group_sizes.MOST_COMPARED", 80)
    assert largest <= (largest_group(prefix, len(plan.splits)) or 0) <= largest + pieces * 10 * ONE_IN
    monkeypatch.setattr("clinker_spark.spark.scan.group_sizes.MOST_NAMED", 80)
    for split in plan.splits:
        assert sum(batch.num_rows for batch in read_split(plan, split)) > 0
    assert largest <= (largest_group(prefix, len(plan.splits)) or 0) <= largest + pieces * 10 * ONE_IN


@pytest.mark.parametrize("pieces", [1, 2, 5])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_only_the_file_begins_with_a_byte_order_mark(tmp_path: Path, start: str, pieces: int) -> None:
    """Anywhere else, as in files that were put together with `cat`, it is a character of a value like any other."""
    text = f"{start}name,id\n\ufeffname,1\nb,2\n\ufeffc,3\n\ufeff\ufeff,4\n"
    found = rows(request(write(tmp_path, text), (NAME, ID)), pieces)
    assert bare(found) == [("\ufeffname", 1), ("b", 2), ("\ufeffc", 3), ("\ufeff\ufeff", 4)]
    found = rows(request(write(tmp_path, f"{start}id,name\n\ufeff1,a\n"), (ID, NAME)), pieces)
    assert errors(found) == [("type_coercion_failure", "id", "\ufeff1", "cannot convert '\ufeff1' to Int")]
    if start == "":
        packed = write(tmp_path, gzip.compress("name,id\n\ufeffname,1\n".encode()), "f.csv.gz")
        assert bare(rows(request(packed, (NAME, ID)))) == [("\ufeffname", 1)]
