"""JSON text from outside: values with their places, numbers as they were written, and nothing a record cannot hold."""

from __future__ import annotations

import json
import re
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.core.span import Source, Span

MAX_DEPTH = 128
"""Levels of a record. Far beyond what data has, and far below what Python's own stack allows."""

_HELP = 'write a JSON object: \'{"name": "value"}\''
_TOO_DEEP = f"the record is nested more than {MAX_DEPTH} levels deep"
_SPACE = re.compile(r"[ \t\r\n]*")


class Number(str):
    """A number as it was written. Which value it stands for depends on its column: a decimal keeps every digit."""

    __slots__ = ()


def json_values(source: Source) -> list[tuple[Any, Span]]:
    """All JSON values of a text with their places, whatever white space is between them."""
    decoder = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=_no_constant)
    text, found = source.text, []
    at = _skip(text, 1 if text.startswith("\ufeff") else 0)
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            message = error.msg[0].lower() + error.msg[1:]
            raise wrong_record(source, Span(error.pos, error.pos + 1), f"this is not JSON: {message}") from None
        except _NotJson as error:
            advice = "write it as a text and use .to_float()"
            raise wrong_record(source, Span(at, len(text)), str(error), advice) from None
        except RecursionError:
            raise wrong_record(source, Span(at, at + 1), _TOO_DEEP) from None
        _check(value, source, Span(at, end))
        found.append((value, Span(at, end)))
        at = _skip(text, end)
    return found


class _NotJson(ValueError):
    pass


def _no_constant(word: str) -> Any:
    raise _NotJson(f"{word} is not a JSON value")


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _check(value: Any, source: Source, span: Span) -> None:
    """JSON that no record can hold: too many levels, or half a surrogate pair. Without recursion, for any depth."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        if not level:
            return
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.keys()
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif isinstance(item, str) and any("\ud800" <= char <= "\udfff" for char in item):
                raise wrong_record(source, span, "a text of the record is not Unicode: it has half of a surrogate pair")
        level = below
    raise wrong_record(source, span, _TOO_DEEP)


def wrong_record(source: Source, span: Span, message: str, help_text: str = _HELP) -> InputError:
    return InputError([Diagnostic("E225", message, source, span, help_text)])
