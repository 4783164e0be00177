"""What whole runs may replace and remove, and what they say when they may not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.commit.manifest import load
from clinker_spark.runtime.commit.seam import SYSTEM, PosixFiles
from clinker_spark.runtime.errors import IoError
from clinker_spark.runtime.run.engine_failures import explained
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run

ROWS = "id,kind\n1,a\n2,a\n3,b\n4,b\n5,c\n"


def pipeline(*outputs: str, handling: str = "", source: str = "path: data/in.csv") -> str:
    """A source and outputs of it, each the rest of an output's configuration."""
    nodes = "".join(
        f"\n  - {{ type: output, name: o{i}, input: s, config: {{ type: csv, {output} }} }}"
        for i, output in enumerate(outputs)
    )
    schema = "{ id: int, kind: string }"
    text = f"  - {{ type: source, name: s, config: {{ type: csv, {source}, schema: {schema} }} }}{nodes}\n{handling}"
    return f"pipeline: {{ name: test }}\nnodes:\n{text}"


def letters(path: str) -> str:
    return f"error_handling: {{ strategy: continue, dlq: {{ path: {path} }} }}\n"


def visible(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not p.name.startswith(".")
    }


REFUSED = [
    (pipeline("path: data/"), "E430", "in.csv"),
    (pipeline("path: ./"), "E430", "pipeline itself"),
    (pipeline("path: users/"), "E421", "notes.txt"),
    (pipeline("path: o.csv", handling=letters("data/in.csv")), "E430", "an input"),
    (pipeline("path: o.csv", handling=letters("users/notes.txt")), "E422", "no dead-letter file"),
    (pipeline("path: o.csv", handling=letters("users")), "E401", "is a folder"),
    (pipeline("path: o.csv", handling=letters("./o.csv")), "E322", "written"),
    (pipeline("path: new/", "path: new/o.csv"), "E322", "would lie in"),
    (pipeline("path: new/", handling=letters("new/dead.csv")), "E322", "would lie in"),
    (pipeline(f"path: {'n' * 300}.csv"), "E433", "longer than a name can be"),
    (pipeline("path: o.csv", handling=letters("n" * 300)), "E433", "longer than a name can be"),
    (pipeline("path: users/notes.txt/o.csv"), "E401", "cannot write"),
    (pipeline("path: loop.csv"), "E401", "links"),
    (pipeline('path: "a\\0b.csv"'), "E433", "NUL"),
    (pipeline("path: o.csv", handling=letters('"a\\0b.csv"')), "E433", "NUL"),
    (pipeline("path: /proc/o.csv"), "E401", "cannot write"),
    (pipeline("path: /dev/null, split: { max_records: 1 }"), "E425", "takes one file"),
]


@pytest.mark.parametrize(("text", "code", "words"), REFUSED)
def test_refused_before_the_first_job(bench: Any, text: str, code: str, words: str) -> None:
    bench.file("data/in.csv", ROWS)
    bench.file("users/notes.txt", "mine")
    (bench.folder / "loop.csv").symlink_to("loop.csv")
    bench.file("pipeline.yaml", text)
    before = visible(bench.folder)
    events: list[str] = []
    with pytest.raises(ClinkerError) as caught:
        run(prepare(bench.folder / "pipeline.yaml"), bench.spark, Options(), lambda event, _: events.append(event))
    [found] = caught.value.diagnostics
    assert found.code == code and words in found.message and found.span is not None
    assert visible(bench.folder) == before and bench.left_over() == [] and "output_started" not in events


def test_a_larger_run_and_a_smaller_one_after_it(bench: Any) -> None:
    """Splits, folders and files of inputs lose what is no longer written; what users did stays."""
    text = pipeline(
        "path: out/o.csv, split: { max_records: 1 }, write_meta: true",
        "path: out/parts/",
        'path: "files/{source_file}.csv", write_meta: true',
        source="glob: data/*.csv",
        handling=letters("out/dead.csv"),
    )
    bench.file("data/a.csv", ROWS)
    bench.file("data/b.csv", "id,kind\n6,d\n7,oops\nx,x\n")
    bench.file("out/mine.txt", "of the user")
    os.makedirs(bench.folder / "files" / "far")
    os.symlink("far/b.csv", bench.folder / "files" / "b.csv")
    first = bench.run(text)
    names = set(visible(bench.folder / "out"))
    assert {f"o_{i:04}.csv" for i in range(1, 8)} | {"dead.csv", "mine.txt", "o.csv.meta.json"} <= names
    known = load(SYSTEM, bench.folder / "out", "test")
    assert len(known.outputs["o.csv"]) == 8 and known.outputs["dead.csv"] and first.removed == []
    assert [Path(item["path"]).name for item in known.inputs] == ["a.csv", "b.csv"]
    about = {name: json.loads(bench.text(f"files/{name}.csv.meta.json")) for name in ("a", "b")}
    assert [(about[n]["records"], about[n]["sources"]) for n in "ab"] == [
        (5, {"s": ["data/a.csv"]}),
        (2, {"s": ["data/b.csv"]}),
    ]
    assert about["b"]["bytes"] == (bench.folder / "files" / "b.csv").stat().st_size
    bench.file("out/o_0006.csv", "changed")
    (bench.folder / "data" / "b.csv").unlink()
    bench.file("data/a.csv", "id,kind\n8,e\n")
    (bench.folder / "out" / "o_0001.csv").chmod(0o600)
    second = bench.run(text)
    out = visible(bench.folder / "out")
    assert set(out) == {"o_0001.csv", "o_0006.csv", "o.csv.meta.json", "mine.txt", "parts/part-00000.csv"}
    assert out["o_0006.csv"] == b"changed" and out["mine.txt"] == b"of the user"
    assert (bench.folder / "out" / "o_0001.csv").stat().st_mode & 0o777 == 0o600
    assert [w.code for w in second.warnings] == ["W420"] and len(second.removed) == 5
    # b.csv was not read this time: what was made of it is not this run's subject.
    assert visible(bench.folder / "files" / "far") == {"b.csv": b"id,kind\n6,d\n7,oops\n"}
    assert (bench.folder / "files" / "b.csv").is_symlink() and bench.left_over() == []
    files = {p.name for p in (bench.folder / "files").glob("[!.]*")}
    assert files == {"a.csv", "b.csv", "far", "a.csv.meta.json", "b.csv.meta.json"}
    assert json.loads(bench.text("files/a.csv.meta.json"))["records"] == 1
    bench.file("out/parts/mine.csv", "of the user")
    with pytest.raises(ClinkerError) as caught:
        bench.run(text)
    assert caught.value.diagnostics[0].code == "E421" and visible(bench.folder / "out") == {
        **out,
        "parts/mine.csv": b"of the user",
    }


