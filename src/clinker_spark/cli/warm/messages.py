"""What a command and a warm session say to each other: one JSON document a line, and three open files."""

from __future__ import annotations

import array
import json
import os
import socket
from typing import Any

_FILES = 3
_LONGEST = 8 << 20


def send(connection: socket.socket, message: dict[str, Any], files: tuple[int, ...] = ()) -> None:
    """A message, with open files for the other side."""
    data = json.dumps(message).encode() + b"\n"
    if files:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
        sent = connection.sendmsg([data], rights)
        data = data[sent:]
    connection.sendall(data)


class Messages:
    """What comes in over a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._waiting = b""
        self.files: list[int] = []
        """Open files that came with the messages so far."""

    def next(self) -> dict[str, Any] | None:
        """The next message; None at the end, and for what is no message."""
        while b"\n" not in self._waiting:
            if len(self._waiting) > _LONGEST:
                return None
            try:
                data, rights, _, _ = self._connection.recvmsg(1 << 16, socket.CMSG_SPACE(_FILES * 4))
            except OSError:
                return None
            for level, kind, content in rights:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    got = array.array("i")
                    got.frombytes(content[: len(content) - len(content) % got.itemsize])
                    self.files += got
            if not data:
                return None
            self._waiting += data
        line, self._waiting = self._waiting.split(b"\n", 1)
        try:
            found = json.loads(line)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def close_files(self) -> None:
        for number in self.files:
            os.close(number)
        self.files = []
