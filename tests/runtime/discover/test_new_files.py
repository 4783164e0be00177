"""`files.only_new`: each file is read once, whatever happens between the runs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from clinker_spark.cli.clinker.main import clinker
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from tests.support.workbench import Workbench

SOURCE = """
  - type: source
    name: s
    config: { type: csv, glob: "in/*.csv", files: { only_new: true%s }, schema: { id: int, day: string } }
"""
PIPELINE = (
    "pipeline: { name: p }\nnodes:"
    + SOURCE
    + """
  - { type: output, name: o, input: s, config: { %s, if_exists: append } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""
)


def pipeline(output: str, more: str = "") -> str:
    return PIPELINE % (more, output)


def rows(n: int, count: int = 2) -> str:
    return "id,day\n" + "".join(f"{n}{i},d{n % 2}\n" for i in range(count))


def code(error: pytest.ExceptionInfo[ClinkerError]) -> list[str]:
    return [found.code for found in error.value.diagnostics]


EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
_FIELDS = "schema: [{ name: id, width: 3, type: int }, { name: day, width: 2, type: string }]"
FORMATS = (
    "type: csv, path: out/a.csv",
    "type: csv, path: out/b.csv, include_header: false, write_meta: true",
    "type: csv, path: out/c/",
    "type: json, path: out/d.json",
    "type: xml, path: out/h.xml",
    "type: json, path: out/e.json, options: { pretty: true }",
    "type: json, path: out/f.json, options: { format: ndjson }",
    "type: json, path: out/g/",
    f"type: fixed_width, path: out/i.txt, options: {{ line_separator: none }}, {_FIELDS}",
    f"type: fixed_width, path: out/j.txt, {_FIELDS}",
)


def test_runs_over_new_files_make_what_one_run_over_all_makes(bench: Workbench) -> None:
    chosen = FORMATS if EVERYTHING else FORMATS[:5]
    node = "  - {{ type: output, name: o{}, input: s, config: {{ {}, if_exists: append }} }}\n"
    outputs = (node.format(i, output) for i, output in enumerate(chosen))
    text = "pipeline: { name: p }\nnodes:" + SOURCE % "" + "".join(outputs)
    bench.file("in/1.csv", rows(1))
    assert {output.records for output in bench.run(text).outputs} == {2}
    bench.file("in/2.csv", "id,day\n")  # nothing in it
    assert {output.records for output in bench.run(text).outputs} == {0}
    bench.file("in/3.csv", rows(3, 3))
    report = bench.run(text)
    assert [(s.files, s.earlier, s.records) for s in report.sources] == [(1, 2, 3)]
    before = _content(bench.folder)
    meta = json.loads(before["out/b.csv.meta.json"])
    assert (meta["records"], meta["added"]) == (5, 3)
    assert meta["sources"] == {"s": ["in/1.csv", "in/2.csv", "in/3.csv"]}
    assert bench.run(text).outputs == []  # nothing new
    assert _content(bench.folder) == before
    bench.run(text, full=True)
    after = _content(bench.folder)
    for name in {name.split("/part-")[0] for name in before} - {"out/b.csv.meta.json"}:
        old, new = ({p: c for p, c in files.items() if p.startswith(name + "/")} for files in (before, after))
        if name in before:
            assert after[name] == before[name]
        else:  # one part for each run, or for all
            assert sorted(_lines(old)) == sorted(_lines(new))
    assert bench.left_over() == []


def _content(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.glob("out/**/*") if path.is_file() and path.name[0] != "."]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _lines(files: dict[str, bytes]) -> list[bytes]:
    cells = [line.strip(b",[] ") for content in files.values() for line in content.splitlines()]
    return [line for line in cells if line and not line.startswith(b"id,")]


