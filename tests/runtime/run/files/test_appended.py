"""A file that is begun while its parts are written has the bytes of one that is made of all of them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from clinker_spark.runtime.run.files.appended import Appended
from clinker_spark.runtime.run.files.assemble import one_file, part_files
from clinker_spark.spark.fragments.part_names import part_name
from clinker_spark.spark.render.rendering import Rendering

LINES = Rendering("", None, prefix=b"id,name\n", separator=b"\n", suffix=b"\n", empty=b"id,name\n", repeat_prefix=True)
ARRAY = Rendering("", None, prefix=b"[\n", separator=b",\n", suffix=b"\n]\n", empty=b"[]\n", repeat_prefix=False)


def _put(folder: Path, number: int, content: bytes) -> None:
    draft = folder / f".{number}"
    draft.write_bytes(content)
    draft.rename(folder / part_name(number))


def _until_copied(place: Path, size: int) -> None:
    until = time.monotonic() + 30
    while not place.exists() or place.stat().st_size < size:
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("rendering", [LINES, ARRAY])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (0, 2, 1)])
def test_the_bytes_are_those_of_all_parts(tmp_path: Path, rendering: Rendering, order: tuple[int, ...]) -> None:
    """Whatever order they come in, with an empty one among them, and with one that never comes."""
    parts = tmp_path / "parts"
    parts.mkdir()
    end = rendering.separator
    contents = [b"1,a" + end + b"2,b" + end, b"", b"3,c" + end, b"4,d" + end]
    appended = Appended(parts, rendering, tmp_path / "final")
    for number in order:
        _put(parts, number, contents[number])
    appended.stop()
    made = appended.made(part_files(parts))
    expected = one_file(part_files(parts), rendering, tmp_path / "whole")
    assert made is not None and made.path.read_bytes() == expected.path.read_bytes() and made.size == expected.size


def test_most_is_there_before_the_last_part_comes(tmp_path: Path) -> None:
    appended = Appended(tmp_path, LINES, tmp_path / "final")
    _put(tmp_path, 0, b"1,a\n")
    _until_copied(tmp_path / "final", len(b"id,name\n1,a\n"))
    appended.stop()


def test_parts_that_were_made_anew_are_copied_anew(tmp_path: Path) -> None:
    """By a task that ran twice; or lines were taken out of them."""
    for number, content in enumerate((b"1,a\n", b"2,b\n")):
        _put(tmp_path, number, content)
    appended = Appended(tmp_path, LINES, tmp_path / "final")
    appended.stop()
    _put(tmp_path, 1, b"3,c\n")
    assert appended.made(part_files(tmp_path)) is None


def test_what_has_no_records_is_made_by_others(tmp_path: Path) -> None:
    appended = Appended(tmp_path, ARRAY, tmp_path / "final")
    _put(tmp_path, 0, b"")
    assert appended.made(part_files(tmp_path)) is None


def test_a_file_that_cannot_be_written_is_made_by_others(tmp_path: Path) -> None:
    _put(tmp_path, 0, b"1,a\n")
    appended = Appended(tmp_path, LINES, tmp_path / "no folder" / "final")
    assert appended.made(part_files(tmp_path)) is None


def test_a_file_that_has_not_all_bytes_is_made_by_others(tmp_path: Path) -> None:
    _put(tmp_path, 0, b"1,a\n")
    appended = Appended(tmp_path, LINES, tmp_path / "final")
    appended.stop()
    with open(tmp_path / "final", "ab") as file:
        file.write(b"2")
    assert appended.made(part_files(tmp_path)) is None
