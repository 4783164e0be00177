"""Several kinds of records in one file, as delimited and as fixed-width lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain import explain
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run

CSV = """
      type: csv
      glob: "in/*.csv"
      schema:
        discriminator: { field: kind }
        records:
          - id: head
            tag: H
            columns:
              - { name: kind, type: string }
              - { name: batch, type: int }
              - { name: day, type: date, format: "%d.%m.%Y" }
          - id: item
            tag: D
            columns: [{ name: kind, type: string }, { name: id, type: int }, { name: amount, type: float }]
          - id: note
            tag: N
            columns:
              - { name: kind, type: string }
              - { name: id, type: int }
              - { name: text, type: string }
              - { name: more, type: nullable(string) }
          - { id: tail, tag: T, columns: [{ name: kind, type: string }, { name: number, type: int }] }
        structure: [{ record: tail, count: number }]
"""
FIXED = """
      type: fixed_width
      glob: "in/*.txt"
      schema:
        discriminator: { start: 0, width: 1 }
        records:
          - id: head
            tag: H
            columns: [{ name: batch, type: int, start: 1, width: 3 }, { name: day, type: date, start: 4, width: 8 }]
          - id: item
            tag: D
            columns: [{ name: id, type: int, start: 1, width: 3 }, { name: amount, type: float, start: 4, width: 6 }]
          - id: note
            tag: N
            columns:
              - { name: id, type: int, start: 1, width: 3 }
              - { name: text, type: string, start: 4, width: 6 }
              - { name: more, type: nullable(string), start: 10, width: 4 }
          - { id: tail, tag: T, columns: [{ name: number, type: int, start: 1, width: 4 }] }
        structure: [{ record: tail, count: number }]
"""
PIPELINE = """
pipeline: {{ name: test, engine: {engine} }}
nodes:
  - type: source
    name: lines
    config: {source}
      envelope:
        sections:
          head: {{ extract: {{ record_type: H }}, fields: {{ batch: int, day: date }} }}
{more}
  - type: transform
    name: marked
    input: lines
    config: {{ cxl: "emit batch = $doc.head.batch\\nemit day = $doc.head.day\\nemit twice = amount * 2" }}
  - type: output
    name: out
    input: marked
    config: {{ type: json, path: out.json, options: {{ format: ndjson }} }}
error_handling: {{ strategy: {strategy}, dlq: {{ path: dead.csv }} }}
"""
FILES = {
    "csv": {
        "a": 'kind,a,b\nH,1,31.01.2026\nD,1,10.5\nN,1,"he said ""x, y""",z\nD,x,3\nQ,1\nD,2\nN,3,"open,\nT,6\n',
        "b": "H,2,01.02.2026\r\nD,7,1\r\n\r\nN,8,,\r\nT,2\r\n",
        "c": "\ufeffD,9,0.5\nT,1",
    },
    "txt": {
        "a": 'H00120260131\nD  1  10.5\nN  1x, y  z   \nD  x   3.0\nQ  1\nD  2\nN  3"open,    \nT   6\n',
        "b": "H00220260201          \nD  7   1.0     \n\nN  8          \nT   2",
        "c": "\ufeffD  9   0.5\nT   1",
    },
}


def pipeline(kind: str, engine: str = "auto", more: str = "", strategy: str = "continue") -> str:
    source = {"csv": CSV, "txt": FIXED}[kind]
    return PIPELINE.format(source=source, engine=engine, more=more, strategy=strategy)


def deliver(bench: Any, kind: str) -> None:
    for name, text in FILES[kind].items():
        bench.file(f"in/{name}.{kind}", text)


def lines(bench: Any, name: str = "out.json") -> list[dict[str, Any]]:
    return [json.loads(line) for line in bench.text(name).splitlines()]


