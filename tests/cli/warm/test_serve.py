"""`clinker serve` in front: what its options say, what it takes, and how it ends."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import clinker_spark
from clinker_spark.cli.warm import place
from clinker_spark.cli.warm.server import Server
from clinker_spark.runtime.run.memory import SessionMemory
from tests.support.shell import Shell

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
PIPELINE = """
pipeline: { name: served, memory: { limit: 900M } }
nodes:
  - { type: source, name: orders, config: { type: csv, path: orders.csv, schema: { id: int, amount: int } } }
  - { type: transform, name: ratio, input: orders, config: { cxl: "emit ratio = 100 / amount" } }
  - { type: output, name: out, input: ratio, config: { type: csv, path: out.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""
LIMITED = PIPELINE.replace("900M", "950M")
"""What `--memory-limit 950M` makes of it, for commands that have no such option."""
LETTERS = """_cxl_dlq_source_file,_cxl_dlq_source_name,_cxl_dlq_source_row,_cxl_dlq_stage,id,amount
orders.csv,orders,2,transform:ratio,2,4
"""
START = ("--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=3")
LIMIT = ("--memory-limit", "950M")


def _ended(found: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return found.status() == psutil.STATUS_ZOMBIE
    return True


def _wait_for(what: str, found: object) -> None:
    until = time.monotonic() + 60
    while not found():  # type: ignore[operator]
        assert time.monotonic() < until, what
        time.sleep(0.02)


# ------------------------------------------------------------------------ without Spark


def test_session_that_nobody_uses_ends(tmp_path: Path) -> None:
    """Work that came meanwhile counts from its end."""
    settings = SessionMemory(master="local[1]", conf={}, java_options="")
    server = Server(tmp_path, settings, idle=0.4)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(server.address))
        listener.listen(1)
        began = time.monotonic()
        server._answer(listener)
        assert time.monotonic() - began >= 0.4


@pytest.mark.parametrize(
    ("change", "same"),
    [("TERM", True), ("COLUMNS", True), ("SSH_TTY", True), ("TZ", False), ("JAVA_HOME", False), ("version", False)],
)
def test_a_session_is_for_one_environment_and_version(change: str, same: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    before = place.folder()
    if change == "version":
        monkeypatch.setattr(clinker_spark, "__version__", "0.0.1")
    else:
        monkeypatch.setenv(change, "another")
    assert (place.folder() == before) == same


@pytest.fixture
def alone(tmp_path: Path) -> Shell:
    (tmp_path / "orders.csv").write_text("id,amount\n1,5\n2,0\n3,7\n")
    (tmp_path / "p.yaml").write_text(PIPELINE)
    return Shell(tmp_path, tmp_path / "c")


def test_interrupt_before_the_work_has_begun(alone: Shell) -> None:
    """A session has not yet said whether it takes the work."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(alone.sockets() / "silent.sock"))
        listener.listen(1)
        process = alone.start("run", "p.yaml")
        connection, _ = listener.accept()
        with connection:
            connection.recv(1)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "clinker: interrupted\n")


def test_session_that_is_gone_is_passed_by(alone: Shell) -> None:
    """Its socket is still there; the command does its work, or says what is wrong with it, as ever."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(alone.sockets() / "gone.sock"))
    code, _, err = alone.run("run", "nothing.yaml")
    assert code == 1 and "nothing.yaml" in err and "E410" not in err


# --------------------------------------------------------------------------- with Spark


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("serve"), tmp_path_factory.mktemp("c"))


@pytest.fixture(scope="module")
def served(shell: Shell) -> Iterator[subprocess.Popen[str]]:
    """`clinker serve` for a pipeline, with all of its options."""
    (shell.folder / "p.yaml").write_text(PIPELINE)
    process = shell.start("serve", "p.yaml", "--idle", "10m", *START, *LIMIT)
    assert process.stdout is not None
    assert process.stdout.readline() == "clinker: starting Spark ...\n"
    assert process.stdout.readline() == "clinker: ready, until there was no work for 10m\n"
    yield process
    process.kill()
    process.communicate()


def test_there_is_one_session_for_the_same_settings(shell: Shell, served: object, files: Path) -> None:
    assert shell.run("serve", "p.yaml", *START, *LIMIT)[:2] == (
        0,
        "clinker: there is a session with these settings already\n",
    )


PREVIEW = ("run", "p.yaml", *START, *LIMIT, "--dry-run", "-n", "3")
WRONG = {
    "number that is none": ("run", "p.yaml", *START, *LIMIT, "--dry-run", "-n", "many"),
    "unknown variable": ("run", "p.yaml", *START, *LIMIT, "--set", "vars.x=1"),
    "no letters": ("dlq", "replay", "limited.yaml", "orders.csv", *START),
    "no query": ("query", "-e", 'from o in load "nothing.csv" select o.id', *START),
}
RIGHT = {
    "run": ("run", "p.yaml", *START, *LIMIT, "--force"),
    "preview": PREVIEW,
    "preview in a file": (*PREVIEW, "--dry-run-output", "preview.txt"),
    "query": ("query", "-e", 'from o in load "orders.csv" select o.id', *START),
    "replay": ("dlq", "replay", "limited.yaml", "letters.csv", *START),
    "another folder": ("run", "../p.yaml", *START, *LIMIT, "--force"),
}


@pytest.fixture
def files(shell: Shell) -> Path:
    """The folder as every command finds it."""
    (shell.folder / "below").mkdir(exist_ok=True)
    given = {
        "orders.csv": "id,amount\n1,5\n2,0\n3,7\n",
        "p.yaml": PIPELINE,
        "limited.yaml": LIMITED,
        "letters.csv": LETTERS,
    }
    for path in shell.folder.iterdir():
        if path.is_file():
            path.unlink()
    for name, text in given.items():
        (shell.folder / name).write_text(text)
    return shell.folder


def _seen(folder: Path, ended: tuple[int, str, str]) -> tuple[int, str, str, dict[str, bytes]]:
    """What a command said and left."""
    code, out, err = ended
    left = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name[0] != "."}
    left = {name: re.sub(rb"[0-9a-f-]{36},[0-9T:.Z-]+", b"", content) for name, content in left.items()}
    return code, out, re.sub(r"\d+\.\d+ s\b", "", err), left


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_told_as_ever(name: str, shell: Shell, served: object, files: Path) -> None:
    found = _seen(files, shell.run_without_java(*WRONG[name], FORCE_COLOR="1"))
    assert found[0] not in (0, 130) and "internal error" not in found[2] and "E410" not in found[2]
    assert _seen(files, shell.run(*WRONG[name], FORCE_COLOR="1", CLINKER_WARM="off")) == found


@pytest.mark.parametrize("name", RIGHT)
def test_work_is_taken_and_gives_the_same(name: str, shell: Shell, served: object, files: Path) -> None:
    place = shell if name != "another folder" else Shell(files / "below", shell.cache)
    found = _seen(files, place.run_without_java(*RIGHT[name]))
    code, out, _, left = found
    match name:
        case "preview":
            assert code == 0 and "division by zero" in out
        case "preview in a file":
            assert code == 0 and out == "" and b"division by zero" in left["preview.txt"]
        case "query":
            assert code == 0 and "  3\n" in out
        case "replay":
            assert code == 0 and left["out-replay.csv"] == b"id,amount,ratio\n2,4,25\n"
        case _:
            assert code == 2 and left["out.csv"] == b"id,amount,ratio\n1,5,20\n3,7,14\n"
    if EVERYTHING:
        for path in files.iterdir():
            if path.is_file() and path.name not in ("orders.csv", "p.yaml", "limited.yaml", "letters.csv"):
                path.unlink()
        assert _seen(files, place.run(*RIGHT[name], CLINKER_WARM="off")) == found


def test_java_that_is_killed_ends_the_run_and_not_the_next(
    shell: Shell, served: subprocess.Popen[str], files: Path
) -> None:
    """The run says so with a code, the session ends, and a new one is started by the next command, and leaves soon."""
    with (files / "orders.csv").open("a") as file:
        file.writelines(f"{i},{i % 97 + 1}\n" for i in range(4, 3_000_000))
    process = shell.start("run", "p.yaml", *START, *LIMIT, "-q")
    _wait_for("nothing works", lambda: any(path.is_dir() for path in files.glob(".clinker-*")))
    [java] = [child for child in psutil.Process(served.pid).children() if child.name().startswith("java")]
    java.kill()
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err.count("error[E410]")) == (4, 1), err
    assert "the JVM of Spark was killed (SIGKILL); nothing was published" in err and "Traceback" not in err
    _, err = served.communicate(timeout=60)
    assert served.returncode == 4 and "E410" in err and "Traceback" not in err
    assert not list(Path(shell.environment["XDG_CACHE_HOME"]).glob("clinker-spark/warm/*/*.sock"))

    (files / "orders.csv").write_text("id,amount\n1,5\n")
    (files / "clinker.toml").write_text('[session]\nwarm = "1s"\n[spark]\nmaster = "local[1]"\n')
    code, _, err = shell.run("run", "p.yaml")
    assert code == 0, err
    assert (files / "out.csv").read_text() == "id,amount,ratio\n1,5,20\n"
    _wait_for("it stays", lambda: not shell.servers())


