"""Sources on storage that Python cannot open. `viewfs://` stands for it: Hadoop leads its paths to a local folder."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.runtime.api import Pipeline
from clinker_spark.runtime.discover import remote_copies

PIPELINE = """
pipeline: { name: test }
nodes:
  - { type: source, name: s, config: { type: csv, FILES, schema: { id: int } } }
  - { type: transform, name: t, input: s, config: { cxl: "emit from = $source.path" } }
  - { type: output, name: out, input: t, config: { type: csv, path: out.csv } }
  - { type: source, name: p, config: { type: parquet, path: "viewfs://test/data/p.parquet", schema: { id: int } } }
  - { type: output, name: out2, input: p, config: { type: csv, path: out2.csv } }
"""


@pytest.fixture
def storage(bench: Any) -> Any:
    conf = bench.spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.mounttable.test.link./data", (bench.folder / "far").as_uri())
    conf.set("fs.viewfs.impl.disable.cache", "true")
    bench.file("far/a.csv", "id\n1\n2\n")
    bench.file("far/b.csv.gz", gzip.compress(b"id\n3\n"))
    bench.file("far/_c.csv", "id\n4\n")
    return bench


def test_remote_files_are_read_as_others_are(storage: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": [7]}), storage.folder / "far/p.parquet")
    text = PIPELINE.replace("FILES", 'glob: "viewfs://test/data/*.csv*", exclude: ["x*"]')
    report = storage.run(text)
    far = "viewfs://test/data"
    assert storage.text("out.csv") == f"id,from\n1,{far}/a.csv\n2,{far}/a.csv\n3,{far}/b.csv.gz\n"
    assert storage.text("out2.csv") == "id\n7\n"
    assert report.sources[0].files == 2
    local = PIPELINE.replace("FILES", f'path: "{(storage.folder / "far/a.csv").as_uri()}"')
    storage.file("pipeline.yaml", local)
    frame = Pipeline.load(storage.folder / "pipeline.yaml").dataframe("s", storage.spark)
    assert [row["id"] for row in frame.collect()] == [1, 2]


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ("path: viewfs://test/data/x.csv", "E229"),
        ("path: nowhere://test/x.csv", "E229"),
        ('glob: "viewfs://test/data/*.tsv"', "E216"),
        ('glob: "viewfs://test/data/**/*.csv"', "E248"),
        ("path: viewfs://test/data", "E229"),
    ],
)
def test_what_is_not_there(storage: Any, files: str, code: str) -> None:
    with pytest.raises(ClinkerError) as caught:
        storage.run(PIPELINE.replace("FILES", files))
    [found] = caught.value.diagnostics
    assert (caught.value.exit_code, found.code) == (4, code) and found.help and found.span
    assert "\n" not in found.message


def test_a_session_elsewhere_cannot_read_copies(storage: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(remote_copies, "is_local", lambda spark: False)
    with pytest.raises(ClinkerError) as caught:
        storage.run(PIPELINE.replace("FILES", "path: viewfs://test/data/a.csv"))
    assert caught.value.diagnostics[0].code == "E248"
