"""Paths are checked before the first job: one writer for each file, none of what is read, no way out of a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.cli import app
from clinker_spark.cli.clinker.main import clinker
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.plan.streams import queries
from clinker_spark.runtime.discover.file_identity import Identities, Identity, ignores_capitals
from clinker_spark.runtime.errors import PathError
from clinker_spark.runtime.paths.checks import _may_meet, check_not_read, check_paths, listed_files
from clinker_spark.runtime.paths.outputs import PartNames
from clinker_spark.runtime.paths.places import places
from clinker_spark.runtime.reject.replay import replay_plan
from clinker_spark.runtime.run.options import Options
from clinker_spark.streaming.file_sink import FileSink
from clinker_spark.streaming.letters import letter_places

SOURCE = "  - {{ type: source, name: s, config: {{ type: csv, {files}, schema: {{ id: int, name: string }} }} }}\n"
OUTPUT = "  - {{ type: output, name: {name}, input: {reads}, config: {{ type: {kind}, path: {path} {more} }} }}\n"


class Desk:
    """A folder with a pipeline in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file("in/a.csv", "id,name\n1,x\n")

    def file(self, name: str, text: str = "x\n") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def pipeline(
        self, *paths: str, files: str = "path: in/a.csv", more: str = "", handling: str = "", kind: str = "csv"
    ) -> Path:
        """One output for each path, all of one source."""
        nodes = SOURCE.format(files=files)
        for i, path in enumerate(paths):
            nodes += OUTPUT.format(name=f"o{i}", reads="s", kind=kind, path=json.dumps(path), more=more)
        return self.file("pipeline.yaml", f"pipeline: {{ name: test }}\nnodes:\n{nodes}{handling}")

    def check(self, *paths: str, options: dict[str, Any] | None = None, **parts: Any) -> list[str]:
        """The codes of what is wrong, or of the warnings."""
        return [code for code, _, _ in self.findings(self.pipeline(*paths, **parts), **(options or {}))]

    def findings(self, pipeline: Path, **options: Any) -> list[tuple[str, str, int]]:
        """Code, message and exit code of all findings; warnings have the exit code 0."""
        try:
            plan = prepare(pipeline)
            chosen = Options(**options)
            if chosen.replay is not None:
                plan = replay_plan(plan)
                chosen.files = {}
            files, _ = listed_files(plan, chosen, chosen.base or self.folder)
            return [(d.code, d.message, 0) for d in check_paths(plan, chosen, files)]
        except ClinkerError as error:
            assert all(
                d.help and ({"beside", "spool"} & options.keys() or d.span is not None) for d in error.diagnostics
            )
            return [(d.code, d.message, error.exit_code) for d in error.diagnostics]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "desk")


DEAD = "error_handling: {{ strategy: continue, dlq: {{ path: {path} {more} }} }}\n"


def dead(path: str, more: str = "") -> str:
    return DEAD.format(path=json.dumps(path), more=more)


# ------------------------------------------------------------ one writer


@pytest.mark.parametrize(
    ("paths", "codes"),
    [
        (("o.csv", "p.csv"), []),
        (("o.csv", "./o.csv"), ["E322"]),
        (("o.csv", "x/../o.csv"), ["E322"]),
        (("out/o.csv", "out//./o.csv"), ["E322"]),
        (("o.csv", "link/o.csv"), ["E322"]),
        (("real/o.csv", "link2/o.csv"), ["E322"]),
        (("real/new/o.csv", "link2/new/o.csv"), ["E322"]),
        (("o.csv", "to-o.csv"), ["E322"]),
        (("o.csv", "O.csv"), []),
        (("out/", "out/o.csv"), ["E322"]),
        (("out/", "out/deep/er/o.csv"), ["E322"]),
        (("out/", "outer/o.csv"), []),
        (("out/", "link/out/o.csv"), ["E322"]),
        (("out/", "out/in/"), ["E322"]),
        (("out", "out/o.csv"), ["E322"]),
        (("o-{batch_id}.csv", "o-B.csv"), ["E322"]),
        (("o-{batch_id}.csv", "o-{batch_id}.csv.x"), []),
        (("file://FOLDER/o.csv", "o.csv"), ["E322"]),
        (("FOLDER/o.csv", "o.csv"), ["E322"]),
        (("{timestamp}.csv", "{timestamp}.csv"), ["E322"]),
        (("a-{execution_id}.csv", "a-{batch_id}.csv"), []),
    ],
)
def test_outputs_at_one_place(desk: Desk, paths: tuple[str, ...], codes: list[str]) -> None:
    (desk.folder / "real").mkdir()
    (desk.folder / "link").symlink_to(".")
    (desk.folder / "link2").symlink_to(desk.folder / "real")
    (desk.folder / "to-o.csv").symlink_to("o.csv")
    given = [path.replace("FOLDER", str(desk.folder)) for path in paths]
    assert desk.check(*given, options={"batch_id": "B"}) == codes


