"""The format of a file, from its first bytes: what a source would have to say about it. Nothing of it needs Java."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError, InputError
from clinker_spark.spark.scan.json.documents import decoder, shape_of
from clinker_spark.spark.scan.record_plan import BOM, READ_ERRORS, RecordFile, reason_of
from clinker_spark.spark.scan.text.streams import compression_of

SAMPLE_BYTES = 8 << 20
_DOCUMENT_BYTES = 64 << 20
_DELIMITERS = (",", ";", "\t", "|")
_LOOKED_AT = 500
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class Shape:
    """A format and its options, each with a note that says why, or how much of the file it covers."""

    format: str
    options: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    """By option: what speaks for it."""
    places: tuple[tuple[int, int], ...] = ()
    """Fixed width: the bytes of each column."""


def record_file(path: Path, compression: str = "auto", name: str | None = None) -> RecordFile:
    """A file that readers can open. Raises OSError."""
    return RecordFile(str(path), name or str(path), compression_of(str(path), compression), path.stat().st_size)


def beginning(file: RecordFile, size: int = SAMPLE_BYTES) -> bytes:
    """The first bytes of a file, decompressed. Raises `InputError`."""
    try:
        with file.open() as opened:
            found = bytearray()
            while len(found) < size and (data := opened.read(size - len(found))):
                found += data
        return bytes(found)
    except ClinkerError:
        raise
    except READ_ERRORS as error:
        message, help_text = f"cannot read '{file.name}': {reason_of(error)}", "check the path and the permissions"
        raise InputError([Diagnostic("E229", message, help=help_text)]) from None


def shape_of_file(file: RecordFile) -> Shape:
    """What sort of file it is. Raises `InputError` for one that cannot be read, or has nothing in it."""
    data = beginning(file)
    text = data.removeprefix(BOM).lstrip()
    if data[:4] == b"PAR1":
        return Shape("parquet")
    if not text:
        message = f"'{file.name}' is empty: there is nothing to guess from"
        raise InputError([Diagnostic("E444", message, help="name a file with some records in it")])
    if data[:2] not in _UTF16 and text[:1] == b"<":
        return _xml(file, data)
    if data[:2] not in _UTF16 and text[:1] in (b"[", b"{"):
        found = _json(file)
        if found is not None:
            return found
    return _delimited(data)


# ---------------------------------------------------------------- JSON and XML


def _json(file: RecordFile) -> Shape | None:
    """None, when a text only begins like JSON."""
    shape = shape_of(file.open)
    data = beginning(file)
    lines = [line for line in data.removeprefix(BOM).split(b"\n", 50) if line.strip()]
    if shape == "ndjson" and not any(line.rstrip().endswith(b"}") for line in lines) and len(data) < SAMPLE_BYTES:
        return None
    if shape == "array" or (len(lines) > 1 and shape == "ndjson"):
        return Shape("json", {"format": shape})
    document = beginning(file, _DOCUMENT_BYTES)
    try:
        value = decoder(exact=False).decode(document.removeprefix(BOM).decode())
    except (ValueError, RecursionError):
        return Shape("json", {"format": "object"}, {"format": "the records are not at its beginning"})
    lists = sorted(_lists(value, ()), key=lambda item: -item[1])
    if not lists or (shape == "ndjson" and lists[0][1] < 2):
        return Shape("json", {"format": shape}, {"format": "one record"})
    path, count = lists[0]
    others = [".".join(other) for other, _ in lists[1:4]]
    also = f"; others: {', '.join(others)}" if others else ""
    return Shape("json", {"record_path": ".".join(path)}, {"record_path": f"a list of {count:,} objects{also}"})


def _lists(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    """The lists of objects inside an object, and how long they are."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        if isinstance(inner, list) and inner and all(isinstance(item, dict) for item in inner):
            yield (*path, key), len(inner)
        elif isinstance(inner, dict) and "." not in key:
            yield from _lists(inner, (*path, key))


