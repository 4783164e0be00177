"""Which files a stream has taken up: one process writes that down, and others read it meanwhile."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.errors import IoError
from clinker_spark.spark.scan.files import SourceFile
from clinker_spark.spark.streaming.file_log import FileLog
from clinker_spark.spark.streaming.files import FileFeed, FileStreamReader
from clinker_spark.streaming import file_source
from clinker_spark.streaming.file_source import Watched

PIPELINE = """\
pipeline: { name: p }
nodes:
  - { type: source, name: s, config: { type: csv, glob: "in/*.csv", schema: { k: string } } }
  - { type: output, name: out, input: s, config: { type: csv, path: out/ } }
"""


def _names(log: FileLog) -> list[str]:
    return [taken.name for taken in log.files]


def test_who_reads_the_log_leaves_a_line_alone_that_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "files"
    writes = FileLog(str(path))
    writes.take([SourceFile("/in/a", "a", 1)])
    whole = path.read_bytes()
    FileLog(str(path)).take([SourceFile("/in/b", "b", 1)])
    line = path.read_bytes()[len(whole) :]
    with open(path, "wb") as file:
        file.write(whole + line[:5])  # the first half is written
        file.flush()
        reads = FileLog(str(path))  # somebody else looks
        file.write(line[5:])
    assert _names(reads) == ["a"]
    assert _names(FileLog(str(path))) == ["a", "b"]


def test_who_takes_files_removes_what_a_crash_left_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "files"
    FileLog(str(path)).take([SourceFile("/in/a", "a", 1)])
    whole = path.read_bytes()
    path.write_bytes(whole + b'["/in/')
    log = FileLog(str(path))
    log.take([SourceFile("/in/a", "a", 1)])  # nothing new
    log.take([SourceFile("/in/b", "b", 1)])
    log.take([SourceFile("/in/c", "c", 1)])
    assert _names(log) == _names(FileLog(str(path))) == ["a", "b", "c"]
    assert path.read_bytes().startswith(whole)


def test_the_code_of_an_error_gets_out_of_the_process_of_a_source(tmp_path: Path) -> None:
    """Of what is thrown there Spark hands on a text."""
    (tmp_path / "p.yaml").write_text(PIPELINE)
    [node] = prepare(tmp_path / "p.yaml").sources
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").symlink_to(tmp_path / "nowhere")
    watched = pickle.dumps(Watched(node, tmp_path))
    listing = (file_source.__name__, "list_files")
    feed = FileFeed("s", "csv", "k STRING", listing, str(tmp_path / "log"), str(tmp_path / "beat"), 1, 1, b"", watched)
    reader = FileStreamReader(feed, StructType())
    start = reader.initialOffset()
    with pytest.raises(IoError, match=r"^E229: cannot read .*a\.csv") as caught:
        reader.latestOffset(start, None)  # type: ignore[arg-type]
    assert caught.value.diagnostics[0].code == "E229"
    with pytest.raises(IoError, match=r"^E229: "):
        reader.prepareForTriggerAvailableNow()
