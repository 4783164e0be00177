"""What the hidden columns of both sides of a join are called, on Spark and in workers."""

from __future__ import annotations

from clinker_spark.plan.columns import JOIN_PREFIX

LEFT, BUILD, LEFT_RANGE, BUILD_RANGE = (f"{JOIN_PREFIX}{word}" for word in ("l", "b", "rl", "rb"))
OK = f"{JOIN_PREFIX}ok"
"""Does a condition hold?"""
PAIR = f"{JOIN_PREFIX}pair"
"""The number of a pair."""


def is_of_join(name: str) -> bool:
    """Is a column gone when the join is done?"""
    return name.startswith(JOIN_PREFIX)


def place_column(build: str) -> str:
    """Where a record of a build stands among its like.

    >>> place_column("customers")
    '$join.place.customers'
    """
    return f"{JOIN_PREFIX}place.{build}"
