"""The process that does one piece of work for a command: it becomes, as far as it can, the process that asked."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import sys
import threading
from typing import Any, NoReturn

from clinker_spark.cli.warm import place
from clinker_spark.cli.warm.fitting import fits
from clinker_spark.cli.warm.messages import Messages, send
from clinker_spark.runtime.run.memory import SessionMemory
from clinker_spark.spark.session import inherited

_PATIENCE = 10.0


def do(connection: socket.socket, spark: Any, settings: SessionMemory) -> NoReturn:
    """Hear what is to be done, do it if the session suits, tell the exit code, and end."""
    code = 4
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setpgid(0, 0)
        connection.settimeout(_PATIENCE)
        messages = Messages(connection)
        request = messages.next()
        if request is not None and len(messages.files) == 3 and _becomes(request):
            if fits(request["args"], settings):
                inherited.adopt(
                    spark
                )  # fails if there is no JVM any more: the command hears nothing, and does it itself
                code = _work(connection, messages, request)
            else:
                send(connection, {"other_settings": True})
    except BaseException:
        if os.environ.get("CLINKER_DEBUG"):
            import traceback  # only for a defect

            traceback.print_exc()
    finally:
        os._exit(code)


def _becomes(request: dict[str, Any]) -> bool:
    try:
        os.chdir(request["folder"])
    except OSError:
        return False
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update({**request["environment"], place.SWITCH: "off"})
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return True


def _work(connection: socket.socket, messages: Messages, request: dict[str, Any]) -> int:
    send(connection, {"pid": os.getpid()})
    go = messages.next()
    if go is None or not go.get("go"):  # it has lost patience, and does the work itself
        return 0
    connection.settimeout(None)
    for number, given in enumerate(messages.files):
        os.dup2(given, number)
    messages.close_files()
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = _text(1, sys.stdout.encoding, "strict")
    sys.stderr = _text(2, sys.stderr.encoding, "backslashreplace")
    sys.argv = ["clinker", *request["args"]]
    done = threading.Event()
    threading.Thread(target=_watch, args=(messages, done), daemon=True).start()
    try:
        code = _run(request)
    except KeyboardInterrupt:  # before the command could hear it
        print("clinker: interrupted", file=sys.stderr)
        code = 130
    done.set()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    with contextlib.suppress(OSError):  # nobody waits for it any more
        send(connection, {"exit": code})
    return code


def _run(request: dict[str, Any]) -> int:
    from clinker_spark.cli.app import run  # by the fork that runs a command: what waits for one needs none of it
    from clinker_spark.cli.clinker.main import clinker
    from clinker_spark.report import progress
    from clinker_spark.runtime.measure import processes

    progress.began = float(request["began"])
    processes.root = os.getppid()  # the JVM and the workers are children of the server
    try:
        run(clinker, "clinker", request["args"])
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1


def _text(number: int, encoding: str, errors: str) -> io.TextIOWrapper:
    """A standard stream as Python makes it: on a terminal, lines are written when they end; errors always are."""
    raw = os.fdopen(number, "wb", closefd=False)
    lines = number == 2 or os.isatty(number)
    return io.TextIOWrapper(raw, encoding=encoding, errors=errors, line_buffering=lines)


def _watch(messages: Messages, done: threading.Event) -> None:
    """When the command that asked is gone, its work ends as if it had been interrupted."""
    messages.next()
    if not done.is_set():
        os.kill(os.getpid(), signal.SIGINT)
