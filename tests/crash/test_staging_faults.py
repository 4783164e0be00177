"""Every file call of staging fails once, and dies once: no half copy is ever trusted, the source is never touched,
messages are true, and the next run, or a purge, leaves nothing behind."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from clinker_spark.runtime.commit import seam
from clinker_spark.runtime.staging.errors import NotStaged
from clinker_spark.runtime.staging.purge import purge
from tests.crash.faults import Crash, FaultyFiles
from tests.crash.staged import CONTENT, STATES, State, aged, stage

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
POLICIES = [
    {"on_existing": existing, "cleanup": cleanup, "verify": verify}
    for existing in ("overwrite", "reuse")
    for cleanup in ("on_success", "never")
    for verify in (True, False)
]
CHOSEN = POLICIES if EVERYTHING else [POLICIES[0], POLICIES[6]]


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In memory, where syncing costs nothing, and with small blocks."""
    monkeypatch.setattr(seam, "_BLOCK", 4096)
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    yield Path(folder)
    shutil.rmtree(folder)


def fresh(base: Path, name: str, number: int) -> State:
    state = State(base / f"{name.replace(' ', '-')}-{number}", name)
    state.prepare()
    return state


def calls_of(base: Path, name: str, policy: dict[str, object]) -> int:
    state, files = fresh(base, name, 0), FaultyFiles()
    action, content = stage(state.folder, state.source, files, **policy)
    assert content == state.source.read_bytes()
    assert action == ("reused" if name == "fresh copy" and policy["on_existing"] == "reuse" else "copied")
    shutil.rmtree(state.root)
    return files.calls


def and_then(state: State, note: str) -> None:
    """The next run works, and nothing but whole copies is left after a purge."""
    state.check()
    before = state.source.read_bytes()
    _, content = stage(state.folder, state.source, run="next", on_existing="reuse", cleanup="never")
    assert content == before == state.source.read_bytes(), note
    state.check()
    state.purge()
    assert state.left_over() == [], note
    assert stage(state.folder, state.source, on_existing="reuse")[0] == "reused"
    state.purge()
    assert os.listdir(state.folder) == [], note


@pytest.mark.parametrize("policy", CHOSEN, ids=lambda policy: "-".join(map(str, policy.values())))
@pytest.mark.parametrize("name", STATES)
def test_an_error_at_every_call(name: str, policy: dict[str, object], base: Path) -> None:
    for number in (errno.EIO, errno.ENOSPC, errno.EACCES) if EVERYTHING else (errno.EIO, errno.ENOSPC):
        for at in range(1, calls_of(base, name, policy) + 1):
            state, files = fresh(base, name, at), FaultyFiles(at, number=number)
            note = f"error {number} at call {at}"
            try:
                _, content = stage(state.folder, state.source, files, **policy)
                assert content == state.source.read_bytes()
            except NotStaged as problem:
                full = number == errno.ENOSPC and problem.about == "dir"
                wanted = "E405" if full else "E426" if problem.about == "dir" else "E229"
                assert problem.code == wanted and problem.help, (note, files.log[at - 1], problem.message)
            assert not list(state.folder.glob("*.partial")) or name == "interrupted" or "unlink" in files.log[at - 1]
            and_then(state, f"{note}: {files.log[at - 1]}")
            shutil.rmtree(state.root)


@pytest.mark.parametrize("policy", CHOSEN, ids=lambda policy: "-".join(map(str, policy.values())))
@pytest.mark.parametrize("name", STATES)
def test_death_at_every_call(name: str, policy: dict[str, object], base: Path) -> None:
    for at in range(1, calls_of(base, name, policy) + 1):
        state, files = fresh(base, name, at), FaultyFiles(at, crash=True)
        with pytest.raises(Crash):
            stage(state.folder, state.source, files, **policy)
        and_then(state, f"death at call {at}: {files.log[at - 1]}")
        shutil.rmtree(state.root)


@pytest.mark.parametrize("name", STATES)
def test_faults_of_a_purge(name: str, base: Path) -> None:
    """It fails, or dies, at each of its own calls; the next one brings it to an end, and whole copies stay."""
    counting = FaultyFiles()
    state = fresh(base, name, 0)
    aged(state.folder)
    whole = state.entry()
    purge(counting, state.folder)
    assert state.entry() == whole
    for at in range(1, counting.calls + 1):
        for crash in (False, True):
            state = fresh(base, name, 2 * at + crash)
            aged(state.folder)
            with contextlib.suppress(Crash, OSError):
                purge(FaultyFiles(at, crash=crash), state.folder)
            assert (state.entry() is None) == (whole is None)
            and_then(state, f"call {at} of the purge: {counting.log[at - 1]}")
            shutil.rmtree(state.root)


def test_enough_faults_are_injected(base: Path) -> None:
    """Or else the tests above would prove little: every step of a copy is a call that fails."""
    calls = {name: calls_of(base, name, POLICIES[0]) for name in STATES}
    assert all(count >= 25 for count in calls.values()), calls
    state, files = fresh(base, "nothing", 1), FaultyFiles()
    stage(state.folder, state.source, files)
    words = [line.split()[0] for line in files.log]
    assert len(CONTENT) > 2 * 4096 and words.count("block") == 8 and words.count("append") == 4
    order = ["lock", "create", "append", "close", "sync", "rename", "sync", "open", "block", "create", "rename"]
    at = -1
    for word in order:
        at = words.index(word, at + 1)