@pytest.mark.parametrize("kind", ["csv", "txt"])
def test_lines_become_records_of_their_kinds(bench: Any, kind: str) -> None:
    deliver(bench, kind)
    seen = []
    for engine in ("spark", "auto"):
        report = bench.run(pipeline(kind, engine))
        seen.append(
            (
                bench.text("out.json"),
                [
                    {k: v for k, v in row.items() if "_dlq_id" not in k and "_timestamp" not in k}
                    for row in bench.letters()
                ],
            )
        )
        assert [source.records for source in report.sources] == [9]
    assert seen[0] == seen[1]
    found = [{name: value for name, value in row.items() if name != "kind"} for row in lines(bench)]
    text = 'he said "x, y"' if kind == "csv" else "x, y"
    assert found[:2] == [
        {"record_type": "item", "batch": 1, "day": "2026-01-31", "id": 1, "amount": 10.5, "twice": 21.0},
        {"record_type": "note", "batch": 1, "day": "2026-01-31", "id": 1, "text": text, "more": "z"},
    ]
    rest = found[2:] if kind == "csv" else found[3:]
    assert rest == [
        {"record_type": "item", "batch": 2, "day": "2026-02-01", "id": 7, "amount": 1.0, "twice": 2.0},
        {"record_type": "note", "batch": 2, "day": "2026-02-01", "id": 8, "text": ""},
        {"record_type": "item", "id": 9, "amount": 0.5, "twice": 1.0},
    ]
    told = [(row["_cxl_dlq_source_row"], row["_cxl_dlq_error_category"], row["record_type"]) for row in bench.letters()]
    expected = [("3", "type_coercion_failure", "item"), ("4", "structural_validation", "")]
    expected += [("5", "structural_validation", "item")]
    assert told == ([*expected, ("6", "structural_validation", "note")] if kind == "csv" else expected)
    messages = [row["_cxl_dlq_error_detail"] for row in bench.letters()]
    assert "no kind of record has the tag 'Q'; the tags are H, D, N, T" in messages[1]
    assert ("2 values, records of kind 'item' have 3" if kind == "csv" else "4 bytes, the schema has 10") in messages[2]


def wrong_files(kind: str) -> Iterator[tuple[str, str]]:
    good = {"csv": "D,1,1\nD,2,2\n", "txt": "D  1   1.0\nD  2   2.0\n"}[kind]
    tail = {"csv": "T,{}\n", "txt": "T{:>4}\n"}[kind]
    yield good, "has no record of kind 'tail'"
    yield good + tail.format(3), "counts 3 records, and there are 2"
    yield good + tail.format(2) + good, "behind its trailer"
    yield good + tail.format(2) * 2, "more than one record of kind 'tail'"
    yield good + tail.format("x"), "is no number"
    yield "", "has no record of kind 'tail'"


@pytest.mark.parametrize("kind", ["csv", "txt"])
def test_files_that_are_not_whole(bench: Any, kind: str) -> None:
    deliver(bench, kind)
    for text, message in wrong_files(kind):
        bench.file(f"in/w.{kind}", text)
        with pytest.raises(ClinkerError) as caught:
            bench.run(pipeline(kind))
        [problem] = caught.value.diagnostics
        assert problem.code == "E346" and message in problem.message and f"w.{kind}" in problem.message
        assert not (bench.folder / "out.json").exists()
    bench.run(pipeline(kind, more="      files: { on_bad_file: skip }"))
    assert [row["_cxl_dlq_error_category"] for row in bench.letters()].count("bad_file") == 1


