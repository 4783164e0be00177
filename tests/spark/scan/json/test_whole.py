"""Arrow's parser gives what Python's gives, or leaves the piece to it."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from clinker_spark.core.types import BOOL, DATE, FLOAT, INT, STRING, Type
from clinker_spark.spark.scan.json.alike import as_floats, as_ints, is_text, layout_of, read_alike
from clinker_spark.spark.scan.json.documents import decoder
from clinker_spark.spark.scan.json.lines import lines_of, parse_lines
from clinker_spark.spark.scan.json.names import Names, names_of_lines
from clinker_spark.spark.scan.json.values import JsonColumn, lookup
from clinker_spark.spark.scan.json.whole import WholeLines
from clinker_spark.spark.scan.record_plan import RecordFile

TOKENS: dict[str, tuple[Type, list[str]]] = {
    "i": (INT, ["1", "-0", "9223372036854775807", "9223372036854775808", "1.0", "1e2", "null", '"1"', "true"]),
    "f": (
        FLOAT,
        ["1", "0.1", "-0.0", "-0", "0", "1e400", "NaN", "4.35", "9007199254740993", "null", '"1.5"', "1e-320"],
    ),
    "s": (
        STRING,
        ['"a"', '""', '"\\u0041\\n"', '"\\ud800"', '"\\ud83d\\ude00"', '"é"', '"{"', "null", "5", '"\\u0000"'],
    ),
    "b": (BOOL, ["true", "false", "null", '"true"', "0"]),
    "d": (DATE, ['"2024-02-29"', '"2023-02-29"', '""', "null", '"9999-12-31"', "20240101"]),
}
LINES = [
    "{}",
    "",
    " ",
    '{"i":1}{"i":2}',
    '{"i":1,"i":2}',
    '{"i":{"j":1}}',
    '{"i":[1]}',
    '{"z":3,"i":1}',
    "[1]",
    '{"i":1',
    "\ufeff{}",
]

DAMAGE = [bytes([c]) for c in b'09-.e+x ",:{}ni\\\n\t\r\xe9\x00'] + [b"null", b"inf", b"nan", b'"s"', b"[]"]


def _slowly(data: bytes, columns: list[JsonColumn]) -> tuple[int, dict[str, list[object]], bool]:
    found, errors = parse_lines(lines_of(data), decoder(exact=False))
    failed = bool(errors)
    values: dict[str, list[object]] = {}
    for column in columns:
        typed = column.convert([lookup(record, column.name) for record in found])
        failed = failed or bool(typed.errors)
        values[column.name] = typed.values.to_pylist()
    return len(found), values, failed


@pytest.mark.parametrize("nullable", [True, False])
def test_it_reads_what_python_reads(nullable: bool) -> None:
    rng = random.Random(3)
    columns = [JsonColumn(name, t.as_nullable() if nullable else t) for name, (t, _) in TOKENS.items()]
    reader = WholeLines(columns, list(TOKENS))
    assert reader.usable
    read = 0
    for _ in range(4000):
        usual = rng.random() < 0.6
        lines = []
        for _ in range(rng.randint(1, 4)):
            names = [name for name in TOKENS if usual or rng.random() < 0.9]
            pairs = [(n, TOKENS[n][1][0] if usual and rng.random() < 0.8 else rng.choice(TOKENS[n][1])) for n in names]
            lines.append("{" + ",".join(f'"{name}":{token}' for name, token in pairs) + "}")
        if rng.random() < 0.2:
            lines.insert(rng.randint(0, len(lines)), rng.choice(LINES))
        data = (rng.choice(["\n", "\r\n"]).join(lines) + rng.choice(["", "\n"])).encode()
        reader.unlike = 0
        found = reader.read(data)
        if found is not None:
            read += 1
            count, values, failed = _slowly(data, columns)
            assert not failed, data
            got = {name: array.to_pylist() for name, array in found[1].items()}
            assert (found[0], repr(got)) == (count, repr(values)), data
    assert read > 300


def test_bytes_that_are_no_text_are_left_to_python() -> None:
    reader = WholeLines([JsonColumn("s", STRING)], ["s"])
    assert reader.read(b'{"s":"a"}\n') is not None
    assert reader.read(b'{"s":"\xff"}\n') is None
    assert not WholeLines([JsonColumn("s", STRING)], ["a.s"]).usable


def _lines(rng: random.Random, between: str, last: str) -> bytes:
    """Lines that differ in their values only."""
    values = {
        "i": lambda: str(rng.choice([0, 7, -3, 10**18])),
        "f": lambda: rng.choice(["0", "0.5", "-1.25", "12345.678", "-0.0"][: rng.choice([4, 5])]),
        "s": lambda: '"' + rng.choice(["", "a,b", "{x}", "é", ":", "null"]) + '"',
        "b": lambda: rng.choice(["true", "false"]),
        "d": lambda: rng.choice(['"2024-02-29"', '"0001-01-01"']),
        "z": lambda: '"more"',
    }
    lines = []
    for _ in range(rng.randint(1, 5)):
        members = [f'"{name}":{between}{value()}' for name, value in values.items()]
        lines.append("{" + f",{between}".join(members) + last + "}")
    return "\n".join(lines).encode() + rng.choice([b"", b"\n"])


def test_lines_that_are_alike_with_a_damaged_byte() -> None:
    """Cutting at quotes is only another way to read what Python reads: whatever stands in a line, it gives the same, or
    nothing."""
    rng = random.Random(5)
    columns = [JsonColumn(name, t.as_nullable()) for name, (t, _) in TOKENS.items()]
    usual, damaged = 0, 0
    for _ in range(6000):
        data = bytearray(_lines(rng, rng.choice(["", " "]), rng.choice(["", " "])))
        whole = rng.random() < 0.2
        if not whole:
            at = rng.randrange(len(data))
            data[at : at + rng.choice([0, 1, 1, 2])] = rng.choice(DAMAGE)
        found = WholeLines(columns, list(TOKENS))._alike(bytes(data)) if is_text(bytes(data)) else None
        if found is not None:
            usual, damaged = usual + whole, damaged + (not whole)
            count, values, failed = _slowly(bytes(data), columns)
            assert not failed, data
            got = {name: array.to_pylist() for name, array in found[1].items()}
            assert (found[0], repr(got)) == (count, repr(values)), data
    assert usual > 500 and damaged > 200


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_record_on_two_lines_is_no_record(end: bytes) -> None:
    """Without a line end at the end there are as many line ends as objects, and Arrow's parser would take it."""
    columns = [JsonColumn(name, t.as_nullable()) for name, (t, _) in TOKENS.items()]
    assert WholeLines(columns, list(TOKENS))._parsed(b'{"i":1,"s":"a"}\n{"i":0,\n"s":"b"}' + end) is None


