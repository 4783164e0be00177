"""The example with a program in Python, against its expected files; and the same through the interpreter."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinker_spark.cxl import EvalError, compile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parents[2] / "examples" / "25-program-from-python"
SOURCE = (HERE / "program.cxl").read_text(encoding="utf-8")
COLUMNS = ["id", "name", "joined", "orders", "spent", "status"]
PROGRAM = compile(SOURCE, dict.fromkeys(COLUMNS, "string"))


def expected(name: str) -> list[dict[str, str]]:
    with (HERE / "expected" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def texts(row: dict[str, Any], like: dict[str, str]) -> dict[str, str]:
    return {name: str(row[name]) for name in like}


def test_spark(spark: SparkSession) -> None:
    rows = PROGRAM.apply(spark.read.csv(str(HERE / "data" / "customers.csv"), header=True)).collect()
    good = [row.asDict() for row in rows if row["$error"] is None]
    bad = [{"id": row["id"], **row["$error"].asDict()} for row in rows if row["$error"] is not None]
    output, letters = expected("output.csv"), expected("dead_letters.csv")
    assert [texts(row, output[0]) for row in good] == output
    assert [texts(row, letters[0]) for row in bad] == letters


def test_interpreter() -> None:
    good, bad = [], []
    with (HERE / "data" / "customers.csv").open(encoding="utf-8", newline="") as file:
        for raw in csv.DictReader(file):
            record = {name: value or None for name, value in raw.items()}
            try:
                good += [{**record, **row} for row in PROGRAM.evaluate(record)]
            except EvalError as error:
                found = {"kind": error.kind, "field": error.field, "value": error.value, "message": error.message}
                bad.append({"id": record["id"], **found})
    output, letters = expected("output.csv"), expected("dead_letters.csv")
    assert [texts(row, output[0]) for row in good] == output
    assert [texts(row, letters[0]) for row in bad] == letters
