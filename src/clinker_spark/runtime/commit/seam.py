"""The file-system seam: the calls that publishing, recovering, cleaning, manifests, locks and staging are made of.

Each call does one thing that the system does as a whole, or fails with `OSError` (only `write`, `append`, `copy` and
`send` can stop half-way; nothing that they make has its final name). A file system without rename or locks would be
another implementation of the protocol.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

FILE, FOLDER, LINK, PIPE, DEVICE, OTHER = "file", "folder", "link", "pipe", "device", "other"
_KINDS = {
    stat.S_IFREG: FILE,
    stat.S_IFDIR: FOLDER,
    stat.S_IFLNK: LINK,
    stat.S_IFIFO: PIPE,
    stat.S_IFCHR: DEVICE,
}
_NO_LOCKS = (errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL)
_BLOCK = 1 << 20
_HASHED = 4 << 20
"""Enough for several threads."""


@dataclass(frozen=True)
class Info:
    """What the system says about a name."""

    kind: str
    size: int
    mtime_ns: int
    inode: int
    device: int
    mode: int
    uid: int
    gid: int


@dataclass
class Lock:
    """A lock that is held until `unlock`, or until the process ends. `handle` is None where there are no locks."""

    path: Path
    handle: int | None


@dataclass
class Stream:
    """A file that is open, to be read or to be filled block by block. `handle` is None once it is closed."""

    path: Path
    handle: int | None


class Files(Protocol):
    """The seam."""

    def stat(self, path: Path) -> Info | None:
        """About the name itself, not what a link leads to; None when there is nothing."""

    def resolve(self, path: Path) -> Path:
        """The absolute path behind all links. Loops are an error."""

    def names(self, folder: Path) -> list[str]:
        """The names in a folder, sorted."""

    def read(self, path: Path) -> bytes:
        """A small file."""

    def head(self, path: Path) -> bytes:
        """The beginning of a file that may be large."""

    def write(self, path: Path, content: bytes) -> None:
        """Make a small file, or replace its content."""

    def copy(self, source: Path, place: Path) -> None:
        """A file on another file system."""

    def open(self, path: Path, *, anew: bool = False) -> Stream:
        """Open a file that may be large. With `anew`, not from what the system remembers of its content."""

    def block(self, stream: Stream) -> bytes:
        """The next block of it; nothing at its end."""

    def create(self, path: Path, mode: int) -> Stream:
        """Make a file that must not be there, with these permissions, to be filled."""

    def append(self, stream: Stream, block: bytes) -> None:
        """Add a block to it."""

    def close(self, stream: Stream) -> None:
        """Let go of an open file."""

    def send(self, source: Path, device: Path) -> None:
        """Write the content of a file to a pipe or a device."""

    def digest(self, path: Path) -> str:
        """A hash of the content."""

    def sync(self, path: Path) -> None:
        """Make sure that a file, or the names in a folder, survive a loss of power."""

    def adopt(self, path: Path, mode: int, owner: tuple[int, int] | None) -> None:
        """Give a file permissions and, where this process may, an owner."""

    def rename(self, old: Path, new: Path) -> None:
        """Another name, which replaces a file of that name."""

    def link(self, old: Path, new: Path) -> None:
        """A second name for a file. Not everywhere."""

    def unlink(self, path: Path) -> None:
        """Remove a file, if it is there."""

    def mkdir(self, path: Path) -> bool:
        """Make a folder; False when it is there."""

    def rmdir(self, path: Path) -> None:
        """Remove an empty folder."""

    def lock(self, path: Path, *, shared: bool = False, mode: int = 0o666) -> Lock | None:
        """Lock a file, which is made if it is not there; None when somebody else holds it. A `shared` lock keeps out
        only those who want it for themselves."""

    def share(self, lock: Lock) -> bool:
        """Make a lock a shared one. False when somebody else was faster: then it is lost."""

    def unlock(self, lock: Lock, *, remove: bool) -> None:
        """Let go of it, and remove the file, if asked to."""


class PosixFiles:
    """The files of this system."""

    def stat(self, path: Path) -> Info | None:
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _info(found)

    def resolve(self, path: Path) -> Path:
        found = Path(os.path.realpath(path))
        if found.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        return found

    def names(self, folder: Path) -> list[str]:
        return sorted(os.listdir(folder))

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def head(self, path: Path) -> bytes:
        with open(path, "rb") as file:
            return file.read(_BLOCK)

    def write(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)

    def copy(self, source: Path, place: Path) -> None:
        if source.is_dir():
            shutil.copytree(source, place)
        else:
            shutil.copy2(source, place)

    def open(self, path: Path, *, anew: bool = False) -> Stream:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if anew and hasattr(os, "posix_fadvise"):
            with contextlib.suppress(OSError):  # only advice
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        return Stream(path, handle)

    def block(self, stream: Stream) -> bytes:
        assert stream.handle is not None
        return os.read(stream.handle, _BLOCK)

    def create(self, path: Path, mode: int) -> Stream:
        # Neither something that is there, nor where a link leads.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return Stream(path, os.open(path, flags, mode))

    def append(self, stream: Stream, block: bytes) -> None:
        assert stream.handle is not None
        view = memoryview(block)
        while view:
            view = view[os.write(stream.handle, view) :]

    def close(self, stream: Stream) -> None:
        if stream.handle is not None:
            handle, stream.handle = stream.handle, None
            os.close(handle)

    def send(self, source: Path, device: Path) -> None:
        # Neither made nor cut off: what stands behind the name takes the bytes.
        handle = os.open(device, os.O_WRONLY | os.O_APPEND)
        with open(source, "rb") as file, os.fdopen(handle, "wb", buffering=0) as out:
            while block := file.read(_BLOCK):
                view = memoryview(block)
                while view:
                    view = view[out.write(view) or 0 :]

    def digest(self, path: Path) -> str:
        from blake3 import blake3  # loaded by who has something to hash

        # Not over a map of the file: its pages would count as memory of this process.
        found = blake3(max_threads=blake3.AUTO)
        block = bytearray(_HASHED)
        with open(path, "rb", buffering=0) as file:
            while size := file.readinto(block):
                found.update(memoryview(block)[:size])
        return str(found.hexdigest())

    def sync(self, path: Path) -> None:
        # A file that cannot be kept is an error: some systems find out about a full disk only now. Folders are another
        # matter, there are file systems that do not sync them.
        handle = os.open(path, os.O_RDONLY)
        try:
            is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
            with contextlib.suppress(OSError) if is_folder else contextlib.nullcontext():
                os.fsync(handle)
        finally:
            os.close(handle)

    def adopt(self, path: Path, mode: int, owner: tuple[int, int] | None) -> None:
        found = os.stat(path)
        if owner is not None and owner != (found.st_uid, found.st_gid):
            with contextlib.suppress(PermissionError):
                os.chown(path, *owner)
        if stat.S_IMODE(found.st_mode) != mode:
            os.chmod(path, mode)

    def rename(self, old: Path, new: Path) -> None:
        os.rename(old, new)

    def link(self, old: Path, new: Path) -> None:
        os.link(old, new)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def mkdir(self, path: Path) -> bool:
        try:
            os.mkdir(path)
        except FileExistsError:
            if path.is_dir():
                return False
            raise
        return True

    def rmdir(self, path: Path) -> None:
        os.rmdir(path)

    def lock(self, path: Path, *, shared: bool = False, mode: int = 0o666) -> Lock | None:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        while True:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
            try:
                fcntl.flock(handle, kind | fcntl.LOCK_NB)
            except OSError as error:
                os.close(handle)
                if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                    return None
                if error.errno in _NO_LOCKS:
                    return Lock(path, None)
                raise
            # Whoever held it before may have removed the file meanwhile: then this is a lock on nothing.
            try:
                same = os.path.samestat(os.fstat(handle), os.stat(path))
            except FileNotFoundError:
                same = False
            if same:
                return Lock(path, handle)
            os.close(handle)

    def share(self, lock: Lock) -> bool:
        # The system may let go of the old lock before it takes the new one.
        if lock.handle is None:
            return True
        try:
            fcntl.flock(lock.handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock.handle)
            lock.handle = None
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            raise
        return True

    def unlock(self, lock: Lock, *, remove: bool) -> None:
        try:
            if remove:
                lock.path.unlink(missing_ok=True)
        finally:
            if lock.handle is not None:
                os.close(lock.handle)
                lock.handle = None


def _info(found: os.stat_result) -> Info:
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), OTHER)
    mode = stat.S_IMODE(found.st_mode)
    return Info(kind, found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev, mode, found.st_uid, found.st_gid)


def default_modes() -> tuple[int, int]:
    """The permissions that a new file and a new folder get in this process."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            [line] = [line for line in status if line.startswith("Umask:")]
        mask = int(line.split()[1], 8)
    except (OSError, ValueError):  # only there can it be asked without setting it
        mask = os.umask(0o022)
        os.umask(mask)
    return 0o666 & ~mask, 0o777 & ~mask


def is_stream(files: Files, path: Path) -> bool:
    """Is it something that takes bytes, and must never be replaced: a pipe, a device, an open file of a process?"""
    text = os.path.normpath(os.path.abspath(path))
    if text in ("/dev/stdout", "/dev/stderr", "/dev/stdin") or text.startswith("/dev/fd/"):
        return True
    if text.startswith("/proc/") and "/fd/" in text:
        return True
    found = files.stat(files.resolve(path))
    return found is not None and found.kind in (PIPE, DEVICE)


SYSTEM: Files = PosixFiles()
"""What is used unless somebody brings another."""
