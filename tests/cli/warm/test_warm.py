"""Commands that hand their work to a warm session: the same outputs, words and exit codes as without one."""

from __future__ import annotations

import contextlib
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from clinker_spark.cli.warm import place
from clinker_spark.cli.warm.client import wants_session
from tests.support.shell import Shell

_PIPELINE = """
pipeline: {{ name: warm{settings} }}
nodes:
  - {{ type: source, name: orders, config: {{ type: csv, path: orders.csv, schema: {{ id: int, amount: int }} }} }}
  - {{ type: transform, name: ratio, input: orders, config: {{ cxl: "emit ratio = 100 / amount" }} }}
  - {{ type: output, name: out, input: ratio, config: {{ type: csv, path: "{out}" }} }}
error_handling: {{ strategy: continue, dlq: {{ path: dead.csv }} }}
"""


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("warm")
    shell = Shell(folder, tmp_path_factory.mktemp("c"))
    (folder / "clinker.toml").write_text('[session]\nwarm = "10m"\n')
    (folder / "orders.csv").write_text("id,amount\n1,5\n2,0\n3,7\n")
    (folder / "p.yaml").write_text(_PIPELINE.format(settings="", out="out.csv"))
    yield shell
    shell.run("serve", "--stop")


@pytest.fixture(scope="module")
def warm(shell: Shell) -> Shell:
    """After the first command, which starts the session by itself."""
    code, _, err = shell.run("run", "p.yaml")
    assert code == 2, err
    assert len(shell.servers()) == 1
    return shell


def test_first_command_leaves_a_session_that_only_its_owner_can_use(warm: Shell) -> None:
    sockets = list(Path(warm.environment["XDG_CACHE_HOME"]).glob("clinker-spark/warm/*/*.sock"))
    assert len(sockets) == 1
    assert stat.S_IMODE(sockets[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(sockets[0].parent.stat().st_mode) == 0o700


def test_outputs_words_and_exit_code_are_the_same(warm: Shell) -> None:
    server = warm.servers()[0]
    code, out, err = warm.run("run", "p.yaml", "--machine", "ndjson-v1")
    assert code == 2 and '"completed"' in out, err
    assert warm.servers() == [server]
    outputs = [(warm.folder / name).read_bytes() for name in ("out.csv", "dead.csv")]
    assert outputs[0] == b"id,amount,ratio\n1,5,20\n3,7,14\n"
    _, _, words = warm.run("run", "p.yaml")
    assert "done with dead letters in" in words


def test_folder_and_mistakes_are_those_of_the_command(warm: Shell) -> None:
    other = warm.folder / "below"
    other.mkdir()
    (other / "orders.csv").write_text("id,amount\n8,2\n")
    (other / "p.yaml").write_text(_PIPELINE.format(settings="", out="a.csv"))
    elsewhere = Shell(other, Path(warm.environment["XDG_CACHE_HOME"]))
    server = warm.servers()
    code, _, err = elsewhere.run("run", "p.yaml")
    assert code == 0, err
    assert (other / "a.csv").read_text() == "id,amount,ratio\n8,2,50\n"
    code, _, err = elsewhere.run("run", "nothing.yaml")
    assert code != 0 and "nothing.yaml" in err
    code, out, err = elsewhere.run("query", "-e", 'from o in load "orders.csv" select o.id')
    assert code == 0 and "8" in out, err
    assert warm.servers() == server


def test_work_that_is_killed_is_told_and_does_not_touch_the_next(warm: Shell) -> None:
    _many(warm.folder / "orders.csv")
    try:
        process = warm.start("run", "p.yaml", "-q")
        worker = _working(warm)
        worker.kill()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 4 and "E410" in err
    finally:
        (warm.folder / "orders.csv").write_text("id,amount\n1,5\n")
    code, _, err = warm.run("run", "p.yaml")
    assert code == 0, err
    assert (warm.folder / "out.csv").read_text() == "id,amount,ratio\n1,5,20\n"


@pytest.mark.parametrize("way", ["interrupt", "killed command"])
def test_interrupt_ends_the_work(warm: Shell, way: str) -> None:
    (warm.folder / "orders.csv").write_text("id,amount\n1,5\n")
    assert warm.run("run", "p.yaml", "-q")[0] == 0
    before = (warm.folder / "out.csv").read_bytes()
    _many(warm.folder / "orders.csv")
    process = warm.start("run", "p.yaml", "-q")
    worker = _working(warm)
    time.sleep(0.3)
    if way == "interrupt":
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130 and "interrupted" in err
    else:
        process.kill()
        process.communicate(timeout=60)
    worker.wait(60)
    assert (warm.folder / "out.csv").read_bytes() == before


def test_other_settings_and_a_busy_session(warm: Shell) -> None:
    """Who finds no session that suits does its work as ever."""
    (warm.folder / "orders.csv").write_text("id,amount\n1,5\n")
    server = warm.servers()
    (warm.folder / "clinker.toml").write_text("")
    (warm.folder / "small.yaml").write_text(_PIPELINE.format(settings=", memory: { limit: 900M }", out="small.csv"))
    code, _, err = warm.run("run", "small.yaml", "-q")
    assert code == 0, err
    assert (warm.folder / "small.csv").read_text() == "id,amount,ratio\n1,5,20\n"
    assert warm.servers() == server


def test_session_leaves_when_there_is_nothing_to_do(warm: Shell) -> None:
    server = warm.servers()[0]
    _, out, _ = warm.run("serve", "--stop")
    assert "1 session ended" in out
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE
    assert not list(Path(warm.environment["XDG_CACHE_HOME"]).glob("clinker-spark/warm/*/*.sock"))


def test_commands_without_spark_are_not_handed_over() -> None:
    assert wants_session(["run", "p.yaml", "--dry-run", "-n", "3"])
    assert wants_session(["dlq", "replay", "p.yaml", "dead.csv"])
    for args in (["run", "p.yaml", "--explain=json"], ["run", "--help"], ["dlq", "inspect", "f"], [], ["run"]):
        assert not wants_session(args)


def test_folders_of_others_are_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = place.made_folder()
    assert found is not None and place.is_ours(found)
    found.chmod(0o755)
    assert place.made_folder() is None


def _many(path: Path) -> None:
    with path.open("w") as file:
        file.write("id,amount\n")
        file.writelines(f"{i},{i % 97 + 1}\n" for i in range(2_000_000))


def _working(shell: Shell) -> psutil.Process:
    """The fork that works, once it has begun to write."""
    server = shell.servers()[0]
    for _ in range(3000):
        if any(path.is_dir() for path in shell.folder.glob(".clinker-*")):
            for child in server.children():
                with contextlib.suppress(psutil.Error):
                    if not child.name().startswith("java"):
                        return child
        time.sleep(0.01)
    raise AssertionError("nothing works")
