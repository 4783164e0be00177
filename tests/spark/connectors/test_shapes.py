"""Records as topics and tables take them: their columns, and which records cannot be taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clinker_spark.cxl.hidden import ERROR_TYPE
from clinker_spark.plan.prepare import prepare
from clinker_spark.spark.connectors.shapes import shape_of

SCHEMA = "{ id: int, text: nullable(string), list: array(nullable(float)), at: date_time, tags: map(string) }"
DDL = "id BIGINT, text STRING, list ARRAY<DOUBLE>, at TIMESTAMP_NTZ, tags MAP<STRING, STRING>"
ROWS = [
    "(1, 'a;\"b', array(1.5D, NULL), TIMESTAMP_NTZ'2026-01-02 03:04:05.5', map('k', 'v'))",
    "(2, 'nul' || chr(0), array(), TIMESTAMP_NTZ'2026-01-02 03:04:05', map())",
    "(3, NULL, array(double('NaN')), TIMESTAMP_NTZ'2026-01-02 03:04:05', map('k', 'a' || chr(0)))",
    "(4, '\\\\\\\\u0000', array(), TIMESTAMP_NTZ'2026-01-02 03:04:05', map('k', '\\\\\\\\u0000'))",
]
OUTPUTS = {
    "table": 'type: postgres, url: "postgresql://u@h/d", table: t',
    "json": 'type: kafka, brokers: "b:1", topic: t, key: id, headers: tags',
    "csv": 'type: kafka, brokers: "b:1", topic: t, format: csv, options: { delimiter: ";" }, exclude: [list, tags]',
    "raw": 'type: kafka, brokers: "b:1", topic: t, format: raw, key: id, exclude: [list, tags, at]',
}


def test_shapes(tmp_path: Path, quick: SparkSession) -> None:
    source = f'  - {{ type: source, name: s, config: {{ type: kafka, brokers: "b:1", topic: s, schema: {SCHEMA} }} }}\n'
    nodes = [
        f"  - {{ type: output, name: {name}, input: s, config: {{ {text} }} }}\n" for name, text in OUTPUTS.items()
    ]
    (tmp_path / "p.yaml").write_text("pipeline: { name: p }\nnodes:\n" + source + "".join(nodes))
    plan = prepare(tmp_path / "p.yaml")
    shapes = {node.name: shape_of(node) for node in plan.outputs}
    frame = quick.sql(f"SELECT * FROM VALUES {', '.join(ROWS)} AS t(id, text, list, at, tags)")
    frame = frame.select(*[F.col(part.split()[0]).cast(part.split(" ", 1)[1]) for part in DDL.split(", ", 4)])
    columns = [F.expr(sql).alias(f"{node}.{name}") for node, shape in shapes.items() for name, sql in shape.columns]
    columns += [
        F.expr(f"CAST({shape.error or 'NULL'} AS {ERROR_TYPE})").alias(f"{node}.error")
        for node, shape in shapes.items()
    ]
    rows: list[dict[str, Any]] = [
        row.asDict(recursive=True) for row in frame.select(*columns).orderBy("`table.id`").collect()
    ]
    first = rows[0]
    assert json.loads(first["table.list"]) == [1.5, None] and json.loads(first["table.tags"]) == {"k": "v"}
    assert json.loads(first["json.value"]) == {
        "id": 1, "text": 'a;"b', "list": [1.5, None], "at": "2026-01-02 03:04:05.500"
    }  # fmt: skip
    assert (first["json.key"], first["json.headers"]) == ("1", {"k": "v"})
    assert first["csv.value"].split(";", 1)[0] == "1" and '"a;""b"' in first["csv.value"]
    assert (first["raw.value"], first["raw.key"]) == ('a;"b', "1")
    assert rows[2]["raw.value"] is None
    failed = {name: [row["id"] for row in _failed(rows, name)] for name in OUTPUTS}
    assert failed == {"table": [2, 3], "json": [3], "csv": [], "raw": []}
    assert "U+0000" in rows[1]["table.error"]["message"]


def _failed(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [{"id": row["table.id"]} for row in rows if row[f"{name}.error"] is not None]
