"""Places that a stream writes to: whose they are, who may write there, and what is removed."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.prepare import prepare
from clinker_spark.plan.streams import StreamQuery, queries
from clinker_spark.runtime.errors import IoError
from clinker_spark.runtime.reject.saved_letters import save_table
from clinker_spark.spark.rejects.letter_lines import SHOWN
from clinker_spark.streaming import letters as module
from clinker_spark.streaming.batch_files import BatchFiles
from clinker_spark.streaming.checkpoint import Checkpoint
from clinker_spark.streaming.letters import BatchLetters, Found, letter_places


def say(code: str, message: str, help: str) -> Diagnostic:
    return Diagnostic(code, message, help=help)


def files(folder: Path, name: str = "out.json") -> BatchFiles:
    place = folder / name
    return BatchFiles(place.parent, place.stem, place.suffix, say)


def refusal(*batches: BatchFiles, by: str = "other") -> str:
    for each in batches[:-1]:
        each.claim("this")
    with pytest.raises(IoError) as caught:
        batches[-1].claim(by)
    [found] = caught.value.diagnostics
    assert found.code == "E508" and found.help
    return found.message


def test_two_streams_that_begin_at_once(tmp_path: Path) -> None:
    """There is no file of a batch yet that could tell them from each other."""
    one, two = files(tmp_path), files(tmp_path)
    assert "somebody writes" in refusal(one, two)
    assert "somebody writes" in refusal(two, by="this")  # two outputs of one stream
    assert not one.has(one.place(0), "this")
    files(tmp_path, "out.csv").claim("this")  # what two outputs of one stream may be
    one.release()
    two.claim("other")
    two.release()
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".out.json") and "lock" in path.name]


def test_files_of_others_are_not_taken_for_batches_that_are_done(tmp_path: Path) -> None:
    one = files(tmp_path)
    one.claim("this")
    one.place(0).touch()
    assert one.has(one.place(0), "this") and not one.has(one.place(1), "this")
    one.mark.write_text('{"pipeline_id": "other"}')  # as where a file system has no locks
    for batch in (0, 1):
        with pytest.raises(IoError) as caught:
            one.has(one.place(batch), "this")
        assert caught.value.diagnostics[0].code == "E508"
    one.release()
    assert "another checkpoint" in refusal(files(tmp_path), by="this")
    one.mark.unlink()
    assert "did not write it" in refusal(files(tmp_path))
    one.claim("this", unmarked=True)
    one.release()
    assert "another checkpoint" in refusal(files(tmp_path))
    one.place(0).unlink()
    two = files(tmp_path)
    two.claim("other")
    two.mark.unlink()  # somebody cleared the folder
    assert not two.has(two.place(0), "other") and json.loads(two.mark.read_text()) == {"pipeline_id": "other"}
    two.release()


@pytest.mark.parametrize("name", [".out.json.stream", ".out.stream.json"])
@pytest.mark.parametrize("text", ["", '{"pipe', "[]", "{}", '{"pipeline_id": 5}'])
def test_a_damaged_mark(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "out-000000.json").touch()
    for _ in range(2):
        assert f"{name}' is damaged" in refusal(files(tmp_path))


def test_the_mark_of_an_older_version(tmp_path: Path) -> None:
    (tmp_path / ".out.stream.json").write_text('{"pipeline_id": "this"}')
    (tmp_path / "out-000000.json").touch()
    assert "another checkpoint" in refusal(files(tmp_path))
    files(tmp_path).claim("this")


@pytest.mark.parametrize("stem", ["out", "out[1]", "o*t", "out."])
def test_only_attempts_of_its_own_are_removed(tmp_path: Path, stem: str) -> None:
    one = files(tmp_path, f"{stem}.json")
    attempts = {name: tmp_path / f".{name}.json.0123abcd" for name in (f"{stem}-000001", f"{stem}-1234567")}
    others = {name: tmp_path / f".{name}.json.0123abcd" for name in (f"{stem}-2-000001", f"{stem}-1", "other-000001")}
    for path in [*attempts.values(), *others.values()]:
        (path / "parts").mkdir(parents=True)
    (tmp_path / f"{stem}-2-000001.json").touch()
    one.claim("this")
    assert not any(path.exists() for path in attempts.values())
    (one.attempt(12, "0123abcd-9") / "parts").mkdir(parents=True)
    one.release()
    assert not list(tmp_path.glob("*.json.0123abcd-9"))
    assert sorted(path for path in tmp_path.iterdir() if path.is_dir()) == sorted(others.values())
    one.place(1).touch()
    assert "-000001.json' is there" in refusal(files(tmp_path, f"{stem}.json"))


PIPELINE = """\
pipeline: { name: p }
error_handling: { strategy: continue, dlq: { path: dead.csv, per_source: { a: { path: a/dead } } } }
nodes:
  - { type: source, name: a, config: { type: csv, glob: in/*.csv, schema: { n: int } } }
  - { type: source, name: b, config: { type: csv, glob: in/*.csv, schema: { n: int } } }
  - { type: output, name: out, input: a, config: { type: csv, path: out/ } }
  - { type: output, name: other, input: b, config: { type: csv, path: other/ } }
"""
MADE: dict[str, Any] = {"partitions": 1, "shape": {}}


def letters(folder: Path, text: str = PIPELINE, state: str = "state") -> tuple[BatchLetters, tuple[StreamQuery, ...]]:
    (folder / "p.yaml").write_text(text)
    plan = prepare(folder / "p.yaml")
    checkpoint, found = Checkpoint(folder / state), queries(plan)
    checkpoint.begin(MADE)
    return BatchLetters(plan, letter_places(plan, folder, found), checkpoint, dt.datetime(2026, 1, 1)), found


@pytest.mark.parametrize("name", ["a/dead-a-000003.csv", "a/dead-a-000003-a.csv", "dead-b-000003.csv"])
def test_letters_of_another_stream_are_not_taken_for_written(tmp_path: Path, name: str) -> None:
    """With a new checkpoint batches have their numbers from 0 again."""
    one, _ = letters(tmp_path)
    other, _ = letters(tmp_path, state="new")
    with one.claimed():
        (tmp_path / name).touch()
        with pytest.raises(IoError) as caught, other.claimed():  # both run
            pass
        assert caught.value.diagnostics[0].code == "E508"
    with one.claimed():
        pass
    with pytest.raises(IoError) as caught, other.claimed():
        pass
    [found] = caught.value.diagnostics
    assert found.code == "E508" and name in found.message and found.span is not None
    (tmp_path / name).unlink()
    with other.claimed():
        pass


def test_letters_without_a_mark_belong_to_a_checkpoint_of_their_time(tmp_path: Path) -> None:
    one, (query, _) = letters(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "dead-a-000000.csv").touch()
    about = json.loads(one.checkpoint.about.read_text())
    one.checkpoint.about.write_text(json.dumps({**about, "version": 1}))
    with pytest.raises(IoError), one.claimed():
        pass
    one.checkpoint.query(query).mkdir()
    one.check(query, 0)
    with one.claimed():
        pass
    one.checkpoint.about.write_text(json.dumps(about))
    with one.claimed():  # marked now
        pass


def test_letters_that_go_nowhere_need_no_place(tmp_path: Path) -> None:
    _, _, rest = PIPELINE.partition("nodes:")
    for handling in ("fail_fast", "continue, dlq: {}"):
        text = f"pipeline: {{ name: p }}\nerror_handling: {{ strategy: {handling} }}\nnodes:{rest}"
        assert letters(tmp_path, text)[0].places == []


def found(checkpoint: Checkpoint, name: str) -> Found:
    columns: dict[str, Any] = {name: pa.nulls(1, pa.int32()) for name in ("source", "file")}
    columns |= {"row": pa.nulls(1, pa.int64()), "stage": pa.array([0], pa.int32()), "trigger": pa.array([True])}
    columns |= {"tie": pa.array([[]], pa.list_(pa.int64()))}
    columns |= {"letter": pa.array([[("n", "x")]], pa.map_(pa.string(), pa.string()))}
    rows = {each: columns.get(each, pa.array(["x"])) for each in (*SHOWN, "tie")}
    saved = save_table(pa.table(rows), checkpoint.folder / "found" / name, None)  # type: ignore[arg-type]
    return Found(saved, {}, tuple(saved.counts()), {})


def test_letters_are_published_once_and_again_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, (query, _) = letters(tmp_path)

    def failing(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    with one.claimed():
        with monkeypatch.context() as patch, pytest.raises(OSError, match="space"):
            patch.setattr(module, "replace_file", failing)
            one.publish(query, 3, found(one.checkpoint, "a-3-read"))
        place = tmp_path / "dead-a-000003.csv"
        assert not place.exists() and not one.has(query, 3)
        assert one.publish(query, 3, found(one.checkpoint, "a-3-read")) == [place]
        before = place.read_bytes()
        assert one.has(query, 3) and not one.has(query, 3, "c/a") and not one.has(query, 2)
        assert one.publish(query, 3, found(one.checkpoint, "a-3-read")) is None
        assert not list((one.checkpoint.folder / "found").iterdir())
        assert one.publish(query, 3, found(one.checkpoint, "a-3-made"), "a") == [place.with_name("dead-a-000003-a.csv")]
    again, _ = letters(tmp_path)
    (one.checkpoint.folder / "found" / "a-7-read").mkdir(parents=True)  # left by who was killed
    with again.claimed():
        assert not (one.checkpoint.folder / "found").exists()
        assert again.publish(query, 3, found(one.checkpoint, "a-3-read")) == []
    assert place.read_bytes() == before