def test_dead_letters_and_what_goes_beside_outputs(desk: Desk) -> None:
    assert desk.check("o.csv", handling=dead("dead.csv")) == []
    assert desk.check("o.csv", handling=dead("x/../o.csv")) == ["E322"]
    assert desk.check("o.csv", handling=dead("d.csv", ", per_source: { s: { path: x/../o.csv } }")) == ["E322"]
    (desk.folder / "link").symlink_to(".")
    assert desk.check("o.csv", handling=dead("d.csv", ", per_source: { s: { path: link/d.csv } }")) == ["E322"]
    assert desk.check("out/", handling=dead("out/dead.csv")) == ["E322"]
    assert desk.check("o.csv", handling=dead("o.csv/dead.csv")) == ["E322"]
    assert desk.check("o.csv", "o.csv.meta.json", more=", write_meta: true") == ["E322"]
    assert desk.check("o.csv", handling=dead("o.csv.meta.json"), more=", write_meta: true") == ["E322"]
    assert desk.check("o.csv", handling=dead("file://" + str(desk.folder / "o.csv"))) == ["E322"]


def test_parts_of_a_split(desk: Desk) -> None:
    split = ", split: { max_records: 2 }"
    assert desk.check("o.csv", "p.csv", more=split) == []
    assert desk.check("o.csv", "o.json", more=split) == []
    assert desk.check("o.csv", handling=dead("o_0017.csv"), more=split) == ["E322"]
    assert desk.check("o.csv", handling=dead("o_12345.csv"), more=split) == ["E322"]
    assert desk.check("o.csv", handling=dead("o_00017.csv"), more=split) == []
    assert desk.check("o.csv", handling=dead("o_17.csv"), more=split) == []
    named = ", split: {{ max_records: 2, naming: '{}' }}"
    assert desk.check("o.csv", "p.csv", more=named.format("x{seq:02}.csv")) == ["E322"]
    assert desk.check("o.csv", more=named.format("../{seq:02}.csv")) == ["E367"]
    assert desk.check("out/{source_file}.csv", more=split) == ["E007"]


def test_names_of_parts_that_can_meet() -> None:
    def meet(left: tuple[str, int, str], right: tuple[str, int, str]) -> bool:
        found = _may_meet(PartNames(*left), PartNames(*right))
        assert found == _may_meet(PartNames(*right), PartNames(*left))
        names = {PartNames(*left).name(n) for n in range(1, 12_000)}
        assert found == bool(names & {PartNames(*right).name(n) for n in range(1, 12_000)})
        return found

    assert meet(("o_", 4, ".csv"), ("o_", 4, ".csv"))
    assert meet(("o_", 4, ".csv"), ("o_", 2, ".csv"))
    assert not meet(("o_", 4, ".csv"), ("p_", 4, ".csv"))
    assert not meet(("o_", 4, ".csv"), ("o_", 4, ".json"))
    assert meet(("o_", 4, ".csv"), ("o_1", 3, ".csv"))
    assert meet(("o_", 4, ".csv"), ("o_00", 2, ".csv"))
    assert not meet(("o_", 3, ".csv"), ("o_00", 2, ".csv"))
    assert meet(("", 2, "0"), ("", 3, ""))
    assert not meet(("o_", 4, ".csv"), ("o_1_", 3, ".csv"))


