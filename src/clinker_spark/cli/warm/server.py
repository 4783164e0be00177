"""The process that keeps a warm session. It starts Spark, then forks a process for each piece of work.

A fork has everything imported, and a connection to the running JVM; it has its own working folder, environment, open
files and signals, as the command has that asked for the work. Whatever happens in it ends with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clinker_spark.cli.clinker.actions.run_session import AFTER_THE_START
from clinker_spark.cli.warm import place, work
from clinker_spark.cli.warm.messages import send
from clinker_spark.runtime.run.memory import SessionMemory, few_arenas, options_of_jvm, settings_key, with_spill_folder
from clinker_spark.spark.session import inherited, jvm
from clinker_spark.spark.session.sessions import session

_LOOK = 0.05
"""Seconds between two looks at the process that works."""
_ENDING = 0.5
"""Seconds that the next command waits for the end of the work before it."""
_USED = (
    "clinker_spark.cli.clinker.actions.replay_session",
    "clinker_spark.cli.clinker.actions.query_program",
    "clinker_spark.cli.clinker.actions.query_session",
    "clinker_spark.cli.clinker.main",
    *AFTER_THE_START,
    "rich.console",
    "rich.status",
)
"""What the work imports: once, here."""


class AlreadyServed(Exception):
    """Another process has a session with these settings."""


class Server:
    """One session behind one socket. `idle` is after how many seconds without work it ends."""

    def __init__(self, folder: Path, settings: SessionMemory, idle: float) -> None:
        self.address = folder / f"{settings_key(settings)}.sock"
        self._settings = settings
        self._idle = idle
        self._child: int | None = None
        self._lock = open(self.address.with_suffix(".lock"), "a+")  # noqa: SIM115  (held as long as we live)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise AlreadyServed from None
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()))
        self._lock.flush()

    def run(self, ready: Callable[[], None]) -> None:
        """Start Spark, call `ready`, and work until there is nothing to do for a while."""
        few_arenas()
        os.chdir(self.address.parent)  # the JVM stays in the folder it was started in, so that is one that stays
        java = options_of_jvm(self._settings)
        conf = with_spill_folder(self._settings.conf)
        self._spark = session(self._settings.master, app_name="clinker: warm", conf=conf, java_options=java)
        for name in _USED:
            importlib.import_module(name)
        self._spark.range(1).count()  # a first job: its classes are loaded before anybody waits for them
        self._first_object = inherited.newest_object(self._spark)
        with _listening(self.address) as listener:
            ready()
            try:
                self._answer(listener)
            finally:
                self.address.unlink(missing_ok=True)
                if self._child is not None:
                    with contextlib.suppress(OSError):
                        os.kill(self._child, signal.SIGTERM)
                        os.waitpid(self._child, 0)
                with jvm.while_it_lives():
                    self._spark.stop()

    def _answer(self, listener: socket.socket) -> None:
        last = time.monotonic()
        while self._child is not None or not jvm.is_gone():  # who works without a JVM says so, and ends
            waiting = _LOOK if self._child is not None else max(self._idle - (time.monotonic() - last), 0.0)
            came, _, _ = select.select([listener], [], [], min(waiting, 60.0))
            if self._child is not None and self._ended():
                last = time.monotonic()
            if came and self._child is None and jvm.is_gone():
                return  # the command does its work itself
            if came:
                self._accept(listener)
            elif self._child is None and time.monotonic() - last >= self._idle:
                return

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            if not _is_our_user(connection):
                return
            if self._child is not None and not self._ends_soon():
                with contextlib.suppress(OSError):
                    send(connection, {"busy": True})
                return
            sys.stdout.flush()
            sys.stderr.flush()
            pid = os.fork()
            if pid == 0:
                listener.close()
                work.do(connection, self._spark, self._settings)
            self._child = pid

    def _ends_soon(self) -> bool:
        """Is the process that works about to end? A command that follows another comes before its last one is gone."""
        until = time.monotonic() + _ENDING
        while not self._ended():
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK / 10)
        return True

    def _ended(self) -> bool:
        assert self._child is not None
        pid, _ = os.waitpid(self._child, os.WNOHANG)
        if pid == 0:
            return False
        self._child = None
        inherited.drop_work(self._spark, self._first_object)
        return True


@contextlib.contextmanager
def _listening(address: Path) -> Any:
    address.unlink(missing_ok=True)  # of one that was killed: we have the lock
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        before = os.umask(0o177)
        try:
            listener.bind(str(address))
        finally:
            os.umask(before)
        listener.listen(16)
        yield listener


def _is_our_user(connection: socket.socket) -> bool:
    if not hasattr(socket, "SO_PEERCRED"):  # then the mode of the socket is all there is
        return True
    said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", said)[1]) == os.getuid()


def main() -> None:
    """Started by a command, in the background: the settings come on standard input; a line says when it is ready."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command that runs in front
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    told = json.load(sys.stdin)
    folder = place.made_folder()
    if folder is None:
        sys.exit(1)

    def ready() -> None:
        os.write(1, b"ready\n")
        silent = os.open(os.devnull, os.O_RDWR)
        os.dup2(silent, 1)  # whoever waits for our end does not wait ten minutes

    try:
        Server(folder, SessionMemory(**told["settings"]), float(told["idle"])).run(ready)
    except AlreadyServed:
        os.write(1, b"ready\n")


if __name__ == "__main__":
    main()
