"""Quotes that nobody closed: their line is a broken record, the next line a good one, however the file is read."""

from __future__ import annotations

import base64
import gzip
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.formats import CsvRead
from clinker_spark.core.errors import ClinkerError, InputError
from clinker_spark.spark.scan.csv import pieces as csv_pieces
from clinker_spark.spark.scan.csv import splits as csv_splits
from clinker_spark.spark.scan.csv.planning import count_records, make_plan
from clinker_spark.spark.scan.csv.records import read_split
from clinker_spark.spark.scan.request import SourceFile
from tests.support.read_requests import read_request

COLUMNS = (Column(name="id", type="string"), Column(name="name", type="string"))


def read(path: Path, *, pieces: int = 1, block: int = 1 << 20, **options: Any) -> list[dict[str, Any]]:
    """The records of a file from about so many splits."""
    request = read_request(
        SourceFile(str(path), path.name),
        COLUMNS,
        CsvRead(**options),
        positions=True,
        record=True,
        on_unmapped="drop",
        keys=("id",),
    )
    plan = make_plan(request, parallelism=1, target=-(-path.stat().st_size // pieces), smallest=1)
    found = [row for split in plan.splits for batch in read_split(plan, split, block) for row in batch.to_pylist()]
    assert [row["$row"] for row in found] == list(range(1, len(found) + 1))
    assert sum(count_records(plan, split) for split in plan.splits) == len(found)
    return found


def short(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What matters of each record: its cells or where its quote opened, and its line."""
    return [
        (row["id"], row["name"], row["$line"]) if row["$error"] is None else (row["$error"]["message"], row["$line"])
        for row in found
    ]


def unclosed(found: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """Line and text of the records with an unclosed quote."""
    errors = [row["$error"] | {"line": row["$line"]} for row in found if row["$error"] is not None]
    start = "the quote that opens in line "
    return [
        (int(e["message"].removeprefix(start).split(" ")[0].replace(",", "")), e["line"])
        for e in errors
        if e["message"].startswith(start)
    ]


def file_of(folder: Path, data: bytes | str, name: str = "f.csv") -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_the_rest_of_the_file_is_read(tmp_path: Path) -> None:
    body = "".join(f"{i},name {i}\n" for i in range(1, 4001))
    path = file_of(tmp_path, f'id,name\n{body}x,"open\n{body}y,"also open\n{body}')
    for pieces in (1, 2, 7):
        found = read(path, pieces=pieces, block=4096)
        assert len(found) == 12_002
        assert unclosed(found) == [(4002, 'x,"open'), (8003, 'y,"also open')]
        assert [row["$row"] for row in found if row["$error"]] == [4001, 8002]
        assert found[4001]["id"] == "1" and found[-1]["name"] == "name 4000"
        assert [row["id"] for row in found if row["$error"]] == ["x", "y"]  # the key can still be read
        assert {row["$error"]["kind"] for row in found if row["$error"]} == {"structural_validation"}


def test_limits(tmp_path: Path) -> None:
    two, three = 'a,"1\n2"\n', 'b,"1\n2\n3"\n'
    found = read(file_of(tmp_path, f"id,name\n{two}{three}"), max_field_lines=2)
    assert [row["$line"] for row in found] == ['a,"1\n2"', 'b,"1', "2", '3"']
    assert unclosed(found) == [(4, 'b,"1')]
    fits, longer = 'a,"12345678"\n', 'b,"1234""789"\n'
    found = read(file_of(tmp_path, f"id,name\n{fits}{longer}{fits}"), max_field_bytes=8)
    assert [row["$error"] is None for row in found] == [True, False, True]
    assert unclosed(found) == [(3, 'b,"1234""789"')]
    large = "x" * (1 << 20)
    found = read(file_of(tmp_path, f'id,name\na,"{large}"\nb,"{large}y"\nc,d\n'))
    assert [(row["id"], row["$error"] is None) for row in found] == [("a", True), ("b", False), ("c", True)]
    found = read(file_of(tmp_path, f'id,name\na,"{large}y"\nc,d\n'), max_field_bytes="2M")
    assert found[0]["name"] == large + "y"
    lines = "\n".join(f"l{i}" for i in range(1000))
    for pieces in (1, 2, 7):
        found = read(file_of(tmp_path, f'id,name\na,"{lines}"\nb,"\n{lines}"\nc,d\n'), pieces=pieces, block=512)
        assert found[0]["name"] == lines and unclosed(found) == [(1002, 'b,"')]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_quote_that_is_closed_by_the_next_value_is_unclosed(tmp_path: Path, newline: str) -> None:
    text = newline.join(['"id","name"', '"1","one"', '"2","two', '"3","three"', '4,5" pipe', '"5","a', 'b"', ""])
    for pieces in (1, 2, 7):
        found = read(file_of(tmp_path, text), pieces=pieces)
        assert unclosed(found) == [(3, '"2","two')]
        assert [row["id"] for row in found] == ["1", "2", "3", "4", "5"]
        assert found[3]["name"] == '5" pipe' and found[4]["name"] == f"a{newline}b"


def test_the_record_of_a_quote_can_begin_lines_before_it(tmp_path: Path) -> None:
    found = read(file_of(tmp_path, 'id,name\n"a\nb","open\nc,d\n'))
    assert unclosed(found) == [(3, '"a\nb","open')]
    assert found[0]["id"] == "a\nb" and found[1]["$line"] == "c,d"
    # The key itself cannot be read where its own quote is open.
    assert [row["id"] for row in read(file_of(tmp_path, 'id,name\n"a,b\nc,d\n'))] == [None, "c"]


def test_at_the_end_of_the_file(tmp_path: Path) -> None:
    for end in ("", "\n", "\r\n", "\n\n"):
        found = read(file_of(tmp_path, f'id,name\n1,a\n2,"open{end}'))
        assert unclosed(found) == [(3, '2,"open')] and len(found) == 2
    assert unclosed(read(file_of(tmp_path, 'id,name\n1,"'))) == [(2, '1,"')]
    assert short(read(file_of(tmp_path, 'id,name\n1,""'))) == [("1", "", '1,""')]


def test_headers(tmp_path: Path) -> None:
    body = "".join(f"{i},a\n" for i in range(100_000))
    for data in (f'id,"name\n{body}', 'id,"name', f'id,"name\n{body}"'):
        path = file_of(tmp_path, data)
        with pytest.raises(InputError) as caught:
            read(path)
        [found] = caught.value.diagnostics
        assert (found.code, found.message) == (
            "E453",
            "the header of 'f.csv' has a quote that is opened in line 1 and not closed",
        )
    found = read(file_of(tmp_path, 'id,"na\nme"\n1,"\n2,b\n'.replace("na\nme", "name")))
    assert unclosed(found) == [(2, '1,"')]
    found = read(file_of(tmp_path, '1,"\n2,b\n'), has_header=False)
    assert unclosed(found) == [(1, '1,"')] and found[1]["name"] == "b"


def test_lines_keep_their_bytes(tmp_path: Path) -> None:
    def line(text: str) -> bytes:
        return base64.b64decode(text[1:]) if text.startswith("\0") else text.encode()

    lines = [b"1,caf\xc3\xa9", b"2,caf\xe9", b'3,"a\r\nb ""c"""', b"4,a,b", b'5,"\xff', b" 6 ,\0", b"7"]
    for end in (b"\n", b"\r\n", b"\n\n"):
        data = b"id,name\n" + end.join(lines)
        for path in (file_of(tmp_path, data), file_of(tmp_path, gzip.compress(data), "f.csv.gz")):
            for pieces in (1, 3):
                assert [line(row["$line"]) for row in read(path, pieces=pieces)] == lines
    found = read(file_of(tmp_path, b"id,name\n" + b"\n".join(lines)), encoding="iso-8859-1")
    assert [line(row["$line"]) for row in found] == lines and found[1]["name"] == "café"
    # What is cut as text is kept as text.
    found = read(file_of(tmp_path, 'id,name\n1,café\n2,"open\n3\n'.encode("utf-16")), encoding="utf-16")
    assert [row["$line"] for row in found] == ["1,café", '2,"open', "3"]


# ---------------------------------------------------------------- against a model that reads byte by byte


def model(data: str, most_bytes: int, most_lines: int) -> Iterator[tuple[str, bool]]:
    """Every record of a text, and whether it has an unclosed quote; one character after the other."""
    at = 0
    while at < len(data):
        start, place, value_start, bad = at, at, True, False
        while place < len(data) and data[place] not in "\r\n":
            if value_start and data[place] == '"':
                end = place + 1
                while end < len(data):
                    if data[end] == '"' and data[end + 1 : end + 2] == '"':
                        end += 2
                    elif data[end] == '"':
                        break
                    else:
                        end += 1
                value = data[place + 1 : end]
                spans = "\n" in value or "\r" in value
                many = max(value.count("\n"), value.count("\r")) >= most_lines
                rest = data[end + 1 :].lstrip(" \t")
                wrong = spans and rest != "" and rest[0] not in ",\r\n"
                if end >= len(data) or len(value.encode()) > most_bytes or many or wrong:
                    bad = True
                    while place < len(data) and data[place] not in "\r\n":
                        place += 1
                    break
                place, value_start = end + 1, False
                continue
            value_start = data[place] == ","
            place += 1
        if place > start:
            yield data[start:place], bad
        at = place + 2 if data[place : place + 2] == "\r\n" else place + 1


def texts(cases: int, seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    parts = ['"', '""', '"x"', "a", ",", ",", "\n", "\n", "\r\n", "é", " ", '"b\nc"', '"open', "1,2\n", "\r"]
    for _ in range(cases):
        weights = [chance.random() ** 2 for _ in parts]
        yield "".join(chance.choices(parts, weights, k=chance.randint(0, 60)))


CASES = 3000 if os.environ.get("CLINKER_CASES") == "all" else 100


def test_against_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    for i, body in enumerate(texts(CASES, 1)):
        limits = {"max_field_bytes": chance.choice([3, 12, 1 << 20]), "max_field_lines": chance.choice([1, 2, 1000])}
        wanted = list(model(body, limits["max_field_bytes"], limits["max_field_lines"]))
        data = b"id,name\n" + body.encode()
        plain, packed = file_of(tmp_path, data), file_of(tmp_path, gzip.compress(data), "f.csv.gz")
        monkeypatch.setattr(csv_pieces, "STREAM_PIECE", chance.choice([1, 5, 64, 1 << 20]))
        monkeypatch.setattr(csv_splits, "_CHUNK", chance.choice([3, 16, 1 << 20]))
        ways = [(plain, 1, 1 << 20), (plain, 2, 64), (plain, 7, 1 << 20), (packed, 1, 64)]
        try:
            every = [read(path, pieces=pieces, block=block, **limits) for path, pieces, block in ways]
        except ClinkerError:  # pragma: no cover - shows the case
            raise AssertionError(f"case {i}: {body!r} {limits}") from None
        for found in every:
            assert [row["$line"] for row in found] == [line for line, _ in wanted], (i, body, limits)
            bad = [line for line, is_bad in wanted if is_bad]
            assert [line for _, line in unclosed(found)] == bad, (i, body, limits)
            assert short(found) == short(every[0]), (i, body, limits)
