"""Every call of the file seam fails once, and dies once, in six kinds of runs: all outputs are old or all are new,
nothing of the user's is gone, what is left behind is cleared away, and messages are true."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.runtime.commit.manifest import load
from clinker_spark.runtime.commit.recovery import recover
from clinker_spark.runtime.commit.seam import PosixFiles
from tests.crash.faults import KINDS, Crash, FaultyFiles, Kind, Place

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
FEWER = 1 if EVERYTHING else 11
"""Only every so many calls, where another test tries them all in another way."""
SYSTEM = PosixFiles()
TRUE = ("nothing was published", "as they were")


@pytest.fixture
def base() -> Iterator[Path]:
    """In memory, where syncing costs nothing."""
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    yield Path(folder)
    shutil.rmtree(folder)


def calls_of(place: Place) -> int:
    files = FaultyFiles()
    place.kind.publish(place.fresh(), 2, files)
    return files.calls


def errors(calls: int) -> list[tuple[int, int]]:
    """Numbers of errors, and the calls that fail with them."""
    more = [(number, at) for number in (errno.ENOSPC, errno.EACCES) for at in range(1, calls + 1, FEWER)]
    return [(errno.EIO, at) for at in range(1, calls + 1)] + more


def deaths(calls: int) -> list[tuple[int, str]]:
    """The calls at which the process dies, and who comes after it."""
    more = [(at, "next run") for at in range(1, calls + 1, FEWER)]
    return [(at, "recover") for at in range(1, calls + 1)] + more


def test_enough_faults_are_injected(base: Path) -> None:
    """Or else the tests below would prove little. Faults of recoveries come on top."""
    counts = [calls_of(Place.prepared(kind, base / kind.name)) for kind in KINDS]
    assert sum(len(errors(count)) + len(deaths(count)) for count in counts) >= 2_000, counts


def check(place: Place, root: Path, note: str, *states: str) -> str:
    found = place.state(root)
    assert found in (states or ("old", "new")), f"{place.kind.name}, {note}: {found}"
    return found


def next_run(place: Place, root: Path) -> None:
    """It finds what the crash left, and its own outputs are published."""
    place.kind.publish(root, 3, SYSTEM)
    assert place.left_over(root) == []
    later = place.visible(root)
    for name, content in place.kind.expected(3).items():
        if "c2/" not in name:  # the second run may never have come to be
            assert later[name] == content or (place.kind.name == "replay" and content.startswith(later[name][:5]))
    assert all(later[name] == "of the user\n" for name in place.kind.foreign)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_error_at_every_call(kind: Kind, base: Path) -> None:
    """After it all is as it was and nothing is left behind; or it was no reason to fail, and all is new."""
    place = Place.prepared(kind, base)
    for number, at in errors(calls_of(place)):
        root, files = place.fresh(), FaultyFiles(at, number=number)
        note = f"error {number} at call {at}"
        try:
            kind.publish(root, 2, files)
        except ClinkerError as error:
            [found] = error.diagnostics
            check(place, root, f"{note}: {files.log[-1]}", "old")
            assert found.code in ("E401", "E405", "E420", "E707"), (note, found)
            assert any(word in (found.help or "") for word in TRUE), (note, found)
        except OSError:  # while files are made: the run says so, and that nothing was published
            check(place, root, f"{note}: {files.log[at - 1]}", "old")
        else:
            check(place, root, f"{note}: {files.log[at - 1]}", "new")
        recover(SYSTEM, place.homes(root))  # what could not be removed because of the error
        assert place.left_over(root) == [], (note, files.log[at - 1])
        shutil.rmtree(root)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_death_at_every_call(kind: Kind, base: Path) -> None:
    """`recover`, or the start of the next run, finishes what is in the journal, and clears away the rest."""
    place = Place.prepared(kind, base)
    seen = set()
    for at, way in deaths(calls_of(place)):
        root, files = place.fresh(), FaultyFiles(at, crash=True)
        note = f"death at call {at}, {way}"
        with pytest.raises(Crash):
            kind.publish(root, 2, files)
        if way == "recover":
            committing = any(root.rglob(".clinker-*/journal"))
            recover(SYSTEM, place.homes(root))
            states = ("new",) if committing else ("old", "new")
            seen.add(check(place, root, f"{note}: {files.log[at - 1]}", *states))
            assert place.left_over(root) == [], (note, files.log[at - 1])
            knows = load(SYSTEM, root / "out", "test").run == "run2"
            assert kind.name == "query" or knows == (place.state(root) == "new")
        else:
            next_run(place, root)
        shutil.rmtree(root)
    assert seen == {"old", "new"}


@pytest.mark.timeout(7200 if EVERYTHING else 600)  # every pair of calls
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_death_and_then_a_fault_of_the_recovery(kind: Kind, base: Path) -> None:
    """Recovery fails, or dies, at each of its own calls; the next one brings it to an end."""
    place = Place.prepared(kind, base)
    total = calls_of(place)
    for at in range(1, total + 1, FEWER):
        crashed = place.fresh()
        with pytest.raises(Crash):
            kind.publish(crashed, 2, FaultyFiles(at, crash=True))
        counting = FaultyFiles()
        copy = place.fresh()
        shutil.rmtree(copy)
        _copy(crashed, copy)
        recover(counting, place.homes(copy))
        for second in range(1, counting.calls + 1, FEWER):
            for crash in (False, True):
                root = place.trials / f"again-{at}-{second}-{crash}"
                _copy(crashed, root)
                files = FaultyFiles(second, crash=crash)
                note = f"death at call {at}, then {'death' if crash else 'error'} at call {second} of the recovery"
                with contextlib.suppress(Crash, OSError):
                    recover(files, place.homes(root))
                recover(SYSTEM, place.homes(root))
                check(place, root, f"{note}: {files.log[-1]}")
                assert place.left_over(root) == [], note
                shutil.rmtree(root)
        shutil.rmtree(crashed)


def _copy(source: Path, place: Path) -> None:
    """The paths in journals are absolute: the copy gets the name of the original, and that is moved back and forth."""
    shutil.copytree(source, place, symlinks=True)
    for path in place.rglob("*"):
        if (path.is_file() and path.name in ("journal", "main", "done")) or path.name.startswith("other-"):
            path.write_text(path.read_text().replace(str(source), str(place)))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_two_errors_leave_a_journal_and_a_true_message(kind: Kind, base: Path) -> None:
    """The second one comes while all is put back: then outputs may be of two runs, and the message says so."""
    place = Place.prepared(kind, base)
    files = FaultyFiles()
    kind.publish(place.fresh(), 2, files)
    renames = [i for i, line in enumerate(files.log, 1) if line.startswith("rename")]
    stuck = 0
    for at in renames:
        for later in range(1, 25, 1 if EVERYTHING else 4):
            root, files = place.fresh(), FaultyFiles(at, again=at + later)
            try:
                kind.publish(root, 2, files)
            except ClinkerError as error:
                [found] = error.diagnostics
                if found.code == "E423":
                    stuck += 1
                    assert "clinker recover" in (found.help or "")
                else:
                    check(place, root, f"errors at {at} and {at + later}", "old")
            recover(SYSTEM, place.homes(root))
            check(place, root, f"errors at {at} and {at + later}: {files.log[at - 1]}, {files.log[-1]}")
            assert place.left_over(root) == []
            shutil.rmtree(root)
    assert stuck
