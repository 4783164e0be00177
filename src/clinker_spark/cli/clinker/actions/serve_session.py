"""What `clinker serve` does."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import click
import psutil

from clinker_spark.cli.clinker.actions.session_settings import plain_session, wanted_session
from clinker_spark.cli.warm import place
from clinker_spark.cli.warm.server import AlreadyServed, Server
from clinker_spark.config.values import read_duration
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.memory import SessionMemory
from clinker_spark.spark.session import jvm

_PATIENCE = 10.0


def serve(pipeline: str | None, idle: str, options: dict[str, Any]) -> int:
    """Serve until there is no work for a while, or until somebody ends it."""
    seconds = _seconds(idle)
    settings = _settings(pipeline, {**options, "remote": None})
    folder = place.made_folder()
    if folder is None:
        message = "there is no folder for a socket that only you can use"
        raise InputError([Diagnostic("E401", message, help="look at XDG_CACHE_HOME, or ~/.cache")])
    try:
        server = Server(folder, settings, seconds)
    except AlreadyServed:
        click.echo("clinker: there is a session with these settings already")
        return 0
    click.echo("clinker: starting Spark ...")
    server.run(lambda: click.echo(f"clinker: ready, until there was no work for {idle}"))
    if jvm.is_gone():
        raise jvm.StartError([jvm.farewell()])
    return 0


def stop_all() -> int:
    """End all sessions of this user."""
    folder = place.folder()
    ended = 0
    for lock in sorted(folder.parent.glob("*/*.lock")) if folder is not None else ():
        if not place.is_ours(lock.parent):
            continue
        pid = _holder(lock)
        if pid is not None:
            process = psutil.Process(pid)
            process.send_signal(signal.SIGTERM)
            process.wait(_PATIENCE)
            ended += 1
    click.echo(f"clinker: {ended} session{'' if ended == 1 else 's'} ended")
    return 0


def _holder(lock: Path) -> int | None:
    """The process that holds a lock; it has written its number there."""
    import fcntl  # not on every system

    with open(lock) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            text = file.read().strip()
            return int(text) if text.isdigit() else None
    return None


def _settings(pipeline: str | None, options: dict[str, Any]) -> SessionMemory:
    if pipeline is not None:
        return wanted_session(prepare(pipeline, memory_limit=options["memory_limit"]), pipeline, options)
    return plain_session(os.getcwd(), options)


def _seconds(text: str) -> float:
    try:
        return read_duration(text).total_seconds()
    except ValueError:
        raise InputError([Diagnostic("E214", f"'{text}' is not a time", help="write 10m, 90s or 1h")]) from None
