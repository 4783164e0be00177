"""Spark SQL text for constants, and the clauses that several builtins share."""

from __future__ import annotations

from clinker_spark.sql.quoting import string

NULL_STRING = "CAST(NULL AS STRING)"
MAX_INT = 2**31 - 1


def sql_string(text: str) -> str:
    """A string as a Spark SQL literal."""
    return string(text)


def clamped(sql: str, most: int = MAX_INT) -> str:
    """A BIGINT as an INT between 0 and `most`; null becomes 0 (`greatest` skips nulls)."""
    return f"CAST(least(greatest({sql}, 0L), {most}L) AS INT)"


def regex_quote(text: str) -> str:
    """A Java pattern that matches `text` literally, without backslashes where they can be avoided.

    >>> regex_quote("a.b|c"), regex_quote("^")
    ('a[.]b[|]c', '\\\\^')
    """
    return "".join(f"[{c}]" if c in ".|*+?$()" else f"\\{c}" if c in "[]{}^\\" else c for c in text)
