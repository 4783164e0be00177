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
from clinker_spark.dataset.query import query
from clinker_spark.dataset.selection import Query, layout_of
from clinker_spark.runtime.dataset.imports import compact, import_events
from clinker_spark.runtime.dataset.results import write_result
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
        ({"segment": "run1", "entity": "/arm", "frame": 1, "v": "text"}, 'events.jsonl:2: "text" does not go with'),
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


@pytest.mark.parametrize(
    ("lines", "code", "message"),
    [
        (['{"segment": "s", "entity": "/a", "frame": 1, "v": "\\ud800"}'], "E852", ":1: '\\\\ud800' is no text"),
        (['{"segment": "s", "entity": "/\\ud800", "frame": 1, "v": 1}'], "E852", "is no text"),
        (['{"segment": "s", "entity": "/a", "frame": 1, "\\ud800": 1}'], "E852", "is no text"),
        (['{"segment": "s", "entity": "/a", "frame": 1, "v": 9223372036854775808}'], "E853", "too large"),
        (
            ['{"segment": "s", "entity": "/a", "frame": 1, "v": 1}', '{"segment": "s", "entity": "/a", "v": ["x"]}'],
            "E853",
            "is int64 in the dataset, and list<string> here",
        ),
        (
            [
                '{"segment": "s", "entity": "/a", "frame": 1, "v": 1}',
                '{"segment": "s", "entity": "/a", "frame": 2, "v": ["x"]}',
            ],
            "E853",
            ':2: \\["x"\\] does not go with',
        ),
        (
            [
                '{"segment": "s", "entity": "/a", "frame": 1, "v": 9007199254740993}',
                '{"segment": "s", "entity": "/a", "v": 0.5}',
            ],
            "E853",
            "values of '/a:v' do not fit into double",
        ),
        (
            ['{"segment": "s", "entity": "/a", "b:c": 1}', '{"segment": "s", "entity": "/a:b", "c": 1}'],
            "E853",
            "would be the same column",
        ),
        (["[" * 100_000], "E852", "this is no JSON"),
    ],
)
def test_odd_events_have_a_code(tmp_path: Path, lines: list[str], code: str, message: str) -> None:
    (tmp_path / "events.jsonl").write_text("\n".join(lines))
    with pytest.raises(ClinkerError, match=message) as caught:
        import_events(str(tmp_path / "data"), [str(tmp_path / "events.jsonl")], ["frame"], files=Unsynced())
    assert [found.code for found in caught.value.diagnostics] == [code]
    assert not (tmp_path / "data" / CATALOGUE).exists()


def test_structs_keep_all_their_fields_beside_lists_of_them(tmp_path: Path) -> None:
    events = [
        {"segment": "r", "entity": "/a", "frame": 1, "v": {"x": 1}},
        {"segment": "r", "entity": "/a", "frame": 2, "v": [{"y": "z"}]},
    ]
    rows = rows_of(imported(tmp_path, written(tmp_path, events)), Query("frame"))
    assert [row["/a:v"] for row in rows] == [{"x": 1, "y": None}, [{"x": None, "y": "z"}]]


def test_cells_of_csv_mean_what_all_of_their_component_are(tmp_path: Path) -> None:
    """A column has numbers for one entity and texts for another; a component that is known as text stays text."""
    (tmp_path / "a.csv").write_text(
        "segment,entity,frame,log_time,v,name\n"
        "r1,/a,1,2026-01-01T00:00:00Z,1,007\n"
        'r1,/b,2,2026-01-01T02:00:00+02:00,x,"two\nlines"\n'
        "r2,a,3,,2,\n"
        "r2,/a,,,,12\n"
    )
    indexes = ("frame", "log_time")
    rows = rows_of(imported(tmp_path, str(tmp_path / "a.csv"), indexes=indexes), Query("frame", row_ids=True))
    assert [(r["frame"], r["/a:v"], r["/b:v"], r["/a:name"], r["/b:name"]) for r in rows] == [
        (1, 1, None, "007", None),
        (2, None, "x", None, "two\nlines"),
        (3, 2, None, "12", None),
    ]
    assert (rows[2]["/a:v@row_id"], rows[2]["/a:name@row_id"]) == (0, 1) and rows[0]["log_time"] == rows[1]["log_time"]
    (tmp_path / "b.csv").write_text("segment,entity,frame,v\nr1,/b,9,5\n")
    rows = rows_of(imported(tmp_path, str(tmp_path / "b.csv"), indexes=()), Query("frame"))
    assert [row["/b:v"] for row in rows] == [None, "x", "5", None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("segment,entity,frame,frame\nr,/a,1,2\n", "two columns 'frame'"),
        ("segment,frame\nr,1\n", "no column 'entity'"),
        ("segment,entity,frame,v\nr,/,1,1\n", "row 2: the event has no 'entity'"),
        ("segment,entity,frame,v\nr,/a,1,1\n,/a,1,1\n", "row 3: the event has no 'segment'"),
        ("segment,entity,frame,v\nr,/a,1.5,1\n", "row 2: '1.5' is no value of index 'frame'"),
        ("segment,entity,frame,v\nr,/a,99999999999999999999,1\n", "cannot read"),
        ("segment,entity,frame,v\nr,/a,1\n", "Expected 4 columns, got 3"),
    ],
)
def test_odd_csv_files_have_a_code(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ClinkerError, match=message) as caught:
        import_events(str(tmp_path / "data"), [str(tmp_path / "a.csv")], ["frame"], files=Unsynced())
    assert [found.code for found in caught.value.diagnostics] == ["E852"]


