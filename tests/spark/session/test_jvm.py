"""What Java needs of the process that starts it. No Java is started here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

pytest.importorskip("pyspark")

from clinker_spark.spark.session import jvm


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="elsewhere names are UTF-8 in any locale")
@pytest.mark.parametrize(
    ("before", "meanwhile"),
    [
        ({"LC_ALL": "C"}, "C.UTF-8"),
        ({"LANG": "POSIX"}, "C.UTF-8"),
        ({"LANG": "de_DE.ISO-8859-1", "LC_ALL": ""}, "C.UTF-8"),
        ({}, "C.UTF-8"),
        ({"LANG": "en_US.UTF-8"}, None),
        ({"LC_ALL": "de_DE.utf8", "LANG": "C"}, "de_DE.utf8"),
        ({"LC_CTYPE": "C.UTF-8"}, None),
    ],
)
def test_names_of_files_are_utf_8(
    monkeypatch: pytest.MonkeyPatch, before: dict[str, str], meanwhile: str | None
) -> None:
    """In the locale C, Java could not open `ü.csv`, nor start in a folder of that name."""
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in before.items():
        monkeypatch.setenv(name, value)
    with jvm._names_in_utf8():
        assert os.environ.get("LC_ALL") == meanwhile
    assert os.environ.get("LC_ALL") == before.get("LC_ALL")


def test_a_working_folder_that_is_gone_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(jvm.StartError) as caught:
        jvm._check_folder()
    [found] = caught.value.diagnostics
    assert found.code == "E025" and "is gone" in found.message and found.help


def test_a_child_is_waited_for_until_it_is_something_else() -> None:
    """Between `fork` and `exec` a process still has our own name. Java that began like that stayed for ever."""
    own = psutil.Process().cmdline()
    said = iter([own, own, ["bash", "spark-submit", "pyspark-shell"]])
    assert "pyspark-shell" in jvm._words_of(SimpleNamespace(cmdline=lambda: next(said)))


def test_an_interrupt_ends_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm.SparkContext, "_gateway", None)
    waiting = [sys.executable, "-c", "input()"]
    with subprocess.Popen([*waiting, "pyspark-shell"], stdin=subprocess.PIPE) as older:
        with pytest.raises(KeyboardInterrupt), jvm.starting(quiet=False):
            other = subprocess.Popen(waiting, stdin=subprocess.PIPE)
            raise KeyboardInterrupt
        with other:
            assert (older.poll(), other.poll()) == (None, None)
            for process in (older, other):
                process.communicate(b"\n")