def test_two_inputs_that_give_one_output(desk: Desk) -> None:
    desk.file("in/b/a.csv")
    everywhere = 'glob: "in/**/*.csv"'
    [(code, message, status)] = desk.findings(desk.pipeline("out/{source_file}.csv", files=everywhere))
    assert (code, status) == ("E431", 1) and "'in/a.csv'" in message and "'in/b/a.csv'" in message
    assert desk.check("out/{source_path}.csv", files=everywhere) == []
    desk.file("in/a.2.csv")
    assert desk.check("out/{source_file}.csv", files='glob: "in/*.csv"') == ["E431"]
    desk.file("in/a.json")
    assert desk.check("out/{source_path}.csv", files='glob: "in/a.*"') == ["E431"]
    desk.file("up/A.csv")
    assert desk.check("out/{source_file}.csv", files="paths: [in/a.csv, up/A.csv]") == []
    assert desk.check("out/{source_file}.csv", files="paths: [in/a.csv, in/a.csv]") == ["E431"]
    assert desk.check("out/{source_file}.csv", "out/a.csv") == ["E322"]
    assert desk.check("out/{source_file}.csv", handling=dead("out/a.csv")) == ["E322"]


def test_an_output_for_each_file_needs_records_of_one_file(desk: Desk) -> None:
    desk.file("in/b.csv")
    both = SOURCE.format(files="path: in/a.csv") + SOURCE.format(files="path: in/b.csv").replace("name: s,", "name: t,")
    total = "  - { type: aggregate, name: n, input: READS, config: { group_by: [name], cxl: emit k = count(*) } }\n"
    merged = "  - { type: merge, name: m, inputs: [s, t] }\n" + total.replace("READS", "m")
    query = '  - { type: query, name: n, inputs: [s], config: { query: "from a in s select {id: a.id}" } }\n'
    output = OUTPUT.format(name="o", reads="n", kind="csv", path='"out/{source_file}.csv"', more="")
    start = "pipeline: { name: test }\nnodes:\n"
    for nodes, codes in (
        (both + merged, ["E436"]),
        (SOURCE.format(files="path: in/a.csv") + query, ["E436"]),
        (SOURCE.format(files='glob: "in/*.csv"') + total.replace("READS", "s"), []),
    ):
        assert [code for code, _, _ in desk.findings(desk.file("pipeline.yaml", start + nodes + output))] == codes


def test_replays_beside_outputs(desk: Desk) -> None:
    assert desk.check("o.csv", handling=dead("dead.csv"), options={"replay": "beside"}) == []
    assert desk.check("o.csv", "o-replay.csv", options={"replay": "beside"}) == ["E322"]
    assert desk.check("o.csv", "o-replay.csv") == []
    assert desk.check("o.csv", handling=dead("o-replay.csv"), options={"replay": "beside"}) == ["E322"]


# ------------------------------------------------------------ what is read


