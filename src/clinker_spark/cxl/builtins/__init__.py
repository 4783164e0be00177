"""The builtin table: every method and operator of CXL, one row each."""

from __future__ import annotations

from functools import cache

from clinker_spark.cxl.builtins.table import Builtin


@cache
def methods() -> dict[str, Builtin]:
    """All methods by name (operators excluded)."""
    return {b.name: b for b in all_builtins() if b.family != "operator"}


@cache
def operators() -> dict[str, Builtin]:
    """The arithmetic and index operators by symbol."""
    return {b.name: b for b in all_builtins() if b.family == "operator"}


@cache
def all_builtins() -> tuple[Builtin, ...]:
    """Every row of the table."""
    # Loaded on first use: a part of this package, such as its SQL texts, does not need all the others.
    from clinker_spark.cxl.builtins.families import (
        arithmetic,
        collections,
        conversions,
        dates,
        introspection,
        numbers,
        paths,
        strings,
    )

    families = (arithmetic, strings, paths, numbers, dates, conversions, introspection, collections)
    return tuple(row for family in families for row in family.BUILTINS)
