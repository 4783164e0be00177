"""`cxl fmt`: print, compare, rewrite; and never lose a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

UGLY = "let  x=(a+b)*2   # sum\n\n\n\nemit y = ((x))\n"
CANONICAL = "let x = (a + b) * 2  # sum\n\nemit y = x\n"


@pytest.fixture
def ugly(tmp_path: Path) -> Path:
    file = tmp_path / "ugly.cxl"
    file.write_text(UGLY)
    return file


@pytest.fixture
def pretty(tmp_path: Path) -> Path:
    file = tmp_path / "pretty.cxl"
    file.write_text(CANONICAL)
    return file


def test_prints_by_default(cxl: Callable[..., Any], ugly: Path, pretty: Path) -> None:
    assert cxl("fmt", ugly) == (0, CANONICAL, "")
    assert cxl("fmt", ugly, pretty).out == CANONICAL * 2
    assert ugly.read_text() == UGLY


def test_standard_input(cxl: Callable[..., Any]) -> None:
    assert cxl("fmt", "-", stdin=UGLY) == (0, CANONICAL, "")
    assert cxl("fmt", "-", stdin="emit a = 'ö'") == (0, 'emit a = "ö"\n', "")
    assert cxl("fmt", "-", "--check", stdin=UGLY) == (1, "<stdin>\n", "")
    assert cxl("fmt", "-", "--write", stdin=UGLY).code == 2


def test_check_names_the_files_that_would_change(cxl: Callable[..., Any], ugly: Path, pretty: Path) -> None:
    assert cxl("fmt", "--check", pretty, ugly) == (1, f"{ugly}\n", "")
    assert cxl("fmt", "--check", pretty) == (0, "", "")
    assert ugly.read_text() == UGLY


def test_diff(cxl: Callable[..., Any], ugly: Path, pretty: Path) -> None:
    for options in (("--diff",), ("--check", "--diff")):
        done = cxl("fmt", *options, pretty, ugly)
        assert done.code == 1
        assert done.out.startswith(f"--- {ugly}\n+++ {ugly} (canonical)\n@@")
        assert "-let  x=(a+b)*2   # sum\n+let x = (a + b) * 2  # sum\n" in done.out
    ugly.write_text("emit a = 1")
    assert "\\ No newline at end of file\n" in cxl("fmt", "--diff", ugly).out


def test_write(cxl: Callable[..., Any], ugly: Path, pretty: Path) -> None:
    ugly.chmod(0o640)
    before = pretty.stat()
    assert cxl("fmt", "--write", ugly, pretty) == (0, "", f"formatted {ugly}\n")
    assert ugly.read_text() == CANONICAL and ugly.stat().st_mode & 0o777 == 0o640
    after = pretty.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert sorted(os.listdir(ugly.parent)) == ["pretty.cxl", "ugly.cxl"]


def test_write_goes_through_a_link(cxl: Callable[..., Any], ugly: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.cxl"
    link.symlink_to(ugly)
    assert cxl("fmt", "--write", link).code == 0
    assert link.is_symlink() and ugly.read_text() == CANONICAL


def test_a_failed_write_leaves_the_file(cxl: Callable[..., Any], ugly: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.rename", no_space)
    done = cxl("fmt", "--write", ugly)
    assert done.code == 2 and "cannot write" in done.err and "no space left" in done.err
    assert ugly.read_text() == UGLY and os.listdir(ugly.parent) == ["ugly.cxl"]


def test_files_that_do_not_parse_are_left_alone(cxl: Callable[..., Any], ugly: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.cxl"
    wrong.write_text("emit a = 1 +\nemit  b = 2\n")
    for options in ((), ("--check",), ("--diff",), ("--write",)):
        done = cxl("fmt", *options, wrong, ugly)
        assert done.code == 1 and "error[E202]" in done.err and f"{wrong}:1" in done.err
        assert wrong.read_text() == "emit a = 1 +\nemit  b = 2\n"
    assert ugly.read_text() == CANONICAL  # the other file had its turn


def test_line_ends_and_byte_order_marks_become_canonical(cxl: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "windows.cxl"
    file.write_bytes(b"\xef\xbb\xbfemit a = 1\r\nemit b = 2\r\n")
    assert cxl("fmt", "--check", file).code == 1
    assert cxl("fmt", "--write", file).code == 0
    assert file.read_bytes() == b"emit a = 1\nemit b = 2\n"


def test_a_module_may_be_large(cxl: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "large.cxl"
    file.write_text("".join(f"fn f{i}(x) = x * {i} + 1000000000\n" for i in range(2000)))
    assert cxl("fmt", "--check", file).code == 0


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\0"])
def test_binary_files(cxl: Callable[..., Any], tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "binary.cxl"
    file.write_bytes(content)
    assert cxl("fmt", file).code in (1, 2)


def test_unusable_files(cxl: Callable[..., Any], tmp_path: Path) -> None:
    assert cxl("fmt", tmp_path).code == 2
    assert cxl("fmt", tmp_path / "none.cxl").code == 2
    assert cxl("fmt").code == 2
    empty = tmp_path / "empty.cxl"
    empty.touch()
    assert cxl("fmt", "--check", empty).code == 0


def test_options_that_exclude_each_other(cxl: Callable[..., Any], ugly: Path) -> None:
    assert cxl("fmt", "--write", "--check", ugly).code == 2
    assert cxl("fmt", "--write", "--diff", ugly).code == 2
    assert ugly.read_text() == UGLY