class Failing(PosixFiles):
    """Refuses one rename, and everything after it, if asked to."""

    def __init__(self, word: str, *, always: bool) -> None:
        self.word = word
        self.always = always
        self.failed = False

    def rename(self, old: Path, new: Path) -> None:
        if (self.word in new.name and not self.failed) or (self.failed and self.always):
            self.failed = True
            raise OSError(5, "Input/output error", str(new))
        super().rename(old, new)


def test_an_error_while_publishing_puts_everything_back(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = pipeline("path: out/a.csv", "path: out/b.csv", handling=letters("out/dead.csv"))
    bench.file("data/in.csv", ROWS)
    bench.run(text)
    before = visible(bench.folder / "out")
    bench.file("data/in.csv", "id,kind\n9,new\nx,bad\n")
    monkeypatch.setattr("clinker_spark.runtime.commit.attempt.SYSTEM", Failing("dead.csv", always=False))
    with pytest.raises(ClinkerError) as caught:
        bench.run(text)
    [found] = caught.value.diagnostics
    assert found.code == "E401" and "as they were" in (found.help or "")
    assert visible(bench.folder / "out") == before and bench.left_over() == []
    monkeypatch.setattr("clinker_spark.runtime.commit.attempt.SYSTEM", Failing("dead.csv", always=True))
    with pytest.raises(ClinkerError) as caught:
        bench.run(text)
    [found] = caught.value.diagnostics
    assert found.code == "E423" and "as they were" not in (found.help or "")
    monkeypatch.undo()
    report = bench.run(text)  # finishes it first, then publishes its own
    assert [w.code for w in report.warnings] == ["W421"] and report.exit_code == 2
    assert visible(bench.folder / "out")["a.csv"] == b"id,kind\n9,new\n" and bench.left_over() == []


def test_two_runs_at_once_in_one_process(bench: Any) -> None:
    bench.file("data/in.csv", ROWS)
    bench.file("pipeline.yaml", pipeline("path: out/o.csv", "path: /dev/null"))
    found: list[Any] = []
    events: list[str] = []

    def listener(event: str, details: dict[str, Any]) -> None:
        events.append(event)
        if event == "output_started" and not found:
            found.append(_refusal(bench))

    run(prepare(bench.folder / "pipeline.yaml"), bench.spark, Options(), listener)
    [refusal] = found
    assert refusal.code == "E420" and f"process {os.getpid()}" in refusal.message and "'test'" in refusal.message
    assert refusal.span is not None and "published" in events and bench.left_over() == []
    assert bench.text("out/o.csv") == ROWS and Path("/dev/null").is_char_device()


def _refusal(bench: Any) -> Any:
    with pytest.raises(ClinkerError) as caught:
        run(prepare(bench.folder / "pipeline.yaml"), bench.spark, Options(lock_wait=0.1))
    return caught.value.diagnostics[0]


def test_a_failure_after_publishing_does_not_say_that_nothing_was_published(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_text(pipeline("path: o.csv"))
    plan = prepare(tmp_path / "pipeline.yaml")
    for published in (False, True):
        with pytest.raises(IoError) as caught, explained(plan, lambda published=published: published):
            raise OSError(5, "Input/output error", "x")
        assert ("nothing was published" in (caught.value.diagnostics[0].help or "")) is not published


def test_the_manifest_is_no_input(bench: Any) -> None:
    """A run that reads the folder it writes to."""
    bench.file("out/in.csv", ROWS)
    text = pipeline("path: out/o.txt", source='glob: "out/**"')
    bench.run(text)
    [manifest] = (bench.folder / "out").glob(".clinker-manifest-*")
    assert [Path(item["path"]).name for item in json.loads(manifest.read_text())["inputs"]] == ["in.csv"]
    (bench.folder / "out" / "o.txt").unlink()
    assert bench.run(text).sources[0].files == 1


def test_outputs_may_be_called_as_the_files_of_an_attempt(bench: Any) -> None:
    """An attempt has files of its own, and an output is called as its author likes."""
    names = ("journal", "done", "owner", "other-1", "pointer", "a~1b", "made-journal")
    nodes = "".join(
        f"  - {{ type: output, name: {name}, input: s, config: {{ type: csv, path: {i}.csv }} }}\n"
        for i, name in enumerate(names)
    )
    bench.file("in.csv", "id,kind\n1,a\n")
    source = "{ type: csv, path: in.csv, schema: { id: int, kind: string } }"
    bench.run(f"pipeline: {{ name: test }}\nnodes:\n  - {{ type: source, name: s, config: {source} }}\n{nodes}")
    assert [bench.text(f"{i}.csv") for i in range(len(names))] == ["id,kind\n1,a\n"] * len(names)
    assert bench.left_over() == []
