"""Columns as SQL texts, all of a DataFrame in one message: each `Column` object costs five of them, to make it, to name
it, to put it into a list, and to forget both objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql import DataFrame

from clinker_spark.core.fast_paths import taken
from clinker_spark.cxl.lower.plan import quote

_BETWEEN = "\ue0f3"
"""Stands between texts on their way to the JVM; no program of anybody has this character, and if one does, it is sent
as a list."""
_known: tuple[Any, Callable[[str], Any]] | None = None
"""A JVM, and how it makes a sequence of one text."""


def named(sql: str, name: str) -> str:
    """An SQL expression as a column of this name."""
    return sql if sql == quote(name) else f"{sql} AS {quote(name)}"


def select_sql(frame: DataFrame, texts: Iterable[str]) -> DataFrame:
    """The columns that SQL texts say."""
    columns = list(texts)
    java = getattr(frame, "_jdf", None)
    if java is None or not columns or any(_BETWEEN in text for text in columns) or not taken("one_message"):
        return frame.selectExpr(*columns)
    made: Any = type(frame)
    return made(java.selectExpr(_sequence(frame)(_BETWEEN.join(columns))), frame.sparkSession)


def _sequence(frame: DataFrame) -> Callable[[str], Any]:
    global _known
    gateway: Any = frame.sparkSession.sparkContext._gateway
    if _known is None or _known[0] is not gateway:
        java = gateway.jvm
        parts, as_list, to_seq = java.java.util.StringTokenizer, java.java.util.Collections.list, java.PythonUtils.toSeq
        _known = gateway, lambda text: to_seq(as_list(parts(text, _BETWEEN)))
    return _known[1]