@pytest.mark.parametrize(
    "path",
    [
        *(
            "in/a.csv",
            "./in/../in/a.csv",
            "link.csv",
            "hard.csv",
            "linked/a.csv",
            "in/",
            "./",
            "in/..",
            "FOLDER/in/a.csv",
        ),
        *(
            "FOLDER/in/a.csv",
            "new/../in/a.csv",
            "new/er/../../hard.csv",
            "in/new/../a.csv",
            "new/../in/",
            "far/../in/a.csv",
        ),
    ],
)
def test_outputs_over_inputs(desk: Desk, path: str) -> None:
    """By whatever way. `far/..` is the folder behind the link, and not this one; `new` is not there yet."""
    (desk.folder / "far").symlink_to("in/deep/er")
    (desk.folder / "in/deep/er").mkdir(parents=True)
    (desk.folder / "in/deep/in").mkdir()
    os.link(desk.folder / "in/a.csv", desk.folder / "in/deep/in/a.csv")
    (desk.folder / "link.csv").symlink_to("in/a.csv")
    (desk.folder / "linked").symlink_to("in")
    os.link(desk.folder / "in/a.csv", desk.folder / "hard.csv")
    given = path.replace("FOLDER", str(desk.folder))
    expected = "E433" if path.endswith("..") else "E430"
    assert desk.check(given) == [expected]
    if not path.endswith(("/", "..")):
        assert desk.check("o.csv", handling=dead(given)) == ["E430"]
        assert desk.check("o.csv", handling=dead("d.csv", f", per_source: {{ s: {{ path: {given} }} }}")) == ["E430"]


@pytest.mark.parametrize("option", ["--report", "--dry-run-output"])
@pytest.mark.parametrize(
    ("path", "codes"),
    [
        ("in/a.csv", ["E430"]),
        ("linked/a.csv", ["E430"]),
        ("new/../in/a.csv", ["E430"]),
        ("pipeline.yaml", ["E430"]),
        ("o.csv", ["E322"]),
        ("dead.csv", ["E322"]),
        ("in", ["E401"]),
        ("page.html", []),
    ],
)
def test_what_the_command_writes_besides(desk: Desk, option: str, path: str, codes: list[str]) -> None:
    (desk.folder / "linked").symlink_to("in")
    options = {"beside": {option: desk.folder / path}}
    assert desk.check("o.csv", handling=dead("dead.csv"), options=options) == codes


def test_parts_over_inputs(desk: Desk) -> None:
    desk.file("in/a_0003.csv")
    split = ", split: { max_records: 2 }"
    assert desk.check("in/a.csv", files="path: in/a_0003.csv", more=split) == ["E430"]
    assert desk.check("in/b.csv", files="path: in/a_0003.csv", more=split) == []
    assert desk.check("in/{source_file}.csv", files='glob: "in/*.csv"') == ["E430"] * 2


def test_outputs_over_what_the_pipeline_is_made_of(desk: Desk) -> None:
    desk.file("clinker.toml", "")
    desk.file("rules/money.cxl", "let RATE = 2\n")
    desk.file("s.schema.yaml", "- { name: id, type: int }\n")
    body = "  - { type: transform, name: t, input: rows, config: { cxl: emit k = id } }\n"
    interface = "_compose: { name: part, inputs: { rows: { schema: { id: int } } }, outputs: { out: t } }\nnodes:\n"
    desk.file("part.comp.yaml", interface + body)
    for path in ("pipeline.yaml", "clinker.toml", "rules/money.cxl", "rules/", "s.schema.yaml", "part.comp.yaml", "./"):
        nodes = SOURCE.format(files="path: in/a.csv").replace("{ id: int, name: string }", "s.schema.yaml")
        nodes += "  - { type: composition, name: c, use: part.comp.yaml, input: s }\n"
        nodes += OUTPUT.format(name="o", reads="c.out", kind="csv", path=path, more="")
        found = desk.findings(desk.file("pipeline.yaml", f"pipeline: {{ name: test }}\nnodes:\n{nodes}"))
        assert [(code, status) for code, _, status in found] == [("E430", 1)], path


def test_what_the_next_run_would_read_is_a_warning(desk: Desk) -> None:
    everything = 'glob: "in/*.csv"'
    assert desk.check("in/o.csv", files=everything) == ["W430"]
    assert desk.check("o.csv", files=everything, handling=dead("in/dead.csv")) == ["W430"]
    assert desk.check("in/deep/o.csv", files=everything) == []
    assert desk.check("in/deep/o.csv", files='glob: "./in/**/*.csv"') == ["W430"]
    assert desk.check("in/_o.csv", files=everything) == []
    assert desk.check("in/o.csv", files=everything + ", exclude: [o.csv]") == []
    assert desk.check("in/o.csv", files=everything + ", exclude: [./in/o.csv]") == []
    assert desk.check("in/o.txt", files=everything) == []
    assert desk.check("in/deep/", files='glob: "**/*.csv"') == ["W430"]
    assert desk.check("in/o.csv", files='regex: "in/.*"') == ["W430"]
    assert desk.check("in/o-{timestamp}.csv", files=everything) == ["W430"]
    desk.file("in/o.csv")  # and the next run finds it
    assert desk.check("in/o.csv", files=everything) == ["E430"]


