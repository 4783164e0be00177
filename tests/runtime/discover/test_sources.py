"""Which files a pattern means, however it is spelled; and what is no file at all. Nothing here needs Spark."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.discover.sources import Found, discover

NODES = """
pipeline: {{ name: test }}
nodes:
  - {{ type: source, name: s, config: {{ type: {kind}, {files}, schema: {{ id: int }} }} }}
  - {{ type: output, name: o, input: s, config: {{ type: csv, path: o.csv }} }}
"""
TREE = ("a.csv", "b.csv", "in/a.csv", "in/x/c.csv", "in/x/y/d.csv", "in/a(1).csv", "in/.hidden.csv", "in/_x.csv")


def find(folder: Path, files: str, kind: str = "csv", base: Path | None = None) -> Found:
    (folder / "p.yaml").write_text(NODES.format(kind=kind, files=files))
    [source] = prepare(folder / "p.yaml").sources
    return discover(source, base or folder, dt.datetime(2030, 1, 1))


def names(folder: Path, files: str, base: Path | None = None) -> list[str]:
    try:
        return [file.name for file in find(folder, files, base=base).files]
    except ClinkerError as error:
        return [d.code for d in error.diagnostics]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    for name in TREE:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("id\n1\n")
    return folder


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("in/a.csv", ["in/a.csv"]),
        ("./in/a*.csv", ["in/a(1).csv", "in/a.csv"]),
        ("././*.csv", ["a.csv", "b.csv"]),
        ("in//a*.csv", ["in/a(1).csv", "in/a.csv"]),
        ("in/./a.*", ["in/a.csv"]),
        ("in/*/./c.csv", ["in/x/c.csv"]),
        ("in/*//c.csv", ["in/x/c.csv"]),
        ("./**/c.csv", ["in/x/c.csv"]),
        ("in/x/../a.csv", ["in/a.csv"]),
        ("in/x/../a*.csv", ["in/a(1).csv", "in/a.csv"]),
        ("../work/in/x/*.csv", ["in/x/c.csv"]),
        ("../work/*.csv", ["a.csv", "b.csv"]),
        ("./in/**/d.csv", ["in/x/y/d.csv"]),
        ("in/{a(1),x/c}.csv", ["in/a(1).csv", "in/x/c.csv"]),
        ("in/[!a]/*.csv", ["in/x/c.csv"]),
        ("[ab].csv", ["a.csv", "b.csv"]),
        ("in/_*.csv", ["E216"]),
        ("nowhere/*.csv", ["E216"]),
        ("a.csv/*.csv", ["E229"]),
        ("in/[z-a].csv", ["E212"]),
    ],
)
def test_spellings_of_globs(tree: Path, pattern: str, found: list[str]) -> None:
    assert names(tree, f"glob: {json.dumps(pattern)}") == found


def test_globs_from_the_root(tree: Path) -> None:
    assert names(tree, f'glob: "{tree}/in/*.csv"') == [f"{tree}/in/a(1).csv", f"{tree}/in/a.csv"]
    assert names(tree, f'glob: "{tree}/./in//x/*.csv"') == [f"{tree}/in/x/c.csv"]
    assert names(tree, f'glob: "file://{tree}/in/x/*.csv"') == [f"{tree}/in/x/c.csv"]
    assert names(tree, f'glob: "{tree}/in/*.csv", exclude: ["{tree}/in/a.csv"]') == [f"{tree}/in/a(1).csv"]


def test_globs_beside_another_base(tree: Path) -> None:
    base = tree.parent / "other"
    base.mkdir()
    assert names(tree, 'glob: "../work/in/a.*"', base=base) == ["../work/in/a.csv"]
    assert names(tree, 'glob: "./../work/./in/x/*.csv"', base=base) == ["../work/in/x/c.csv"]


@pytest.mark.parametrize("pattern", ["in/a.csv", "./in/a.csv", "in/./a.csv", "in//a.csv", "a.csv", "**/a.csv"])
def test_spellings_of_what_is_left_out(tree: Path, pattern: str) -> None:
    assert "in/a.csv" not in names(tree, f'glob: "in/*.csv", exclude: [{json.dumps(pattern)}]')


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"in/a\.csv", ["in/a.csv"]),
        (r"\./in/a\.csv", ["in/a.csv"]),
        ("./in/a.csv", ["in/a.csv"]),
        (r".*/[cd]\.csv", ["in/x/c.csv", "in/x/y/d.csv"]),
        (r"\.\./work/.*c\.csv", ["E216"]),  # it is `in/x/c.csv` from here
        ("nothing", ["E216"]),
    ],
)
def test_spellings_of_regular_expressions(tree: Path, pattern: str, found: list[str]) -> None:
    assert names(tree, f"regex: {json.dumps(pattern)}") == found


def test_regular_expressions_that_lead_elsewhere(tree: Path) -> None:
    base = tree.parent / "other"
    base.mkdir()
    assert names(tree, r"""regex: '\.\./work/in/a\.csv'""", base=base) == ["../work/in/a.csv"]
    assert names(tree, f"regex: '{tree}/in/x/.*'", base=base) == [f"{tree}/in/x/c.csv", f"{tree}/in/x/y/d.csv"]


def test_links_do_not_lead_in_circles(tree: Path) -> None:
    (tree / "in/x/up").symlink_to("..")
    (tree / "in/self").symlink_to("self")
    assert names(tree, 'glob: "in/**/d.csv"') == ["in/x/y/d.csv"]
    assert names(tree, 'glob: "in/s*"') == ["E229"]


def test_files_that_come_twice(tree: Path) -> None:
    found = find(tree, "paths: [a.csv, b.csv, a.csv, ./b.csv]")
    assert [d.code for d in found.warnings] == ["W431", "W431"] and len(found.files) == 4
    assert [d.message for d in found.warnings] == [
        "'a.csv' is read twice: its records come twice",
        "'./b.csv' is the same file as 'b.csv', which is read too: its records come twice",
    ]
    (tree / "in/latest.csv").symlink_to("a.csv")
    [warning] = find(tree, 'glob: "in/*.csv"').warnings
    assert warning.code == "W431" and "'in/latest.csv' is the same file as 'in/a.csv'" in warning.message
    assert find(tree, "paths: [a.csv, b.csv]").warnings == ()


def test_pipes_devices_and_links_to_nowhere(tree: Path) -> None:
    os.mkfifo(tree / "in/pipe.csv")
    (tree / "gone.csv").symlink_to("not-there.csv")
    assert names(tree, "path: in/pipe.csv") == ["E435"]  # and nobody waits for a writer
    assert names(tree, "paths: [a.csv, in/pipe.csv]") == ["E435"]
    assert names(tree, 'glob: "in/*.csv"') == ["E435"]
    assert names(tree, 'glob: "in/*.csv", exclude: [pipe.csv]') == ["in/a(1).csv", "in/a.csv"]
    assert names(tree, "path: /dev/null") == ["E435"]
    assert names(tree, "path: gone.csv") == ["E229"]
    assert names(tree, 'glob: "*.csv"') == ["E229"]
    assert names(tree, r'path: "a\0.csv"') == ["E229"]


def test_names_that_are_no_text(tree: Path) -> None:
    with open(os.fsencode(tree) + b"/in/\xff.csv", "w"):
        pass
    assert names(tree, 'glob: "in/*.csv"') == ["E229"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_a_folder_that_cannot_be_listed_is_no_empty_one(tree: Path) -> None:
    (tree / "in/x").chmod(0)
    assert names(tree, 'glob: "in/**/*.csv"') == ["E229"]


def test_what_is_noted_about_files(tree: Path) -> None:
    [file] = find(tree, "path: in/a.csv").files
    info = os.stat(tree / "in/a.csv")
    [stamp] = file.stamps
    assert (stamp.size, stamp.inode, stamp.modified_ns) == (info.st_size, info.st_ino, info.st_mtime_ns)
    (tree / "t").mkdir()
    for name in ("2.parquet", "1.parquet", "_SUCCESS", ".x.parquet"):
        (tree / "t" / name).write_text(name)
    [folder] = find(tree, "path: t", "parquet").files
    assert [os.path.basename(stamp.path) for stamp in folder.stamps] == ["1.parquet", "2.parquet"]
    assert folder.size == 18
