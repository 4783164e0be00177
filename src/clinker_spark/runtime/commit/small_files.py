"""One small file, replaced in one step: whoever reads it meanwhile sees the old text or the new, never half of it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from clinker_spark.runtime.commit.seam import SYSTEM, Files, default_modes, is_stream


def replace_file(path: Path, content: bytes, files: Files = SYSTEM, *, durable: bool = True) -> None:
    """Through a link: the file changes, the link stays. Permissions and owner stay too; a pipe or a device takes the
    bytes. Without `durable`, a loss of power may bring back the old file."""
    place = files.resolve(path)
    draft = place.parent / f".clinker-draft-{os.getpid()}-{os.urandom(4).hex()}"
    if is_stream(files, path):
        with open(path, "wb", buffering=0) as out:
            out.write(content)
        return
    old = files.stat(place)
    try:
        files.write(draft, content)
        files.adopt(draft, default_modes()[0] if old is None else old.mode, None if old is None else (old.uid, old.gid))
        if durable:
            files.sync(draft)
        files.rename(draft, place)
    except BaseException:
        with contextlib.suppress(OSError):
            files.unlink(draft)
        raise