# ------------------------------------------------------------ tokens


@pytest.mark.parametrize(
    ("path", "batch", "code"),
    [
        ("out/{batch_id}.csv", "2024-05-01", None),
        ("{batch_id}.csv", "a b", None),
        ("../x/{batch_id}.csv", "b", None),  # written in the pipeline itself
        ("out/{batch_id}.csv", "../b", "E432"),
        ("out/{batch_id}/o.csv", "..", "E432"),
        ("out/{batch_id}/o.csv", ".", "E432"),
        ("out/{batch_id}.csv", "a/b", "E432"),
        ("{batch_id}", "/etc/o.csv", "E432"),
        ("out/{batch_id}/../../../o.csv", "b", "E432"),
        ("out/{batch_id}/o.csv", "away", "E432"),
        ("out/{batch_id}.csv", "away", "E432"),
        ("{batch_id}/o.csv", "~", "E433"),
        ("out/{batch_id}.csv", "a\0b", "E433"),
        ("out/{batch_id}.csv", "a\nb", "E433"),
        ("out/{batch_id}.csv", "é" * 127, "E433"),
        ("out/{batch_id}", "b ", "E433"),
        ("out/{channel:a:b}/o.csv", "b", "E433"),
        ("out/{channel:a:b}", "b", "E433"),
        ("out/{channel::/}o.csv", "b", None),
        ("out/{n}.csv", "b", None),
        ("{pipeline_hash:64}.csv", "b", None),
        ("{pipeline_hash:x}.csv", "b", "E007"),
        ("out/{{source_file}}.csv", "b", None),
    ],
)
def test_tokens_stay_in_their_folder(desk: Desk, path: str, batch: str, code: str | None) -> None:
    elsewhere = desk.folder.parent / "elsewhere"
    elsewhere.mkdir()
    (desk.folder / "out").mkdir()
    (desk.folder / "out/away").symlink_to(elsewhere)
    (desk.folder / "out/away.csv").symlink_to(elsewhere / "o.csv")
    assert desk.check(path, options={"batch_id": batch}) == ([] if code is None else [code])


