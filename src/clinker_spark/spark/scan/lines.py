r"""The bytes of a record as a text that can travel: as they are where they are UTF-8, else base64 behind a NUL.

No text that is kept as it is has a NUL, so the first character tells the two apart.

>>> line_text(b"1,caf\xc3\xa9"), line_text(b"1,caf\xe9")
('1,café', '\x00MSxjYWbp')
>>> shown_line('\x00MSxjYWbp'), shown_line("1,a")
(('MSxjYWbp', 'base64'), ('1,a', 'utf-8'))
>>> line_bytes("MSxjYWbp", "base64")
b'1,caf\xe9'
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

import pyarrow as pa

TEXT, BASE64 = "utf-8", "base64"
MARKED = "\0"


def line_text(line: bytes) -> str:
    """How the bytes of a record travel."""
    if b"\0" not in line:
        try:
            return line.decode()
        except UnicodeDecodeError:
            pass
    return MARKED + base64.b64encode(line).decode()


def line_array(lines: Sequence[bytes | None]) -> pa.Array:
    return pa.array([None if line is None else line_text(line) for line in lines], pa.string())


def shown_line(text: str) -> tuple[str, str]:
    """What a dead letter says, and in which encoding."""
    return (text[1:], BASE64) if text.startswith(MARKED) else (text, TEXT)


def line_bytes(text: str, encoding: str) -> bytes:
    """The bytes of a dead letter. Raises ValueError where they are no base64."""
    if encoding != BASE64:
        return text.encode()
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
