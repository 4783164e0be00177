"""What users get wrong ends with a code, a place and the old outputs; never with a traceback."""

from __future__ import annotations

import gzip
import os
from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError

SCHEMA = "schema: { id: int, name: string }"
PIPELINE = """
pipeline: {{ name: test }}
nodes:
  - {{ type: source, name: s, config: {{ type: {kind}, {files}, {schema} {more} }} }}
  - {{ type: output, name: out, input: s, config: {{ type: csv, path: {path} {config} }} }}
"""


def text(
    kind: str = "csv",
    files: str = "path: a.csv",
    schema: str = SCHEMA,
    more: str = "",
    path: str = "out.csv",
    config: str = "",
) -> str:
    return PIPELINE.format(kind=kind, files=files, schema=schema, more=more, path=path, config=config)


def fails(bench: Any, pipeline: str, **options: Any) -> tuple[int, str, str]:
    with pytest.raises(ClinkerError) as caught:
        bench.run(pipeline, **options)
    assert bench.left_over() == []
    first = caught.value.diagnostics[0]
    return caught.value.exit_code, first.code, first.message


def test_files_that_are_missing_empty_or_folders(bench: Any) -> None:
    bench.file("out.csv", "old\n")
    bench.file("orders.csv", "id,name\n1,a\n")
    assert fails(bench, text(files="path: order.csv"))[:2] == (4, "E229")
    assert fails(bench, text(files='glob: "*.tsv"'))[:2] == (4, "E216")
    bench.file("a.csv", "")
    assert fails(bench, text())[0] == 4
    (bench.folder / "folder").mkdir()
    assert fails(bench, text(files="path: folder"))[:2] == (4, "E229")
    assert bench.text("out.csv") == "old\n"


def test_headers_that_do_not_fit(bench: Any) -> None:
    bench.file("a.csv", "id,nmae\n1,x\n")
    code, name, message = fails(bench, text())
    assert (code, name) == (4, "E228") and "name" in message
    bench.file("a.csv", "id,name,id\n1,x,2\n")
    assert fails(bench, text())[:2] == (4, "E228")
    bench.file("a.csv", "id,name,extra\n1,x,2\n")
    assert fails(bench, text(more=", on_unmapped: { mode: reject }"))[:2] == (4, "E228")


def test_header_only_is_an_empty_output(bench: Any) -> None:
    bench.file("a.csv", "id,name\n")
    assert bench.run(text()).exit_code == 0
    assert bench.text("out.csv") == "id,name\n"


def test_outputs_that_cannot_be_written(bench: Any) -> None:
    bench.file("a.csv", "id,name\n1,x\n")
    (bench.folder / "out.csv").mkdir()
    assert fails(bench, text())[:2] == (4, "E401")
    bench.file("file", "x")
    assert fails(bench, text(path="file/out.csv"))[:2] == (4, "E401")
    bench.file("there.csv", "old\n")
    assert fails(bench, text(path="there.csv", config=", if_exists: error"))[:2] == (4, "E406")
    assert bench.text("there.csv") == "old\n"
    assert bench.run(text(path="there.csv", config=", if_exists: error"), force=True).exit_code == 0
    assert bench.text("there.csv") == "id,name\n1,x\n"
    bench.run(text(path="there.csv", config=", if_exists: unique_suffix, unique_suffix_width: 2"))
    assert bench.text("there-01.csv") == "id,name\n1,x\n"


def test_ragged_rows_and_bad_bytes_are_dead_letters(bench: Any) -> None:
    bench.file("a.csv", b"id,name\n1,a\n2\n3,c,d\n4,\xff\n5,e\n")
    handling = "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"
    assert bench.run(text() + handling).dead_letters == 3
    assert bench.text("out.csv") == "id,name\n1,a\n5,e\n"
    assert [letter["_cxl_dlq_source_row"] for letter in bench.letters()] == ["2", "3", "4"]
    assert {letter["_cxl_dlq_error_category"] for letter in bench.letters()} == {"structural_validation"}


def test_documents_that_are_broken(bench: Any) -> None:
    bench.file("a.json", '[{"id": 1, "name": "a"}, {"id": 2')
    assert fails(bench, text("json", "path: a.json"))[:2] == (4, "E246")
    assert fails(bench, text("json", "path: a.json", more=", on_unmapped: { mode: drop }"))[:2] == (4, "E246")
    bench.file("a.xml", "<r><x><id>1</id></r>")
    assert fails(bench, text("xml", "path: a.xml"))[:2] == (4, "E246")


def test_a_compressed_file_that_is_cut_off(bench: Any) -> None:
    bench.file("out.csv", "old\n")
    whole = gzip.compress(b"id,name\n" + b"".join(b"%d,%d\n" % (i, i * i % 9973) for i in range(40_000)))
    bench.file("a.csv.gz", whole[: len(whole) - 100])  # the header can be read, and the tasks find out
    code, name, message = fails(bench, text(files="path: a.csv.gz"))
    assert (code, name) == (4, "E452") and message.startswith("'a.csv.gz' is damaged: compressed file ended before")
    bench.file("b.json.gz", gzip.compress(b'[{"id": 1, "name": "a"}]')[:-9])
    assert fails(bench, text("json", "path: b.json.gz"))[:2] == (4, "E452")
    bench.file("c.csv.gz", "id,name\n1,a\n")
    assert fails(bench, text(files="path: c.csv.gz"))[:2] == (4, "E229")
    assert bench.text("out.csv") == "old\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_leaves_the_old_output(bench: Any) -> None:
    import subprocess

    disk = bench.folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no permission to mount")
    try:
        bench.file("disk/out.csv", "old\n")
        bench.file("a.csv", "id,name\n" + "".join(f"{i},{'x' * 50}\n" for i in range(20_000)))
        code, name, _ = fails(bench, text(path="disk/out.csv"))
        assert (code, name) == (4, "E405")
        assert bench.text("disk/out.csv") == "old\n"
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