def test_names_of_inputs_stay_in_their_folder(desk: Desk) -> None:
    outside = desk.folder.parent / "outside"
    outside.mkdir()
    (outside / "a.csv").write_text("id,name\n")
    assert desk.check("out/{source_path}.csv", files="path: ../outside/a.csv") == ["E432"]
    assert desk.check("out/{source_file}.csv", files="path: ../outside/a.csv") == []
    assert desk.check("out/{source_path}.csv", files=f"path: {outside}/a.csv") == []
    desk.file("in/.csv")
    assert desk.check("out/{source_file}/o.csv", files="path: in/.csv") == ["E433"]
    desk.file("in/" + "n" * 251 + ".csv")
    assert desk.check("out/{source_file}-copy.csv", files='glob: "in/n*.csv"') == ["E433"]
    desk.file("in/new\nline.csv")
    assert desk.check("out/{source_file}.csv", files='glob: "in/new*.csv"') == ["E433"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("o\0.csv", "E433"),
        ("o\t.csv", "E433"),
        ("o\x85.csv", "E433"),
        ("n" * 256, "E433"),
        ("n" * 255, None),
        ("ü" * 128, "E433"),
        ("a/" * 2000 + "o.csv", "E433"),
        ("~/o.csv", "E433"),
        ("~root/o.csv", "E433"),
        ("o.csv ", "E433"),
        ("out/.", "E433"),
        ("out/..", "E433"),
        (".", "E433"),
        ("..", "E433"),
        ("s3a://bucket/o.csv", "E248"),
        ("file://localhost/tmp/o.csv", None),
        ("loop/o.csv", "E401"),
        ("loop", "E401"),
        ("in/a.csv/o.csv", "E401"),
        ("in/a.csv/deep/o.csv", "E401"),
        ("in", "E401"),
        ("new/deep/o.csv", None),
        ("dangling.csv", None),
        ("dangling.csv/o.csv", "E401"),
        ("ordner/ö ü [x] {{y}}.csv", None),
        (".clinker-lock-1", "E433"),
        ("out/.clinker-manifest-test-1.json", "E433"),
        ("out/.clinker-1-0123abcd/o.csv", "E433"),
        (".clinker.csv", None),
    ],
)
def test_names_that_a_file_cannot_have(desk: Desk, path: str, code: str | None) -> None:
    (desk.folder / "loop").symlink_to("loop2")
    (desk.folder / "loop2").symlink_to("loop")
    (desk.folder / "dangling.csv").symlink_to("not-there.csv")
    desk.file("in/b.csv")
    expected = [] if code is None else [code]
    assert desk.check(path, files="path: in/b.csv") == expected
    if "{{" not in path:
        assert desk.check("fine.csv", files="path: in/b.csv", handling=dead(path)) == expected


def test_names_of_nodes_are_names_of_folders(desk: Desk) -> None:
    for name, codes in (("a\0b", ["E433"]), ("n" * 201, ["E433"]), ("n" * 200, []), ("[x] {y}: %41", [])):
        nodes = SOURCE.format(files="path: in/a.csv")
        nodes += OUTPUT.format(name=json.dumps(name), reads="s", kind="csv", path="o.csv", more="")
        found = desk.findings(desk.file("pipeline.yaml", f"pipeline: {{ name: test }}\nnodes:\n{nodes}"))
        assert [code for code, _, _ in found] == codes


