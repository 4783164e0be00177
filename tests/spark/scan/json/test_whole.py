"""Arrow's parser gives what Python's gives, or leaves the piece to it."""

from __future__ import annotations

import random

import pytest

from clinker_spark.core.types import BOOL, DATE, FLOAT, INT, STRING, Type
from clinker_spark.spark.scan.json.documents import decoder
from clinker_spark.spark.scan.json.lines import lines_of, parse_lines
from clinker_spark.spark.scan.json.values import JsonColumn, lookup
from clinker_spark.spark.scan.json.whole import WholeLines

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
