"""`[session] warm = "10m"` in clinker.toml: the first command starts a session that stays, and hands its work to it."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clinker_spark.cli.warm import place
from clinker_spark.cli.warm.client import hand_over, wants_session
from clinker_spark.config.workspace import find_workspace
from clinker_spark.core.errors import ClinkerError
from clinker_spark.runtime.run.memory import SessionMemory, settings_key


def handed_over(pipeline: str, settings: Callable[[], SessionMemory | None]) -> int | None:
    """The exit code of a new session that did the work of this command; None if none is wanted or can be had."""
    args = sys.argv[1:]
    if place.is_off(os.environ) or not wants_session(args):
        return None
    try:
        idle = find_workspace(pipeline).config.session.warm
        wanted = None if idle is None else settings()
    except (ClinkerError, OSError):  # the command says what is wrong
        return None
    folder = None if idle is None or wanted is None else place.made_folder()
    if idle is None or wanted is None or folder is None or not _started(wanted, idle):
        return None
    from clinker_spark.report.progress import command_began  # loads what other commands do not need

    return hand_over(str(folder / f"{settings_key(wanted)}.sock"), args, command_began())


def _started(settings: SessionMemory, idle: dt.timedelta) -> bool:
    """Start a process with a session, and wait until it is ready."""
    told: dict[str, Any] = {"settings": asdict(settings), "idle": idle.total_seconds()}
    command = [sys.executable, "-m", "clinker_spark.cli.warm.server"]
    log = Path(os.devnull)
    with (
        open(log, "wb") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(told).encode())
        process.stdin.close()
        ready = process.stdout.readline() == b"ready\n"
        process.stdout.close()
        process.returncode = 0  # it stays when we are gone: nobody waits for it
        return ready
