"""A faster start of the JVM: its classes, parsed once, in an archive in the user's cache folder.

Half of a short run is a JVM that reads and checks some ten thousand classes. HotSpot can write those of a run to an
archive when it ends, and map it into memory the next time (class-data sharing). The first run here asks for such an
archive, later ones use it. It belongs to one Java and one Spark; the JVM itself leaves aside what does not fit or is
damaged, and starts as if there were none.

An archive is written after our process has ended, so it gets its final name from a later run, once nobody has touched
it for a while. Two runs at once write two files, of which one stays.

`CLINKER_CLASS_ARCHIVE=off` turns this off; another value is the folder to use.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from pathlib import Path

SETTING = "CLINKER_CLASS_ARCHIVE"
_SETTLED = 20.0
"""Seconds without a change after which an archive is complete: writing it takes two or three."""
_QUIET = "-Xlog:disable -XX:+DisplayVMOutputToStderr -XX:+IgnoreUnrecognizedVMOptions"
"""The JVM would tell on standard output which classes it leaves out."""


def archive_options(*, make: bool) -> str:
    """Options for the JVM: to use the archive, or to make one. Empty when there can be none. To make one takes a
    gigabyte of memory after the run: whoever has less to give only uses one."""
    folder = _folder()
    if folder is None or " " in str(folder):  # Spark takes options apart at blanks
        return ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        archive = folder / f"{_key()}.jsa"
        if not archive.exists():
            _adopt(folder, archive)
        if archive.exists():
            return f"{_QUIET} -XX:SharedArchiveFile={archive} -Xshare:auto"
        if not make or not os.access(folder, os.W_OK):
            return ""
        return f"{_QUIET} -XX:ArchiveClassesAtExit={folder / f'{archive.stem}.{os.getpid()}.new'}"
    except OSError:  # no home, no rights, no room: a run does not need an archive
        return ""


def _folder() -> Path | None:
    setting = os.environ.get(SETTING, "")
    if setting.lower() in ("off", "0", "false", "no"):
        return None
    if setting:
        return Path(setting).absolute()
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home) / "clinker-spark" / "classes" if os.path.isabs(home) else None


def _key() -> str:
    """What an archive depends on: the Java that Spark will take, and the classes of Spark."""
    import pyspark  # plans and dry runs, which ask for settings alone, do without

    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    java = java.resolve()
    parts = [str(java), pyspark.__version__, os.environ.get("SPARK_HOME", ""), str(Path(pyspark.__file__).parent)]
    with contextlib.suppress(OSError):
        parts.append(str(java.stat().st_mtime_ns))
        parts.append((java.parent.parent / "release").read_text())
    return f"spark-{pyspark.__version__}-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:16]}"


def _adopt(folder: Path, archive: Path) -> None:
    """Give an archive that an earlier run has left its name; others of the same kind are not needed then."""
    for made in sorted(folder.glob(f"{archive.stem}.*.new")):
        with contextlib.suppress(OSError):  # another run may be quicker
            found = made.stat()
            if time.time() - found.st_mtime < _SETTLED:
                continue
            if archive.exists() or not found.st_size:
                made.unlink()
            else:
                os.replace(made, archive)
