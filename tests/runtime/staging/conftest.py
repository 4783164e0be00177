"""Two file systems: inputs lie on the one, copies on the other."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder on another device than `tmp_path`."""
    folder = Path(tempfile.mkdtemp(prefix="clinker-test-", dir="/dev/shm"))
    if os.stat(folder).st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("there is only one file system")
    yield folder
    shutil.rmtree(folder)
