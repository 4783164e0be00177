"""One JSON record per line: lines as values, and what a line is that cannot be one."""

from __future__ import annotations

import json
import uuid
from decimal import Decimal
from typing import Any

from clinker_spark.spark.scan.record_batches import Error, structural
from clinker_spark.spark.scan.text.streams import MARK, utf8_with_marks

# Lines are parsed as one array with this word between them. No file knows it, so it shows where a line really ended.
_BETWEEN = uuid.uuid4().hex
_BLANKS = " \t\r\n\x0b\x0c"  # what bytes.strip strips, so that counting and reading agree
_JOINT = f',"{_BETWEEN}",'


def lines_of(data: bytes) -> list[str]:
    """The lines that are not blank, without what surrounds them."""
    text = utf8_with_marks(data, "utf-8").decode("utf-8")
    return [stripped for line in text.split("\n") if (stripped := line.strip(_BLANKS))]


def byte_lines(data: bytes) -> list[bytes]:
    """The same lines as they stand in the file, without their ends."""
    return [line.removesuffix(b"\r") for line in data.split(b"\n") if line.strip()]


def count_lines(data: bytes) -> int:
    return sum(map(bool, map(bytes.strip, data.split(b"\n"))))


def parse_lines(
    lines: list[str], decoder: json.JSONDecoder, what: str = "line"
) -> tuple[list[dict[str, Any]], dict[int, Error]]:
    """The record of each line. Of a line that is none, what its good beginning has, with an error, which calls the line
    what it is."""
    records = _parse_together(lines, decoder)
    errors: dict[int, Error] = {}
    if records is None:
        records = []
        for row, line in enumerate(lines):
            try:
                if MARK in line:
                    raise ValueError(f"the {what} is not UTF-8")
                records.append(decoder.decode(line))
            except RecursionError:
                records.append(good_beginning(line, decoder))
                errors[row] = structural(f"the {what} is not JSON: it is nested too deeply", line)
            except ValueError as error:
                records.append(good_beginning(line, decoder))
                errors[row] = structural(_reason(error, what), line)
    check_objects(records, errors, lines)
    return records, errors


def good_beginning(line: str, decoder: json.JSONDecoder) -> dict[str, Any]:
    """The fields of a broken object up to the place where it breaks: its key may be among them.

    >>> good_beginning('{"id": 7, "tags": [1, 2], "name": "a', json.JSONDecoder())
    {'id': 7, 'tags': [1, 2]}
    """
    found: dict[str, Any] = {}
    at = _skip(line, 0)
    if line[at : at + 1] != "{":
        return found
    try:
        while True:
            start = _skip(line, at + 1)
            name, at = decoder.raw_decode(line, start)
            at = _skip(line, at)
            if type(name) is not str or line[at : at + 1] != ":":
                return found
            value, at = decoder.raw_decode(line, _skip(line, at + 1))
            end = _skip(line, at)
            if end == len(line) and type(value) in (int, float, Decimal):
                return found  # a number that ends where the line does may have been longer
            if MARK not in line[start:at]:
                found[name] = value
            at = end
            if line[at : at + 1] != ",":
                return found
    except (ValueError, RecursionError):
        return found


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def check_objects(records: list[Any], errors: dict[int, Error], texts: list[str]) -> None:
    """Only objects are records; what stands elsewhere becomes an empty one with an error."""
    if set(map(type, records)) <= {dict}:
        return
    for row, value in enumerate(records):
        if type(value) is not dict:
            records[row] = {}
            errors.setdefault(row, structural("the record is not an object", texts[row]))


def _parse_together(lines: list[str], decoder: json.JSONDecoder) -> list[Any] | None:
    """All lines at once, which is a good deal faster than one by one; None if one of them needs a closer look."""
    joined = _JOINT.join(lines)
    if MARK in joined:
        return None
    try:
        found = decoder.decode(f"[{joined}]")
    except (ValueError, RecursionError):
        return None
    if len(found) != max(2 * len(lines) - 1, 0) or any(word != _BETWEEN for word in found[1::2]):
        return None
    return list(found[::2])


def _reason(error: ValueError, what: str) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"the {what} is not JSON, column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"
    return str(error)
