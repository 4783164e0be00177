"""Parquet files through Spark: types, order, positions. The SQL of single columns is tested without it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as st

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.formats import ParquetRead
from clinker_spark.core.errors import InputError
from clinker_spark.spark.scan.parquet.columns import column_problem, resolve
from clinker_spark.spark.scan.request import ReadRequest, SourceFile
from tests.support.read_requests import read_request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from clinker_spark.spark.scan.request import Scan

ID = Column(name="id", type="int")


def write(folder: Path, columns: dict[str, Any], name: str = "f.parquet", **more: Any) -> SourceFile:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), path, **more)
    return SourceFile(str(path), name)


def request(files: Any, columns: tuple[Column, ...] = (ID,), **more: Any) -> ReadRequest:
    return read_request(files, columns, ParquetRead(), **more)


def scan_of(spark: SparkSession, req: ReadRequest) -> Scan:
    from clinker_spark.spark.scan.formats import read

    return read(spark, "parquet", req)


def test_columns_inside_of_structs() -> None:
    inner = st.StructType([st.StructField("b", st.IntegerType())])
    schema = st.StructType([st.StructField("a", inner), st.StructField("x.y", st.StringType())])
    found = resolve(schema, "a.b")
    assert found is not None and (found.sql, found.type) == ("`a`.`b`", st.IntegerType())
    assert resolve(schema, "x.y").sql == "`x.y`"  # type: ignore[union-attr]
    assert resolve(schema, "a.c") is None and resolve(schema, "x") is None
    assert column_problem(Column(name="n", type="nullable(int)"), found) is None
    assert "missing_required_field" in str(column_problem(Column(name="n", type="int"), found))
    assert "type_coercion_failure" in str(column_problem(Column(name="n", type="nullable(decimal(12))"), found))


def test_types_errors_and_texts(spark: SparkSession, tmp_path: Path) -> None:
    file = write(
        tmp_path,
        {
            "i": pa.array([1, None, 3], pa.int16()),
            "f": pa.array([1.5, 2.0, 0.1]),
            "d": pa.array([Decimal("1.250"), Decimal("1.000"), Decimal("1.255")], pa.decimal128(10, 3)),
            "n": pa.array([Decimal("0.00000010")] * 3, pa.decimal128(10, 8)),
            "at": pa.array([dt.datetime(2024, 3, 5, 14, 0, 0, 500000)] * 3, pa.timestamp("us", "UTC")),
            "day": pa.array([dt.date(2024, 3, 5)] * 3),
            "list": pa.array([[1, 2]] * 3, pa.list_(pa.int32())),
            "s": pa.array([{"k": 1, "t": "x"}] * 3),
            "odd `x`": ["q"] * 3,
            "more": pa.array([1.5, None, 2.0], pa.float32()),
        },
    )
    columns = (
        Column(name="key", type="int", source_name="i"),
        *(
            Column(name=name, type=kind)
            for name, kind in {
                "f": "float",
                "d": "decimal(2)",
                "n": "decimal",
                "at": "date_time",
                "day": "date",
                "list": "array(int)",
                "s.k": "int",
                "odd `x`": "any",
                "none": "nullable(date)",
            }.items()
        ),
    )
    scan = scan_of(spark, request(file, columns, positions=True, record=True, arrival=True))
    assert (scan.fallible, scan.in_python, scan.widened, scan.row_offsets) == (True, False, ("more",), (0,))
    assert [f.dataType.simpleString() for f in scan.frame.schema.fields[:10]] == [
        *("bigint", "double", "decimal(29,2)", "string", "timestamp_ntz", "date", "array<bigint>", "bigint", "variant"),
        "date",
    ]
    good, empty, long = scan.frame.collect()
    assert good[:8] == (
        *(1, 1.5, Decimal("1.25"), "0.00000010", dt.datetime(2024, 3, 5, 14, 0, 0, 500000), dt.date(2024, 3, 5)),
        *([1, 2], 1),
    )
    assert good["odd `x`"].toPython() == "q" and good["none"] is None and good["$error"] is None
    assert good["$widened"]["more"]["json"] == "1.5" and good["$file"] == 0
    assert [row["$row"] for row in (good, empty, long)] == [1, 2, 3]
    assert good["$record"].asDict() == {
        **{"key": "1", "f": "1.5", "d": "1.250", "n": "0.00000010", "at": "2024-03-05 14:00:00.500"},
        **{"day": "2024-03-05", "list": "[1,2]", "s.k": "1", "odd `x`": "q", "none": None},
    }
    assert (empty["$error"]["kind"], empty["$error"]["field"]) == ("missing_required_field", "key")
    assert (long["$error"]["kind"], long["$error"]["value"]) == ("type_coercion_failure", "1.255")


def test_order_over_row_groups_files_and_folders(spark: SparkSession, tmp_path: Path) -> None:
    def numbers(start: int, count: int) -> dict[str, Any]:
        ids = range(start, start + count)
        return {"id": list(ids), "text": [f"{i:>40}" for i in ids]}

    first = write(tmp_path, numbers(0, 3000), "z.parquet", row_group_size=100)
    write(tmp_path, numbers(3000, 10), "folder/part-1.parquet")
    write(tmp_path, numbers(3010, 10), "folder/part-2.parquet")
    folder = SourceFile(str(tmp_path / "folder"), "folder")
    last = write(tmp_path, {"id": [3020, 3021], "new": ["a", "b"]}, "a [1].parquet")
    setting = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(setting)
    spark.conf.set(setting, str(Path(first.path).stat().st_size // 7))
    open_cost = "spark.sql.files.openCostInBytes"
    cost_before = spark.conf.get(open_cost)
    spark.conf.set(open_cost, "0")
    try:
        scan = scan_of(spark, request([first, folder, last], arrival=True, positions=True))
        assert scan.frame.rdd.getNumPartitions() >= 8
        found = scan.frame.collect()
    finally:
        spark.conf.set(setting, before)  # type: ignore[arg-type]
        spark.conf.set(open_cost, cost_before)  # type: ignore[arg-type]
    assert scan.widened == ("text", "new") and scan.row_offsets == (0, 3000, 3020)
    assert [row["id"] for row in found] == list(range(3022))
    assert [scan.row_offsets[row["$file"]] + row["$row"] for row in found] == list(range(1, 3023))
    arrivals = [row["$arrival"] for row in found]
    assert arrivals == sorted(set(arrivals))
    assert found[-1]["$widened"]["new"]["json"] == '"b"'
    limited = scan_of(spark, request([first, folder, last], limit=3005, on_unmapped="drop"))
    assert [row["id"] for row in limited.frame.collect()] == list(range(3005))


def test_projection_and_nothing_fallible(spark: SparkSession, tmp_path: Path) -> None:
    file = write(tmp_path, {"id": [1, 2], "x": ["a", None]})
    column = Column(name="x", type="nullable(string)")
    scan = scan_of(spark, request(file, (column,), on_unmapped="drop"))
    assert not scan.fallible and scan.frame.columns == ["x"]
    assert scan_of(spark, request(file, (ID, column), wanted=frozenset(), on_unmapped="drop")).frame.count() == 2
    assert scan_of(spark, request(file, (ID,), limit=0)).frame.count() == 0


def test_files_that_do_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    file = write(tmp_path, {"id": ["1"], "amout": [1]})
    (tmp_path / "none").mkdir()
    (tmp_path / "text.parquet").write_text("no parquet at all")
    columns = (ID, Column(name="amount", type="int"))
    cases = [
        (request(file, columns), ["E247", "E228"]),
        (request(file, (Column(name="id", type="string"),), on_unmapped="reject"), ["E228"]),
        (request(SourceFile(str(tmp_path / "no.parquet"), "no.parquet")), ["E229"]),
        (request(SourceFile(str(tmp_path / "none"), "none")), ["E229"]),
        (request(SourceFile(str(tmp_path / "text.parquet"), "text.parquet")), ["E229"]),
    ]
    for req, codes in cases:
        with pytest.raises(InputError) as caught:
            scan_of(spark, req)
        assert [d.code for d in caught.value.diagnostics] == codes
    with pytest.raises(InputError) as caught:
        scan_of(spark, request(file, columns))
    first, second = caught.value.diagnostics
    assert first.message == "column 'id' is int in the schema and string in 'f.parquet'"
    assert second.help == "did you mean 'amout'?"
