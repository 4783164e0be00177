"""Commands that are started dozens of times, one after the other: they share an archive of the JVM's classes, which
halves their start. The tests do without one otherwise (`conftest.own_cache`)."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def archived(folder: Path) -> dict[str, str]:
    """What such a command finds in its environment. The first of them leaves the archive, below `folder`."""
    return {"CLINKER_CLASS_ARCHIVE": str(folder / "classes"), "PYTHONPATH": os.pathsep.join(sys.path)}