@pytest.mark.parametrize("partition", ["", ", partition_by: day", ", partition_by: [day, id]"])
def test_parquet_folders_grow_by_parts(partition: str, bench: Workbench) -> None:
    source = SOURCE % ""
    text = (
        "pipeline: { name: p }\nnodes:" + source + "  - { type: transform, name: t, input: s,"
        " config: { cxl: 'emit twice = id * 2' } }\n"
        "  - { type: output, name: o, input: t,"
        f" config: {{ type: parquet, path: out/, if_exists: append{partition} }} }}\n"
    )
    bench.file("in/1.csv", rows(1, 5))
    bench.run(text)
    first = {p: p.stat().st_ino for p in bench.folder.glob("out/**/*.parquet")}
    bench.file("in/2.csv", rows(2, 5))
    bench.file("in/3.csv", rows(3, 5))
    bench.run(text)
    assert all(path.stat().st_ino == inode for path, inode in first.items()), "parts that are there are not touched"
    query = f"SELECT id, day, twice FROM read_parquet('{bench.folder}/out/**/*.parquet', hive_partitioning = true)"
    found = sorted((int(a), b, c) for a, b, c in duckdb.sql(query).fetchall())
    wanted = sorted((int(f"{n}{i}"), f"d{n % 2}", 2 * int(f"{n}{i}")) for n in (1, 2, 3) for i in range(5))
    assert found == wanted
    bench.run(text, full=True)
    assert sorted((int(a), b, c) for a, b, c in duckdb.sql(query).fetchall()) == wanted
    assert bench.left_over() == []


