"""Patterns in queries that Java must not run: SQL calls a function by name, which RE2 runs over whole columns.

A name is made of what the function does, so that the same call has the same name in every query, and whoever runs a
text can see which functions it needs.

>>> name = pattern_function("find", "a.*b.*c", None)
>>> functions_in(f"SELECT {name}(x) FROM t") == {name: PatternCall("find", "a.*b.*c", None)}
True
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

METHODS = ("matches", "find", "capture")
_NAME = re.compile(r"\bclinker_pattern_[0-9a-f]{32}\b")


@dataclass(frozen=True)
class PatternCall:
    """`text.method(pattern)`, and the group of a capture."""

    method: str
    pattern: str
    group: int | None


_known: dict[str, PatternCall] = {}


def pattern_function(method: str, pattern: str, group: int | None) -> str:
    """The name of the function that does this."""
    digest = hashlib.sha256(repr((method, pattern, group)).encode("utf-8", "backslashreplace")).hexdigest()
    name = f"clinker_pattern_{digest[:32]}"
    _known[name] = PatternCall(method, pattern, group)
    return name


def functions_in(text: str) -> dict[str, PatternCall]:
    """The functions that a text may call. One that only a literal names does no harm."""
    return {name: _known[name] for name in dict.fromkeys(_NAME.findall(text)) if name in _known}
