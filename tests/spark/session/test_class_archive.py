"""The archive of classes: where it is, who makes it, and that a JVM starts whatever lies there."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from clinker_spark.spark.session import class_archive
from clinker_spark.spark.session.class_archive import SETTING, archive_options

USE, MAKE = "-XX:SharedArchiveFile=", "-XX:ArchiveClassesAtExit="


def target(options: str, prefix: str) -> Path:
    return Path(next(o.removeprefix(prefix) for o in options.split() if o.startswith(prefix)))


def made(folder: Path, *, age: float = 60, content: bytes = b"x") -> Path:
    """What a run leaves behind."""
    path = target(archive_options(make=True), MAKE)
    path.write_bytes(content)
    os.utime(path, (time.time() - age,) * 2)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(SETTING, str(tmp_path / "classes"))
    return tmp_path / "classes"


def test_the_first_run_makes_it_and_later_ones_use_it(folder: Path) -> None:
    left = made(folder)
    archive = target(archive_options(make=True), USE)
    assert archive.read_bytes() == b"x" and not left.exists()
    assert archive.parent == folder


def test_an_archive_that_is_just_being_written_is_left_alone(folder: Path) -> None:
    left = made(folder, age=1)
    assert MAKE in archive_options(make=True) and left.exists()


def test_of_two_runs_at_once_one_wins(folder: Path) -> None:
    left = made(folder)
    other = left.with_name(left.name.replace(f".{os.getpid()}.", ".1."))
    shutil.copy2(left, other)
    assert USE in archive_options(make=True)
    assert sorted(p.suffix for p in folder.iterdir()) == [".jsa"]


def test_nothing_is_left_of_a_run_that_wrote_nothing(folder: Path) -> None:
    left = made(folder, content=b"")
    assert MAKE in archive_options(make=True) and not left.exists()


def test_another_java_has_another_archive(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = target(archive_options(make=True), MAKE)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert target(archive_options(make=True), MAKE) != first


def test_it_can_be_turned_off_and_needs_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "off")
    assert archive_options(make=True) == ""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(SETTING, str(tmp_path / "file" / "below"))
    assert archive_options(make=True) == ""
    monkeypatch.setenv(SETTING, str(tmp_path / "with blank"))
    assert archive_options(make=True) == ""


def test_a_folder_that_cannot_be_written_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive.os, "access", lambda *_: False)
    assert archive_options(make=True) == ""


def test_java_starts_quietly_with_a_damaged_archive(folder: Path) -> None:
    java = shutil.which("java") or os.path.join(os.environ.get("JAVA_HOME", ""), "bin", "java")
    if not os.path.exists(java):
        pytest.skip("no Java here")
    made(folder, content=b"not an archive" * 1000)
    options = archive_options(make=True)
    assert USE in options
    done = subprocess.run([java, *shlex.split(options), "--version"], capture_output=True, text=True, check=True)
    assert "warning" not in done.stdout.lower() and "error" not in done.stdout.lower()