def test_dead_letters_are_a_file(desk: Desk) -> None:
    assert desk.check("o.csv", handling=dead("dead/")) == ["E433"]
    (desk.folder / "dead").mkdir()
    assert desk.check("o.csv", handling=dead("dead")) == ["E401"]
    assert desk.check("o.csv", handling=dead("")) == ["E007"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folders_that_may_not_be_written(desk: Desk) -> None:
    (desk.folder / "closed").mkdir(mode=0o500)
    assert desk.check("closed/o.csv") == ["E401"]
    assert desk.check("closed/new/o.csv") == ["E401"]


def test_everything_wrong_is_told_together(desk: Desk) -> None:
    (desk.folder / "link").symlink_to(".")
    found = desk.findings(desk.pipeline("in/a.csv", "x\0.csv", "o.csv", "link/o.csv", handling=dead("link/in/a.csv")))
    assert sorted(code for code, _, _ in found) == ["E322", "E322", "E430", "E430", "E433"]


def test_existing_parts_with_if_exists_error(desk: Desk) -> None:
    desk.file("out/a.csv")
    desk.file("o_0001.csv")
    error = ", if_exists: error"
    assert desk.check("out/{source_file}.csv", more=error) == ["E406"]
    assert desk.check("o.csv", more=error + ", split: { max_records: 2 }") == ["E406"]
    assert desk.check("o.csv", more=error + ", split: { max_records: 2 }", options={"force": True}) == []


# ------------------------------------------------------------ identity


def test_capital_letters_count_where_they_do(tmp_path: Path) -> None:
    (tmp_path / "Aa").touch()
    assert not ignores_capitals(str(tmp_path))
    identities = Identities()
    left, right = identities.of(tmp_path / "x/O.csv"), identities.of(tmp_path / "x/o.csv")
    assert left != right and left.folded == right.folded and not identities.same(left, right)
    identities._folding[left.device, left.inode] = True  # as on the disks of other systems
    assert identities.same(left, right)
    composed, apart = Identity(1, 2, ("\u00e9",)), Identity(1, 2, ("e\u0301",))
    assert composed.folded == apart.folded


# ------------------------------------------------------------ the command


def dry_run(*args: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "clinker_spark", "run", *args], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def ends(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        app.run(clinker, "clinker", ("run", "--dry-run", *args))
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().err


def test_dry_run_finds_them(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = str(desk.pipeline("out/{batch_id}.csv", files='glob: "in/*.csv"', handling=dead("in/dead.csv")))
    code, err = ends(capsys, pipeline)
    assert code == 0 and "warning[W430]" in err and "pipeline.yaml:5:" in err
    code, err = ends(capsys, pipeline, "--batch-id", "../../x")
    assert code == 1 and "error[E432]" in err and "--batch-id is '../../x'" in err
    code, err = ends(capsys, str(desk.pipeline("o.csv", files="paths: [in/a.csv, ./in/a.csv]")))
    assert code == 0 and "warning[W431]" in err
    assert ends(capsys, str(desk.pipeline("in/a.csv")))[0] == 1
    assert ends(capsys, str(desk.pipeline("in/a.csv/o.csv")))[0] == 4
    other = desk.folder.parent / "other"
    other.mkdir()
    assert ends(capsys, str(desk.pipeline("in/a.csv")), "--base-dir", str(other))[0] == 0


def test_folders_that_are_not_there_yet_hide_nothing(desk: Desk) -> None:
    """`new/../o.csv` is o.csv, which is there: also for those who ask before the run has made `new`."""
    desk.file("o.csv")
    for path in ("o.csv", "new/../o.csv", "new/x/../../o.csv"):
        assert desk.check(path, more=", if_exists: error") == ["E406"], path
    desk.file("x/2.csv")
    assert desk.check("new/../x/{batch_id}.csv", more=", if_exists: error", options={"batch_id": "2"}) == ["E406"]
    assert desk.check("new/../x/{batch_id}.csv", options={"batch_id": "3"}) == []
    (desk.folder / "elsewhere").mkdir()
    (desk.folder / "link").symlink_to("elsewhere")
    assert desk.check("link/../y/{batch_id}.csv", options={"batch_id": "3"}) == []


def test_dry_run_refuses_what_the_run_would(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """What is there and is somebody else's; inputs that are there and cannot be read."""
    desk.file("parts/mine.txt")
    desk.file("letters.csv", "mine\n")
    os.mkfifo(desk.folder / "in/pipe.csv")
    desk.pipeline("o.csv")
    before = sorted(desk.folder.rglob("*"))
    for path, parts, code in (
        ("parts/", {}, "E421"),
        ("o.csv", {"handling": dead("letters.csv")}, "E422"),
        ("/dev/null", {"more": ", split: { max_records: 1 }"}, "E425"),
        ("o.csv", {"files": "path: in/pipe.csv"}, "E435"),
        ("o.csv", {"files": 'glob: "in/*.csv"'}, "E435"),
    ):
        pipeline = desk.pipeline(path, **parts)
        left, err = ends(capsys, str(pipeline))
        assert left == 4 and f"error[{code}]" in err and "pipeline.yaml:" in err, (path, err)
    for path, parts in (("parts/", {}), ("o.csv", {"handling": dead("letters.csv")})):
        assert ends(capsys, str(desk.pipeline(path, **parts)), "--force")[0] == 0
    assert sorted(desk.folder.rglob("*")) == before


def test_dry_run_without_inputs_checks_what_it_can(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert ends(capsys, str(desk.pipeline("o.csv", files="path: not/there.csv")))[0] == 0
    code, err = ends(capsys, str(desk.pipeline("o.csv", "x/../o.csv", files="path: not/there.csv")))
    assert code == 1 and err.count("error[E322]") == 1


def test_dry_run_needs_neither_spark_nor_java(desk: Desk) -> None:
    code = (
        "import sys\nfrom clinker_spark.cli.clinker.main import main\n"
        f"sys.argv = ['clinker', 'run', '--dry-run', {str(desk.pipeline('o.csv'))!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    print('CODE', end.code)\n"
        "print('LOADED', *(m for m in ('pyspark', 'py4j', 'pyarrow', 'numpy') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "CODE 0" in done.stdout and done.stdout.partition("LOADED")[2].strip() == ""


def test_what_is_written_about_a_file_is_not_replaced_either(desk: Desk) -> None:
    """`if_exists` holds for .meta.json as well: of a file, of the parts of a split, of the file of each input."""
    for path, meta, split in (
        ("o.csv", "o.csv.meta.json", ""),
        ("p.csv", "p.csv.meta.json", ", split: { max_records: 1 }"),
        ("x/{source_file}.csv", "x/a.csv.meta.json", ""),
    ):
        more = f", write_meta: true{split}"
        desk.file(meta)
        assert desk.check(path, more=more) == []
        assert desk.check(path, more=more + ", if_exists: error") == ["E406"], path
        assert desk.check(path, more=more + ", if_exists: error", options={"force": True}) == []
        assert desk.check(path, more=more + ", if_exists: unique_suffix") == []
        assert split or desk.check(path, meta, more=more) == ["E322"]
    plan = prepare(desk.pipeline("o.csv", more=", write_meta: true, if_exists: unique_suffix"))
    found, _ = places(plan, Options(), desk.folder, {})
    assert [place.path.name for place in found] == ["o-1.csv", "o-1.csv.meta.json"]


def test_the_file_with_the_numbers_of_a_run_is_a_place_like_others(desk: Desk) -> None:
    spool = {"spool": desk.folder / "out"}
    assert desk.check("out/", options=spool) == ["E322"]
    assert desk.check("out/o.csv", options=spool) == []
    given = desk.pipeline("out/")
    given.write_text(given.read_text().replace("{ name: test }", "{ name: test, metrics: { spool_dir: out/x } }"))
    [(code, message, _)] = desk.findings(given)
    assert code == "E322" and "metrics.spool_dir" in message


def test_a_stream_does_not_read_what_it_writes(desk: Desk) -> None:
    for path, files, code in (
        ("in/", "glob: in/*.csv", "E446"),
        ("in/x.csv", 'glob: "./in/**/*.csv"', "E446"),
        ("in/", 'glob: "in/*.csv", exclude: ["o0-*.csv"]', None),
        ("out/", "glob: in/*.csv", None),
        ("in/", "regex: in/.*", "E446"),
    ):
        plan = prepare(desk.pipeline(path, files=files))
        written = {node.name: FileSink(node, desk.folder).place(0) for node in plan.outputs}
        try:
            check_not_read(plan, desk.folder, written)
            found = None
        except PathError as error:
            [found] = [d.code for d in error.diagnostics]
        assert found == code, path


def test_a_stream_does_not_read_its_dead_letters(desk: Desk) -> None:
    handling = "error_handling: { strategy: continue, dlq: { path: %s } }\n"
    for path, files, code in (
        ("in/dead.csv", 'glob: "in/*.csv"', "E446"),
        ("in/dead", 'glob: "in/*.csv"', "E446"),
        ("in/dead.csv", 'glob: "in/*-s.csv"', "E446"),  # what a node has made
        ("dead.csv", 'glob: "in/*.csv"', None),
        ("in/dead.csv", 'glob: "in/*.csv", exclude: ["dead-*.csv"]', None),
        ("in/dead.csv", "glob: in/i.csv", None),
    ):
        plan = prepare(desk.pipeline("out/", files=files, handling=handling % path))
        found = [(each.key, place) for each in letter_places(plan, desk.folder, queries(plan)) for place in each.each()]
        assert found
        try:
            check_not_read(plan, desk.folder, {}, found)
            codes = None
        except PathError as error:
            [one] = error.diagnostics
            codes = one.code
            assert one.span is not None and one.help
        assert codes == code, (path, files)
