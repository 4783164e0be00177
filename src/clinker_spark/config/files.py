"""Reading the files of a configuration as UTF-8 text, with a reason when that fails."""

from __future__ import annotations

import os
from pathlib import Path

from clinker_spark.config.errors import ConfigError
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import nearest
from clinker_spark.core.span import Source

MAX_BYTES = 8 * 1024 * 1024
"""No pipeline is this large; it keeps a slip such as /dev/zero from filling the memory."""


class Unreadable(Exception):
    """Why a file cannot be read, and perhaps what was meant."""

    def __init__(self, reason: str, help_text: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.help = help_text


def read_source(path: str | Path) -> Source:
    """A file as a source. Raises `ConfigError` with E224."""
    try:
        return Source(str(path), read_text(path))
    except Unreadable as error:
        message = f"cannot read '{path}': {error.reason}"
        raise ConfigError([Diagnostic("E224", message, help=error.help or "check the path")]) from None


def read_text(path: str | Path) -> str:
    """The text of a file, without a byte order mark. Raises `Unreadable`."""
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise Unreadable(reason[0].lower() + reason[1:], _other_name(str(path), error)) from None
    if len(raw) > MAX_BYTES:
        raise Unreadable(f"it is larger than {MAX_BYTES // 2**20} MiB")
    try:
        return raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8 text (byte 0x{raw[error.start]:02x} at offset {error.start})"
        raise Unreadable(reason, "save the file as UTF-8") from None


def _other_name(path: str, error: Exception) -> str | None:
    """A file beside the missing one whose name is nearly the same."""
    if not isinstance(error, FileNotFoundError):
        return None
    folder, name = os.path.split(path)
    try:
        found = nearest(name, os.listdir(folder or "."))
    except OSError:
        return f"there is no folder '{folder}'" if folder else None
    return f"did you mean '{os.path.join(folder, found)}'?" if found else None
