"""Patterns in queries that Java must not run: SQL calls a function by name, which RE2 runs over whole columns."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from clinker_spark.sql import tree as sql

METHODS = ("matches", "find", "capture")


@dataclass(frozen=True)
class PatternCall:
    """`text.method(pattern)`, and the group of a capture."""

    method: str
    pattern: str
    group: int | None


def pattern_call(method: str, pattern: str, group: int | None, text: sql.Expr) -> sql.Call:
    """The call of the function that does this. Its name is made of what it does, so that it is the same everywhere."""
    digest = hashlib.sha256(repr((method, pattern, group)).encode("utf-8", "backslashreplace")).hexdigest()
    return sql.Call(f"clinker_pattern_{digest[:32]}", (text,), definition=PatternCall(method, pattern, group))
