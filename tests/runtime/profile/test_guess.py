"""`clinker guess`: what it proposes is what a run reads, for every format and for odd files."""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from clinker_spark.cli.clinker.main import clinker
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.profile.proposals import Proposal, pipeline_text, propose
from clinker_spark.runtime.profile.types import guess_texts, guess_values
from clinker_spark.spark.scan.json.values import ABSENT
from tests.support.workbench import Workbench

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
FILES: dict[str, bytes] = {
    "orders.csv": b"\xef\xbb\xbfOrder ID;when;price;zip;flag;note;big;n\r\n"
    b"1;31/12/2026;1.50;007;true;a;12345678901234567890;NA\r\n"
    b'2;01/02/2027;20.25;12345;false;"b;\r\nc";1;3\r\n3;05/06/2027;7.00;99999;true;;2;4\r\n4;ragged\r\n',
    "latin.tsv": b"id\tname\n1\tM\xfcller\n2\t\x80uro\n",
    "pipes.txt": b"a|b\n1| 2\n3|4 \n",
    "header.csv": b"id,name\n",
    "nameless.csv": b"1,2026-01-01,x\n2,2026-01-02,y\n",
    "lines.json": b'{"id":1,"a":{"b":2.5},"tags":["x"],"t":"2026-01-02","big":12345678901234567890}\n'
    b'{"id":2,"a":{"b":3},"tags":[],"u":null,"t":null,"big":1}\nnope\n',
    "array.json": b'[{"id":1,"at":"2026-01-02T03:04:05"},{"id":2,"at":"2026-01-02T03:04:06"}]',
    "inside.json": b'{"meta":{"n":2},"result":{"items":[{"id":1},{"id":2}]}}',
    "catalogue.xml": b'<c><p id="1"><n>a</n><t>x</t><t>y</t></p><p id="2"><n>b</n></p></c>',
    "fixed.dat": b"AB  12 xx\nCD   3 yy\n",
    "plain.csv": b"word\nhello\nworld\n",
}
TYPES = {
    "orders.csv": "order_id int, when date %d/%m/%Y, price decimal(2), zip string, flag bool, note string, "
    "big decimal(0), n nullable(int)",
    "latin.tsv": "id int, name string",
    "pipes.txt": "a int, b int",
    "header.csv": "id nullable(string), name nullable(string)",
    "nameless.csv": "column_1 int, column_2 date, column_3 string",
    "lines.json": "id int, a.b float, tags array(string), t nullable(date), big decimal(0), u any",
    "array.json": "id int, at date_time",
    "inside.json": "id int",
    "catalogue.xml": "id int, n string, t nullable(array(string))",
    "fixed.dat": "column_1 string, column_2 int, column_3 string",
    "plain.csv": "word string",
    "table.parquet": "id nullable(int), at nullable(date_time), list nullable(array(string))",
}


def files(folder: Path) -> list[Path]:
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    at = pa.array(["2026-01-02T03:04:05"]).cast(pa.timestamp("us"))
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "at": at, "list": [["x"]]}), folder / "table.parquet")
    return [folder / name for name in TYPES]


def columns(path: Path) -> str:
    text = pipeline_text(propose([path]))
    (path.parent / "guess.yaml").write_text(text)
    found = prepare(path.parent / "guess.yaml").sources[0].columns
    return ", ".join(f"{c.name} {c.type}{f' {c.format}' if c.format else ''}" for c in found)


def test_types_of_all_formats(tmp_path: Path) -> None:
    assert {path.name: columns(path) for path in files(tmp_path)} == TYPES


def test_what_is_guessed_runs_as_it_is(bench: Workbench) -> None:
    result = CliRunner().invoke(clinker, ["guess", *map(str, files(bench.folder))], standalone_mode=False)
    report = bench.run(result.output)
    records = {output.name.removesuffix("_out"): output.records for output in report.outputs}
    wanted = {"orders": 3, "header": 0, "table": 1}
    assert records == {name.split(".")[0]: wanted.get(name.split(".")[0], 2) for name in TYPES}
    assert sorted(
        letter["_cxl_dlq_source_file"].rpartition("/")[2] for letter in bench.letters("out/dead-letters.csv")
    ) == [
        "lines.json",
        "orders.csv",
    ]
    [first, *_] = csv.DictReader((bench.folder / "out/orders.csv").open(newline=""))
    assert first["zip"] == "007" and first["when"] == "2026-12-31" and first["big"] == "12345678901234567890"
    assert "Müller" in bench.text("out/latin.csv") and "€uro" in bench.text("out/latin.csv")
    assert json.loads(bench.text("out/catalogue.json"))[0] == {"id": 1, "n": "a", "t": ["x", "y"]}


def test_comments_say_how_much_a_choice_covers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,d\n" + "1,2026-01-01\n" * 99 + "x,01/02/2026\n")
    text = pipeline_text(propose([tmp_path / "a.csv"]))
    assert "100 % of 100 values; 99 % are int, and 'x' is none" in text
    assert "99 % are date, and '01/02/2026' is none" in text
    assert "100 % of 101 lines have 2 values" in text


