"""From what was added up of a group to its totals, and whether a total has no value of its type."""

from __future__ import annotations

import numpy as np
import polars as pl

from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.floatsums import exact_total
from clinker_spark.cxl.vector.forms.decimals import fitting
from clinker_spark.cxl.vector.totals import KEY, Total, VectorTotals
from clinker_spark.spark.fragments.totals.states import COUNT, DIGITS, FIRST, LANES, Numbers

_MASK, _SCALE = (1 << 32) - 1, 2.0**64
_WIDE = 1 << 30
"""Beyond this in the highest lane, a sum may not fit into 38 digits, or 128 bits."""


def finished(totals: VectorTotals, groups: pl.DataFrame) -> pl.DataFrame:
    """Keys, for each call its value and, if it can be lost, whether it is; and the place of the first record."""
    columns = [groups[f"{KEY}{i}"] for i in range(totals.keys)]
    for i, total in enumerate(totals.totals):
        columns += [column.alias(f"{name}{i}") for name, column in zip("vl", _total(total, groups), strict=False)]
    return pl.DataFrame([*columns, groups[FIRST]])


def _total(total: Total, groups: pl.DataFrame) -> list[pl.Series]:
    if total.function == "count":
        return [groups[COUNT if total.arg is None else f"{COUNT}{total.arg}"]]
    if total.function in ("min", "max"):
        return [groups[f"{total.function}{total.arg}"]]
    count = groups[f"{COUNT}{total.arg}"].to_numpy()
    if total.kind is Kind.DECIMAL:
        return _of_decimals(groups.select(pl.col(f"{DIGITS}{total.arg}").alias("x"), n=pl.Series(count)))
    lanes = [groups[f"{lane}{total.arg}"].to_numpy() for lane in LANES[total.kind]]
    with np.errstate(all="ignore"):
        if total.kind is Kind.INT:
            high, low = _carried(lanes[0], lanes[1])
            lost = (high < -(1 << 31)) | (high >= 1 << 31)
            values = (high << 32) | low
            if total.function == "avg":
                values, lost = _as_floats(high, values, lost) / count, np.zeros(len(count), dtype=bool)
        else:
            values, lost = _of_floats(total, count, lanes)
    there = count != 0
    found = pl.Series(values).zip_with(
        pl.Series(there), pl.Series([None], dtype=pl.Series(values).dtype).new_from_index(0, len(count))
    )
    return [found, pl.Series(lost & there)]


def _of_decimals(sums: pl.DataFrame) -> list[pl.Series]:
    t = sums.schema["x"]
    assert isinstance(t, pl.Decimal)
    there = pl.col("n") != 0
    made = sums.select(v=pl.when(there).then(fitting(pl.col("x"), t.scale)), n=there)
    return [made["v"], made["v"].is_null() & made["n"]]


def _carried(high: Numbers, low: Numbers) -> tuple[Numbers, Numbers]:
    """The same number, with a low lane of 32 bits."""
    return high + (low >> 32), low & _MASK


def _as_floats(high: Numbers, values: Numbers, lost: Numbers) -> Numbers:
    found = values.astype(np.float64)
    for i in np.flatnonzero(lost):
        found[i] = float((int(high[i]) << 32) + (int(values[i]) & _MASK))
    return found


def _of_floats(total: Total, count: Numbers, lanes: list[Numbers]) -> tuple[Numbers, Numbers]:
    high, low, upper, lower, rest, big = lanes
    carried, lower = _carried(upper, lower)
    more, upper = _carried(np.zeros_like(carried), carried)
    high, low = _carried(high, low + more)
    exact = _rounded((high << 32) | low, (upper << 32) | lower)
    for i in np.flatnonzero((high <= -_WIDE) | (high >= _WIDE)):
        whole = (int(high[i]) << 32) + int(low[i])
        exact[i] = exact_total(whole, int(upper[i]), int(lower[i]))
    values = big * _SCALE + (exact + rest) + 0.0
    finite = np.abs(big) < np.inf
    if total.function == "avg":
        beyond = np.isinf(big * _SCALE) & finite
        values = np.where(beyond, big / count * _SCALE, values / count)
    return values, np.isinf(values) & finite


def _rounded(whole: Numbers, fraction: Numbers) -> Numbers:
    """The nearest float of a number of 128 bits, 64 of them behind the point: rounded once, as one to the nearest.

    The 64 highest bits decide, with the lowest of them set if anything else follows."""
    low = fraction.view(np.uint64)
    negative = whole < 0
    high = np.where(negative, ~whole, whole).view(np.uint64)
    high = high + (negative & (low == 0)).astype(np.uint64)
    low = np.where(negative, ~low + np.uint64(1), low)
    length = np.frexp(high.astype(np.float64))[1].astype(np.int64)
    length -= (length > 0) & (high >> np.maximum(length - 1, 0).astype(np.uint64) == 0)
    shift = length.astype(np.uint64)
    left = (np.uint64(64) - shift) & np.uint64(63)
    top = np.where(shift > 0, (high << left) | (low >> shift), low)
    sticky = (shift > 0) & ((low << left) != 0)
    top = top | sticky.astype(np.uint64)
    found = np.ldexp(top.astype(np.float64), (length - 64).astype(np.int32))
    return np.where(negative, -found, found)
