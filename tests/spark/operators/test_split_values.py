"""Texts that hold several values, from every format that has texts."""

from __future__ import annotations

import csv
import json
import re
from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare

COLUMNS = [
    {"name": "id", "type": "int"},
    {"name": "tags", "type": "string", "multiple": True, "source_name": "Tags", "width": 12},
    {"name": "n", "type": "int", "multiple": True, "nullable": True, "width": 8},
    {"name": "days", "type": "date", "multiple": True, "width": 22},
]
SPLITS = [
    {"field": "Tags", "delimiter": "|", "escape": "\\"},
    "n",
    {"field": "days", "delimiter": ", "},
]
ROWS: list[tuple[str, str, str, str]] = [
    ("1", r"a|b\|c|\\", "1;2;3", "2026-01-01, 2026-02-01"),
    ("2", "", "", ""),
    ("3", "x||", "7", "2026-03-01"),
    ("4", "y", "1;x", ""),
]
EXPECTED = [
    {"id": 1, "tags": ["a", "b|c", "\\"], "n": [1, 2, 3], "days": ["2026-01-01", "2026-02-01"]},
    {"id": 2, "tags": [], "days": []},
    {"id": 3, "tags": ["x", "", ""], "n": [7], "days": ["2026-03-01"]},
]


def source(kind: str, options: dict[str, Any] | None = None) -> dict[str, Any]:
    columns = [{**column} for column in COLUMNS]
    if kind == "fixed_width":
        columns[0]["width"] = 2
        columns[1].pop("source_name")
    else:
        for column in columns:
            column.pop("width", None)
    splits = [s if kind != "fixed_width" or s is not SPLITS[0] else {**SPLITS[0], "field": "tags"} for s in SPLITS]  # type: ignore[dict-item]
    config = {"type": kind, "path": f"rows.{kind}", "schema": columns, "split_values": splits, **(options or {})}
    return {"type": "source", "name": kind, "config": config}


def test_cells_with_json_arrays(bench: Any) -> None:
    """A cell that is no array of its type makes its record a dead letter, which is replayed once it is corrected."""
    from clinker_spark.runtime.reject.letter_files import read_letters
    from clinker_spark.runtime.reject.replay import replay_plan
    from clinker_spark.runtime.reject.replay_files import replay_files
    from clinker_spark.runtime.run.options import Options
    from clinker_spark.runtime.run.pipeline import run

    rows = [
        (1, ["a", 'b;"c"', ""], "[1, -2]", "[1, 2.5, 1e3]", "x;y"),
        (2, [], "", "[]", ""),
        (3, ["z"], "[9223372036854775808]", "[]", ""),
        (4, ["z"], '["1"]', "[]", ""),
        (5, ["z"], "[1", "[NaN]", ""),
        (6, ["z"], "[null]", "[]", ""),
    ]
    columns = """[{ name: id, type: int, width: 2 }, { name: tags, type: string, multiple: true, width: 20 },
                 { name: n, type: nullable(int), multiple: true, width: 22 },
                 { name: x, type: float, multiple: true, width: 14 },
                 { name: more, type: string, multiple: true, width: 4 }]"""
    splits = "[{ field: tags, json: true }, { field: n, json: true }, { field: x, json: true }, more]"
    lines = [[str(i), json.dumps(tags), n, x, more] for i, tags, n, x, more in rows]
    with open(bench.file("rows.csv", ""), "w", newline="") as file:
        csv.writer(file).writerows([["id", "tags", "n", "x", "more"], *lines])
    bench.file("rows.txt", "".join(f"{a:>2}{b:20}{c:22}{d:14}{e:4}\n" for a, b, c, d, e in lines))
    nodes = []
    for kind, path in (("csv", "rows.csv"), ("fixed_width", "rows.txt")):
        plain = columns if kind == "fixed_width" else re.sub(", width: [0-9]+", "", columns)
        nodes.append(f"""
  - type: source
    name: {kind}
    config: {{ type: {kind}, path: {path}, schema: {plain}, split_values: {splits} }}
  - type: output
    name: {kind}_out
    input: {kind}
    config: {{ type: json, path: {kind}.json, options: {{ format: ndjson }} }}
""")
    rest = "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"
    bench.run("pipeline: { name: test }\nnodes:" + "".join(nodes) + rest)
    for kind in ("csv", "fixed_width"):
        assert [json.loads(line) for line in bench.text(f"{kind}.json").splitlines()] == [
            {"id": 1, "tags": ["a", 'b;"c"', ""], "n": [1, -2], "x": [1.0, 2.5, 1000.0], "more": ["x", "y"]},
            {"id": 2, "tags": [], "x": [], "more": []},
        ]
    letters = bench.letters()
    assert [row["id"].strip() for row in letters] == ["3", "4", "5", "6"] * 2
    assert {row["_cxl_dlq_error_category"] for row in letters} == {"type_coercion_failure"}
    bench.run("pipeline: { name: test }\nnodes:" + nodes[0] + rest)
    bench.file("dead.csv", bench.text("dead.csv").replace('[""1""]', "[1]"))
    plan = prepare(bench.folder / "pipeline.yaml")
    (bench.folder / "replay").mkdir()
    feed = replay_files(plan, read_letters(bench.folder / "dead.csv"), bench.folder / "replay")
    report = run(replay_plan(plan), bench.spark, Options(files=feed.files, feed=feed, replay="files"))
    assert (report.sources[0].records, report.dead_letters) == (4, 3)


