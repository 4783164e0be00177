"""Inputs that are changed while a pipeline runs stop it; inputs that are empty do not."""

from __future__ import annotations

import datetime as dt
import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.discover.input_changes import changed_inputs
from clinker_spark.runtime.discover.sources import discover
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run

FIXED = "[{ name: id, type: int, start: 0, width: 2 }, { name: name, type: string, start: 2, width: 2 }]"
COLUMNS = "{ id: int, name: string }"
SOURCES = {"csv": "a.csv.gz", "json": "a.json", "xml": "a.xml", "fixed_width": "a.txt", "parquet": "a.parquet"}


def write_inputs(folder: Path) -> None:
    (folder / "a.csv.gz").write_bytes(gzip.compress(b"id,name\n1,aa\n"))
    (folder / "a.json").write_text('[{"id": 2, "name": "bb"}]\n')
    (folder / "a.xml").write_text("<r><x><id>3</id><name>cc</name></x></r>\n")
    (folder / "a.txt").write_text(" 4dd\n")
    (folder / "a.parquet").mkdir()
    for i in (1, 2):
        pq.write_table(pa.table({"id": [4 + i], "name": ["ee"]}), folder / f"a.parquet/{i}.parquet")


def pipeline() -> str:
    nodes = "".join(
        f"  - {{ type: source, name: {kind}, config: {{ type: {kind}, path: {file}, "
        f"schema: {FIXED if kind == 'fixed_width' else COLUMNS} }} }}\n"
        for kind, file in SOURCES.items()
    )
    return (
        f"pipeline: {{ name: test }}\nnodes:\n{nodes}"
        f"  - {{ type: merge, name: all, inputs: [{', '.join(SOURCES)}] }}\n"
        "  - { type: output, name: out, input: all, config: { type: csv, path: out.csv } }\n"
    )


def file_of(folder: Path, kind: str) -> Path:
    """The file of a source; of the folder of Parquet files, the last one."""
    path = folder / SOURCES[kind]
    return path / "2.parquet" if kind == "parquet" else path


def replace(path: Path) -> None:
    other = path.with_name("_other")
    other.write_bytes(path.read_bytes())
    other.rename(path)


def extend(path: Path) -> None:
    with open(path, "ab") as file:
        file.write(b"more")


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def rewrite(path: Path) -> None:
    info = path.stat()
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns + 1))


CHANGES: dict[Callable[[Path], None], str] = {
    replace: "was replaced by another file",
    extend: "grew from",
    cut: "was cut from",
    Path.unlink: "was removed",
    rewrite: "was written to",
}


def discovered(plan: Plan) -> dict[str, Any]:
    return {node.name: discover(node, plan.file.folder, dt.datetime(2030, 1, 1)).files for node in plan.sources}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_change_of_every_format_is_seen(tmp_path: Path, change: Callable[[Path], None]) -> None:
    write_inputs(tmp_path)
    (tmp_path / "p.yaml").write_text(pipeline())
    plan = prepare(tmp_path / "p.yaml")
    files = discovered(plan)
    for kind in SOURCES:
        change(file_of(tmp_path, kind))
    found = changed_inputs(plan, files)
    assert [d.code for d in found] == ["E434"] * 5
    for finding, name in zip(found, SOURCES.values(), strict=True):
        assert name in finding.message and CHANGES[change] in finding.message
        assert finding.span is not None and finding.help


def test_what_is_no_change(tmp_path: Path) -> None:
    write_inputs(tmp_path)
    (tmp_path / "p.yaml").write_text(pipeline())
    plan = prepare(tmp_path / "p.yaml")
    files = discovered(plan)
    os.link(tmp_path / "a.json", tmp_path / "backup.json")
    (tmp_path / "a.xml").chmod(0o600)
    os.utime(tmp_path / "a.txt", ns=(0, (tmp_path / "a.txt").stat().st_mtime_ns))
    (tmp_path / "a.parquet/_SUCCESS").touch()
    assert changed_inputs(plan, files) == []
    (tmp_path / "a.parquet/3.parquet").touch()
    [found] = changed_inputs(plan, files)
    assert "'a.parquet' got the part '3.parquet'" in found.message


def test_many_changes_are_told_in_a_few_lines(tmp_path: Path) -> None:
    for i in range(20):
        (tmp_path / f"{i}.txt").write_text(" 4dd\n")
    text = f"""
pipeline: {{ name: test }}
nodes:
  - {{ type: source, name: s, config: {{ type: fixed_width, glob: "*.txt", schema: {FIXED} }} }}
  - {{ type: output, name: out, input: s, config: {{ type: csv, path: out.csv }} }}
"""
    (tmp_path / "p.yaml").write_text(text)
    plan = prepare(tmp_path / "p.yaml")
    files = discovered(plan)
    for i in range(20):
        extend(tmp_path / f"{i}.txt")
    assert [d.message[:12] for d in changed_inputs(plan, files)][-1] == "15 more inpu"


class Meddler:
    """Changes something when an event comes, once."""

    def __init__(self, event: str, change: Callable[[], None]) -> None:
        self.event = event
        self.change = change
        self.done = False

    def __call__(self, event: str, details: dict[str, Any]) -> None:
        if event == self.event and not self.done:
            self.done = True
            self.change()


def stopped(bench: Any, text: str, event: str, change: Callable[[], None]) -> list[tuple[str, str]]:
    """The run of a pipeline during which something happens: code and message of what it ends with."""
    bench.file("pipeline.yaml", text)
    bench.file("out.csv", "old\n")
    meddler = Meddler(event, change)
    with pytest.raises(ClinkerError) as caught:
        run(prepare(bench.folder / "pipeline.yaml"), bench.spark, Options(), meddler)
    assert meddler.done and caught.value.exit_code == 4
    assert bench.text("out.csv") == "old\n" and bench.left_over() == []
    return [(d.code, d.message) for d in caught.value.diagnostics]