@pytest.mark.skipif(not EVERYTHING, reason="starts Java three times: CLINKER_CASES=all")
def test_java_that_is_killed_while_nobody_works_is_passed_by(shell: Shell, files: Path) -> None:
    process = shell.start("serve", "p.yaml", *START, *LIMIT)
    assert process.stdout is not None
    _wait_for("not ready", lambda: process.stdout.readline().startswith("clinker: ready"))
    [java] = [child for child in psutil.Process(process.pid).children() if child.name().startswith("java")]
    java.kill()
    code, _, err = shell.run("run", "p.yaml", *START, *LIMIT, "-q")
    assert (code, err) == (2, "")
    assert process.wait(60) == 4 and "E410" in process.communicate()[1]


@pytest.mark.parametrize("ready", [False, True] if EVERYTHING else [False])
def test_interrupt_ends_the_session(ready: bool, shell: Shell, files: Path) -> None:
    process = shell.start("serve")
    assert process.stdout is not None
    assert process.stdout.readline() == "clinker: starting Spark ...\n"
    if ready:
        assert process.stdout.readline().startswith("clinker: ready")
    else:
        _wait_for("no Java", lambda: psutil.Process(process.pid).children())
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "clinker: interrupted\n")
    _wait_for("Java stays", lambda: all(map(_ended, children)))
