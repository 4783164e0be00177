"""What may be replaced or removed, what stays as it is, and who waits for whom."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clinker_spark.cli.clinker.main import clinker
from clinker_spark.core.errors import ClinkerError
from clinker_spark.runtime.commit.attempt import Attempt
from clinker_spark.runtime.commit.claims import Claim
from clinker_spark.runtime.commit.manifest import load, replayed_ids
from clinker_spark.runtime.commit.seam import PosixFiles
from clinker_spark.runtime.commit.signals import undisturbed
from clinker_spark.runtime.commit.small_files import replace_file
from clinker_spark.runtime.commit.staging import Provenance
from tests.crash.faults import LETTERS, Crash, FaultyFiles, make

FILES = PosixFiles()
NUMBERS = iter(range(1_000_000))


def begin(claims: list[Claim], **options: Any) -> Attempt:
    options = {"pipeline": "test", "wait": 0.0, **options}
    attempt = Attempt(f"run{next(NUMBERS)}", **options)
    try:
        attempt.claim(claims, options.pop("protected", ()))
    except BaseException:
        attempt.clean()
        raise
    return attempt


def publish(place: Path, content: str | dict[str, str], claim: Claim | None = None, **options: Any) -> Attempt:
    """One output: a file; or several, for a claim of several or a folder."""
    claim = claim or Claim("o", place)
    attempt = begin([claim], **options)
    try:
        folder = attempt.folder(place, "o")
        if claim.folder:
            (folder / "final").mkdir()
            for name, text in dict(content).items():
                make(folder / "final", name, text)
            attempt.put(folder / "final", place, "o")
        elif isinstance(content, dict):
            for name, text in content.items():
                attempt.put(make(folder, name, text), place.parent / name, "o")
        else:
            attempt.put(make(folder, "final", content), place, "o")
        attempt.publish()
    finally:
        attempt.clean()
    return attempt


def refused(code: str, call: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(ClinkerError) as caught:
        call(*args, **options)
    [found] = caught.value.diagnostics
    assert found.code == code, found
    return f"{found.message}; {found.help}"


def files_of(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): p.read_text()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not p.name.startswith(".")
    }


def nothing_left(folder: Path) -> bool:
    return not [p for p in folder.rglob(".clinker-*") if not p.name.startswith(".clinker-manifest-")]


# ------------------------------------------------------------------ what an earlier run wrote


def test_parts_that_are_no_longer_written_are_removed(tmp_path: Path) -> None:
    place = tmp_path / "o.csv"
    claim = Claim("o", place, several=True)
    (tmp_path / "o_9.csv").write_text("of the user")
    publish(place, {"o_1.csv": "1", "o_2.csv": "2", "o_3.csv": "3"}, claim)
    run = publish(place, {"o_1.csv": "new"}, claim)
    assert files_of(tmp_path) == {"o_1.csv": "new", "o_9.csv": "of the user"}
    assert run.removed == [str(tmp_path / "o_2.csv"), str(tmp_path / "o_3.csv")] and not run.warnings


def test_a_part_that_was_changed_is_left_with_a_warning(tmp_path: Path) -> None:
    place = tmp_path / "o.csv"
    claim = Claim("o", place, several=True)
    publish(place, {"o_1.csv": "1", "o_2.csv": "2", "o_3.csv": "3"}, claim)
    (tmp_path / "o_2.csv").write_text("X")  # of the same size
    copied = (tmp_path / "o_3.csv").read_text()
    (tmp_path / "o_3.csv").unlink()
    (tmp_path / "o_3.csv").write_text(copied)  # the same content at another time
    run = publish(place, {"o_1.csv": "new"}, claim)
    assert files_of(tmp_path) == {"o_1.csv": "new", "o_2.csv": "X"}
    assert [w.code for w in run.warnings] == ["W420"]
    assert publish(place, {"o_1.csv": "new"}, claim).warnings == []  # it is no longer ours


def test_other_outputs_and_other_pipelines_keep_their_files(tmp_path: Path) -> None:
    claim = Claim("o", tmp_path / "o.csv", several=True)
    publish(claim.place, {"o_1.csv": "1", "o_2.csv": "2"}, claim)
    publish(tmp_path / "p.csv", {"p_1.csv": "1"}, Claim("o", tmp_path / "p.csv", several=True))
    publish(claim.place, {"o_1.csv": "other"}, claim, pipeline="another")
    assert set(files_of(tmp_path)) == {"o_1.csv", "o_2.csv", "p_1.csv"}
    kept = Claim("o", tmp_path / "o.csv", several=True, replaces=False)  # if_exists: unique_suffix
    publish(claim.place, {"o_7.csv": "1"}, kept)
    assert "o_2.csv" in files_of(tmp_path)


def test_files_of_inputs_that_are_not_read_stay(tmp_path: Path) -> None:
    claim = Claim("o", tmp_path / "{source_file}.csv", home=tmp_path, several=True)

    def daily(inputs: list[str], written: list[str]) -> None:
        run = begin([claim])
        run.provenance.inputs = [{"name": name, "path": name, "size": 1, "mtime_ns": 1} for name in inputs]
        for name in written:
            run.put(make(run.folder(tmp_path / "x", "o"), name, name), tmp_path / f"{name}.csv", "o", name)
        run.publish()

    daily(["mon", "tue"], ["mon", "tue"])
    daily(["wed"], ["wed"])
    assert set(files_of(tmp_path)) == {"mon.csv", "tue.csv", "wed.csv"}
    daily(["mon", "tue"], ["tue"])  # monday was read, and nothing of it is written
    assert set(files_of(tmp_path)) == {"tue.csv", "wed.csv"}


def test_a_folder_is_replaced_only_if_all_in_it_was_written(tmp_path: Path) -> None:
    place = tmp_path / "parts"
    claim = Claim("o", place, folder=True)
    publish(place, {"part-0": "0", "part-1": "1"}, claim)
    publish(place, {"part-0": "new"}, claim)
    assert files_of(tmp_path) == {"parts/part-0": "new"}
    (place / "README").write_text("of the user")
    assert "README" in refused("E421", publish, place, {"part-0": "2"}, claim)
    assert files_of(tmp_path) == {"parts/part-0": "new", "parts/README": "of the user"} and nothing_left(tmp_path)
    publish(place, {"part-0": "3"}, claim, force=True)
    assert files_of(tmp_path) == {"parts/part-0": "3"}
    (place / "part-0").write_text("4")
    assert "changed" in refused("E421", publish, place, {"part-0": "5"}, claim)


@pytest.mark.parametrize("name", [".hidden", "deep/file.csv", "empty/"])
def test_whatever_is_in_a_folder_protects_it(tmp_path: Path, name: str) -> None:
    place = tmp_path / "data"
    place.mkdir()
    publish(place, {"part-0": "0"}, Claim("o", place, folder=True))  # an empty folder is nobody's
    if name.endswith("/"):
        (place / name).mkdir()
    else:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("x")
    refused("E421", publish, place, {"part-0": "1"}, Claim("o", place, folder=True))
    assert (place / name).exists()


def test_inputs_and_the_pipeline_are_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_text("x")
    claim = Claim("o", tmp_path, folder=True)
    run = Attempt("run", pipeline="test", force=True)
    with pytest.raises(ClinkerError) as caught:
        run.claim([claim], [tmp_path / "pipeline.yaml"])
    run.clean()
    assert caught.value.diagnostics[0].code == "E421" and files_of(tmp_path) == {"pipeline.yaml": "x"}


def test_something_that_comes_while_the_run_goes_on_is_noticed(tmp_path: Path) -> None:
    place = tmp_path / "parts"
    run = begin([Claim("o", place, folder=True)])
    final = run.folder(place, "o") / "final"
    final.mkdir()
    make(final, "part-0", "0")
    run.put(final, place, "o")
    place.mkdir()
    (place / "users.txt").write_text("x")
    refused("E421", run.publish)
    run.clean()
    assert files_of(tmp_path) == {"parts/users.txt": "x"} and nothing_left(tmp_path)


def test_an_output_that_must_be_new_does_not_replace_what_another_run_wrote(tmp_path: Path) -> None:
    place = tmp_path / "o-1.csv"
    run = begin([Claim("o", place, fresh=True)])
    run.put(make(run.folder(place, "o"), "final", "mine"), place, "o")
    place.write_text("of another")
    refused("E406", run.publish)
    run.clean()
    assert place.read_text() == "of another"


# ------------------------------------------------------------------ dead letters


@pytest.mark.parametrize("content", ["id,name\n1,ann\n", "\0\1\2", "x" * 200_000, '"' * 200_001])
def test_dead_letters_do_not_replace_other_files(tmp_path: Path, content: str) -> None:
    place = tmp_path / "customers.csv"
    place.write_text(content)
    claim = Claim("o", place, letters=True)
    assert "customers.csv" in refused("E422", publish, place, LETTERS, claim)
    assert place.read_text() == content and nothing_left(tmp_path)
    run = begin([claim], force=True)  # a clean run, which would remove letters of an earlier one
    run.remove(place, "o")
    run.publish()
    assert place.read_text() == content
    publish(place, LETTERS, claim, force=True)
    assert place.read_text() == LETTERS


def test_old_dead_letters_are_removed_whoever_wrote_them(tmp_path: Path) -> None:
    place = tmp_path / "dead.csv"
    for content in (LETTERS, f"other,{LETTERS}"):
        place.write_text(content)
        run = begin([Claim("o", place, letters=True)])
        run.remove(place, "o")
        run.publish()
        assert not place.exists() and nothing_left(tmp_path)


def test_dead_letters_of_another_pipeline_stay(tmp_path: Path) -> None:
    """Whether this one has letters or not; its own are replaced and removed as ever."""
    place = tmp_path / "dead.csv"
    claim = Claim("o", place, letters=True)
    publish(place, LETTERS, claim, pipeline="first")
    place.write_text(LETTERS + "edited")
    assert "'first'" in refused("E422", begin, [claim], pipeline="second")
    assert place.read_text() == LETTERS + "edited" and nothing_left(tmp_path)
    publish(place, LETTERS, claim, pipeline="first")
    publish(place, LETTERS + "x", claim, pipeline="second", force=True)
    publish(place, LETTERS + "y", claim, pipeline="second")
    assert place.read_text() == LETTERS + "y"


def test_outputs_do_not_lie_in_each_other(tmp_path: Path) -> None:
    inside = [Claim("a", tmp_path / "out", folder=True), Claim("b", tmp_path / "out" / "o.csv")]
    assert "lies in" in refused("E322", begin, inside)
    (tmp_path / "link.csv").symlink_to("o.csv")
    twice = [Claim("a", tmp_path / "o.csv"), Claim("b", tmp_path / "link.csv", letters=True)]
    assert "twice" in refused("E322", begin, twice)


# ------------------------------------------------------------------ what stands at the place


def test_modes_stay_and_new_files_have_the_usual_ones(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        place = tmp_path / "new.csv"
        attempt = begin([Claim("o", place)])
        made = make(attempt.folder(place, "o"), "final", "x")
        made.chmod(0o600)
        attempt.put(made, place, "o")
        attempt.publish()
        assert stat.S_IMODE(place.stat().st_mode) == 0o640
        place.chmod(0o604)
        publish(place, "again")
        assert stat.S_IMODE(place.stat().st_mode) == 0o604
        folder = tmp_path / "parts"
        publish(folder, {"part-0": "0", "part-1": "1"}, Claim("o", folder, folder=True))
        assert stat.S_IMODE(folder.stat().st_mode) == 0o750
        folder.chmod(0o705)
        (folder / "part-0").chmod(0o606)
        publish(folder, {"part-0": "0", "part-1": "1"}, Claim("o", folder, folder=True))
        modes = [stat.S_IMODE(p.stat().st_mode) for p in (folder, folder / "part-0", folder / "part-1")]
        assert modes == [0o705, 0o606, 0o640]
    finally:
        os.umask(old)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_owners_stay(tmp_path: Path) -> None:
    place = tmp_path / "o.csv"
    place.write_text("old")
    os.chown(place, 12345, 54321)
    publish(place, "new")
    assert (place.stat().st_uid, place.stat().st_gid, place.read_text()) == (12345, 54321, "new")


def test_links_are_followed(tmp_path: Path) -> None:
    far, near = tmp_path / "far", tmp_path / "near"
    far.mkdir()
    near.mkdir()
    (near / "o.csv").symlink_to("../far/real.csv")
    (near / "parts").symlink_to(far / "parts", target_is_directory=True)
    for content in ("one", "two"):  # the first time, the links lead nowhere yet
        publish(near / "o.csv", content)
        publish(near / "parts", {"part-0": content}, Claim("o", near / "parts", folder=True))
    assert (near / "o.csv").is_symlink() and (near / "parts").is_symlink()
    assert files_of(far) == {"real.csv": "two", "parts/part-0": "two"} and nothing_left(tmp_path)
    (near / "loop.csv").symlink_to("loop.csv")
    assert "links" in refused("E401", publish, near / "loop.csv", "x")


def test_another_file_system_behind_a_link(tmp_path: Path) -> None:
    if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("there is only one file system")
    import shutil
    import tempfile

    far = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        (far / "o_1.csv").write_text("old")
        (tmp_path / "o_1.csv").symlink_to(far / "o_1.csv")
        claim = Claim("o", tmp_path / "o.csv", several=True)
        for _ in range(2):
            files = FaultyFiles()
            publish(tmp_path / "o.csv", {"o_0.csv": "new", "o_1.csv": "new"}, claim, files=files)
        assert (far / "o_1.csv").read_text() == (tmp_path / "o_0.csv").read_text() == "new"
        last = next(i for i, line in enumerate(files.log, 1) if line.startswith("rename") and "o_1.csv" in line)
        with pytest.raises(Crash):
            content = {"o_0.csv": "third", "o_1.csv": "third"}
            publish(tmp_path / "o.csv", content, claim, files=FaultyFiles(last, crash=True))
        shown = recovered(far)  # only a pointer lies here
        assert shown.return_value == 0 and "put in place now" in shown.output
        assert (far / "o_1.csv").read_text() == (tmp_path / "o_0.csv").read_text() == "third"
        assert nothing_left(tmp_path) and nothing_left(far)
    finally:
        shutil.rmtree(far)


def test_pipes_and_devices_take_the_bytes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    publish(pipe, "x" * 300_000)
    reader.join()
    assert got == [b"x" * 300_000] and stat.S_ISFIFO(pipe.stat().st_mode)
    publish(Path("/dev/null"), "x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode) and nothing_left(tmp_path)
    refused("E425", publish, pipe, {"a": "1"}, Claim("o", pipe, several=True))
    refused("E425", publish, pipe, {"a": "1"}, Claim("o", pipe, folder=True))
    assert "space" in refused("E405", publish, Path("/dev/full"), "x")


def test_sockets_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.chdir(tmp_path)  # such paths must be short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("s")
        refused("E425", publish, tmp_path / "s", "x")


@pytest.mark.parametrize("letters", [False, True])
def test_folders_and_long_names_are_refused(tmp_path: Path, letters: bool) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")

    def claim(name: str, **more: Any) -> Claim:
        return Claim("o", tmp_path / name, letters=letters, **more)

    assert "is a folder" in refused("E401", begin, [claim("folder")])
    assert "is a file" in refused("E401", begin, [claim("file", folder=True)])
    assert "too long" in refused("E401", begin, [claim("n" * 300)])
    refused("E401", begin, [claim("file/o.csv")])
    run = begin([Claim("o", tmp_path / "o.csv", several=True)])
    made = make(run.folder(tmp_path / "o.csv", "o"), "final", "x")
    refused("E401", run.put, made, tmp_path / ("n" * 300), "o")
    refused("E401", run.put, made, tmp_path / "folder", "o")
    run.clean()
    assert files_of(tmp_path) == {"file": "x"} and nothing_left(tmp_path)


def test_folders_made_for_nothing_are_removed(tmp_path: Path) -> None:
    run = begin([Claim("o", tmp_path / "a" / "b" / "o.csv")])
    run.clean()
    assert list(tmp_path.iterdir()) == []


def test_small_files_are_replaced_in_one_step(tmp_path: Path) -> None:
    place = tmp_path / "link"
    place.symlink_to("real")
    replace_file(place, b"one")
    (tmp_path / "real").chmod(0o601)
    replace_file(place, b"two")
    assert place.is_symlink() and place.read_text() == "two"
    assert stat.S_IMODE(place.stat().st_mode) == 0o601
    files = FaultyFiles()
    replace_file(place, b"three", files)
    for at in range(1, files.calls + 1):
        with pytest.raises(OSError):
            replace_file(place, b"four", FaultyFiles(at))
        assert place.read_text() == "three" and sorted(p.name for p in tmp_path.iterdir()) == ["link", "real"]
    replace_file(Path("/dev/null"), b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


# ------------------------------------------------------------------ the manifest


def test_the_manifest_says_what_was_written_and_read(tmp_path: Path) -> None:
    place = tmp_path / "o.csv"
    run = begin([Claim("o", place)])
    run.provenance.inputs = [{"name": "i.csv", "path": "/i.csv", "size": 3, "mtime_ns": 4}]
    run.put(make(run.folder(place, "o"), "final", "new"), place, "o")
    run.publish()
    found = load(FILES, tmp_path, "test")
    written = found.outputs["o.csv"]["o.csv"]
    assert written.size == 3 and written.mtime_ns == place.stat().st_mtime_ns and written.hash == FILES.digest(place)
    assert found.inputs == run.provenance.inputs and found.run == run.execution_id
    assert all(p.name.startswith(".") or p == place for p in tmp_path.iterdir())  # no source reads hidden files


def test_replayed_letters_are_kept_until_a_whole_run(tmp_path: Path) -> None:
    place = tmp_path / "o.csv"
    for ids in (["a", "b"], ["b", "c"]):
        publish(place, "x", provenance=Provenance(replayed=ids))
    assert replayed_ids(FILES, tmp_path, "test") == {"a", "b", "c"}
    publish(place, "x", pipeline="another")
    assert replayed_ids(FILES, tmp_path, "test") == {"a", "b", "c"}
    publish(place, "x")
    assert replayed_ids(FILES, tmp_path, "test") == frozenset()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"outputs": 3}', '{"outputs": {"o": {"o": {"x": 1}}}}'])
def test_a_broken_manifest_knows_nothing(tmp_path: Path, content: str) -> None:
    place = tmp_path / "parts"
    claim = Claim("o", place, folder=True)
    publish(place, {"part-0": "0"}, claim)
    [manifest] = tmp_path.glob(".clinker-manifest-*")
    manifest.write_text(content)
    refused("E421", publish, place, {"part-0": "1"}, claim)
    publish(place, {"part-0": "1"}, claim, force=True)
    assert files_of(tmp_path) == {"parts/part-0": "1"}


# ------------------------------------------------------------------ two at once

HOLD = """
import sys, time
from pathlib import Path
from clinker_spark.runtime.commit.attempt import Attempt
from clinker_spark.runtime.commit.claims import Claim
run = Attempt("held", pipeline="the other", wait=0)
place = Path(sys.argv[1])
run.claim([Claim("o", place)])
made = run.folder(place, "o") / "final"
made.write_text("of the other")
run.put(made, place, "o")
print("held", flush=True)
sys.stdin.readline()
run.publish()
"""


def hold(place: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, str(place)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_second_process_waits_and_then_says_who_holds_the_output(tmp_path: Path) -> None:
    place = tmp_path / "o.csv"
    process = hold(place)
    told: list[str] = []
    try:
        said = refused("E420", publish, place, "mine", wait=0.1, tell=lambda event, details: told.append(event))
        assert f"process {process.pid}" in said and "'the other'" in said and "since 20" in said
        assert told == ["waiting"] and not place.exists()
        publish(tmp_path / "p.csv", "beside")  # other outputs in the same folder have nobody to wait for
        assert process.stdin is not None
        threading.Timer(0.3, lambda: process.communicate("go\n")).start()
        publish(place, "mine", wait=30)  # the other one publishes first
        assert place.read_text() == "mine" and nothing_left(tmp_path)
    finally:
        process.kill()
        process.wait()


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    place = tmp_path / "o.csv"
    process = hold(place)
    process.kill()
    process.wait()
    assert not nothing_left(tmp_path)
    publish(place, "mine")
    assert place.read_text() == "mine" and nothing_left(tmp_path)


def test_a_run_that_goes_on_is_not_taken_for_a_crash(tmp_path: Path) -> None:
    place = tmp_path / "o.csv"
    process = hold(place)
    try:
        shown = recovered(tmp_path)
        assert shown.return_value == 0 and "nothing to recover" in shown.output
        process.communicate("go\n")
        assert process.returncode == 0 and place.read_text() == "of the other" and nothing_left(tmp_path)
    finally:
        process.kill()


def test_threads_wait_for_each_other(tmp_path: Path) -> None:
    place = tmp_path / "o.csv"
    run = begin([Claim("o", place)])
    refused("E420", publish, place, "second")
    found: list[str] = []
    others = [
        threading.Thread(target=lambda i=i: found.append(publish(place, str(i), wait=30).state)) for i in range(4)
    ]
    for other in others:
        other.start()
    time.sleep(0.1)
    run.put(make(run.folder(place, "o"), "final", "first"), place, "o")
    run.publish()
    assert place.read_text() in ("first", *"0123")
    for other in others:
        other.join()
    assert found == ["done"] * 4 and place.read_text() in "0123" and nothing_left(tmp_path)


@pytest.mark.parametrize("shared", [True, False], ids=["one output", "outputs of their own"])
def test_many_runs_in_one_folder(shared: bool) -> None:
    """Each looks for what crashes left while the others come and go; the manifest knows all of them in the end."""
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    failed: list[BaseException] = []

    def runs(i: int) -> None:
        try:
            for n in range(15):
                publish(folder / "new" / ("o.csv" if shared else f"o{i}.csv"), f"{i} {n}", wait=60)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=runs, args=(i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = ["o.csv"] if shared else [f"o{i}.csv" for i in range(5)]
    assert not failed and sorted(files_of(folder / "new")) == names and nothing_left(folder)
    assert sorted(load(FILES, folder / "new", "test").outputs) == names
    shutil.rmtree(folder)


# ------------------------------------------------------------------ recovery


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_whatever_stops_a_commit_loses_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    """An error of any kind goes back; what cannot be caught leaves the journal and all that it needs."""
    place = tmp_path / "parts"
    claim = Claim("o", place, folder=True)
    publish(place, {"part-0": "old"}, claim)

    class Stopping(PosixFiles):
        def rename(self, old: Path, new: Path) -> None:
            if new == place and old.name == "final":  # the old folder is set aside
                raise error
            super().rename(old, new)

    with pytest.raises(error):
        publish(place, {"part-0": "new"}, claim, files=Stopping())
    recovered(tmp_path)
    assert files_of(tmp_path) == {"parts/part-0": "old" if error is MemoryError else "new"}
    assert nothing_left(tmp_path)


def recovered(*options: str | Path) -> Any:
    return CliRunner().invoke(clinker, ["recover", *map(str, options)], standalone_mode=False)


def crashed(place: Path, at: str = "rename") -> None:
    """A run that dies just before the last call of a kind."""
    files = FaultyFiles()
    if place.exists():
        publish(place.with_name("rehearsal.csv"), "x")
    publish(place.with_name("rehearsal.csv"), "x", files=files)
    place.with_name("rehearsal.csv").unlink()
    last = max(i for i, line in enumerate(files.log, 1) if line.startswith(at))
    with pytest.raises(Crash):
        publish(place, "of the crash", files=FaultyFiles(last, crash=True))


def test_recover_says_what_it_did(tmp_path: Path) -> None:
    place = tmp_path / "o.csv"
    crashed(place)
    shown = recovered(tmp_path)
    assert shown.return_value == 0 and "an earlier run of 'test'" in shown.output and "put in place now" in shown.output
    assert place.read_text() == "of the crash" and nothing_left(tmp_path)
    assert "nothing to recover" in recovered(tmp_path).output


def test_recover_knows_the_folders_of_a_pipeline(tmp_path: Path) -> None:
    pipeline = """