def test_a_change_after_the_last_record_was_read(bench: Any) -> None:
    write_inputs(bench.folder)

    def change() -> None:
        for kind, how in zip(SOURCES, CHANGES, strict=True):
            how(file_of(bench.folder, kind))

    found = stopped(bench, pipeline(), "output_written", change)
    assert [code for code, _ in found] == ["E434"] * 5


CSV = """
pipeline: {{ name: test }}
nodes:
  - {{ type: source, name: s, config: {{ type: csv, path: a.csv, schema: {{ id: int, name: string }} }} }}
  - {{ type: output, name: out, input: s, config: {{ type: csv, path: out.csv }} }}
{handling}"""
DEAD = "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"


def test_a_change_before_the_first_record_was_read(bench: Any) -> None:
    path = bench.file("a.csv", "id,name\n1,a\n")
    text = CSV.format(handling="")
    # The run fails for another reason too, which the change is behind.
    for how in (Path.unlink, replace, lambda path: path.write_text("other,header\n1,2\n")):
        bench.file("a.csv", "id,name\n1,a\n")
        found = stopped(bench, text, "files_found", lambda how=how: how(path))  # type: ignore[misc]
        assert found[0][0] == "E434" and "'a.csv'" in found[0][1]


def test_a_change_between_two_passes(bench: Any) -> None:
    path = bench.file("a.csv", "id,name\n1,a\n2,b\nx,c\n")

    def append() -> None:
        with open(path, "a") as file:
            file.write("3,d\n")

    text = CSV.format(handling=DEAD).replace("input: s,", "input: t,")
    node = "  - { type: transform, name: t, input: s, config: { cxl: emit k = 1 / (id - 2) } }\n"
    text = text.replace("  - { type: output", node + "  - { type: output")
    found = stopped(bench, text, "dead_letters_started", append)
    assert found[0][0] == "E434" and "grew from 20 to 24 bytes" in found[0][1]
    assert not (bench.folder / "dead.csv").exists()


def test_empty_files_among_others(bench: Any) -> None:
    contents = {
        "bom": b"\xef\xbb\xbf",
        "empty": b"",
        "header": b"id,name\n",
        "line": b"\r\n\n",
        "good": b"id,name\n1,a\n",
    }
    for name, content in contents.items():
        bench.file(f"in/{name}.csv", content)
    bench.file("in/packed.csv.gz", gzip.compress(b""))
    for name in ("bom", "empty", "line"):
        bench.file(f"in/{name}.xml", contents[name])
        bench.file(f"in/{name}.json", contents[name])
    bench.file("in/good.xml", "<r><x><id>2</id><name>b</name></x></r>")
    bench.file("in/good.json", '{"id": 3, "name": "c"}\n')
    nodes = "".join(
        f'  - {{ type: source, name: {kind}, config: {{ type: {kind}, glob: "in/*.{kind}*", schema: {COLUMNS} }} }}\n'
        for kind in ("csv", "xml", "json")
    )
    text = (
        f"pipeline: {{ name: test }}\nnodes:\n{nodes}  - {{ type: merge, name: all, inputs: [csv, xml, json] }}\n"
        "  - { type: output, name: out, input: all, config: { type: csv, path: out.csv } }\n"
    )
    assert bench.run(text).exit_code == 0
    assert bench.text("out.csv") == "id,name\n1,a\n2,b\n3,c\n"


def test_only_empty_files_have_no_header(bench: Any) -> None:
    bench.file("in/a.csv", "")
    bench.file("in/b.csv", "\n")
    found = stopped(
        bench, CSV.format(handling="").replace("path: a.csv", 'glob: "in/*.csv"'), "files_found", lambda: None
    )
    assert [code for code, _ in found] == ["E228"] and "all of them are empty" in found[0][1]


def test_records_of_one_input_stay_together(bench: Any) -> None:
    """An output for each input file, of records that do not come file by file."""
    bench.file("in/a.csv", "id,name\n1,a\n5,a\n3,a\n")
    bench.file("in/b.csv", "id,name\n6,b\n2,b\n4,b\n")
    text = """
pipeline: { name: test }
nodes:
  - { type: source, name: s, config: { type: csv, glob: "in/*.csv", schema: { id: int, name: string } } }
  - { type: source, name: t, config: { type: csv, path: in/b.csv, schema: { id: int, name: string } } }
  - { type: source, name: u, config: { type: csv, path: in/a.csv, schema: { id: int, name: string } } }
  - { type: merge, name: m, inputs: [t, u], config: { mode: interleave } }
  - type: output
    name: sorted
    input: s
    config: { type: csv, path: "sorted/{source_file}.csv", sort_order: [id] }
  - type: output
    name: parquet
    input: s
    config: { type: parquet, path: "parquet/{source_file}.parquet", sort_order: [{ field: id, order: desc }] }
  - { type: output, name: turns, input: m, config: { type: csv, path: "turns/{source_file}.csv" } }
"""
    assert bench.run(text).exit_code == 0
    assert bench.text("sorted/a.csv") == "id,name\n1,a\n3,a\n5,a\n"
    assert bench.text("sorted/b.csv") == "id,name\n2,b\n4,b\n6,b\n"
    tables = [pq.read_table(bench.folder / f"parquet/{name}.parquet").to_pydict()["id"] for name in "ab"]
    assert tables == [[5, 3, 1], [6, 4, 2]]
    assert bench.text("turns/a.csv") == bench.text("in/a.csv") and bench.text("turns/b.csv") == bench.text("in/b.csv")
