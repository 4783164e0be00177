"""Copies of files: which are made, which are taken, which are refused, and what bad files and disks do. No Java."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.runtime.commit.seam import Lock, PosixFiles, Stream
from clinker_spark.runtime.staging.cache import Cache, Policy
from clinker_spark.runtime.staging.entry import Original, places, trusted
from clinker_spark.runtime.staging.errors import NotStaged
from clinker_spark.runtime.staging.purge import purge
from tests.crash.staged import SYSTEM, aged, held, original, stage

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    path.write_bytes(b"id\n1\n2\n")
    return path


@pytest.fixture
def folder(elsewhere: Path) -> Path:
    return elsewhere


def refused(folder: Path, source: Path, **options: Any) -> NotStaged:
    with pytest.raises(NotStaged) as caught:
        stage(folder, source, **options)
    return caught.value


def names(folder: Path) -> list[str]:
    return sorted(name[32:] for name in os.listdir(folder))


# ---------------------------------------------------------------- what is there


def test_a_copy_its_manifest_and_its_lock(folder: Path, source: Path) -> None:
    with held(folder, source, cleanup="never") as found:
        assert found.path.parent == folder and found.path.read_bytes() == source.read_bytes()
        assert names(folder) == [".lock", ".manifest.json", ".staged"]
        for name in os.listdir(folder):
            assert oct(os.stat(folder / name).st_mode & 0o777) == "0o600"
    manifest = json.loads(found.at.manifest.read_bytes())
    assert manifest["source"] == os.path.realpath(source) and manifest["size"] == source.stat().st_size
    assert manifest["mtime_ns"] == source.stat().st_mtime_ns and manifest["blake3"] == SYSTEM.digest(source)
    assert names(folder) == [".lock", ".manifest.json", ".staged"]


def test_the_mask_of_the_process_does_not_widen_permissions(folder: Path, source: Path) -> None:
    before = os.umask(0)
    try:
        with held(folder, source):
            assert {oct(os.stat(folder / name).st_mode & 0o777) for name in os.listdir(folder)} == {"0o600"}
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    ("cleanup", "success", "left"),
    [("on_success", True, 0), ("on_success", False, 3), ("always", True, 0), ("always", False, 0), ("never", True, 3)],
)
def test_cleanup(folder: Path, source: Path, cleanup: str, success: bool, left: int) -> None:
    stage(folder, source, cleanup=cleanup, success=success)
    assert len(os.listdir(folder)) == left


def test_a_copy_that_somebody_reads_is_not_removed(folder: Path, source: Path) -> None:
    with held(folder, source, on_existing="reuse") as first:
        with held(folder, source, on_existing="reuse") as second:
            assert (first.action, second.action) == ("copied", "reused")
        assert first.path.read_bytes() == source.read_bytes()  # the second run cleaned up, but for this
    assert os.listdir(folder) == []


# ---------------------------------------------------------------- what is there already


def test_overwrite_copies_again(folder: Path, source: Path) -> None:
    assert stage(folder, source, cleanup="never")[0] == "copied"
    assert stage(folder, source, cleanup="never")[0] == "copied"


def test_reuse_takes_a_copy_of_the_same_size_and_time(folder: Path, source: Path) -> None:
    keep = {"on_existing": "reuse", "cleanup": "never"}
    assert stage(folder, source, **keep)[0] == "copied"
    assert stage(folder, source, **keep)[0] == "reused"
    source.write_bytes(b"id\n3\n4\n")
    assert stage(folder, source, **keep) == ("copied", b"id\n3\n4\n")
    info = source.stat()
    source.write_bytes(b"id\n3\n4\n5\n")
    os.utime(source, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert stage(folder, source, **keep) == ("copied", b"id\n3\n4\n5\n")
    assert stage(folder, source, **keep)[0] == "reused"


def test_error_refuses_a_copy_and_leaves_it(folder: Path, source: Path) -> None:
    assert stage(folder, source, on_existing="error", cleanup="never")[0] == "copied"
    before = {name: (folder / name).stat() for name in os.listdir(folder)}
    problem = refused(folder, source, on_existing="error")
    assert (problem.code, problem.about) == ("E337", "on_existing") and str(folder) in problem.help
    assert {name: (folder / name).stat() for name in os.listdir(folder)} == before


@pytest.mark.parametrize("what", ["longer", "same size", "link", "folder", "no manifest", "broken manifest", "old"])
def test_a_copy_that_is_not_what_its_manifest_says_is_never_trusted(folder: Path, source: Path, what: str) -> None:
    stage(folder, source, cleanup="never")
    at = places(folder, os.path.realpath(source))
    if what == "longer":
        at.copy.write_bytes(b"id\n1\n2\n3\n")
    elif what == "same size":
        at.copy.write_bytes(b"id\n8\n9\n")
    elif what == "link":
        at.copy.unlink()
        at.copy.symlink_to(source)
    elif what == "folder":
        at.manifest.unlink()
        at.manifest.mkdir()
    elif what == "no manifest":
        at.manifest.unlink()
    elif what == "broken manifest":
        at.manifest.write_bytes(at.manifest.read_bytes()[:40])
    else:
        at.manifest.write_bytes(at.manifest.read_bytes().replace(b'"version": 1', b'"version": 0'))
    assert trusted(SYSTEM, at) is None
    if what == "folder":
        assert refused(folder, source, on_existing="reuse").code == "E426"
    else:
        assert stage(folder, source, on_existing="reuse") == ("copied", b"id\n1\n2\n")


def test_a_link_in_the_place_of_a_draft_is_not_followed(folder: Path, source: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("of the user")
    at = places(folder, os.path.realpath(source))
    at.partial("run").symlink_to(victim)
    assert stage(folder, source, run="run")[1] == source.read_bytes()
    assert victim.read_text() == "of the user"


# ---------------------------------------------------------------- waiting


def test_overwrite_waits_for_readers_and_says_so(folder: Path, source: Path) -> None:
    told: list[str] = []
    cache = Cache(SYSTEM, folder, "second", Policy(), told.append)
    with held(folder, source, cleanup="never") as first:
        other = threading.Thread(target=lambda: cache.hold(original(source), "in.csv"))
        other.start()
        time.sleep(0.2)
        assert told == ["in.csv"] and other.is_alive()
        assert first.path.read_bytes() == source.read_bytes()
        mark = first.path.stat().st_ino
    other.join(10)
    assert cache.held[0].action == "copied" and cache.held[0].path.stat().st_ino != mark
    cache.release(success=True)


def test_what_was_copied_while_a_run_waited_is_not_copied_again(folder: Path, source: Path) -> None:
    """Also with `overwrite`: it is as new as a copy of its own would be."""

    class Slow(PosixFiles):
        def append(self, stream: Stream, block: bytes) -> None:
            time.sleep(0.2)
            super().append(stream, block)

    first = Cache(Slow(), folder, "first", Policy())
    copying = threading.Thread(target=lambda: first.hold(original(source), "in.csv"))
    copying.start()
    while not list(folder.glob("*.partial")):
        time.sleep(0.005)
    with held(folder, source) as second:
        assert second.action == "reused" and first.held[0].action == "copied"
    copying.join()
    first.release(success=True)


# ---------------------------------------------------------------- limits


def test_the_cap_counts_what_is_copied_and_not_what_is_reused(folder: Path, tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.csv" for i in range(3)]
    for path in paths:
        path.write_bytes(b"x" * 40)
    stage(folder, paths[0], cleanup="never")
    cache = Cache(SYSTEM, folder, "run", Policy("reuse", "never", disk_cap=80))
    assert [cache.hold(original(path), path.name).action for path in paths] == ["reused", "copied", "copied"]
    cache.release(success=True)
    cache = Cache(SYSTEM, folder, "run", Policy("overwrite", "never", disk_cap=80))
    for path in paths[:2]:
        cache.hold(original(path), path.name)
    with pytest.raises(NotStaged) as caught:
        cache.hold(original(paths[2]), "2.csv")
    cache.release(success=False)
    assert (caught.value.code, caught.value.about) == ("E336", "disk_cap_bytes")
    assert "80 bytes" in caught.value.message and "80 so far" in caught.value.message
    assert not list(folder.glob("*.partial"))


def test_a_full_disk(source: Path, tmp_path: Path) -> None:
    """A real one, where a small one can be mounted; else one that a seam makes."""
    small = tmp_path / "small"
    small.mkdir()
    source.write_bytes(b"x" * 3_000_000)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], capture_output=True)

    class Quota(PosixFiles):
        written = 0

        def append(self, stream: Stream, block: bytes) -> None:
            self.written += len(block)
            if self.written > 1 << 20:
                raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
            super().append(stream, block)

    try:
        problem = refused(small, source, files=SYSTEM if made.returncode == 0 else Quota())
        assert (problem.code, problem.about) == ("E405", "dir") and str(small) in problem.message
        assert names(small) == [".lock"]  # the draft is gone
        source.write_bytes(b"small now")
        assert stage(small, source)[1] == b"small now"
        problem = refused(tmp_path, source, files=_quota(Quota))
        assert problem.code == "E405"
    finally:
        if made.returncode == 0:
            subprocess.run(["umount", str(small)], check=True)


def _quota(kind: Any) -> Any:
    files = kind()
    files.written = 1 << 20
    return files


# ---------------------------------------------------------------- sources


def test_an_empty_file(folder: Path, source: Path) -> None:
    source.write_bytes(b"")
    assert stage(folder, source, cleanup="never") == ("copied", b"")
    assert stage(folder, source, on_existing="reuse") == ("reused", b"")


def test_a_large_file_of_zeros(folder: Path, source: Path) -> None:
    """Several GB with CLINKER_CASES=all, on the disk of the source. Memory does not grow with the file."""
    size = (5 << 30) + 123 if EVERYTHING else (64 << 20) + 123
    os.truncate(source, size)
    place = source.parent / "stage" if EVERYTHING else folder
    place.mkdir(exist_ok=True)
    with held(place, source) as found:
        assert found.path.stat().st_size == size and found.entry.size == size
        assert SYSTEM.digest(found.path) == found.entry.blake3
    assert os.listdir(place) == []


@pytest.mark.parametrize(
    "name", ["with space.csv", "ü日本.csv", "-rf", "a'b\"c", "new\nline", "x" * 255, b"\xff\xfe.csv"]
)
def test_names_with_odd_bytes(folder: Path, tmp_path: Path, name: str | bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(b"odd")
    assert stage(folder, path, cleanup="never") == ("copied", b"odd")
    assert stage(folder, path, on_existing="reuse") == ("reused", b"odd")


def test_all_links_to_a_file_share_its_copy(folder: Path, source: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(source)
    stage(folder, source, cleanup="never")
    assert stage(folder, link, on_existing="reuse", cleanup="never")[0] == "reused"
    assert names(folder) == [".lock", ".manifest.json", ".staged"]


def test_a_source_that_is_gone_or_changed(folder: Path, source: Path) -> None:
    cache = Cache(SYSTEM, folder, "run", Policy())
    was = original(source)
    source.write_bytes(b"id\n1\n2\n3\n")
    with pytest.raises(NotStaged) as caught:
        cache.hold(was, "in.csv")
    assert (caught.value.code, caught.value.about) == ("E434", "source")
    source.unlink()
    with pytest.raises(NotStaged) as caught:
        cache.hold(was, "in.csv")
    assert caught.value.code == "E434" and "was removed" in caught.value.message
    assert names(folder) == [".lock"]


class Changing(PosixFiles):
    """Something happens to the source when it is read for the first or the second time."""

    def __init__(self, at: int, change: Any) -> None:
        self.at, self.change, self.reads = at, change, 0

    def block(self, stream: Stream) -> bytes:
        found = super().block(stream)
        self.reads += 1
        if self.reads == self.at:
            return self.change(stream.path, found)  # type: ignore[no-any-return]
        return found


def grows(path: Path, block: bytes) -> bytes:
    with open(path, "ab") as file:
        file.write(b"more")
    return block


def shrinks(path: Path, block: bytes) -> bytes:
    os.truncate(path, 2)
    return block


def rewritten(path: Path, block: bytes) -> bytes:
    info = path.stat()
    path.write_bytes(block[::-1])
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns + 1))
    return block


def replaced(path: Path, block: bytes) -> bytes:
    other = path.with_name("other")
    other.write_bytes(block[::-1])
    os.utime(other, ns=(0, path.stat().st_mtime_ns + 7))
    other.rename(path)
    return block


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("change", [grows, shrinks, rewritten, replaced])
def test_a_source_that_changes_while_it_is_copied(folder: Path, source: Path, change: Any, verify: bool) -> None:
    problem = refused(folder, source, files=Changing(1, change), verify=verify)
    assert (problem.code, problem.about) == ("E434", "source"), problem.message
    assert names(folder) == [".lock"]
    assert stage(folder, source)[1] == source.read_bytes()


def test_a_share_that_gives_other_bytes_the_second_time(folder: Path, source: Path) -> None:
    problem = refused(folder, source, files=Changing(3, lambda path, block: block[::-1]))
    assert (problem.code, problem.about) == ("E335", "source")
    assert names(folder) == [".lock"]
    assert stage(folder, source, files=Changing(3, lambda path, block: block[::-1]), verify=False)[0] == "copied"


@pytest.mark.parametrize("verify", [True, False])
def test_a_share_that_gives_too_few_bytes(folder: Path, source: Path, verify: bool) -> None:
    """No error of the system, and a size that says there is more: what a soft mount can do."""
    problem = refused(folder, source, files=Changing(1, lambda path, block: block[:3]), verify=verify)
    assert problem.code == "E335" and "3 of 7 bytes" in problem.message
    assert names(folder) == [".lock"]


def test_a_source_that_cannot_be_read(folder: Path, source: Path) -> None:
    class Denied(PosixFiles):
        def open(self, path: Path, *, anew: bool = False) -> Stream:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

    problem = refused(folder, source, files=Denied())
    assert (problem.code, problem.about) == ("E229", "source") and "permission denied" in problem.message


def test_a_folder_that_cannot_be_used(source: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert refused(file, source).code == "E426"
    assert refused(tmp_path / "missing", source).code == "E426"

    class NoLocks(PosixFiles):
        def lock(self, path: Path, *, shared: bool = False, mode: int = 0o666) -> Lock | None:
            return Lock(path, None)

    problem = refused(tmp_path, source, files=NoLocks())
    assert problem.code == "E426" and "no locks" in problem.message


# ---------------------------------------------------------------- purge


def test_purge_leaves_what_is_young_locked_whole_or_none_of_ours(folder: Path, tmp_path: Path) -> None:
    paths = {name: tmp_path / name for name in ("young", "locked", "whole", "dead", "bare", "mark")}
    for path in paths.values():
        path.write_bytes(b"x")
    at = {name: places(folder, os.path.realpath(path)) for name, path in paths.items()}
    stage(folder, paths["whole"], cleanup="never")
    for name in ("locked", "dead"):
        at[name].partial("r").write_bytes(b"half")
        at[name].copy.write_bytes(b"x")
        at[name].lock.touch()
    at["bare"].lock.touch()
    at["mark"].manifest.write_bytes(b"{}")
    foreign = [folder / "notes.lock", folder / "data.partial", folder / "orders.staged"]
    for path in foreign:
        path.touch()
        os.utime(path, (0, 0))
    aged(folder)
    at["young"].partial("r").write_bytes(b"half")
    lock = SYSTEM.lock(at["locked"].lock, shared=True)
    assert lock is not None
    done = purge(SYSTEM, folder)
    left = set(os.listdir(folder))
    SYSTEM.unlock(lock, remove=False)
    expected = {p.name for p in (*foreign, at["young"].partial("r"), at["whole"].copy, at["whole"].manifest)}
    expected |= {at["whole"].lock.name, at["locked"].partial("r").name, at["locked"].copy.name, at["locked"].lock.name}
    assert left == expected
    dead = {at["dead"].partial("r").name, at["dead"].copy.name, at["dead"].lock.name}
    assert set(done.removed) == dead | {at["bare"].lock.name, at["mark"].manifest.name}
    assert set(done.left) == {p.name for p in (at["young"].partial("r"), at["locked"].partial("r"), at["locked"].copy)}
    assert stage(folder, paths["whole"], on_existing="reuse")[0] == "reused"


def test_original_says_what_it_is(source: Path) -> None:
    assert original(source) == Original(os.path.realpath(source), 7, source.stat().st_mtime_ns)