pipeline: { name: test }
nodes:
  - { type: source, name: s, config: { type: csv, path: s.csv, schema: { id: int } } }
  - { type: output, name: o, input: s, config: { type: csv, path: "runs/{timestamp}/o.csv" } }
error_handling: { strategy: continue, dlq: { path: dead/dead.csv } }
"""
    (tmp_path / "pipeline.yaml").write_text(pipeline)
    place = tmp_path / "runs" / "2024" / "o.csv"
    run = Attempt("r", pipeline="test", files=(files := FaultyFiles()))
    run.claim([Claim("o", place, home=tmp_path / "runs")])
    run.put(make(run.folder(place, "o"), "final", "x"), place, "o")
    files.at, files.crash = files.calls + 1, True
    with pytest.raises(Crash):
        run.publish()
    shown = recovered(str(tmp_path / "pipeline.yaml"))
    assert shown.return_value == 0 and "had published nothing" in shown.output, shown.output
    assert nothing_left(tmp_path) and not (tmp_path / "runs" / "2024").exists()


def test_another_pipeline_finishes_what_it_finds(tmp_path: Path) -> None:
    place = tmp_path / "o.csv"
    crashed(place)
    run = publish(tmp_path / "other.csv", "y", pipeline="another")
    assert place.read_text() == "of the crash" and nothing_left(tmp_path)
    assert [w.code for w in run.warnings] == ["W421"]


def test_what_somebody_put_in_place_after_the_crash_stays(tmp_path: Path) -> None:
    place = tmp_path / "o.csv"
    publish(place, "before")
    files = FaultyFiles()
    publish(tmp_path / "p.csv", "x", files=files)
    publish(tmp_path / "p.csv", "x", files=(files := FaultyFiles()))
    link = next(i for i, line in enumerate(files.log, 1) if line.startswith("link"))
    with pytest.raises(Crash):
        publish(place, "of the crash", files=FaultyFiles(link, crash=True))
    place.unlink()
    place.write_text("by hand")
    shown = recovered(tmp_path)
    assert "somebody changed" in shown.output and place.read_text() == "by hand" and nothing_left(tmp_path)


def test_attempts_of_other_machines_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "o.csv"
    publish(place, "old")
    with monkeypatch.context() as patch:
        patch.setattr("socket.gethostname", lambda: "elsewhere")
        crashed(place)
    shown = recovered(tmp_path)
    assert shown.return_value == 4 and "another machine" in shown.output
    assert "another machine" in refused("E424", publish, place, "mine")
    assert publish(tmp_path / "p.csv", "x", pipeline="another").warnings[0].code == "W421"
    shown = recovered("--force", str(tmp_path))
    assert shown.return_value == 0 and place.read_text() == "of the crash" and nothing_left(tmp_path)


def test_a_journal_that_was_moved_is_left_as_it_is(tmp_path: Path) -> None:
    """Its backups may be all that is left of the old files."""
    (tmp_path / "here").mkdir()
    crashed(tmp_path / "here" / "o.csv")
    (tmp_path / "here").rename(tmp_path / "there")
    shown = recovered(tmp_path / "there")
    assert "it was moved" in shown.output and shown.return_value == 4
    (tmp_path / "there").rename(tmp_path / "here")
    recovered(tmp_path / "here")
    assert files_of(tmp_path) == {"here/o.csv": "of the crash"} and nothing_left(tmp_path)


def test_the_copy_of_an_attempt_leaves_the_original_alone(tmp_path: Path) -> None:
    """Somebody copies the folder of an output while a run writes, and looks there for crashes."""
    attempt = begin([])
    attempt.folder(tmp_path / "here" / "o.csv", "o")
    other = attempt.folder(tmp_path / "elsewhere" / "p.csv", "p")
    (other / "part").write_text("unfinished")
    shutil.copytree(tmp_path / "here", tmp_path / "copy")
    recovered(tmp_path / "copy")
    assert (other / "part").read_text() == "unfinished" and not list((tmp_path / "copy").iterdir())
    attempt.clean()
    assert nothing_left(tmp_path)


def test_folders_of_others_are_no_attempts(tmp_path: Path) -> None:
    for name in (".clinker-cache", ".clinker-x-01234567"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("of the user")
    publish(tmp_path / "o.csv", "x")
    assert "nothing to recover" in recovered("--force", tmp_path).output
    assert len(list(tmp_path.glob(".clinker-*/file"))) == 2


# ------------------------------------------------------------------ signals


def test_signals_wait_and_then_come(tmp_path: Path) -> None:
    came: list[str] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append("signal"))
    try:
        with undisturbed():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
            came.append("published")
        assert came == ["published", "signal"]
        with pytest.raises(ZeroDivisionError), undisturbed():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
            raise ZeroDivisionError
    finally:
        signal.signal(signal.SIGTERM, before)


def test_ctrl_c_while_publishing_comes_after_it(tmp_path: Path) -> None:
    place = tmp_path / "o.csv"

    class Interrupted(PosixFiles):
        def rename(self, old: Path, new: Path) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            super().rename(old, new)

    # A process in the background of a shell begins without this handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            publish(place, "new", files=Interrupted())
    finally:
        signal.signal(signal.SIGINT, before)
    assert place.read_text() == "new" and nothing_left(tmp_path)
