"""Reading what a command was pointed at: files and standard input as UTF-8 text, with a reason when that fails."""

from __future__ import annotations

import sys

from clinker_spark.config.files import Unreadable, decoded, read_bytes, within
from clinker_spark.core.diagnostics import Diagnostic
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
    try:
        return decoded(_standard_input() if path == STDIN else read_bytes(path, MAX_FILE_BYTES))
    except Unreadable as error:
        name = "standard input" if path == STDIN else f"'{path}'"
        raise InputError([Diagnostic(code, f"cannot read {name}: {error.reason}", help=error.help)]) from None


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise Unreadable("standard input is closed")
    try:
        return within(MAX_FILE_BYTES, sys.stdin.buffer.read(MAX_FILE_BYTES + 1))
    except OSError as error:
        raise Unreadable((error.strerror or str(error)).lower()) from None


def given_text(text: str, option: str) -> str:
    """The text of an option. The shell may pass bytes that are no text; they must not reach a renderer."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError([Diagnostic("E224", f"the text given with {option} is not UTF-8")]) from None
    return text