def test_folders_of_values_are_in_source_order_and_written_without_another_sort(bench: Workbench) -> None:
    bench.file("in.csv", "id,day\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(50)) + "50,-\n51,x/y=%\n")
    text = """
pipeline: { name: p }
nodes:
  - type: source
    name: s
    config: { type: csv, path: in.csv, null_values: "-", schema: { id: int, day: nullable(string) } }
  - { type: output, name: o, input: s, config: { type: parquet, path: out/, partition_by: [day] } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""
    report = bench.run(text)
    names = sorted(p.name for p in (bench.folder / "out").iterdir())
    assert names == ["day=__HIVE_DEFAULT_PARTITION__", "day=a", "day=b", "day=x%2Fy%3D%25"]
    for day, start in (("a", 0), ("b", 1)):
        query = f"SELECT id FROM '{bench.folder}/out/day={day}/part-00000.parquet'"
        assert [i for (i,) in duckdb.sql(query).fetchall()] == list(range(start, 50, 2))
    assert report.dead_letters == 0
    text = text.replace("nullable(string)", "string")
    bench.file("in.csv", 'id,day\n1,a\n2,""\n3,__HIVE_DEFAULT_PARTITION__\n4,' + "x" * 300 + "\n")
    report = bench.run(text)
    assert report.outputs[0].records == 1
    assert [letter["_cxl_dlq_source_row"] for letter in bench.letters()] == ["2", "3", "4"]


def test_letters_of_earlier_runs_are_kept(bench: Workbench) -> None:
    text = pipeline("type: csv, path: out.csv")
    for n in (1, 2, 3):
        bench.file(f"in/{n}.csv", rows(n) + (f"x{n},bad\n" if n != 2 else ""))
        bench.run(text)
    letters = bench.letters()
    assert [letter["_cxl_dlq_source_file"] for letter in letters] == ["in/1.csv", "in/3.csv"]
    from clinker_spark.runtime.reject.letter_files import read_letters

    assert not any(any(letter.edited) for letter in read_letters(bench.folder / "dead.csv"))
    bench.run(text, full=True)
    assert len(bench.letters()) == 2 and bench.text("out.csv").count("\n") == 7


def test_letters_with_other_columns_come_together(bench: Workbench) -> None:
    from clinker_spark.runtime.reject.letter_files import read_letters, with_earlier
    from clinker_spark.spark.rejects.letter_marks import source_hash

    head = "_cxl_dlq_source_file,_cxl_dlq_source_name,_cxl_dlq_source_row,_cxl_dlq_stage,_cxl_dlq_source_hash"
    old = bench.file("old.csv", f"{head},a\nf,s,1,source,{source_hash(['1'], '')},1\nf,s,2,source,edited-x,2\n")
    new = bench.file("new.csv", f"{head},b\ng,t,1,source,{source_hash(['3'], '')},3\n")
    found = list(read_letters(with_earlier(old, new, bench.folder / "both.csv")))
    assert [letter.record for letter in found] == [{"a": "1", "b": ""}, {"a": "2", "b": ""}, {"a": "", "b": "3"}]
    assert [any(letter.edited) for letter in found] == [False, True, False]


def test_a_file_that_changed_after_it_was_read_stops_the_run(bench: Workbench) -> None:
    text = pipeline("type: csv, path: out.csv")
    bench.file("in/1.csv", rows(1))
    bench.run(text)
    os.utime(bench.folder / "in/1.csv", (1, 1))  # the same content
    assert bench.run(text).sources[0].earlier == 1
    bench.file("in/1.csv", rows(1, 3))
    with pytest.raises(ClinkerError) as error:
        bench.run(text)
    assert code(error) == ["E441"] and "grew" in error.value.diagnostics[0].message
    bench.file("in/1.csv", rows(5))
    with pytest.raises(ClinkerError) as error:
        bench.run(text)
    assert code(error) == ["E441"] and "another content" in error.value.diagnostics[0].message
    bench.run(text, full=True)
    assert bench.text("out.csv") == rows(5)
    (bench.folder / "in/1.csv").unlink()  # archived
    bench.file("in/2.csv", rows(2))
    bench.run(text)
    assert bench.text("out.csv") == rows(5) + rows(2).partition("\n")[2]


def test_outputs_that_do_not_fit_what_was_read(bench: Workbench) -> None:
    text = pipeline("type: csv, path: out/out.csv")
    bench.file("out/out.csv", "id,day\n9,of the user\n")
    bench.file("in/1.csv", rows(1))

    def refused(text: str) -> str:
        with pytest.raises(ClinkerError) as error:
            bench.run(text)
        assert code(error) == ["E442"]
        return error.value.diagnostics[0].message

    assert "nothing says" in refused(text)
    bench.run(text, full=True)
    bench.file("in/2.csv", rows(2))
    renamed = text.replace("name: s", "name: z").replace("input: s", "input: z")
    assert "read by an earlier run, for a source 's'" in refused(renamed)
    more = "  - { type: output, name: b, input: s, config: { type: csv, path: b.csv, if_exists: append } }\nerror_h"
    assert "not written by all the runs" in refused(text.replace("error_h", more))
    shutil.move(bench.folder / "out/out.csv", bench.folder / "kept.csv")
    assert "is gone" in refused(text)
    shutil.move(bench.folder / "kept.csv", bench.folder / "out/out.csv")
    [manifest] = (bench.folder / "out").glob(".clinker-manifest-*")
    good = manifest.read_text()
    manifest.write_text(good[:-20])
    assert "does not say what earlier runs did" in refused(text)
    manifest.write_text(good)
    moved = bench.folder.parent / "moved"
    bench.folder.rename(moved)  # with everything in it
    bench.folder = moved
    bench.run(text)
    assert bench.text("out/out.csv").count("\n") == 5


def test_the_columns_must_be_the_same(bench: Workbench) -> None:
    bench.file("in/1.csv", rows(1))
    outputs = {
        "a": "type: csv, path: a/out.csv",
        "b": "type: csv, path: b/parts/",
        "c": "type: parquet, path: c/parts/",
        "d": "type: parquet, path: d/parts/, partition_by: day",
    }
    for name, output in outputs.items():
        bench.run(pipeline(output).replace("name: p }", f"name: {name} }}"))
    bench.file("in/2.csv", "id,day,more\n5,d,x\n")
    for name, output in outputs.items():
        with pytest.raises(ClinkerError) as error:
            bench.run(pipeline(output).replace("name: p }", f"name: {name} }}"))
        assert code(error) == ["E020"], output
    bench.file("in/2.csv", "id,day\n5,d\n")
    with pytest.raises(ClinkerError) as error:
        bench.run(pipeline("type: parquet, path: d/parts/, partition_by: id").replace("name: p }", "name: d }"))
    assert code(error) == ["E020"]


def test_take_first_takes_of_the_new_ones(bench: Workbench) -> None:
    text = pipeline("type: csv, path: out.csv", ", take_first: 2")
    for n in range(1, 6):
        bench.file(f"in/{n}.csv", rows(n, 1))
    for wanted in (2, 4, 5, 5):
        bench.run(text)
        assert bench.text("out.csv").count("\n") == 1 + wanted


def test_a_bad_file_is_read_once_it_is_mended(bench: Workbench) -> None:
    text = pipeline("type: csv, path: out.csv", ", on_bad_file: skip")
    bench.file("in/1.csv", rows(1))
    bench.file("in/2.csv", b"\xff\xfe\x00bad")
    assert bench.run(text).dead_letters == 1
    assert bench.run(text).outputs == []  # it is still bad, and has its letter
    bench.file("in/2.csv", rows(2))
    assert bench.run(text).outputs[0].records == 2
    assert len(bench.letters()) == 1


@pytest.mark.parametrize(
    ("nodes", "what"),
    [
        ("  - { type: output, name: o, input: s, config: { type: csv, path: o.csv } }", "would be replaced"),
        (
            "  - { type: transform, name: t, input: s, config: { cxl: distinct } }\n"
            "  - { type: output, name: o, input: t, config: { type: csv, path: o.csv, if_exists: append } }",
            "of several files",
        ),
        (
            "  - { type: source, name: b, config: { type: csv, path: b.csv, schema: { id: int, day: string } } }\n"
            "  - { type: merge, name: m, inputs: [s, b] }\n"
            "  - { type: output, name: o, input: m, config: { type: csv, path: o.csv, if_exists: append } }",
            "again",
        ),
        (
            "  - { type: source, name: b, config: { type: csv, path: b.csv, schema: { id: int, day: string } } }\n"
            "  - { type: combine, name: c, input: { b: b, s: s },"
            " config: { where: b.id == s.id, match: first, cxl: emit id = b.id, propagate_ck: driver } }\n"
            "  - { type: output, name: o, input: c, config: { type: csv, path: o.csv, if_exists: append } }",
            "looks records up",
        ),
    ],
)
def test_what_new_files_alone_cannot_make(nodes: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("pipeline: { name: p }\nnodes:" + SOURCE % "" + nodes + "\n")
    with pytest.raises(ClinkerError) as error:
        prepare(path)
    assert "E440" in code(error) and any(what in d.message for d in error.value.diagnostics)


def test_totals_of_one_file_each_are_added(bench: Workbench) -> None:
    text = (
        "pipeline: { name: p }\nnodes:" + SOURCE % "" + "  - { type: aggregate, name: a, input: s,"
        " config: { group_by: [day], cxl: 'emit n = count(*)' } }\n"
        "  - { type: output, name: o, input: a, config: { type: csv, path: out.csv, if_exists: append } }\n"
    )
    for n in (1, 2, 3):
        bench.file(f"in/{n}.csv", rows(n))
        bench.run(text)
    added = bench.text("out.csv")
    bench.run(text, full=True)
    assert bench.text("out.csv") == added == "day,n\nd1,2\nd0,2\nd1,2\n"


def test_runs_are_listed(bench: Workbench) -> None:
    text = pipeline("type: csv, path: out/out.csv")
    for n in (1, 2):
        bench.file(f"in/{n}.csv", rows(n))
        bench.run(text)
    bench.run(text, full=True)
    result = CliRunner().invoke(clinker, ["runs", str(bench.folder / "pipeline.yaml"), "--json"], standalone_mode=False)
    runs = [json.loads(line) for line in result.output.splitlines()]
    assert [(r["kind"], r["files"], r["written"]["o"]) for r in runs] == [
        ("new files", 1, 2),
        ("new files", 1, 2),
        ("all files", 2, 4),
    ]
    assert runs[2]["new_files"] == {"s": ["in/1.csv", "in/2.csv"]}
    result = CliRunner().invoke(clinker, ["runs", str(bench.folder / "pipeline.yaml")], standalone_mode=False)
    assert result.output.splitlines()[0].split()[0] == "started" and "new files" in result.output
