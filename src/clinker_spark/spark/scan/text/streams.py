"""The bytes of text files as UTF-8: decompressed, transcoded, and with a mark where they could not be decoded.

`MARK` is a character that Unicode keeps out of texts. It stands for bytes that are no text in the file's encoding, so
that the record they belong to can be told from the others after parsing; what users see is U+FFFD instead.

>>> utf8_with_marks(b"caf\\xe9", "utf-8") == "caf".encode() + MARK.encode()
True
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import zlib
from typing import Any, BinaryIO, cast

import pyarrow as pa

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.spark.scan.meter import MeteredFile

MARK = "\ufdd0"
REPLACEMENT = "\ufffd"
_ERRORS = "clinker_mark"
_CHUNK = 1 << 20
_SUFFIXES = {".gz": "gzip", ".gzip": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zstd": "zstd"}
_MAGIC = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "zstd": b"\x28\xb5\x2f\xfd"}
_PLAIN_ENCODINGS = ("utf-8", "ascii")


def _mark(problem: UnicodeError) -> tuple[str, int]:
    return MARK, cast(UnicodeDecodeError, problem).end


codecs.register_error(_ERRORS, _mark)


def compression_of(path: str, setting: str) -> str:
    """none, gzip, bz2 or zstd: as set, or by the end of the name.

    >>> compression_of("a.csv.GZ", "auto"), compression_of("a.csv", "auto"), compression_of("a.gz", "none")
    ('gzip', 'none', 'none')
    """
    if setting != "auto":
        return setting
    return next((kind for suffix, kind in _SUFFIXES.items() if path.lower().endswith(suffix)), "none")


def is_utf8(encoding: str) -> bool:
    """Can the file's bytes be parsed as they are? ASCII is UTF-8 with a stricter check."""
    return codecs.lookup(encoding).name in _PLAIN_ENCODINGS


def single_bytes(encoding: str) -> bool:
    """Is every byte one character, and those of ASCII the same?"""
    characters = bytes(range(256)).decode(encoding, "replace")
    return len(characters) == 256 and characters[:128] == bytes(range(128)).decode("ascii")


def utf8_with_marks(data: bytes, encoding: str) -> bytes:
    """Bytes in any encoding as UTF-8. What is right already comes back as it is, without a copy."""
    if data.isascii() and is_utf8(encoding):
        return data
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = data.decode(encoding, _ERRORS)
    else:
        if is_utf8(encoding):
            return data
    return text.encode("utf-8", "replace")


def open_binary(path: str, compression: str, name: str | None = None) -> BinaryIO:
    """The decompressed bytes of a file. Raises OSError for a file that is not compressed in this way, and InputError
    (E452), which calls it by its name, as soon as its bytes turn out to be damaged."""
    if compression == "none":
        return cast(BinaryIO, io.BufferedReader(MeteredFile(path)))
    with open(path, "rb") as raw:
        start = raw.read(4)
    if not start:
        return open(path, "rb")
    if not start.startswith(_MAGIC[compression]):
        raise OSError(f"it is not compressed with {compression}")
    opened: Any
    file = MeteredFile(path)
    if compression == "gzip":
        opened = gzip.GzipFile(fileobj=file)
    elif compression == "bz2":
        opened = bz2.BZ2File(file)
    else:
        opened = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
    return cast(BinaryIO, _Decompressed(opened, file, name or path))


class _Decompressed(io.RawIOBase):
    """A compressed file that says which one it is when it cannot be decompressed."""

    def __init__(self, opened: Any, file: BinaryIO | io.FileIO, name: str) -> None:
        self._opened = opened
        self._file = file
        self._name = name

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        try:
            return cast(bytes, self._opened.read(size) if size >= 0 else self._opened.read())
        except (EOFError, OSError, zlib.error, pa.ArrowException) as error:
            raise damaged(self._name, str(error)) from None

    def close(self) -> None:
        if not self.closed:
            self._opened.close()
            self._file.close()
        super().close()


def damaged(name: str, reason: str) -> InputError:
    """The error of a file whose compressed bytes are wrong or end too early. The code is part of the text: tasks can
    only send text."""
    shown = reason[0].lower() + reason[1:] if reason[1:2].islower() else reason
    message = f"'{name}' is damaged: {shown}"
    help_text = "get the file again: it may have been cut while it was copied"
    found = InputError([Diagnostic("E452", message, help=help_text)])
    found.args = (f"E452: {message}",)
    return found


class TextStream(io.RawIOBase):
    """A file as a stream of UTF-8. `marked` says whether a mark had to be set so far."""

    def __init__(self, path: str, compression: str, encoding: str, name: str | None = None) -> None:
        self._raw = open_binary(path, compression, name)
        self._utf8 = is_utf8(encoding)
        self._decoder: Any = codecs.getincrementaldecoder(encoding)(_ERRORS)
        self._ready = bytearray()
        self._at_end = False
        self.marked = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Exactly `size` bytes unless the file ends: the parser takes every piece for a block."""
        while not self._at_end and (size < 0 or len(self._ready) < size):
            self._ready += self._next_piece()
        size = len(self._ready) if size < 0 else size
        piece = bytes(self._ready[:size])
        del self._ready[:size]
        return piece

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()

    def _next_piece(self) -> bytes:
        data = self._raw.read(_CHUNK)
        self._at_end = not data
        if self._utf8 and data.isascii() and not self._decoder.getstate()[0]:
            return data
        text = self._decoder.decode(data, self._at_end)
        self.marked = self.marked or MARK in text
        return cast(bytes, text.encode("utf-8", "replace"))