def test_parquet_of_types_that_cannot_be_kept(tmp_path: Path) -> None:
    import datetime as dt

    for i, values in enumerate([pa.array([dt.timedelta(1)]), pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))]):
        table = pa.table({"segment": ["r"], "entity": ["/a"], "frame": [1], "v": values})
        pq.write_table(table, tmp_path / f"{i}.parquet")
        with pytest.raises(ClinkerError, match="which cannot be kept") as caught:
            import_events(str(tmp_path / "data"), [str(tmp_path / f"{i}.parquet")], ["frame"], files=Unsynced())
        assert [found.code for found in caught.value.diagnostics] == ["E853"]


def test_results_as_text_and_as_tables(tmp_path: Path) -> None:
    events = [
        {"segment": "r", "entity": "/a", "at": "2026-01-01T00:00:00.5Z", "v": 1, "t": 'x"\n', "f": 1e300, "o": {}},
        {"segment": "r", "entity": "/a", "at": "2026-01-01T00:00:01Z", "v": [], "f": 100.0, "b": True},
    ]
    imported(tmp_path, written(tmp_path, events), indexes=("at",))

    def done(*args: str) -> str:
        found = CliRunner().invoke(
            command, ["query", str(tmp_path / "data"), "--index", "at", *args], catch_exceptions=False
        )
        return found.stdout

    assert [json.loads(line) for line in done().splitlines()] == [
        {
            "segment": "r",
            "at": "2026-01-01T00:00:00.500Z",
            "/a:b": None,
            "/a:f": 1e300,
            "/a:o": {},
            "/a:t": 'x"\n',
            "/a:v": 1,
        },
        {
            "segment": "r",
            "at": "2026-01-01T00:00:01Z",
            "/a:b": True,
            "/a:f": 100.0,
            "/a:o": None,
            "/a:t": None,
            "/a:v": [],
        },
    ]
    assert done("--columns", "at", "--columns", "/a:f", "--format", "csv") == (
        '"at","/a:f"\n"2026-01-01T00:00:00.500Z",1e+300\n"2026-01-01T00:00:01Z",100\n'
    )
    done("--columns", "/a:v", "--columns", "at", "--output", str(tmp_path / "t.parquet"))
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.column("/a:v").to_pylist() == [[1], []] and table.schema.field("at").type == pa.timestamp("us", "UTC")
    with pytest.raises(ClinkerError, match="cannot be written as parquet") as caught:
        done("--columns", "/a:o", "--output", str(tmp_path / "o.parquet"))
    assert caught.value.diagnostics[0].code == "E854" and not (tmp_path / "o.parquet").exists()
    with pytest.raises(ClinkerError, match="in the folder of the dataset"):
        done("--output", str(tmp_path / "data" / "x.jsonl"))


@pytest.mark.parametrize(
    ("span", "rows"),
    [
        ("2026-01-01:2026-01-01T00:00:09Z", [0, 9]),
        ("2026-01-01T00:00:05+00:00:", [9, 20]),
        (":2026-01-01T00:00:05", [0]),
        ("2026-01-01T00:00:00Z:2026-01-01T00:00:09Z", [0, 9]),
        ("2026-01-01T02:00:05+02:00:2026-01-01T00:00:25+00:00", [9, 20]),
        (":", [0, 9, 20]),
    ],
)
def test_ranges_of_times(tmp_path: Path, span: str, rows: list[int]) -> None:
    events = [{"segment": "r", "entity": "/a", "at": f"2026-01-01T00:00:{n:02}Z", "v": n} for n in (0, 9, 20)]
    imported(tmp_path, written(tmp_path, events), indexes=("at",))
    args = ["query", str(tmp_path / "data"), "--index", "at", "--range", span]
    shown = CliRunner().invoke(command, args, catch_exceptions=False).stdout
    assert [json.loads(line)["/a:v"] for line in shown.splitlines()] == rows


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_has_a_code(tmp_path: Path) -> None:
    imported(tmp_path, written(tmp_path, EVENTS))
    asked = Query("frame")
    dataset = Dataset.open(str(tmp_path / "data"))
    for form in ("jsonl", "csv", "parquet"):
        with pytest.raises(ClinkerError, match="no space left") as caught:
            write_result(query(dataset, asked), layout_of(dataset, asked).schema, "/dev/full", form)
        assert caught.value.diagnostics[0].code == "E405"


def test_only_our_own_files_are_cleaned_away(tmp_path: Path) -> None:
    ours = {"packs/0123456789abcdef.pack", f"manifests/{'0a' * 16}.json"}
    theirs = {"packs/luggage.pack", "packs/notes.txt", "packs/0123456789abcdef.pack.bak", "manifests/cargo.json"}
    for name in ours | theirs:
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text("x")
    imported(tmp_path, written(tmp_path, EVENTS))
    compact(str(tmp_path / "data"), Unsynced())
    compact(str(tmp_path / "data"), Unsynced())
    there = {str(path.relative_to(tmp_path / "data")) for path in (tmp_path / "data").rglob("*") if path.is_file()}
    assert theirs <= there and not ours & there