def _xml(file: RecordFile, data: bytes) -> Shape:
    """The records are what repeats, as near to the root as it does."""
    counts: Counter[tuple[str, ...]] = Counter()
    filled: set[tuple[str, ...]] = set()
    path: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if path and len(path) > 1:
            filled.add(tuple(path))
        path.append(tag.rpartition(":")[2])
        counts[tuple(path)] += 1
        if attributes:
            filled.add(tuple(path))

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: path.pop()
    try:
        parser.Parse(data, False)
    except expat.ExpatError as error:
        message = f"'{file.name}' is not XML, line {error.lineno}: {expat.ErrorString(error.code)}"
        raise InputError([Diagnostic("E444", message, help="name a file that is whole")]) from None
    repeated = [(len(p), -n, p) for p, n in counts.items() if n > 1 and len(p) > 1 and p in filled]
    single = [(len(p), -n, p) for p, n in counts.items() if len(p) > 1]
    if not repeated and not single:
        return Shape("xml", {}, {})
    _, negative, found = min(repeated or single)
    return Shape("xml", {"record_path": "/".join(found)}, {"record_path": f"{-negative:,} elements at the beginning"})


# ---------------------------------------------------------------- lines


def encoding_of(data: bytes) -> tuple[str, str | None]:
    """The encoding of a beginning, and what speaks for it; nothing for UTF-8."""
    if data[:2] in _UTF16:
        return "utf-16", "its byte order mark says so"
    cut = data if len(data) < SAMPLE_BYTES else data[: data.rfind(b"\n") + 1] or data
    try:
        cut.decode("utf-8")
        return "utf-8", None
    except UnicodeDecodeError as error:
        at = f"it is not UTF-8 at byte {error.start:,}"
    if any(0x80 <= byte < 0xA0 for byte in cut):
        try:
            cut.decode("cp1252")
            return "windows-1252", f"{at}; a guess: all bytes have a character in it"
        except UnicodeDecodeError:
            pass
    return "iso-8859-1", f"{at}; a guess: every byte has a character in it"


def _delimited(data: bytes) -> Shape:
    encoding, why = encoding_of(data)
    text = data.removeprefix(BOM).decode(encoding, "replace")
    options: dict[str, Any] = {}
    notes: dict[str, str] = {}
    if why is not None:
        options["encoding"], notes["encoding"] = encoding, why
    best = max((_score(text, delimiter), delimiter) for delimiter in _DELIMITERS[::-1])
    (share, width, rows), delimiter = best
    if width < 2:
        places = _columns_of_blanks(text)
        if len(places) > 1:
            return Shape("fixed_width", options, {**notes, "": "blanks stand at the same bytes of every line"}, places)
        delimiter = ","
    if delimiter != ",":
        options["delimiter"] = delimiter
    if width > 1:
        notes["delimiter"] = f"{share:.4g} % of {rows:,} lines have {width} values"
    if not _has_names(first_rows(text, delimiter, 50)):
        options["has_header"] = False
        notes["has_header"] = "the first line looks like the others"
    return Shape("csv", options, notes)


def _score(text: str, delimiter: str) -> tuple[float, int, int]:
    rows = first_rows(text, delimiter, _LOOKED_AT)
    if not rows:
        return 0.0, 0, 0
    widths = Counter(map(len, rows))
    width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
    return (100 * count / len(rows) if width > 1 else 0.0), width, len(rows)


def first_rows(text: str, delimiter: str, most: int) -> list[list[str]]:
    """The first records of a text, without blank lines."""
    csv.field_size_limit(1 << 30)
    found: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                found.append(row)
            if len(found) == most:
                break
    except csv.Error:
        pass
    return found


def _has_names(rows: Sequence[list[str]]) -> bool:
    """Are the cells of the first line names: none empty, none twice, none that looks like a value?"""
    if not rows:
        return True
    first = [cell.strip() for cell in rows[0]]
    if len(set(first)) < len(first) or not all(first):
        return False
    return not any(_is_value(cell) for cell in first)


def _is_value(cell: str) -> bool:
    bare = cell.replace(",", "").replace(".", "").replace("-", "").replace("/", "").replace(":", "").replace(" ", "")
    return bare.isdigit() or cell.lower() in ("true", "false", "null", "na", "n/a")


def _columns_of_blanks(text: str) -> tuple[tuple[int, int], ...]:
    """The columns of lines of one length, where blanks stand between them in all lines."""
    lines = [line for line in text.splitlines()[:_LOOKED_AT] if line.strip()]
    width = max(map(len, lines), default=0)
    if len(lines) < 2 or width < 4 or any(len(line) != width or not line.isascii() for line in lines):
        return ()
    filled = [any(line[i] != " " for line in lines) for i in range(width)]
    starts = [i for i in range(width) if filled[i] and (i == 0 or not filled[i - 1])]
    ends = [*starts[1:], width]
    return tuple(zip(starts, ends, strict=True))
