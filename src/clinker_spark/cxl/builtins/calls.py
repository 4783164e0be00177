"""Running one builtin on Python values: the null rule, then the overload's function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl import values
from clinker_spark.cxl.builtins.physical import narrow_value
from clinker_spark.cxl.builtins.table import Builtin, Failure, Nulls, Overload
from clinker_spark.cxl.errors import Fail


def run_overload(builtin: Builtin, overload: Overload, args: Sequence[Any]) -> Any:
    """The value of a call; raises `Fail` when the record cannot go on."""
    if builtin.nulls is Nulls.PROPAGATE:
        if any(a is None for a in args):
            return None
    elif builtin.nulls is Nulls.RECEIVER and args[0] is None:
        return None
    try:
        return overload.run(*args)
    except Fail as fail:
        row = next((f for f in overload.failures if f.kind is fail.kind), None)
        raise Fail(fail.kind, _offending(row, args), None if row is None else row.message) from None


def _offending(row: Failure | None, args: Sequence[Any]) -> Any:
    """The argument that the table names as the offending one, so that both engines report the same."""
    position = None if row is None else row.value
    return args[position] if position is not None and position < len(args) else None


def fits(value: Any, param: Type) -> bool:
    """May a run-time value go into a parameter, when the overload is chosen on the record?"""
    if value is None or param.kind is Kind.ANY:
        return True
    kind = values.kind_of(value)
    return kind is param.kind or (kind is Kind.INT and param.kind is Kind.FLOAT)


def run_dynamic(builtin: Builtin, overloads: Sequence[Overload], args: Sequence[Any]) -> Any:
    """The value of a call whose overload is the first that fits the values; none: null."""
    for overload in overloads:
        if all(fits(a, p) for a, p in zip(args, overload.params, strict=False)):
            narrowed = [
                a if p.kind is Kind.ANY else narrow_value(a, p) for a, p in zip(args, overload.params, strict=False)
            ]
            return run_overload(builtin, overload, narrowed)
    return None