def test_texts_become_values(bench: Any) -> None:
    bench.file("rows.csv", "id,Tags,n,days\n" + "".join(f'{a},{b},{c},"{d}"\n' for a, b, c, d in ROWS))
    bench.file(
        "rows.json",
        json.dumps([dict(zip(("id", "Tags", "n", "days"), (int(r[0]), *r[1:]), strict=True)) for r in ROWS]),
    )
    cells = "".join(f"<r><id>{a}</id><Tags>{b}</Tags><n>{c}</n><days>{d}</days></r>" for a, b, c, d in ROWS)
    bench.file("rows.xml", f"<rows>{cells}</rows>")
    bench.file("rows.fixed_width", "".join(f"{a:>2}{b:12}{c:8}{d:22}\n" for a, b, c, d in ROWS))
    kinds = ("csv", "json", "xml", "fixed_width")
    nodes = [source(kind) for kind in kinds]
    for kind in kinds:
        options = {"type": "json", "path": f"out-{kind}.json", "options": {"format": "ndjson"}}
        nodes.append({"type": "output", "name": f"{kind}_out", "input": kind, "config": options})
    pipeline = {
        "pipeline": {"name": "test"},
        "nodes": nodes,
        "error_handling": {"strategy": "continue", "dlq": {"path": "dead.csv"}},
    }
    bench.run(json.dumps(pipeline))
    for kind in kinds:
        found = [json.loads(line) for line in bench.text(f"out-{kind}.json").splitlines()]
        expected = EXPECTED
        if kind == "json":  # an empty text is a text
            expected = [EXPECTED[0], {**EXPECTED[1], "n": []}, EXPECTED[2]]
        assert found == expected, kind
    letters = bench.letters()
    assert [(row["_cxl_dlq_source_row"], row["_cxl_dlq_stage"], row["n"]) for row in letters] == [
        ("4", f"transform:{kind}/values", f"{'1;x':8}" if kind == "fixed_width" else "1;x") for kind in kinds
    ]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"split_values": ["tags"]}, "E358"),
        ({"split_values": ["id", "Tags", "n", "days"]}, "E358"),
        ({"split_values": ["Tags", "Tags", "n", "days"]}, "E358"),
        ({"split_values": ["Tags", "n"]}, "E361"),
        ({"split_values": [{"field": "Tags", "delimiter": ""}, "n", "days"]}, "E007"),
        ({"split_values": [{"field": "Tags", "escape": "ab"}, "n", "days"]}, "E007"),
        ({"type": "json", "split_values": [{"field": "Tags", "json": True}, "n", "days"]}, "E358"),
    ],
)
def test_what_cannot_be_split(tmp_path: Any, change: dict[str, Any], code: str) -> None:
    out = {"type": "output", "name": "out", "input": "csv", "config": {"type": "json", "path": "out.json"}}
    (tmp_path / "p.yaml").write_text(json.dumps({"pipeline": {"name": "t"}, "nodes": [source("csv", change), out]}))
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    assert code in [found.code for found in caught.value.diagnostics]
    assert caught.value.diagnostics[0].help and caught.value.diagnostics[0].span