def test_numbers_as_json_has_them() -> None:
    good = ["0", "-1", "10", "0.5", "-0.25", "1.0", "123456789012345678901234567890.5"]
    bad = [
        "",
        "-",
        "+1",
        "01",
        "-01",
        "1.",
        ".5",
        "0x1F",
        "1e5",
        "1E5",
        "inf",
        "nan",
        "1_0",
        "--1",
        "1-2",
        "1.2.3",
        "00",
    ]
    for text in good:
        assert as_floats(pa.array(["1", text])).to_pylist() == [1.0, float(text)]
    for text in bad:
        assert as_floats(pa.array(["1", text])) is None, text
        assert as_ints(pa.array(["1", text])) is None, text
    assert as_ints(pa.array(["1.0"])) is None and as_ints(pa.array(["9223372036854775808"])) is None
    assert as_ints(pa.array(["-7", None, "0"])).to_pylist() == [-7, None, 0]


def test_names_of_lines_that_are_alike(tmp_path: Path) -> None:
    """The same names as of any other lines, in their order."""
    for text in ('{"a":1,"x":"1"}\n{"a":2,"x":"2"}\n', '{"a":1,"x":"1"}\n{"x":"2","y":3}\n', '{"a":1,"x":null}\n'):
        path = tmp_path / "in.json"
        path.write_text(text)
        names, slowly = Names(frozenset({"a"})), Names(frozenset({"a"}))
        names_of_lines(RecordFile(str(path), path.name, "none", len(text)), names)
        for record in parse_lines(lines_of(text.encode()), decoder(exact=False))[0]:
            slowly.add(record)
        assert names.found == slowly.found != ()


def test_one_bad_line_slows_down_its_neighbours_only() -> None:
    columns = [JsonColumn("i", INT), JsonColumn("s", STRING)]
    lines = [f'{{"i":{i},"s":"{"x" * 20}"}}' for i in range(5_000)]
    for bad in (0, 2_500, 4_999):
        data = "\n".join([*lines[:bad], '{"i":"seven"}', *lines[bad:]]).encode() + b"\n"
        parts = list(WholeLines(columns, ["i", "s"]).parts(data))
        assert b"".join(part for part, _ in parts) == data
        [slow] = [part for part, found in parts if found is None]
        assert b"seven" in slow and slow.count(b"\n") < 400
        read = [value for _, found in parts if found is not None for value in found[1]["i"].to_pylist()]
        assert sorted(read) == read and len(read) + slow.count(b"\n") == 5_001
    few = b'{"i":1,"s":"a"}\n{"i":"seven"}\n'
    assert list(WholeLines(columns, ["i", "s"]).parts(few)) == [(few, None)]


def test_long_pieces_are_cut_window_by_window() -> None:
    lines = [b'{"i":%d,"s":"text %d","f":%d.5}' % (i, i, i) for i in range(40_000)]
    columns = [JsonColumn(name, TOKENS[name][0]) for name in ("i", "s", "f")]
    reader = WholeLines(columns, ["i", "s", "f"])
    found = reader.read(b"\n".join(lines))
    assert found is not None
    assert found[0] == len(lines)
    assert found[1]["s"].to_pylist() == [f"text {i}" for i in range(40_000)]
    assert found[1]["f"].to_pylist() == [i + 0.5 for i in range(40_000)]
    layout = layout_of(lines[0])
    assert layout is not None
    for at in (0, 20_000, 39_999):
        for odd in (b'{"i":1,"s":"a","f":1.5,"g":2}', b'{"i":1,"s":"a"}', b'{"i":1,"s": "a","f":1.5}', b"", b"{}"):
            changed = [*lines[:at], odd, *lines[at + 1 :]]
            assert read_alike(b"\n".join(changed) + b"\n", layout, ["i"]) is None, (at, odd)
