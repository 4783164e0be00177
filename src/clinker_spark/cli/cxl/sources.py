"""Reading what a command was pointed at: files and standard input as UTF-8 text, with a reason when that fails."""

from __future__ import annotations

import os
import sys

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import nearest
from clinker_spark.core.errors import InputError
from clinker_spark.core.span import Source

STDIN = "-"
MAX_FILE_BYTES = 64 * 1024 * 1024
"""Nothing a command reads whole is this large; it keeps a slip such as /dev/zero from filling the memory."""


def read_source(path: str) -> Source:
    """A program text; `-` is standard input."""
    return Source("<stdin>" if path == STDIN else path, read_text(path))


def read_text(path: str, code: str = "E224") -> str:
    """The text of a file or of standard input. Raises `InputError` with the reason and a way out."""
    raw = read_bytes(path, code)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8 text (byte 0x{raw[error.start]:02x} at offset {error.start})"
        raise unreadable(path, reason, "save the file as UTF-8", code) from None


def read_bytes(path: str, code: str = "E224") -> bytes:
    try:
        if path != STDIN:
            with open(path, "rb") as file:
                raw = file.read(MAX_FILE_BYTES + 1)
        elif sys.stdin is None:
            raise unreadable(path, "standard input is closed", None, code)
        else:
            raw = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise unreadable(path, reason, _other_name(path, error), code) from None
    if len(raw) > MAX_FILE_BYTES:
        raise unreadable(path, f"it is larger than {MAX_FILE_BYTES // 2**20} MiB", None, code)
    return raw


def unreadable(path: str, reason: str, help_text: str | None, code: str = "E224") -> InputError:
    name = "standard input" if path == STDIN else f"'{path}'"
    return InputError([Diagnostic(code, f"cannot read {name}: {reason}", help=help_text)])


def given_text(text: str, option: str) -> str:
    """The text of an option. The shell may pass bytes that are no text; they must not reach a renderer."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError([Diagnostic("E224", f"the text given with {option} is not UTF-8")]) from None
    return text


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
