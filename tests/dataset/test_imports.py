"""Importing: formats, types, what is refused, and crashes at every call."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from clinker_spark.cli.clinker.dataset import command
from clinker_spark.core.errors import ClinkerError
from clinker_spark.dataset.files.manifest import CATALOGUE, Dataset
from clinker_spark.dataset.selection import Query
from clinker_spark.runtime.dataset.imports import compact, import_events
from clinker_spark.runtime.dataset.verify import verify
from tests.crash.faults import Crash, FaultyFiles
from tests.dataset.model import Unsynced, rows_of

EVENTS = [
    {"segment": "run1", "entity": "/arm", "frame": 10, "v": 100, "name": "up"},
    {"segment": "run1", "entity": "hand", "frame": 20, "v": 1.5},
    {"segment": "run1", "entity": "/arm", "frame": 20, "v": 7, "name": None},
    {"segment": "run2", "entity": "/arm", "v": 5},
]
TABLE = [
    {"segment": "run1", "frame": 10, "/arm:name": "up", "/arm:v": 100, "/hand:v": None},
    {"segment": "run1", "frame": 20, "/arm:name": None, "/arm:v": 7, "/hand:v": 1.5},
]


def written(folder: Path, events: list[Any], name: str = "events.jsonl") -> str:
    path = folder / name
    path.write_text("".join((e if isinstance(e, str) else json.dumps(e)) + "\n" for e in events))
    return str(path)


def imported(folder: Path, *files: str, indexes: tuple[str, ...] = ("frame",)) -> Dataset:
    import_events(str(folder / "data"), files, indexes, files=Unsynced())
    return Dataset.open(str(folder / "data"))


def test_json_lines_csv_and_parquet_are_the_same(tmp_path: Path) -> None:
    assert rows_of(imported(tmp_path, written(tmp_path, EVENTS)), Query("frame")) == TABLE
    csv = tmp_path / "events.csv"
    csv.write_text(
        "segment,entity,frame,v,name\nrun1,/arm,10,100,up\nrun1,hand,20,1.5,\nrun1,/arm,20,7,\nrun2,/arm,,5,\n"
    )
    shutil.rmtree(tmp_path / "data")
    assert rows_of(imported(tmp_path, str(csv)), Query("frame")) == TABLE
    shutil.rmtree(tmp_path / "data")
    pq.write_table(pa.Table.from_pylist(EVENTS), tmp_path / "events.parquet")
    dataset = imported(tmp_path, str(tmp_path / "events.parquet"))
    assert rows_of(dataset, Query("frame")) == TABLE
    assert rows_of(dataset, Query(None)) == [
        {"segment": "run2", "frame": None, "/arm:name": None, "/arm:v": 5, "/hand:v": None}
    ]


def test_times_are_an_index(tmp_path: Path) -> None:
    events = [
        {"segment": "r", "entity": "/a", "log_time": "2026-01-31T12:00:00.5Z", "v": 1},
        {"segment": "r", "entity": "/a", "log_time": "2026-01-31T13:00:00+01:00", "v": 0},
    ]
    dataset = imported(tmp_path, written(tmp_path, events), indexes=("log_time",))
    rows = rows_of(dataset, Query("log_time"))
    assert [(row["log_time"].isoformat(), row["/a:v"]) for row in rows] == [
        ("2026-01-31T12:00:00+00:00", 0),
        ("2026-01-31T12:00:00.500000+00:00", 1),
    ]
    assert len(rows_of(dataset, Query("log_time", range=("2026-01-31T12:00:00.1Z", None)))) == 1


def test_values_keep_their_types_and_widen_together(tmp_path: Path) -> None:
    first = [{"segment": "r", "entity": "/a", "frame": 1, "v": 1, "l": [], "s": {"x": 1}, "b": True}]
    second = [{"segment": "r", "entity": "/a", "frame": 2, "v": 1.5, "l": ["x"], "s": {"x": 2, "y": "z"}, "b": False}]
    imported(tmp_path, written(tmp_path, first))
    dataset = imported(tmp_path, written(tmp_path, second))
    found = rows_of(dataset, Query("frame"))
    assert found[0] == {
        "segment": "r", "frame": 1, "/a:b": True, "/a:l": [], "/a:s": {"x": 1, "y": None}, "/a:v": 1.0,
    }  # fmt: skip
    assert found[1]["/a:l"] == ["x"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "events.jsonl:2: this is no JSON"),
        ({"entity": "/a", "frame": 1}, "events.jsonl:2: the event has no 'segment'"),
        ({"segment": "r", "frame": 1}, "events.jsonl:2: the event has no 'entity'"),
        ({"segment": "r", "entity": "/a", "frame": 1.5, "v": 1}, "1.5 is no value of index 'frame'"),
        ({"segment": "r", "entity": "/a", "frame": 2**63, "v": 1}, "is no value of index 'frame'"),
        (
            {"segment": "r", "entity": "/a", "frame": "2026-01-01", "v": 1},
            "are times here, and whole numbers elsewhere",
        ),
        ({"segment": "run1", "entity": "/arm", "frame": 1, "v": "text"}, "have no common type"),
        ({"segment": "run9", "entity": "/arm", "frame": 1, "v": "text"}, "is int64 in the dataset, and string here"),
    ],
)
def test_what_cannot_be_imported_changes_nothing(tmp_path: Path, line: Any, message: str) -> None:
    with pytest.raises(ClinkerError, match=message):
        imported(tmp_path, written(tmp_path, [EVENTS[0], line]))
    assert not (tmp_path / "data").exists()


def test_a_crash_at_any_call_leaves_the_old_dataset_or_the_new(tmp_path: Path) -> None:
    first, second = written(tmp_path, EVENTS, "a.jsonl"), written(tmp_path, EVENTS, "b.jsonl")
    imported(tmp_path, first)
    place = str(tmp_path / "data")
    old, new = 4, 8
    seen = set()
    for at in range(1, 200):
        shutil.rmtree(tmp_path / "try", ignore_errors=True)
        shutil.copytree(place, tmp_path / "try")
        files = FaultyFiles(at=at, crash=True, real=Unsynced())
        try:
            import_events(str(tmp_path / "try"), [second], files=files)  # type: ignore[arg-type]
        except Crash:
            pass
        else:
            break
        dataset = Dataset.open(str(tmp_path / "try"))
        rows = sum(segment.rows for segment in dataset.catalogue.segments.values())
        seen.add(rows)
        assert rows in (old, new)
        assert list(verify(dataset)) == []
        # The next import removes what the crash has left, and works.
        import_events(str(tmp_path / "try"), [second], files=Unsynced())
        kept = {path.name for path in (tmp_path / "try").rglob("*") if path.is_file()}
        chunks = [c for s in ("run1", "run2") for c in Dataset.open(str(tmp_path / "try")).chunks(s)]
        assert {name for name in kept if name.endswith(".pack")} == {Path(chunk.pack).name for chunk in chunks}
    assert seen == {old, new} and at > 10


def test_an_error_at_any_call_leaves_nothing_behind(tmp_path: Path) -> None:
    file = written(tmp_path, EVENTS)
    for at in range(1, 200):
        files = FaultyFiles(at=at, real=Unsynced())
        try:
            import_events(str(tmp_path / "new"), [file], ["frame"], files=files)  # type: ignore[arg-type]
        except ClinkerError:
            left = [p for p in (tmp_path / "new").rglob("*") if p.is_file() and not p.name.startswith(".clinker-lock")]
            assert left == [] or (tmp_path / "new" / CATALOGUE) in left
            shutil.rmtree(tmp_path / "new", ignore_errors=True)
        else:
            break
    assert at > 10


def test_compact_makes_full_chunks_of_many_imports(tmp_path: Path) -> None:
    for frame in range(20):
        dataset = imported(
            tmp_path, written(tmp_path, [{"segment": "r", "entity": "/a", "frame": 40 - frame, "v": frame}])
        )
    before = rows_of(dataset, Query("frame", row_ids=True))
    assert compact(str(tmp_path / "data"), Unsynced()) == (20, 1)
    assert rows_of(Dataset.open(str(tmp_path / "data")), Query("frame", row_ids=True)) == before
    assert len(before) == 20


def test_the_commands(tmp_path: Path) -> None:
    file, place = written(tmp_path, EVENTS), str(tmp_path / "robots")
    run = CliRunner()

    def done(*args: str) -> str:
        found = run.invoke(command, list(args), catch_exceptions=False)
        assert found.exit_code == 0
        return found.stdout

    assert "4 events in 3 chunks of 2 segments" in done("import", place, file, "--index", "frame")
    assert "run1: 3 rows in 2 chunks" in (shown := done("info", place)) and "frame 10 to 20" in shown
    assert json.loads(done("info", place, "--json"))["entities"]["/arm"] == {"name": "string", "v": "int64"}
    assert done("verify", place).endswith("3 chunks of 2 segments are whole\n")
    rows = done("query", place, "--index", "frame", "--entities", "/arm/**", "--range", "20:", "--fill-latest-at")
    assert json.loads(rows) == {"segment": "run1", "frame": 20, "/arm:name": "up", "/arm:v": 7}
    for form in ("jsonl", "csv", "parquet"):
        out = tmp_path / f"table.{form}"
        done("query", place, "--index", "frame", "--values", "10,20", "--output", str(out))
        assert out.exists()
    assert (tmp_path / "table.csv").read_text() == (
        '"segment","frame","/arm:name","/arm:v","/hand:v"\n"run1",10,"up",100,\n"run1",20,,7,1.5\n'
    )
    assert pq.read_table(tmp_path / "table.parquet").to_pylist() == TABLE


def test_verify_finds_damage(tmp_path: Path) -> None:
    dataset = imported(tmp_path, written(tmp_path, EVENTS))
    chunk = dataset.chunks("run1")[0]
    pack = tmp_path / "data" / chunk.pack
    content = bytearray(pack.read_bytes())
    content[chunk.offset + chunk.length // 2] ^= 1
    pack.write_bytes(content)
    assert [problem for problem in verify(dataset) if "does not have its checksum" in problem]
    with pytest.raises(ClinkerError, match="does not have its checksum"):
        rows_of(dataset, Query("frame"))
    found = CliRunner().invoke(command, ["verify", str(tmp_path / "data")])
    assert isinstance(found.exception, ClinkerError) and found.exception.exit_code == 4
    pack.unlink()
    with pytest.raises(ClinkerError, match="is not there, which has chunks of"):
        rows_of(dataset, Query("frame"))
    (tmp_path / "data" / CATALOGUE).write_text((tmp_path / "data" / CATALOGUE).read_text().replace("run2", "run3"))
    with pytest.raises(ClinkerError, match="does not have its checksum"):
        Dataset.open(str(tmp_path / "data"))


def test_an_index_without_values_may_become_one_of_times(tmp_path: Path) -> None:
    imported(tmp_path, written(tmp_path, [{"segment": "r", "entity": "/a", "v": 1}]), indexes=("log_time",))
    events = [{"segment": "r", "entity": "/b", "log_time": "2026-01-01T00:00:00Z", "v": 2}]
    [row] = rows_of(imported(tmp_path, written(tmp_path, events), indexes=()), Query("log_time"))
    assert (row["/a:v"], row["/b:v"], row["log_time"].year) == (1, 2, 2026)
