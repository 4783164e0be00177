"""Settings that a session has while a run lasts."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from clinker_spark.spark.session.jvm import while_it_lives

_lock = threading.Lock()
_holders: dict[int, tuple[int, dict[str, str | None]]] = {}
"""By session: how many runs use these settings, and what they were before the first of them."""


@contextmanager
def meanwhile(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Meanwhile the session has these settings. Several runs may use it at once: the last one puts back what the first
    one found."""
    java: Any = spark
    key = java._jsparkSession.hashCode()
    with _lock:
        users, before = _holders.get(key, (0, {}))
        for name, value in wanted.items():
            before.setdefault(name, spark.conf.get(name, None))
            spark.conf.set(name, value)
        _holders[key] = (users + 1, before)
    try:
        yield
    finally:
        with _lock:
            users, before = _holders.pop(key)
            if users > 1:
                _holders[key] = (users - 1, before)
            else:
                with while_it_lives():  # a JVM that is gone has no settings, and the run says so itself
                    _put_back(spark, before)


def _put_back(spark: SparkSession, before: dict[str, str | None]) -> None:
    for name, known in before.items():
        if known is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, known)
