"""Files of queries: nothing is lost or changed by guessing types, and a record that cannot be used is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import clinker_spark
from clinker_spark.core.errors import ClinkerError
from clinker_spark.query.failures import Failed
from clinker_spark.query.files import csv as csv_files
from clinker_spark.query.files.formats import file_source
from clinker_spark.query.files.guesses import guessed
from clinker_spark.query.prepare import prepare
from clinker_spark.query.program import compile_query, run
from clinker_spark.runtime.query.engine import QueryEngine


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["1", "-20", "0"], "Int"),
        (["1", ""], "Int?"),
        (["9223372036854775807", "-9223372036854775808"], "Int"),
        (["9223372036854775808"], "String"),
        (["12345678901234567", "1.5"], "String"),
        (["9007199254740992", "1.5"], "Float"),
        (["10.50", "3.25", "7"], "Float"),
        (["1.5", "2.25"], "Float"),
        (["1.1", "1.10"], "String"),
        (["0.1234567890123456789"], "String"),
        (["", ""], "String"),
        *[([text], "String") for text in ("007", "00", "-0", "01.5", "1e5", "1E5", "+5", " 5", "5 ", "0x10", "1_000")],
        *[
            ([text], "String")
            for text in ("NaN", "nan", "inf", "-Infinity", "1,5", "1.", ".5", "-", "٣", "+4930123456")
        ],
        *[([text], "String") for text in ("2024-01-05", "2024-1-5", "true", "TRUE", "yes", "null", "1\n", "1.5\n")],
        (["5"] * 1000 + ["005"], "String"),
    ],
)
def test_only_what_comes_back_as_it_was_is_a_number(texts: list[str], wanted: str) -> None:
    assert f"{guessed(pa.array(texts)):?}" == wanted


def rows_of(spark: SparkSession, text: str) -> Any:
    engine = QueryEngine(lambda: spark)
    return engine.rows(run(prepare(compile_query(text), engine), engine))


def test_texts_of_csv_files_come_out_as_they_stand(quick: SparkSession, tmp_path: Path) -> None:
    """Among them a line end and a delimiter in quotes, and columns in another order in a second file."""
    lines = [
        "zip,qty,price,note,big",
        "007,5,10.50, a ,12345678901234567890",
        '+49,,3.25,"x\ny,""z""",1',
        "1e5,7,1.00,,",
    ]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "b.csv").write_text("\ufeffbig,note,price,qty,zip\n\n1,é,2.00,-1,NaN\n")
    rows = rows_of(quick, f'from r in load "{tmp_path}/*.csv" select r')
    assert rows == [
        {"zip": "007", "qty": 5, "price": 10.5, "note": " a ", "big": "12345678901234567890"},
        {"zip": "+49", "qty": None, "price": 3.25, "note": 'x\ny,"z"', "big": "1"},
        {"zip": "1e5", "qty": 7, "price": 1.0, "note": "", "big": ""},
        {"zip": "NaN", "qty": -1, "price": 2.0, "note": "é", "big": "1"},
    ]


BROKEN: dict[str, tuple[str, bytes, str, str]] = {
    "too many values": ("a.csv", b"id,n\n1,2\n\n3,4,5\n6,7\n", "E712", "record 2 of '{}' has 3 values, not 2: 3,4,5"),
    "too few values": ("a.tsv", b"id\tn\n1\t2\n3\n", "E712", "record 2 of '{}' has 1 value, not 2: 3"),
    "bad bytes": ("a.csv", b"id,n\n1,2\n3,\xff\n", "E712", "line 3 of '{}' is not UTF-8"),
    "bad bytes in the header": ("a.csv", b"id,\xff\n1,2\n", "E712", "line 1 of '{}' is not UTF-8"),
    "broken json line": ("a.jsonl", b'{"id": 1}\n\n{"id": 2\n', "E712", "line 3 of '{}' is not JSON: "),
    "two values in a line": ("a.jsonl", b'{"id": 1} {"id": 2}\n', "E712", "line 1 of '{}' is not JSON: Extra data"),
    "NaN in json": ("a.jsonl", b'{"id": NaN}\n', "E712", "line 1 of '{}' is not JSON: NaN is no JSON number"),
    "bad bytes in json": ("a.jsonl", b'{"id": 1}\n{"id": "\xe9"}\n', "E712", "line 2 of '{}' is not UTF-8"),
    "broken json document": ("a.json", b'[{"id": 1}, {"id": 2]', "E712", "'{}' is not JSON: "),
    "no record": ("a.jsonl", b'{"id": 1}\n[2]\n', "E707", "'{}' is not jsonl: its rows are no records"),
    "broken yaml": ("a.yaml", b"- {id: 1\n- {id: 2}\n", "E707", "'{}' is not yaml: "),
    "bad bytes in yaml": ("a.yaml", b"- {id: \xff}\n", "E707", "'{}' is not yaml: "),
    "cut parquet": ("a.parquet", b"PAR1 not", "E707", "'{}' is not parquet: "),
    "two columns of one name": ("a.csv", b"id,id\n1,2\n", "E707", "'{}' is not csv: two columns have one name"),
    "column without a name": ("a.csv", b"id,\n1,2\n", "E707", "column 2 of '{}' has no name"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_record_that_cannot_be_used_is_named(tmp_path: Path, name: str) -> None:
    file, content, code, message = BROKEN[name]
    path = tmp_path / file
    path.write_bytes(content)
    with pytest.raises(Failed) as error:
        file_source(str(path), {}, None)
    assert error.value.code == code
    assert error.value.message.startswith(message.format(path)), error.value.message


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("jsonl", '{"n": 1}\n{"n": 12345678901234567890}\n'),
        ("json", '[{"n": 1.5}, {"n": 9007199254740993}]'),
        ("json", '[{"n": [{"m": 1}]}, {"n": [{"m": 0}, {"m": 9223372036854775808}]}]'),
        ("yaml", "- {n: 1}\n- {n: 12345678901234567890}\n"),
    ],
)
def test_numbers_that_a_column_would_change(tmp_path: Path, kind: str, content: str) -> None:
    (tmp_path / f"a.{kind}").write_text(content)
    with pytest.raises(Failed, match=r"record 2 of .*: [0-9]+ has more digits than") as error:
        file_source(f"{tmp_path}/a.{kind}", {}, None)
    assert error.value.code == "E712"


