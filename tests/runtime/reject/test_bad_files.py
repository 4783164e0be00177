"""`on_bad_file: skip`: a file that cannot be read is one dead letter, and none of its records is written."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clinker_spark.core.errors import ClinkerError, InputError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.reject.letter_files import read_letters
from clinker_spark.runtime.reject.replay_files import replay_files

SOURCES = {
    "csv": "schema: { id: int }",
    "json": "schema: { id: int }",
    "xml": "schema: { id: int }, options: { record_path: r/p }",
    "fixed_width": "schema: [{ name: id, type: int, width: 4 }]",
    "parquet": "schema: { id: int }",
}


GOES_ON = "strategy: continue, dlq: { path: dead.csv, max_rate: 0.5 }"


def pipeline(kinds: list[str], policy: str = "skip", handling: str = GOES_ON) -> str:
    text = "pipeline: { name: test }\nnodes:\n"
    for kind in kinds:
        config = f"type: {kind}, glob: 'in/{kind}/*', files: {{ on_bad_file: {policy} }}, {SOURCES[kind]}"
        text += f"  - {{ type: source, name: {kind}, config: {{ {config} }} }}\n"
        text += f"  - {{ type: output, name: o_{kind}, input: {kind}, config: {{ type: csv, path: {kind}.csv }} }}\n"
    return f"{text}error_handling: {{ {handling} }}\n"


def cut(data: bytes) -> bytes:
    """A compressed file of which the end is missing; its beginning can be read."""
    return gzip.compress(data + b"".join(os.urandom(20).hex().encode() + b"\n" for _ in range(9000)))[:-900]


def test_every_format(bench: Any) -> None:
    lines = {"csv": b"id\n1\nx\n", "json": b'{"id":1}\n{"id":"x"}\n', "xml": b"<r><p><id>1</id></p></r>"}
    for kind, good in {**lines, "fixed_width": b"   1\n"}.items():
        bench.file(f"in/{kind}/a", good)
        bench.file(f"in/{kind}/b.gz", gzip.compress(good))
        bench.file(f"in/{kind}/c.gz", cut(good[:4]))
        bench.file(f"in/{kind}/d.gz", good)
    bench.file("in/csv/e", "id\n9\n".encode("utf-16"))
    bench.file("in/csv/f", "other\n9\n")
    bench.file("in/json/e", '[{"id": 8}, {"id":')
    bench.file("in/xml/e", "<r><p><id>8</id></p><p></r>")
    bench.file("in/parquet/e", "no parquet")
    pq.write_table(pa.table({"id": [1]}), bench.folder / "in/parquet/a")
    pq.write_table(pa.table({"other": [1]}), bench.folder / "in/parquet/f")
    report = bench.run(pipeline(list(SOURCES)))
    for kind in SOURCES:
        assert bench.text(f"{kind}.csv") == "id\n1\n" + ("" if kind == "parquet" else "1\n"), kind
    letters = [x for x in bench.letters() if x["_cxl_dlq_error_category"] == "bad_file"]
    assert sorted((x["_cxl_dlq_source_file"], x["_cxl_dlq_error_detail"][:4]) for x in letters) == [
        ("in/csv/c.gz", "E452"),
        ("in/csv/d.gz", "E229"),
        ("in/csv/e", "E228"),
        ("in/csv/f", "E228"),
        ("in/fixed_width/c.gz", "E452"),
        ("in/fixed_width/d.gz", "E229"),
        ("in/json/c.gz", "E452"),
        ("in/json/d.gz", "E229"),
        ("in/json/e", "E246"),
        ("in/parquet/e", "E229"),
        ("in/parquet/f", "E228"),
        ("in/xml/c.gz", "E246"),
        ("in/xml/d.gz", "E229"),
        ("in/xml/e", "E246"),
    ]
    assert all((x["_cxl_dlq_source_row"], x["_cxl_dlq_trigger"]) == ("", "true") for x in letters)
    records = [x for x in bench.letters() if x["_cxl_dlq_error_category"] != "bad_file"]
    assert {x["_cxl_dlq_source_file"] for x in records} == {"in/csv/a", "in/csv/b.gz", "in/json/a", "in/json/b.gz"}
    assert report.dead_letters == 18 and report.exit_code == 2
    assert [balance.missing for balance in report.balances] == [0] * 5

    # Letters of files are no records: a replay says so, and feeds the others when they are gone.
    plan = prepare(bench.folder / "pipeline.yaml")
    with pytest.raises(InputError) as refused:
        replay_files(plan, read_letters(bench.folder / "dead.csv"), bench.folder)
    assert {d.code for d in refused.value.diagnostics} == {"E439", "E456"}


def test_the_default_stops_and_files_alone_are_letters_too(bench: Any) -> None:
    bench.file("in/csv/a", "id\n1\n")
    bench.file("in/csv/b.gz", cut(b"id\n1\n"))
    with pytest.raises(ClinkerError) as stopped:
        bench.run(pipeline(["csv"], "stop"))
    assert [d.code for d in stopped.value.diagnostics] == ["E452"]
    assert not (bench.folder / "csv.csv").exists()
    report = bench.run(pipeline(["csv"], handling=GOES_ON.replace("0.5", "0.5, min_records: 1")))
    assert (report.dead_letters, bench.text("csv.csv")) == (1, "id\n1\n")
    (bench.folder / "in/csv/b.gz").unlink()
    assert bench.run(pipeline(["csv"])).exit_code == 0
    assert not (bench.folder / "dead.csv").exists()


def test_a_pipeline_that_stops_at_failures_skips_nothing(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(pipeline(["csv"], handling="strategy: fail_fast"))
    with pytest.raises(ClinkerError) as found:
        prepare(path)
    assert [d.code for d in found.value.diagnostics] == ["E438"]


def test_damaged_pages_of_a_parquet_file(bench: Any) -> None:
    """The footer is good, and what it leads to is not."""
    table = pa.table({"id": list(range(5000)), "more": [str(i) for i in range(5000)]})
    (bench.folder / "in/parquet").mkdir(parents=True)
    pq.write_table(table, bench.folder / "in/parquet/a", use_dictionary=False, write_page_checksum=True)
    data = bytearray((bench.folder / "in/parquet/a").read_bytes())
    data[200:220] = b"damaged, in the middle"[:20]
    bench.file("in/parquet/b", bytes(data))
    report = bench.run(pipeline(["parquet"]))
    assert [o.records for o in report.outputs] == [5000] and report.dead_letters == 1
    assert [x["_cxl_dlq_source_file"] for x in bench.letters()] == ["in/parquet/b"]


def test_a_preview_passes_over_them_too(bench: Any) -> None:
    from clinker_spark.runtime.run.options import Options
    from clinker_spark.runtime.run.preview import preview

    bench.file("in/csv/a", "id\n1\n")
    bench.file("in/csv/b", "other\n1\n")
    bench.file("pipeline.yaml", pipeline(["csv"]))
    text = preview(prepare(bench.folder / "pipeline.yaml"), bench.spark, Options(), 5)
    assert "id\n1\n" in text and "--- 1 file(s) skipped\nin/csv/b: E228" in text