@pytest.mark.parametrize(
    ("texts", "type_", "format_"),
    [
        (["1", "-2", "+3"], "int", None),
        (["9223372036854775807", "9223372036854775808"], "decimal(0)", None),
        (["1" * 39], "string", None),
        (["0", "10"], "int", None),
        (["0123", "5"], "string", None),
        (["1.5", "2.25"], "float", None),
        (["1.50", "2.25", "3"], "decimal(2)", None),
        (["1e5", "2"], "float", None),
        (["0.5", "0.7"], "decimal(1)", None),
        (["true", "False"], "bool", None),
        (["yes", "no"], "string", None),
        (["20260131", "20251231"], "date", "%Y%m%d"),
        (["20260131", "99999999"], "int", None),
        (["2026-01-31 08:00", "2026-02-01 09:30"], "date_time", None),
        (["31-01-2026 08:00"], "date_time", "%d-%m-%Y %H:%M"),
        (["13.01.2026 08:00:01"], "date_time", "%d.%m.%Y %H:%M:%S"),
        (["12/31/2026", "01/02/2026"], "date", "%m/%d/%Y"),
        ([" 1", "2"], "string", None),
        (["", "1"], "nullable(int)", None),
        (["", "x"], "string", None),
        ([None, "x"], "nullable(string)", None),
        ([""], "string", None),
    ],
)
def test_types_of_texts(texts: list[str | None], type_: str, format_: str | None) -> None:
    found = guess_texts(texts)
    assert (found.type, found.format) == (type_, format_)


def test_dates_that_nothing_tells_apart() -> None:
    assert "%m/%d/%Y fits as well" in guess_texts(["01/02/2026"]).note


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1, 2.5], "float"),
        ([1, "x"], "any"),
        ([None, ABSENT], "any"),
        ([True, None], "nullable(bool)"),
        ([[1, None], [2]], "array(nullable(int))"),
        ([[{"a": 1}]], "array(any)"),
        (["5", "6"], "string"),
        ([2**70], "decimal(0)"),
    ],
)
def test_types_of_json_values(values: list[object], type_: str) -> None:
    assert guess_values(values).type == type_


def test_files_that_are_alike_are_one_source(tmp_path: Path) -> None:
    for name, text in {"a1.csv": "x\n1\n", "a2.csv": "x\nq\n", "b.csv": "y\n1\n"}.items():
        (tmp_path / name).write_text(text)
    found: list[Proposal] = propose([tmp_path / name for name in ("a1.csv", "a2.csv", "b.csv")])
    assert [(len(item.paths), item.columns[next(iter(item.columns))].type) for item in found] == [
        (2, "string"),
        (1, "int"),
    ]


@pytest.mark.parametrize(
    ("content", "code"), [(b"", "E444"), (b" \n\n", "E444"), (b"<a><b></a>", "E444"), (None, "E229")]
)
def test_files_without_anything_to_guess_from(content: bytes | None, code: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(ClinkerError) as error:
        propose([tmp_path / "x.csv"])
    assert [found.code for found in error.value.diagnostics] == [code]


ODD: tuple[bytes, ...] = (
    b'"multi\nline","b"\n1,"x\ny"\n',
    b"a,a,\n1,2,3\n",
    b"a,b\n1\n",
    b"\x00\x01\x02\xff",
    b'{"$x":1,"a b":2,"":3,"a.b":4,"a":{"b":5}}\n{"$x":2}\n',
    b"[]",
    b"{}",
    b"[1,2]",
    b'"text"',
    b"<a/>",
    b'{"no": true, "yes": "on", "null": 1}\n',
    "a,b\n1,\x99\n".encode("utf-16"),
)


def test_odd_and_damaged_files_give_a_pipeline_or_a_diagnostic(tmp_path: Path) -> None:
    """Some hundred files, cut and changed at random: what is proposed can be planned."""
    rng = random.Random(5)
    for number, data in enumerate([*FILES.values(), *ODD] * (20 if EVERYTHING else 4)):
        damaged = bytearray(data)
        for _ in range(rng.randint(0, 4)):
            at = rng.randrange(len(damaged) + 1)
            if rng.random() < 0.5:
                del damaged[at : at + rng.randint(1, 5)]
            else:
                damaged[at:at] = rng.choice([b'"', b"\n", b",", b"{", b"]", b"\xff", b"<", b"0"])
        path = tmp_path / f"f{number}{'.gz' if number % 9 == 8 else ''}"
        path.write_bytes(gzip.compress(damaged) if number % 9 == 8 else damaged)
        try:
            text = pipeline_text(propose([path]))
        except ClinkerError as error:
            assert {found.code for found in error.diagnostics} <= {"E444", "E246", "E452"}
            continue
        (tmp_path / "p.yaml").write_text(text)
        prepare(tmp_path / "p.yaml")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", Path("/dev/zero")):
        with pytest.raises(ClinkerError) as caught:
            propose([path])
        assert [d.code for d in caught.value.diagnostics] == ["E435"]