def test_files_with_different_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [1], "more": [2]}), tmp_path / "b.parquet")
    with pytest.raises(Failed, match=r"a[.]parquet' has no column 'more', but other files have it"):
        file_source(f"{tmp_path}/*.parquet", {}, None)
    (tmp_path / "a.csv").write_text("id,n\n1,2\n")
    (tmp_path / "b.csv").write_text("id,m\n1,2\n")
    with pytest.raises(Failed, match="has no column 'm', but other files have it") as error:
        file_source(f"{tmp_path}/*.csv", {}, None)
    assert error.value.code == "E713"


def test_what_only_spark_sees_stops_the_query_and_is_named(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files whose types are declared, and large ones of which only the beginning was looked at. The query needs none
    of the columns."""
    path = tmp_path / "a.csv"

    def told(content: str, query: str) -> str:
        path.write_bytes(content.encode("latin-1"))
        with pytest.raises(ClinkerError) as error:
            engine = QueryEngine(lambda: quick)
            value = run(prepare(compile_query(query), engine), engine)
            engine.rows(value)
        (found,) = error.value.diagnostics
        assert found.code == "E712"
        return found.message

    declared = f'type T {{id: int, n: string}}\ncount(load "{path}" as T)'
    assert told("id,n\n1,a\nx,b\n", declared).endswith(
        f"record 2 of '{path}' cannot be used: " + "cannot convert 'x' to Int: column id"
    )
    many = "1,a\n" * 5000
    assert f"record 5001 of '{path}' cannot be used: the value is not utf-8" in told(f"id,n\n{many}1,\xff\n", declared)
    monkeypatch.setattr(csv_files, "WHOLE", 100)
    monkeypatch.setattr(csv_files, "_BLOCK", 1000)
    rows = "".join(f"{i},{i}.50\n" for i in range(1000, 2000))
    some = f'sum(from r in load "{path}" select r.n)'
    assert f"record 1001 of '{path}' cannot be used: column 'n' has numbers at the beginning, but also: 07" in told(
        f"id,n\n{rows}1,07\n", some
    )
    assert "has 3 values" in told(f"id,n\n{rows}1,1.50,3\n", f'count(load "{path}")')


def test_fields_that_appear_late_in_a_long_file_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from clinker_spark.query.files import documents as files

    monkeypatch.setattr(files, "WHOLE", 100)
    monkeypatch.setattr(files, "_JSON_BLOCK", 200)
    path = tmp_path / "a.jsonl"
    same = "".join(json.dumps({"id": i}) + "\n" for i in range(100))
    for last, wanted in (('{"id": 5}', "Int"), ('{"id": 1.5}', "Float"), ('{"id": 1, "new": true}', "Int")):
        path.write_text(same + last + "\n")
        row = file_source(str(path), {}, None).row
        assert str(dict(row.fields)["id"]).startswith(wanted)
        assert ("new" in row.names) is ("new" in last)


def test_parquet_that_breaks_while_it_is_read(quick: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": list(range(5000))}), path, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[20:40] = b"\xff" * 20  # the header of the first page
    path.write_bytes(data)
    with pytest.raises(ClinkerError) as error:
        clinker_spark.query(f'sum(from r in load "{path}" select r.id)')
    assert error.value.diagnostics[0].code in ("E707", "E705")


def test_names_that_look_like_patterns_and_lists_without_elements(quick: SparkSession, tmp_path: Path) -> None:
    """Spark takes paths for patterns. A list that is empty in one record has the type that it has in the others."""
    rows = [{"id": 1, "tags": [], "none": []}, {"id": 2, "tags": ["a", "b"], "none": []}, {"id": 3, "tags": []}]
    texts = {"jsonl": "\n".join(map(json.dumps, rows)), "json": json.dumps(rows), "yaml": json.dumps(rows)}
    parts = []
    for kind, text in texts.items():
        (tmp_path / f"a [1]{{2}}.{kind}").write_text(text)
        parts.append(f'(from r in load "{tmp_path}/a [1]{{2}}.{kind}" select {{id: r.id, tags: r.tags, none: r.none}})')
    pq.write_table(pa.table({"id": [4], "tags": [["c"]], "none": [[]]}), tmp_path / "b[1].parquet")
    parts.append(f'(from r in load "{tmp_path}/b[1].parquet" select {{id: r.id, tags: r.tags, none: [] + r.tags}})')
    found = rows_of(quick, " union all ".join(parts))
    wanted = [rows[0], rows[1], {**rows[2], "none": None}]
    assert found == [*wanted * 3, {"id": 4, "tags": ["c"], "none": ["c"]}]
