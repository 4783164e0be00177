"""kill -9 of processes that stage, and eight that race for one source. Twelve kills; a hundred and more with
CLINKER_CASES=all. No Java."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.runtime.staging.entry import places
from clinker_spark.runtime.staging.purge import purge
from tests.crash.faults import FaultyFiles
from tests.crash.staged import STATES, SYSTEM, State, aged, held, stage
from tests.crash.staging_processes import race, stage_again_and_again, stage_and_stop

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.crash.staging_processes", "blake3"])
BIG = b"0123456789abcdef" * (1 << 18)
"""Four blocks."""
POLICIES = [
    {"on_existing": "overwrite", "cleanup": "on_success"},
    {"on_existing": "reuse", "cleanup": "never"},
    {"on_existing": "overwrite", "cleanup": "never", "verify": False},
    {"on_existing": "reuse", "cleanup": "always"},
]


def wait_until(check: Any, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < until
        time.sleep(0.002)


def is_stopped(process: Any) -> bool:
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


class Siblings:
    """Living runs in the same folder: one that reads a copy, and one in the middle of copying."""

    def __init__(self, state: State) -> None:
        self.folder = state.folder
        self.read, self.copied = state.root / "read.csv", state.root / "copied.csv"
        self.read.write_bytes(BIG)
        self.copied.write_bytes(BIG)
        self.reader = held(self.folder, self.read, cleanup="never")
        self.reader.__enter__()
        # With the third block half-way written.
        files = FaultyFiles()
        stage(self.folder, self.copied, files)
        at = [i for i, line in enumerate(files.log, 1) if line.startswith("append")][2]
        args = (str(self.folder), str(self.copied), at, {"cleanup": "never"})
        self.copier = PROCESSES.Process(target=stage_and_stop, args=args)
        self.copier.start()
        wait_until(lambda: is_stopped(self.copier))

    def names(self) -> set[str]:
        ids = [places(self.folder, os.path.realpath(path)).id for path in (self.read, self.copied)]
        return {name for name in os.listdir(self.folder) if name[:32] in ids}

    def end(self) -> None:
        """Both come to a good end."""
        assert places(self.folder, os.path.realpath(self.read)).copy.read_bytes() == BIG
        self.reader.__exit__(None, None, None)
        os.kill(self.copier.pid, 18)
        self.copier.join(60)
        assert self.copier.exitcode == 0
        action, content = stage(self.folder, self.copied, on_existing="reuse")
        assert (action, content) == ("reused", BIG)


def kill_at_call(state: State, at: int, policy: dict[str, Any]) -> None:
    process = PROCESSES.Process(target=stage_and_stop, args=(str(state.folder), str(state.source), at, policy))
    process.start()
    wait_until(lambda: not process.is_alive() or is_stopped(process))
    process.kill()
    process.join()


def kill_after(state: State, seconds: float, policy: dict[str, Any]) -> None:
    ready = PROCESSES.Event()
    args = (str(state.folder), str(state.source), ready, policy)
    process = PROCESSES.Process(target=stage_again_and_again, args=args)
    process.start()
    assert ready.wait(60)
    time.sleep(seconds)
    process.kill()
    process.join()


def kills() -> list[tuple[str, float | None, int]]:
    """The state that is found, the moment (a share of all calls, or None for a random one), and the policy."""
    every = 12 if EVERYTHING else 1
    named = [(name, i / every, i % 4) for name in STATES for i in range(every)]
    return [*named, *((STATES[i % 4], None, i % 4) for i in range(64 if EVERYTHING else 8))]


def test_kill_9_leaves_nothing_that_is_trusted_by_mistake(tmp_path: Path) -> None:
    """After each: what is trusted is whole, a purge takes all but what living runs need, and the next run works."""
    chance = random.Random(15)
    for number, (name, share, policy) in enumerate(kills()):
        state = State(tmp_path / str(number), name)
        state.prepare()
        state.source.write_bytes(BIG + bytes(str(number), "ascii"))
        siblings = Siblings(state) if number % 4 == 0 else None
        if share is None:
            kill_after(state, chance.uniform(0, 0.05), POLICIES[policy])
        else:
            counting = FaultyFiles()
            twin = State(tmp_path / "twin", name)
            twin.prepare()
            twin.source.write_bytes(BIG)
            stage(twin.folder, twin.source, counting, **POLICIES[policy])
            shutil.rmtree(twin.root)
            kill_at_call(state, 1 + int(share * counting.calls), POLICIES[policy])
        state.check()
        alive = set() if siblings is None else siblings.names()
        aged(state.folder)
        whole = state.entry()
        purge(SYSTEM, state.folder)
        assert state.entry() == whole
        assert alive <= set(os.listdir(state.folder))
        ours = places(state.folder, os.path.realpath(state.source))
        left = {n for n in os.listdir(state.folder) if n[:32] == ours.id}
        assert left == (set() if whole is None else {ours.copy.name, ours.manifest.name, ours.lock.name}), (
            number,
            name,
        )
        assert stage(state.folder, state.source)[1] == state.source.read_bytes()
        if siblings is not None:
            siblings.end()
        assert not [n for n in os.listdir(state.folder) if n[:32] == ours.id]
        shutil.rmtree(state.root)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: "-".join(map(str, policy.values())))
def test_eight_processes_copy_one_source_once(policy: dict[str, Any], tmp_path: Path) -> None:
    """Each reads the whole of it, and none fails. Where copies are removed, a late one may have to copy again."""
    for number in range(10 if EVERYTHING else 1):
        folder, source = tmp_path / f"stage-{number}", tmp_path / "in.csv"
        folder.mkdir()
        source.write_bytes(BIG)
        barrier, results = PROCESSES.Barrier(8), PROCESSES.Queue()
        args = (str(folder), str(source), barrier, results, policy)
        processes = [PROCESSES.Process(target=race, args=args) for _ in range(8)]
        for process in processes:
            process.start()
        found = [results.get(timeout=60) for _ in processes]
        for process in processes:
            process.join(60)
        assert all(right for _, right in found), found
        copies = Counter(action for action, _ in found)["copied"]
        if policy["cleanup"] == "never":
            assert copies == 1, found
            assert len(os.listdir(folder)) == 3
        else:
            assert 1 <= copies <= 8 and os.listdir(folder) == []
