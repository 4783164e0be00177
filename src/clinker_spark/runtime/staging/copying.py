"""One copy: read once, hashed and written in the same pass, synced, renamed, compared, and only then declared.

A crash at any point leaves a `.partial`, or a copy without a manifest; neither is ever trusted.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3

from clinker_spark.runtime.commit.seam import Files, Stream
from clinker_spark.runtime.staging.entry import PRIVATE, Entry, Original, Places, kind_of
from clinker_spark.runtime.staging.errors import NotStaged, changed, unreadable, unusable

Progress = Callable[[int], None]
"""Told how many bytes are copied."""


@dataclass(frozen=True)
class Job:
    """What is to be copied: a file, its name for people, and where to. `run` keeps the drafts of two runs apart."""

    original: Original
    name: str
    at: Places
    run: str
    verify: bool


def copy(files: Files, job: Job, progress: Progress = lambda copied: None) -> Entry:
    """Make a copy and its manifest. The caller holds the lock for itself. Raises `NotStaged`; nothing is left then."""
    at = job.at
    draft, note = at.partial(job.run), at.partial(job.run, "manifest")
    with _without(files, draft, note):
        _clear(files, at)
        digest = _pass(files, job, draft, progress)
        with _in(at.folder):
            files.sync(draft)
            # From here on what was there before is no copy: its manifest must not stand beside the new file.
            if files.stat(at.manifest) is not None:
                files.unlink(at.manifest)
                files.sync(at.folder)
            files.rename(draft, at.copy)
    with _without(files, at.copy, note):
        with _in(at.folder):
            files.sync(at.folder)
            found = files.stat(at.copy)
        _compare(files, job, digest)
        if found is None or found.size != job.original.size:
            raise _corrupt(job, "the copy has another size than what was read")
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        entry = Entry(job.original.path, job.original.size, job.original.mtime_ns, digest, now, found.mtime_ns)
        with _in(at.folder):
            _fill(files, note, entry.text())
            files.sync(note)
            files.rename(note, at.manifest)
    # The mark is set, and what it says is true; if the system cannot keep it, the next run copies again.
    with contextlib.suppress(OSError):
        files.sync(at.folder)
    return entry


def _clear(files: Files, at: Places) -> None:
    """Remove what an interrupted copy of the same file left: with the lock in hand, nobody works on it."""
    with _in(at.folder):
        for name in files.names(at.folder):
            if kind_of(name) == (at.id, "partial"):
                files.unlink(at.folder / name)


def _pass(files: Files, job: Job, draft: Path, progress: Progress) -> str:
    """Copy the bytes, and give their hash."""
    hasher = blake3()
    copied = 0
    with _of(job.name):
        _same(files, job)
        source = files.open(Path(job.original.path))
    with _of(job.name), _closing(files, source):
        with _in(job.at.folder):
            out = files.create(draft, PRIVATE)
        with _in(job.at.folder), _closing(files, out):
            while True:
                with _of(job.name):
                    block = files.block(source)
                if not block:
                    break
                copied += len(block)
                if copied > job.original.size:
                    raise changed(job.name, "grew")
                hasher.update(block)
                files.append(out, block)
                progress(copied)
    found: str = hasher.hexdigest()
    if copied < job.original.size:
        with _of(job.name):
            _same(files, job)
        raise _corrupt(job, f"only {copied:,} of {job.original.size:,} bytes could be read")
    return found


def _compare(files: Files, job: Job, digest: str) -> None:
    """Is the original still what was copied? With `verify` its bytes are read once more."""
    found = _digest(files, job) if job.verify else digest
    with _of(job.name):
        _same(files, job)
    if found != digest:
        raise _corrupt(job, "the file was read twice, with different bytes")


def _digest(files: Files, job: Job) -> str:
    hasher = blake3()
    with _of(job.name):
        source = files.open(Path(job.original.path), anew=True)
        with _closing(files, source):
            while block := files.block(source):
                hasher.update(block)
    found: str = hasher.hexdigest()
    return found


def _same(files: Files, job: Job) -> None:
    """Raises `NotStaged` when the original was changed since it was chosen."""
    now = files.stat(Path(job.original.path))
    if now is None:
        raise changed(job.name, "was removed")
    if now.size != job.original.size:
        raise changed(job.name, f"changed from {job.original.size:,} to {now.size:,} bytes")
    if now.mtime_ns != job.original.mtime_ns:
        raise changed(job.name, "was written to")


def _corrupt(job: Job, why: str) -> NotStaged:
    help_text = "the copy was removed; check the disk or the network share that the file is on, and run again"
    return NotStaged("E335", f"the copy of '{job.name}' is corrupt: {why}", help_text, "source")


def _fill(files: Files, path: Path, content: bytes) -> None:
    out = files.create(path, PRIVATE)
    with _closing(files, out):
        files.append(out, content)


@contextlib.contextmanager
def _without(files: Files, *paths: Path) -> Iterator[None]:
    """If it fails, none of these is left, as far as that can be done."""
    try:
        yield
    except BaseException:
        for path in paths:
            with contextlib.suppress(OSError):
                files.unlink(path)
        raise


@contextlib.contextmanager
def _closing(files: Files, stream: Stream) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            files.close(stream)
        raise
    files.close(stream)


@contextlib.contextmanager
def _in(folder: Path) -> Iterator[None]:
    """What fails here is about the staging folder."""
    try:
        yield
    except OSError as error:
        raise unusable(folder, error) from None


@contextlib.contextmanager
def _of(name: str) -> Iterator[None]:
    """What fails here is about the original."""
    try:
        yield
    except OSError as error:
        raise unreadable(name, error) from None
