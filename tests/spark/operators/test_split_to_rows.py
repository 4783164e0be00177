"""`split_to_rows`: each value of a field becomes a record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.reject.letter_files import read_letters
from clinker_spark.runtime.reject.replay import replay_plan
from clinker_spark.runtime.reject.replay_files import replay_files
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run

SCHEMA: list[dict[str, Any]] = [
    {"name": "id", "type": "int"},
    {"name": "sku", "type": "string", "nullable": True},
    {"name": "qty", "type": "int", "nullable": True},
    {"name": "line", "type": "int", "nullable": True},
]
ORDERS: list[dict[str, Any]] = [
    {"id": 1, "at": "a", "lines": [{"sku": "x", "qty": 2}, {"sku": "y", "qty": 3, "gift": True}]},
    {"id": 2, "at": "b", "lines": []},
    {"id": 3, "at": "c", "lines": {"sku": "z", "qty": 1}},
    {"id": 4, "at": "d", "lines": None},
    {"id": 5, "at": "e", "lines": [{"sku": "w", "qty": "many"}, {"sku": "v", "qty": 7}]},
]
XML = """<r>
<o><id>1</id><at>a</at><lines><sku>x</sku><qty>2</qty></lines><lines><sku>y</sku><qty>3</qty><gift>true</gift></lines></o>
<o><id>2</id><at>b</at></o>
<o><id>3</id><at>c</at><lines><sku>z</sku><qty>1</qty></lines></o>
<o><id>4</id><at>d</at></o>
<o><id>5</id><at>e</at><lines><sku>w</sku><qty>many</qty></lines><lines><qty>7</qty><sku>v</sku></lines></o>
</r>"""


def pipeline(kind: str, splits: list[Any], schema: list[dict[str, Any]] = SCHEMA, **more: Any) -> str:
    engine = more.pop("engine", "auto")
    path = "in." + ("xml" if kind == "xml" else "json")
    config = {"type": kind, "path": path, "schema": schema, "split_to_rows": splits, **more}
    out = {"type": "json", "path": "out.json", "options": {"format": "ndjson"}}
    return json.dumps(
        {
            "pipeline": {"name": "test", "engine": engine},
            "nodes": [
                {"type": "source", "name": "orders", "config": config},
                {"type": "output", "name": "out", "input": "orders", "config": out},
            ],
            "error_handling": {"strategy": "continue", "dlq": {"path": "dead.csv"}},
        }
    )


def found(bench: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in bench.text("out.json").splitlines()]


LINES = {"field": "lines", "position_column": "line"}


@pytest.mark.parametrize("kind", ["json", "ndjson", "xml"])
def test_values_become_records(bench: Any, kind: str) -> None:
    text = {"json": json.dumps(ORDERS), "ndjson": "\n".join(map(json.dumps, ORDERS)), "xml": XML}[kind]
    bench.file("in.xml" if kind == "xml" else "in.json", text)
    form = "xml" if kind == "xml" else "json"
    seen = []
    for engine in ("spark", "auto"):
        report = bench.run(pipeline(form, [LINES], engine=engine))
        seen.append(bench.text("out.json"))
        assert report.sources[0].records == 7 and report.dead_letters == 1
    assert seen[0] == seen[1]
    gift = "true" if kind == "xml" else True
    assert found(bench) == [
        {"id": 1, "sku": "x", "qty": 2, "line": 1, "at": "a"},
        {"id": 1, "sku": "y", "qty": 3, "line": 2, "at": "a", "gift": gift},
        {"id": 2, "at": "b"},
        {"id": 3, "sku": "z", "qty": 1, "line": 1, "at": "c"},
        {"id": 4, "at": "d"},
        {"id": 5, "sku": "v", "qty": 7, "line": 2, "at": "e"},
    ]
    [letter] = bench.letters()
    assert (letter["_cxl_dlq_source_row"], letter["sku"], letter["line"]) == ("6", "w", "1")
    # A letter is one of the records: fed again, it stays one.
    dead = bench.folder / "dead.csv"
    dead.write_text(dead.read_text().replace("5,w,many,1", "5,w,8,1"))
    plan = prepare(bench.folder / "pipeline.yaml")
    (bench.folder / "replay").mkdir()
    feed = replay_files(plan, read_letters(dead), bench.folder / "replay")
    report = run(replay_plan(plan), bench.spark, Options(files=feed.files, feed=feed, replay="files"))
    assert report.sources[0].records == 1 and report.dead_letters == 0
    expected = {"id": 5, "sku": "w", "qty": 8, "line": 1}
    [again] = [json.loads(line) for line in bench.text("out-replay.json").splitlines()]
    assert again == (expected if kind == "xml" else {**expected, "at": "e"})


def test_other_forms(bench: Any) -> None:
    bench.file("in.json", json.dumps(ORDERS[:4]))
    bench.file("in.xml", XML.replace("many", "5"))
    kept = [
        {"name": "id", "type": "int"},
        {"name": "sku", "type": "string", "nullable": True, "source_name": "lines.sku"},
    ]
    for kind, last in (("json", []), ("xml", [{"id": 5, "sku": "w"}, {"id": 5, "sku": "v"}])):
        splits = [{"field": "lines", "mode": "split", "keep_empty": False}]
        bench.run(pipeline(kind, splits, kept, on_unmapped="drop"))
        assert found(bench) == [{"id": 1, "sku": "x"}, {"id": 1, "sku": "y"}, {"id": 3, "sku": "z"}, *last]
    # Nested arrays, plain values, and two fields that multiply.
    schema = [{"name": n, "type": "any", "nullable": True, "source_name": s} for n, s in (("a", "a.b.c"), ("t", "t"))]
    records = [{"a": {"b": [{"c": [1, 2]}, {"c": [3]}]}, "t": ["p", "q"]}, {"a": {"x": 0}, "t": "r"}]
    bench.file("in.json", json.dumps(records))
    bench.run(pipeline("json", [{"field": "a.b", "mode": "split"}, "a.b.c", "t"], schema, on_unmapped="drop"))
    assert [(row.get("a"), row.get("t")) for row in found(bench)] == [
        *((1, "p"), (1, "q"), (2, "p"), (2, "q"), (3, "p"), (3, "q")),
        (None, "r"),
    ]


@pytest.mark.parametrize(
    ("kind", "splits"),
    [
        ("csv", ["lines"]),
        ("json", ["lines", "lines"]),
        ("json", ["lines", "lines.tags"]),
        ("json", [{"field": "lines.tags", "mode": "split"}, {"field": "lines", "mode": "split"}]),
        ("xml", [{"field": "lines", "mode": "split"}, "lines.tags"]),
        ("json", [{"field": "lines", "position_column": "lin"}]),
        ("json", ["tags"]),
    ],
)
def test_what_cannot_become_records(tmp_path: Any, kind: str, splits: list[Any]) -> None:
    schema = [*SCHEMA, {"name": "tags", "type": "string", "multiple": True}] if splits == ["tags"] else SCHEMA
    (tmp_path / "p.yaml").write_text(pipeline(kind, splits, schema))
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    assert [found.code for found in caught.value.diagnostics] == ["E358"]
