"""JSON files as records: shapes, types, nesting and broken records without Spark; one read through Spark."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.formats import JsonRead
from clinker_spark.core.errors import InputError
from clinker_spark.spark.scan.json.documents import records
from clinker_spark.spark.scan.json.source import json_plan
from clinker_spark.spark.scan.record_batches import read_batches
from clinker_spark.spark.scan.record_plan import RecordFile
from clinker_spark.spark.scan.request import ReadRequest, SourceFile
from tests.support.read_requests import read_request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID, NAME = Column(name="id", type="int"), Column(name="name", type="nullable(string)")


def write(folder: Path, data: bytes | str, name: str = "f.json") -> SourceFile:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return SourceFile(str(path), name)


def request(files: Any, columns: tuple[Column, ...] = (ID, NAME), *, options: Any = None, **more: Any) -> ReadRequest:
    return read_request(files, columns, JsonRead(**(options or {})), **more)


def rows(req: ReadRequest, pieces: int = 1, piece: int = 1 << 20) -> list[dict[str, Any]]:
    size = max(sum(Path(f.path).stat().st_size for f in req.files), 1)
    plan = json_plan(req, parallelism=1, target=-(-size // pieces), smallest=1, piece=piece)
    return [row for split in plan.splits for batch in read_batches(plan, split) for row in batch.to_pylist()]


def bare(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(v for k, v in row.items() if not k.startswith("$")) for row in found]


def error(row: dict[str, Any]) -> tuple[Any, ...] | None:
    e = row["$error"]
    return None if e is None else (e["kind"], e["field"], e["value"])


def problems(req: ReadRequest) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        plan = json_plan(req, parallelism=1)
        [batch for split in plan.splits for batch in read_batches(plan, split)]
    return [(d.code, d.message) for d in caught.value.diagnostics]


ONE, TWO = '{"id": 1, "name": "a"}', '{"id": 2, "name": "b"}'


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"[{ONE},\n {TWO}]", {}),
        (f"{ONE}\n\n{TWO}\n", {}),
        (f"\ufeff  {ONE}\r\n{TWO}", {}),
        (f"\ufeff[{ONE},{TWO}]", {"format": "array"}),
        (
            f'{{"n": 2, "result": {{"x": [1], "items": [{ONE}, {TWO}], "y": {{}}}}, "z": 0}}',
            {"record_path": "result.items"},
        ),
        (f'{{"items": [{ONE}, {TWO}]}}', {"record_path": "items", "format": "array"}),
        (f'{{"items": [{ONE}, {TWO}]}}', {"record_path": "items", "format": "object"}),
    ],
)
def test_shapes(tmp_path: Path, text: str, options: dict[str, str]) -> None:
    assert bare(rows(request(write(tmp_path, text), options=options))) == [(1, "a"), (2, "b")]


def test_an_object_is_one_record_and_an_empty_file_none(tmp_path: Path) -> None:
    pretty = json.dumps({"id": 1, "name": "a"}, indent=2)
    assert bare(rows(request(write(tmp_path, pretty)))) == [(1, "a")]
    assert bare(rows(request(write(tmp_path, ONE), options={"format": "object"}))) == [(1, "a")]
    assert bare(rows(request(write(tmp_path, '{"r": {"id": 3}}'), options={"record_path": "r"}))) == [(3, None)]
    for empty in ("", " \n", "[]"):
        assert rows(request(write(tmp_path, empty))) == []


@pytest.mark.parametrize(
    ("name", "pack"), [("f.json.gz", gzip.compress), ("f.json.bz2", bz2.compress), ("f.zst", None)]
)
def test_compressed(tmp_path: Path, name: str, pack: Any) -> None:
    for text in (f"{ONE}\n{TWO}\n", f"[{ONE},{TWO}]"):
        data = text.encode()
        packed = pack(data) if pack else pa.compress(data, "zstd", asbytes=True)
        assert bare(rows(request(write(tmp_path, packed, name)))) == [(1, "a"), (2, "b")]


def test_any_number_of_splits_and_pieces_gives_the_same_rows(tmp_path: Path) -> None:
    kinds = ('{"id":%d,"name":"é"}', '{"id":"%d"}', "{%d", "", '{"id":%d,"more":1.50}', "[%d]", '{"id":%d},{"id":1}')
    file = write(tmp_path, "".join((k % i if "%" in k else k) + "\n" for i in range(40) for k in kinds))
    once = rows(request(file, positions=True, record=True))
    assert [row["$row"] for row in once] == list(range(1, 241))
    for pieces, piece in ((1, 50), (5, 1 << 20), (13, 17)):
        assert rows(request(file, positions=True, record=True), pieces, piece) == once
    assert rows(request(file, positions=True, record=True, limit=100), 7) == once[:100]


def test_bad_lines_stay_in_their_place(tmp_path: Path) -> None:
    data = f'{ONE}\nnot json\n[1]\n{{"id": NaN}}\n'.encode() + b'{"id": 1, "name": "\xff"}\n' + TWO.encode()
    found = rows(request(write(tmp_path, data), options={"format": "ndjson"}))
    assert bare(found)[0] == (1, "a") and bare(found)[-1] == (2, "b") and len(found) == 6
    assert [error(row) for row in found[1:5]] == [
        ("structural_validation", None, "not json"),
        ("structural_validation", None, "[1]"),
        ("structural_validation", None, '{"id": NaN}'),
        ("structural_validation", None, '{"id": 1, "name": "\ufffd"}'),
    ]
    assert found[1]["$error"]["message"] == "the line is not JSON, column 1: expecting value"


def test_broken_lines_that_look_whole_together_are_told_apart(tmp_path: Path) -> None:
    file = write(tmp_path, '{"id":1}\n{"a":[{"id":2}\n{"id":3}]}\n{"id":4},{"id":5}\n{"id":6}\n')
    found = rows(request(file, on_unmapped="drop"))
    # What stands before the place where a line breaks is known: its key may be there.
    known = [(row["id"], row["$error"] is None) for row in found]
    assert known == [(1, True), (None, False), (3, False), (4, False), (6, True)]


VALUES: list[tuple[str, str, Any]] = [
    ("int", "7", 7),
    ("int", "1.0", "type_coercion_failure"),
    ("int", '"7"', "type_coercion_failure"),
    ("int", "9223372036854775808", "type_coercion_failure"),
    ("int", "true", "type_coercion_failure"),
    ("int", "null", "missing_required_field"),
    ("nullable(int)", "null", None),
    ("float", "7", 7.0),
    ("float", "2.5e1", 25.0),
    ("float", "1e999", "type_coercion_failure"),
    ("decimal(2)", "1.10", Decimal("1.10")),
    ("decimal(2)", "1.105", "type_coercion_failure"),
    ("decimal(2)", '"12.5"', Decimal("12.50")),
    ("decimal(2)", '""', "missing_required_field"),
    ("decimal(0)", "1e3", Decimal(1000)),
    ("decimal", "0.1000", "0.1000"),
    ("decimal", "1e999999", "type_coercion_failure"),
    ("string", '"x"', "x"),
    ("string", '""', ""),
    ("string", "1", "type_coercion_failure"),
    ("string", "true", "type_coercion_failure"),
    ("string", "{}", "type_coercion_failure"),
    ("string", '"\\ud800"', "type_coercion_failure"),
    ("bool", "false", False),
    ("bool", '"true"', "type_coercion_failure"),
    ("bool", "0", "type_coercion_failure"),
    ("date", '"2024-02-29"', dt.date(2024, 2, 29)),
    ("date", '"2023-02-29"', "type_coercion_failure"),
    ("date", "20240229", "type_coercion_failure"),
    ("date_time", '"2024-03-05T14:00:00+02:00"', dt.datetime(2024, 3, 5, 12)),
    ("array(int)", "[1,2]", [1, 2]),
    ("array(int)", '[1,"2"]', "type_coercion_failure"),
    ("array(int)", "[1,null]", "type_coercion_failure"),
    ("array(nullable(decimal(1)))", "[1,null,2.5]", [Decimal("1.0"), None, Decimal("2.5")]),
    ("map(float)", '{"a":1}', [("a", 1.0)]),
    ("map(float)", "[]", "type_coercion_failure"),
]


@pytest.mark.parametrize("around", ["", '{"v": null}\n'])
@pytest.mark.parametrize(("kind", "text", "expected"), VALUES)
def test_types(tmp_path: Path, kind: str, text: str, expected: Any, around: str) -> None:
    file = write(tmp_path, f'{around}{{"v": {text}}}\n')
    row = rows(request(file, (Column(name="v", type=kind),)))[-1]
    if isinstance(expected, str) and expected.endswith(("_failure", "_field")):
        assert row["v"] is None and row["$error"]["kind"] == expected and row["$error"]["field"] == "v"
    else:
        assert (row["v"], row["$error"]) == (expected, None)
        assert type(row["v"]) is type(expected)


def test_any_takes_everything(tmp_path: Path) -> None:
    from clinker_spark.spark.columns.python_calls import from_arrow

    texts = ["1", "1.5", '"x"', "null", '{"b":[1,{"a":null}]}', "99999999999999999999", "true"]
    file = write(tmp_path, "".join(f'{{"v": {text}}}\n' for text in texts) + "{}\n")
    column = Column(name="v", type="any")
    found = [from_arrow(row["v"], column.data_type) for row in rows(request(file, (column,)))]
    assert found == [1, 1.5, "x", None, {"b": [1, {"a": None}]}, 1e20, True, None]


def test_nested_objects_are_dotted_columns(tmp_path: Path) -> None:
    columns = (
        Column(name="city", type="string", source_name="address.city"),
        Column(name="address.geo", type="map(float)"),
        Column(name="tags", type="array(string)"),
    )
    record = (
        '{"address": {"city": "Köln", "geo": {"lat": 50.9}, "zip": 5}, "tags": ["a"], "more": {"x": {"y": [1.50]}}}'
    )
    (row,) = rows(request(write(tmp_path, record), columns, record=True))
    assert (row["city"], row["address.geo"], row["tags"]) == ("Köln", [("lat", 50.9)], ["a"])
    assert row["$widened"] == [("address.zip", {"json": "5"}), ("more.x.y", {"json": "[1.50]"})]
    assert row["$record"] == {"city": "Köln", "address.geo": '{"lat":50.9}', "tags": '["a"]'}


def test_missing_and_double_keys(tmp_path: Path) -> None:
    found = rows(request(write(tmp_path, '{"name": "x"}\n{"id": 1, "id": 2}\n')))
    assert error(found[0]) == ("missing_required_field", "id", None)
    assert found[0]["$error"]["message"] == "'id' is missing, and its type Int is not nullable"
    assert bare(found)[1] == (2, None)


@pytest.mark.parametrize("lines", [True, False])
def test_undeclared_fields(tmp_path: Path, lines: bool) -> None:
    texts = ['{"id": 1, "o": null, "b": {"c": 1}}', '{"id": 2, "o": {"x": "t"}, "e": {}, "b": {"c": "s"}}', '{"id": 3}']
    file = write(tmp_path, "\n".join(texts) if lines else f"[{','.join(texts)}]")
    plan = json_plan(request(file), parallelism=1)
    assert sorted(plan.widened) == ["b.c", "o.x"]
    found = [[(name, value["json"]) for name, value in row["$widened"]] for row in rows(request(file))]
    assert found == [[("b.c", "1")], [("o.x", '"t"'), ("b.c", '"s"')], []]
    assert "$widened" not in rows(request(file, on_unmapped="drop"))[0]
    assert [p[0] for p in problems(request(file, on_unmapped="reject"))] == ["E228", "E228"]
    assert rows(request(write(tmp_path, ONE), on_unmapped="reject"))[0]["$error"] is None


def test_elements_that_are_no_records(tmp_path: Path) -> None:
    found = rows(request(write(tmp_path, f'[{ONE}, 17, "x", null, {TWO}]')))
    assert [error(row) for row in found[1:4]] == [("structural_validation", None, t) for t in ("17", '"x"', "null")]
    assert bare(found)[4] == (2, "b")


@pytest.mark.parametrize("chunk", [1, 2, 7, 1000])
def test_documents_are_read_in_chunks_of_any_size(tmp_path: Path, chunk: int) -> None:
    items = [{"a": 12.5, "s": 'é\\"\n😀', "n": [None, True, {"k": -3}]}, 1234, "x", [], {}]
    for text in (json.dumps(items), json.dumps(items, indent=3), json.dumps(items, ensure_ascii=False)):
        path = write(tmp_path, f'{{"skip": [1, {{"r": 2}}], "r": {text}, "z": "]"}}').path
        file = RecordFile(path, "f", "none", 0)
        assert [value for value, _, _ in records(file, "object", ("r",), exact=False, chunk=chunk)] == items


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (f"[{ONE},\n  {{]", {}, "line 2, column 4: expecting property name enclosed in double quotes"),
        (f"[{ONE} {TWO}]", {}, "line 1, column 25: ',' is missing between two records, there is '{'"),
        (f"[{ONE}", {}, "line 1, column 24: ',' is missing between two records, there is the end of the file"),
        (f"[{ONE}] x", {}, "line 1, column 26: something follows after the end of the document"),
        ('{\n "a": 1', {}, "line 2, column 8: expecting ',' delimiter"),
    ],
)
def test_documents_that_are_not_json(tmp_path: Path, text: str, options: Any, message: str) -> None:
    file = write(tmp_path, text)
    assert problems(request(file, options=options)) == [("E246", f"'f.json' is not JSON, {message}")]
    with pytest.raises(InputError, match="E246"):  # also where nothing was read before the tasks
        rows(request(file, options=options, on_unmapped="drop"))


def test_paths_and_files_that_do_not_fit(tmp_path: Path) -> None:
    file = write(tmp_path, '{"a": {"b": 3}}')
    for path, what in (
        ("a.c", "has no 'a.c', where the records should be"),
        ("a.b", "has something else than an array"),
    ):
        ((code, message),) = problems(request(file, options={"record_path": path}))
        assert code == "E246" and what in message
    assert problems(request(SourceFile(str(tmp_path / "no.json"), "no.json")))[0][0] == "E229"
    assert problems(request(SourceFile("s3a://b/x.json", "x.json")))[0][0] == "E248"
    assert problems(request(write(tmp_path, "x", "x.json.gz")))[0][0] == "E229"


def test_row_offsets(tmp_path: Path) -> None:
    files = [write(tmp_path, f"{ONE}\n" * 3, "a"), write(tmp_path, f"[{ONE},{TWO}]", "b"), write(tmp_path, ONE, "c")]
    for mode in ("drop", "auto_widen"):
        plan = json_plan(request(files, positions=True, on_unmapped=mode), parallelism=2, smallest=1)
        assert plan.row_offsets == (0, 3, 5)
    found = rows(request(files, positions=True), 4)
    assert [(row["$file"], row["$row"]) for row in found] == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (2, 1)]


def test_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    from clinker_spark.spark.scan.formats import read

    lines = "".join(f'{{"id": {i}, "name": null, "v": [{i}], "extra": {i}}}\n' for i in range(10))
    files = (write(tmp_path, lines, "b.json"), write(tmp_path, '[{"id": 10, "v": {"k": 1.5}}, {"id": "x"}]', "a.json"))
    columns = (ID, NAME, Column(name="v", type="any"))
    scan = read(spark, "json", request(files, columns, arrival=True, positions=True, record=True))
    assert (scan.fallible, scan.in_python, scan.widened, scan.row_offsets) == (True, True, ("extra",), (0, 10))
    found = scan.frame.collect()
    assert [row["id"] for row in found] == [*range(11), None]
    assert found[10]["v"].toPython() == {"k": 1.5} and found[3]["$widened"]["extra"]["json"] == "3"
    assert found[11]["$error"]["kind"] == "type_coercion_failure" and found[11]["$record"]["id"] == "x"
    arrivals = [row["$arrival"] for row in found]
    assert arrivals == sorted(set(arrivals))
    assert read(spark, "json", request(files, columns, wanted=frozenset(), on_unmapped="drop")).frame.count() == 12
    broken = write(tmp_path, '[{"id": 1}, {"id"', "c.json")
    with pytest.raises(Exception, match=r"E246: 'c\.json' is not JSON, line 1, column 18"):
        read(spark, "json", request(broken, on_unmapped="drop")).frame.collect()
