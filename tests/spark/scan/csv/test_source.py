"""CSV files through Spark: types, order and engine columns. What a file may look like is tested without Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.formats import CsvRead
from clinker_spark.core.errors import InputError
from tests.support.read_requests import read_request

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = tuple(
    Column(name=name, type=kind)
    for name, kind in {
        "i": "int",
        "f": "float",
        "d": "decimal(2)",
        "n": "decimal",
        "b": "bool",
        "s": "string",
        "day": "date",
        "at": "date_time",
        "a": "any",
        "odd `name`": "nullable(int)",
    }.items()
)
HEADER = "i,f,d,n,b,s,day,at,a,odd `name`,more\n"
GOOD = '1,2.5,3.10,4.50,true,"x\ny",2024-03-05,2024-03-05T14:07:09Z,any,,extra\n'


def read(spark: SparkSession, files: list[Path], columns: tuple[Column, ...] = COLUMNS, pieces: int = 1, **more: Any):  # type: ignore[no-untyped-def]
    from clinker_spark.spark.scan.csv.source import read_csv
    from clinker_spark.spark.scan.request import SourceFile

    named = tuple(SourceFile(str(path), path.name) for path in files)
    target = -(-sum(path.stat().st_size for path in files) // pieces)
    return read_csv(spark, read_request(named, columns, CsvRead(), **more), target=target, smallest=1)


def test_every_type_arrives_as_it_should(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(HEADER + GOOD + "no\n" + GOOD.replace("1,", "x,", 1))
    scan = read(spark, [path], arrival=True, positions=True, record=True)
    assert scan.fallible and scan.in_python and scan.widened == ("more",)
    assert [f"{f.name} {f.dataType.simpleString()}" for f in scan.frame.schema.fields] == [
        "i bigint",
        "f double",
        "d decimal(29,2)",
        "n string",
        "b boolean",
        "s string",
        "day date",
        "at timestamp_ntz",
        "a variant",
        "odd `name` int".replace("int", "bigint"),
        "$error struct<kind:string,field:string,value:string,message:string>",
        "$widened map<string,string>",
        "$file int",
        "$row bigint",
        "$record struct<i:string,f:string,d:string,n:string,b:string,s:string,day:string,at:string,a:string,"
        "odd `name`:string>",
        "$line string",
        "$arrival bigint",
    ]
    good, ragged, bad = scan.frame.collect()
    assert good[:8] == (
        1,
        2.5,
        Decimal("3.10"),
        "4.50",
        True,
        "x\ny",
        dt.date(2024, 3, 5),
        dt.datetime(2024, 3, 5, 14, 7, 9),
    )
    assert good["a"].toPython() == "any"
    assert (good["odd `name`"], good["$error"], good["$widened"]) == (None, None, {"more": "extra"})
    assert good["$record"]["d"] == "3.10"
    assert (good["$line"], ragged["$line"]) == (GOOD.rstrip("\n"), "no")
    assert (ragged["i"], ragged["$error"]["kind"], ragged["$row"]) == (None, "structural_validation", 2)
    assert (bad["i"], bad["f"], bad["$error"]["field"], bad["$error"]["value"]) == (None, 2.5, "i", "x")


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_partitions_stand_in_file_order(spark: SparkSession, tmp_path: Path, pieces: int) -> None:
    columns = (Column(name="i", type="int"), Column(name="s", type="string"))
    paths = [tmp_path / "b.csv", tmp_path / "a.csv", tmp_path / "empty.csv"]
    paths[0].write_text("i,s\n" + "".join(f'{i},"l\n{i}"\n' for i in range(30)))
    paths[1].write_text("s,i\n" + "".join(f"t,{i}\n" for i in range(30, 60)))
    paths[2].write_text("i,s\n")
    scan = read(spark, paths, columns, pieces, arrival=True, positions=True)
    assert scan.frame.rdd.getNumPartitions() >= pieces
    found = scan.frame.collect()
    assert [row["i"] for row in found] == list(range(60))
    assert [(row["$file"], row["$row"]) for row in found] == [(i // 30, i % 30 + 1) for i in range(60)]
    arrivals = [row["$arrival"] for row in found]
    assert arrivals == sorted(set(arrivals))


def test_projection_and_no_records(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(HEADER)
    scan = read(spark, [path], wanted=frozenset({"s"}), on_unmapped="drop")
    assert scan.frame.columns == ["s", "$error"]
    assert scan.frame.count() == 0
    path.write_text(HEADER + GOOD)
    assert read(spark, [path], wanted=frozenset(), on_unmapped="drop", limit=5).frame.count() == 1


def test_problems_are_told_before_the_run(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("j\n")
    with pytest.raises(InputError):
        read(spark, [path], (Column(name="i", type="int"),))
