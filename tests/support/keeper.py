"""Runs one server for as long as somebody holds its lease.

    python keeper.py FOLDER USER COMMAND...

Whoever uses the server holds a shared lock on FOLDER/lease. This process starts the server, puts its process id into
FOLDER/pid, and waits for the lock of its own: when it gets it, the last user is gone, however it ended. Then the server
goes, and FOLDER with it. Should the keeper die, the kernel ends the server.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    folder, user, command = Path(sys.argv[1]), sys.argv[2] or None, sys.argv[3:]
    with open(folder / "server.log", "ab") as log:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            user=user,
            preexec_fn=_end_with_parent,
        )
    (folder / "pid").write_text(str(server.pid))
    with open(folder / "lease", "r+") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)
        server.kill()
        server.wait()
        os.unlink(folder / "ready")  # who waits for the lock sees by this that the server is gone
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
