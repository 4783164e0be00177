"""Broken lines: they belong to their group when their key can be read, and their letters keep their bytes."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from clinker_spark.runtime.errors import DataError

HANDLING = "error_handling: { strategy: continue, dlq: { path: dead.csv }%s }"
PIPELINE = """
pipeline: { name: test }
nodes:
  - type: source
    name: orders
    config: { type: %s, path: %s, %s schema: { %s }, correlation_key: %s }
  - type: transform
    name: keep
    input: orders
    config: { cxl: "emit twice = amount * 2" }
  - { type: output, name: out, input: keep, config: { type: csv, path: out.csv } }
"""
SCHEMA = "order: string, amount: int"


def pipeline(kind: str, path: str, more: str = "", schema: str = SCHEMA, key: str = "order", handling: str = "") -> str:
    return PIPELINE % (kind, path, more, schema, key) + HANDLING % handling


def source_line(letter: dict[str, str]) -> bytes:
    text = letter["_cxl_dlq_source_line"]
    return base64.b64decode(text) if letter["_cxl_dlq_source_line_encoding"] == "base64" else text.encode()


def places(letters: list[dict[str, str]]) -> list[tuple[str, str, bytes]]:
    return [(x["_cxl_dlq_source_row"], x["_cxl_dlq_trigger"], source_line(x)) for x in letters]


CSV = [
    (b"a,1", None),
    (b"b,2", "held"),
    (b"c,3", None),
    (b"b,x,y", "too many"),
    (b"d,4", "held"),
    (b"d", "too few"),
    (b"e,5", "held"),
    (b"e,\xff", "no utf-8"),
    (b"f,6", "held"),
    (b'f,"6', "open"),
    (b"\xff,7", "unreadable"),
    (b"a,8", None),
]


def test_csv_records_hold_back_their_groups(bench: Any) -> None:
    bench.file("orders.csv", b"order,amount\n" + b"\n".join(line for line, _ in CSV))
    report = bench.run(pipeline("csv", "orders.csv"))
    assert bench.text("out.csv") == "order,amount,twice\na,1,2\nc,3,6\na,8,16\n"
    wanted = [(str(i), "false" if why == "held" else "true", line) for i, (line, why) in enumerate(CSV, 1) if why]
    assert places(bench.letters()) == wanted
    assert {x["_cxl_dlq_source_header"] for x in bench.letters()} == {"order,amount"}
    [warning] = report.warnings
    assert warning.code == "W453"
    assert (
        warning.message
        == "1 record of 'orders' failed before the key 'order' could be read: no group is withheld for it"
    )
    with pytest.raises(DataError) as caught:
        bench.run(pipeline("csv", "orders.csv", handling=", unreadable_key: stop"))
    assert [d.code for d in caught.value.diagnostics] == ["E454"]
    assert bench.left_over() == [] and "a,8,16" in bench.text("out.csv")


def test_the_general_way_of_holding_groups_back(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # A total makes the run look at all groups together: other code, the same letters.
    text = pipeline("csv", "orders.csv", "options: { delimiter: ';', encoding: iso-8859-1 },")
    total = """
  - type: aggregate
    name: sums
    input: orders
    config: { group_by: [order], cxl: "emit total = sum(amount)" }
  - { type: output, name: totals, input: sums, config: { type: csv, path: totals.csv } }
error_handling"""
    lines = [b"a;1", b"b\xe9;2", b"b\xe9;3;4", b"c", b'"d\r\n";4', b'"d\r\n";x', b"a;5"]
    bench.file("orders.csv", b"order;amount\r\n" + b"\r\n".join(lines) + b"\r\n")
    report = bench.run(text.replace("\nerror_handling", total))
    assert bench.text("out.csv") == "order,amount,twice\na,1,2\na,5,10\n"
    assert bench.text("totals.csv") == "order,total\na,6\n"
    found = places(bench.letters())
    triggers = [(row, line) for row, trigger, line in found if trigger == "true"]
    assert triggers == [("3", lines[2]), ("4", lines[3]), ("6", lines[5])]
    assert {(row, line) for row, trigger, line in found if trigger == "false"} == {("2", lines[1]), ("5", lines[4])}
    assert report.warnings == []
    # Many letters are written by Spark, with the same content.
    few = bench.letters()
    monkeypatch.setattr("clinker_spark.runtime.reject.letter_writer.FEW_LETTERS", -1)
    bench.run(bench.text("pipeline.yaml"))
    for one, other in zip(few, bench.letters(), strict=True):
        changing = ("_cxl_dlq_id", "_cxl_dlq_timestamp")
        assert {k: v for k, v in one.items() if k not in changing} == {
            k: v for k, v in other.items() if k not in changing
        }


def test_json_and_fixed_width(bench: Any) -> None:
    lines = [
        b'{"order": "a", "amount": 1}',
        b'{"order": "b", "amount": 2}',
        b'{"order": "b", "amount": 2,',
        b' {"order": "c", "amount": "\xff"}',
        b'{"order": "c", "amount": 3}',
        b'{"amount": 4, "order": "a',
        b'{"order": "d", "amount": 5}',
    ]
    bench.file("orders.json", b"\n".join(lines))
    report = bench.run(pipeline("json", "orders.json", "options: { format: ndjson },"))
    assert bench.text("out.csv") == "order,amount,twice\na,1,2\nd,5,10\n"
    assert [line for _, _, line in places(bench.letters())] == lines[1:6]
    assert [w.message.split(" failed")[0] for w in report.warnings] == ["1 record of 'orders'"]
    records = [b"a  1", b"b  2", b"b", b"c  3", b"c   ", b"d  4", b"\xff\xff", b"e  \xff", b"e  5", b""]
    bench.file("orders.txt", b"\n".join(records))
    schema = "order: { type: string, width: 2 }, amount: { type: int, width: 2 }"
    report = bench.run(pipeline("fixed_width", "orders.txt", schema=schema))
    assert bench.text("out.csv") == "order,amount,twice\na,1,2\nb,2,4\nd,4,8\n"
    assert [line for _, _, line in places(bench.letters())] == [records[i] for i in (2, 3, 4, 6, 7, 8)]
    assert [w.message.split(" failed")[0] for w in report.warnings] == ["2 records of 'orders'"]


def test_without_the_record_there_is_no_line(bench: Any) -> None:
    bench.file("orders.csv", b"order,amount\na,x\n")
    bench.run(pipeline("csv", "orders.csv").replace("dead.csv", "dead.csv, include_source_row: false"))
    assert not any(name.startswith("_cxl_dlq_source_l") or name == "order" for name in bench.letters()[0])