@pytest.mark.parametrize("kind", ["csv", "txt"])
def test_large_files_in_pieces(tmp_path: Path, kind: str) -> None:
    from clinker_spark.spark.build.source_columns import conventions_of
    from clinker_spark.spark.scan.files import SourceFile
    from clinker_spark.spark.scan.kinds.source import kinds_plan
    from clinker_spark.spark.scan.record_batches import read_batches
    from clinker_spark.spark.scan.request import ReadRequest

    (tmp_path / "p.yaml").write_text(pipeline(kind))
    [node] = prepare(tmp_path / "p.yaml").sources
    text = "".join(FILES[kind]["a"].splitlines(keepends=True)[:-1]) * 50
    text += {"csv": "T,300\n", "txt": "T 300\n"}[kind]
    path = tmp_path / f"big.{kind}"
    path.write_text(text.replace("kind,a,b\n", ""))
    asked = {"positions": True, "record": True}
    file = SourceFile(str(path), path.name, path.stat().st_size)
    request = ReadRequest(
        node.name, (file,), node.columns, node.config.options, conventions_of(node, "drop", ()), **asked
    )  # type: ignore[arg-type]
    seen = []
    for pieces, piece in ((1, 1 << 20), (7, 64), (3, 1000)):
        plan = kinds_plan(request, parallelism=1, target=-(-len(text) // pieces), smallest=1, piece=piece)
        seen.append([row for split in plan.splits for b in read_batches(plan, split) for row in b.to_pylist()])
    assert seen[0] == seen[1] == seen[2]
    assert [row["$row"] for row in seen[0]] == list(range(1, 301))


@pytest.mark.parametrize("kind", ["csv", "txt"])
def test_corrected_lines_are_replayed(bench: Any, kind: str) -> None:
    from clinker_spark.runtime.reject.letter_files import read_letters
    from clinker_spark.runtime.reject.replay import replay_plan
    from clinker_spark.runtime.reject.replay_files import replay_files

    deliver(bench, kind)
    text = pipeline(kind).replace("emit batch = $doc.head.batch\\nemit day = $doc.head.day\\n", "")
    bench.run(text)
    plan = prepare(bench.folder / "pipeline.yaml")
    (bench.folder / "replay").mkdir()
    feed = replay_files(plan, read_letters(bench.folder / "dead.csv"), bench.folder / "replay")
    report = run(replay_plan(plan), bench.spark, Options(files=feed.files, feed=feed, replay="files"))
    count = 4 if kind == "csv" else 3
    assert report.sources[0].records == count and report.dead_letters == count


def test_the_discriminator_may_be_called_record_type(bench: Any) -> None:
    """The column says the id of the kind. A column that has ints in one kind and floats in another is of floats."""
    from clinker_spark.runtime.reject.letter_files import read_letters
    from clinker_spark.runtime.reject.replay import replay_plan
    from clinker_spark.runtime.reject.replay_files import replay_files

    bench.file("in.csv", "record_type,a,b\nD,1,10\nN,2,0.5\nD,3,x\n")
    report = bench.run("""
pipeline: { name: test }
nodes:
  - type: source
    name: lines
    config:
      type: csv
      path: in.csv
      schema:
        discriminator: { field: record_type }
        records:
          - { id: item, tag: D, description: what is sold, columns: { record_type: string, id: int, n: integer } }
          - { id: note, tag: N, columns: { record_type: string, id: int, n: numeric } }
  - { type: output, name: out, input: lines, config: { type: csv, path: out.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
""")
    assert bench.text("out.csv") == "record_type,id,n\nitem,1,10\nnote,2,0.5\n"
    assert [(row["record_type"], row["n"]) for row in bench.letters()] == [("item", "x")]
    plan = prepare(bench.folder / "pipeline.yaml")
    corrected = bench.text("dead.csv").replace(",x", ",7")
    bench.file("dead.csv", corrected)
    (bench.folder / "replay").mkdir()
    feed = replay_files(plan, read_letters(bench.folder / "dead.csv"), bench.folder / "replay")
    report = run(replay_plan(plan), bench.spark, Options(files=feed.files, feed=feed, replay="files"))
    assert (report.sources[0].records, report.dead_letters) == (1, 0)


CHANGES = [
    ("discriminator: { field: kind }", "discriminator: { start: 0, width: 1 }", "E342"),
    ("discriminator: { field: kind }", "discriminator: { field: batch }", "E342"),
    ("tag: D", "tag: H", "E342"),
    ("id: note", "id: item", "E342"),
    ("id: note", "ident: note", "E005"),
    ("{ name: text, type: string }", "{ name: amount, type: string }", "E342"),
    ("{ name: text, type: string }", "{ name: record_type, type: string }", "E342"),
    ("{ name: text, type: string }", "{ name: text, type: array(int) }", "E342"),
    ("record: tail", "record: trail", "E342"),
    ("count: number", "count: numbr", "E342"),
    ("record_type: H", "record_type: X", "E342"),
    ("record_type: H", "json_pointer: /x", "E007"),
    ("batch: int, day", "bach: int, day", "E342"),
    ("type: csv", "type: json", "E342"),
    ("type: csv", "type: csv\n      options: { encoding: utf-16 }", "E342"),
    ("type: csv", "type: csv\n      correlation_key: nothing", "E153"),
    ("type: csv", "type: csv\n      split_values: [text]", "E342"),
]


@pytest.mark.parametrize(("old", "new", "code"), CHANGES)
def test_kinds_that_do_not_fit(tmp_path: Path, old: str, new: str, code: str) -> None:
    text = pipeline("csv")
    assert old in text
    (tmp_path / "p.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    assert code in [found.code for found in caught.value.diagnostics], caught.value.diagnostics
    assert all(found.span for found in caught.value.diagnostics)


def test_kinds_in_a_file_of_their_own(tmp_path: Path) -> None:
    text = pipeline("csv")
    start, end = text.index("        discriminator"), text.index("      envelope")
    (tmp_path / "kinds.schema.yaml").write_text("\n".join(line[8:] for line in text[start:end].splitlines()))
    text = text[:start].rstrip().removesuffix("schema:") + "schema: kinds.schema.yaml\n" + text[end:]
    (tmp_path / "p.yaml").write_text(text)
    said = explain(prepare(tmp_path / "p.yaml"), "text")
    assert "kind item: lines with 'D': kind, id, amount" in said and "kind tail: lines with 'T' (no record)" in said
    (tmp_path / "kinds.schema.yaml").write_text(
        (tmp_path / "kinds.schema.yaml").read_text().replace("tag: D", "tag: H")
    )
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    assert [(d.code, d.source.name.endswith("kinds.schema.yaml")) for d in caught.value.diagnostics if d.source] == [
        ("E342", True)
    ]
