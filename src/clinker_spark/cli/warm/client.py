"""A command that hands its work to a warm session. It is the first thing that `clinker` does, so it imports little.

The session gets the arguments, the working folder, the environment and the three open files of this process, and does
the work in a process of its own. Signals are passed on to that, and its exit code is ours.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

from clinker_spark.cli.warm import place
from clinker_spark.cli.warm.messages import Messages, send

_NO_SPARK = ("-h", "--help", "--explain", "-v", "--verbose", "--remote")
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE = 30.0
"""Seconds for a session to say whether it takes the work: it plans the pipeline first."""


def wants_session(args: Sequence[str]) -> bool:
    """Is this a command that a warm session may do?

    >>> wants_session(["run", "p.yaml"]), wants_session(["run", "p.yaml", "--dry-run"]), wants_session(["schema"])
    (True, False, False)
    """
    if any(text.split("=", 1)[0] in _NO_SPARK for text in args):
        return False
    match list(args[:2]):
        case ["run", _]:
            return "--dry-run" not in args or any(text.startswith("-n") for text in args)
        case ["query", _] | ["dlq", "replay"]:
            return True
    return False


def served(args: Sequence[str]) -> int | None:
    """The exit code of a warm session that did the work; None if there is none that would."""
    if not wants_session(args) or place.is_off(os.environ) or not hasattr(socket, "SCM_RIGHTS"):
        return None
    folder = place.folder()
    if folder is None or not place.is_ours(folder):
        return None
    began = time.time()
    for name in sorted(os.listdir(folder)):
        if name.endswith(".sock"):
            code = hand_over(str(folder / name), args, began)
            if code is not None:
                return code
    return None


def hand_over(address: str, args: Sequence[str], began: float) -> int | None:
    """Give the work to one session; None if it is busy, has other settings, or is gone."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PATIENCE)
        messages = Messages(connection)
        answer: dict[str, Any] | None = None
        files = _open_files()
        try:
            connection.connect(address)
            request = {
                "args": list(args),
                "folder": os.getcwd(),
                "environment": dict(os.environ),
                "umask": _umask(),
                "began": began,
            }
            send(connection, request, files)
            answer = messages.next()
        except OSError:
            return None
        finally:
            if files[0] != 0:
                os.close(files[0])
        if answer is None or "pid" not in answer:
            return None
        connection.settimeout(None)
        try:
            send(connection, {"go": True})  # only now does it begin: nobody does the work twice
        except OSError:
            return None
        return _follow(messages, int(answer["pid"]))


def _follow(messages: Messages, pid: int) -> int:
    def pass_on(number: int, frame: object) -> None:
        try:
            os.kill(pid, number)
        except OSError:  # it has just ended
            return

    for number in _PASSED_ON:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, pass_on)
    last = messages.next()
    if last is not None and "exit" in last:
        return int(last["exit"])
    _tell_end()
    return 4


def _tell_end() -> None:
    from clinker_spark.core.diagnostics import Diagnostic  # only when there is something to say
    from clinker_spark.core.diagnostics.render import render_all, use_color

    help_text = "run again; what was half published is finished first, or by `clinker recover`"
    found = Diagnostic("E410", "the process that did this work in a warm session was killed", help=help_text)
    print(render_all([found], use_color(sys.stderr)), file=sys.stderr)


def _open_files() -> tuple[int, int, int]:
    """Standard input, output and error. A terminal cannot be read from behind another process."""
    source = 0
    try:
        reading = not os.isatty(0)
    except OSError:
        reading = False
    if not reading:
        source = os.open(os.devnull, os.O_RDONLY)
    return source, 1, 2


def _umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now
