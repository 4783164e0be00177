"""Range joins: an equality of bins instead of a comparison of all with all. `plan/joins/bins.py` says how axes are cut.

A pair of ranges, `left.x >= build.low` and `left.y <= build.high`, can only hold where the span between the two values
of the left side meets the span between those of the build. So both spans are written into bins, records that share a
bin are candidates, and the conditions themselves decide. A pair of spans that share several bins is taken in the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import JOIN_PREFIX
from clinker_spark.plan.joins.bins import POINT, LengthClass, choose_classes
from clinker_spark.plan.joins.conjuncts import range_pair, same
from clinker_spark.plan.nodes.combine import CombinePlan
from clinker_spark.spark.joins.axis import BROADCAST_ROWS, axis_of_column, with_hit
from clinker_spark.spark.joins.names import BUILD_RANGE, LEFT_RANGE
from clinker_spark.spark.joins.one_range import join_one_range
from clinker_spark.spark.joins.sides import Sides

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


FEW_PER_KEY = 16
"""With so few records for each equal key, comparing them all is cheaper than bins."""
_BIN, _FIRST = f"{JOIN_PREFIX}slot", f"{JOIN_PREFIX}first"


@dataclass(frozen=True)
class Axis:
    """The spans of one side: SQL for both ends as numbers, and whether they are one point."""

    ends: tuple[str, str]
    whole: bool
    point: bool

    @property
    def low(self) -> str:
        return self.ends[0] if self.point else f"least({self.ends[0]}, {self.ends[1]})"

    @property
    def high(self) -> str:
        return self.ends[0] if self.point else f"greatest({self.ends[0]}, {self.ends[1]})"

    @property
    def bits(self) -> str:
        """The length as a power of two, rounded up."""
        if self.point:
            return str(POINT)
        length = f"(CAST({self.high} AS DOUBLE) - CAST({self.low} AS DOUBLE))"
        least = "1D" if self.whole else "1e-300D"
        return f"CAST(ceil(log2(greatest({length}, {least}))) AS INT)"


@dataclass(frozen=True)
class Cut:
    """How both sides are cut into bins, found by a look at the data."""

    left: list[LengthClass]
    build: list[LengthClass]
    copies: int
    """How many rows the build has in its bins."""


def join_range(builder: Builder, node: CombinePlan, sides: Sides) -> DataFrame:
    """The pairs of a step with two opposite ranges, or with one comparison alone."""
    pair = range_pair(sides.step.ranges)
    if pair is None:
        return join_one_range(builder, node, sides)
    numbers = [sides.step.ranges.index(r) for r in pair]
    left, build = (
        _axis(sides.left, LEFT_RANGE, numbers, same(pair[0].left, pair[1].left)),
        _axis(sides.build, BUILD_RANGE, numbers, same(pair[0].right, pair[1].right)),
    )
    if left.whole != build.whole:
        left, build = _floating(left), _floating(build)
    name = f"{node.name}: {sides.step.build}"
    if name not in builder.run.measured:
        builder.run.measured[name] = _measure(node, sides, left, build)
    cut: Cut | None = builder.run.measured[name]
    if cut is None:  # few candidates for each key
        joined = sides.left.join(with_hit(sides.build), sides.condition(*sides.equal()), sides.how)
        return sides.sort_out(joined, repeated=False)
    binned_left = _binned(sides.left, left, cut.left, cut.build, mine_first=False)
    binned_build = _binned(sides.build, build, cut.build, cut.left, mine_first=True)
    repeated = not left.point or len(cut.build) > 1
    bins = [F.col(quote(f"{_BIN}.l")) == F.col(quote(f"{_BIN}.b"))]
    if len(cut.left) * len(cut.build) > 1:
        bins.append(F.col(quote(f"{_BIN}.l.class")) == F.col(quote(f"{_BIN}.b.class")))
    if not left.point and not build.point:
        first = F.greatest(F.col(quote(f"{_FIRST}.l")), F.col(quote(f"{_FIRST}.b")))
        bins.append(F.col(quote(f"{_BIN}.l")) == first)
    build_frame = with_hit(binned_build)
    if cut.copies <= BROADCAST_ROWS:
        build_frame = build_frame.hint("broadcast")
    joined = binned_left.join(build_frame, sides.condition(*sides.equal(), *bins), sides.how)
    return sides.sort_out(joined, repeated=repeated)


def _axis(frame: DataFrame, prefix: str, numbers: list[int], point: bool) -> Axis:
    found = [axis_of_column(frame, f"{prefix}{number}") for number in numbers]
    return Axis((found[0].text, found[1].text), all(value.whole for value in found), point)


def _floating(axis: Axis) -> Axis:
    ends = tuple(f"CAST({end} AS DOUBLE)" for end in axis.ends)
    return Axis((ends[0], ends[1]), False, axis.point)


# ---------------------------------------------------------------- how to cut


@dataclass(frozen=True)
class _Lengths:
    """What a look at the spans of one side finds. Only records that have a place on the axis count."""

    rows: int
    bits: dict[int, int]
    """How many there are of each length, as a power of two."""
    low: float
    high: float
    keys: int
    """How many different equal keys there are; 0 when nobody asked."""


def _measure(node: CombinePlan, sides: Sides, left: Axis, build: Axis) -> Cut | None:
    """Look at the lengths of the intervals. Points need no look. None: bins would not pay."""
    found = _lengths(sides.build, build, sides.build_keys)
    if found.keys and found.rows / found.keys <= FEW_PER_KEY:
        return None
    estimate = node.probe_estimate
    lookups = estimate.rows if estimate is not None else 10 * found.rows
    low, high = found.low, found.high
    left_classes = build_classes = [LengthClass(POINT, POINT)]
    if not left.point:
        other = _lengths(sides.left, left, [])
        lookups, low, high = other.rows, min(low, other.low), max(high, other.high)
        left_classes = choose_classes(other.bits, max(found.rows, 1), high - low)
    if not build.point:
        build_classes = choose_classes(found.bits, max(lookups, 1), high - low)
    reach = max(abs(low), abs(high))
    left_classes, build_classes = _coarse(left_classes, reach), _coarse(build_classes, reach)
    copies = 0
    for bits, count in found.bits.items():
        mine = next((c.width for c in build_classes if bits <= c.longest), build_classes[-1].width)
        for other_class in left_classes:
            copies += count * (2 ** max(0, min(bits - max(mine, other_class.width), 40)) + 1)
    return Cut(left_classes, build_classes, copies)


def _coarse(classes: list[LengthClass], reach: float) -> list[LengthClass]:
    """No finer than a bin can be counted: its number must fit 62 bits."""
    finest = math.ceil(math.log2(reach)) - 61 if reach > 0 else POINT
    return [LengthClass(c.longest, max(c.width, finest)) for c in classes]


def _lengths(frame: DataFrame, axis: Axis, keys: list[str]) -> _Lengths:
    there = frame.where(F.expr(f"{axis.low} IS NOT NULL AND {axis.high} IS NOT NULL"))
    ends = [
        F.min(F.expr(f"CAST({axis.low} AS DOUBLE)")).alias("low"),
        F.max(F.expr(f"CAST({axis.high} AS DOUBLE)")).alias("high"),
    ]
    rows = there.groupBy(F.expr(axis.bits).alias("bits")).agg(F.count(F.lit(1)).alias("n"), *ends).collect()
    distinct = 0
    if keys:
        key = F.struct(*[F.col(quote(name)) for name in keys])
        counted = there.agg(F.approx_count_distinct(key).alias("d")).first()
        distinct = counted["d"] if counted is not None else 0
    bits = {row["bits"]: row["n"] for row in rows}
    low, high = min((r["low"] for r in rows), default=0.0), max((r["high"] for r in rows), default=0.0)
    return _Lengths(sum(bits.values()), bits, low, high, distinct)


# ---------------------------------------------------------------- bins as columns


def _binned(
    frame: DataFrame, axis: Axis, mine: list[LengthClass], others: list[LengthClass], *, mine_first: bool
) -> DataFrame:
    """One row for each bin of each record; records without a place on the axis keep one row without a bin."""
    side = "b" if mine_first else "l"
    own = "0"
    if len(mine) > 1:
        cases = " ".join(f"WHEN {axis.bits} <= {c.longest} THEN {i}" for i, c in enumerate(mine[:-1]))
        own = f"CASE {cases} ELSE {len(mine) - 1} END"
    frame = frame.withColumn(f"{JOIN_PREFIX}own", F.expr(own))
    number = quote(f"{JOIN_PREFIX}own")
    arrays = []
    for j, other in enumerate(others):
        widths = [max(c.width, other.width) for c in mine]
        width = str(widths[0])
        if len(set(widths)) > 1:
            width = f"CASE {number} {' '.join(f'WHEN {i} THEN {w}' for i, w in enumerate(widths))} END"
        low, high = _bin(axis.low, width, axis.whole), _bin(axis.high, width, axis.whole)
        pair = f"{number} * {len(others)} + {j}" if mine_first else f"{j} * {len(mine)} + {number}"
        bins = f"array({low})" if axis.point else f"sequence({low}, {high})"
        arrays.append(f"transform({bins}, x -> named_struct('class', {pair}, 'bin', x, 'first', {low}))")
    if len(arrays) == 1 and axis.point and len(mine) == 1:
        low = _bin(axis.low, str(max(mine[0].width, others[0].width)), axis.whole)
        made = {f"{_BIN}.{side}": F.expr(low), f"{_BIN}.{side}.class": F.lit(0), f"{_FIRST}.{side}": F.expr(low)}
        return frame.withColumns(made).drop(f"{JOIN_PREFIX}own")
    listed = arrays[0] if len(arrays) == 1 else f"concat({', '.join(arrays)})"
    there = f"{axis.low} IS NOT NULL AND {axis.high} IS NOT NULL"
    exploded = frame.withColumn(f"{JOIN_PREFIX}bins", F.explode_outer(F.expr(f"CASE WHEN {there} THEN {listed} END")))
    item = quote(f"{JOIN_PREFIX}bins")
    made = {
        f"{_BIN}.{side}": F.expr(f"{item}.bin"),
        f"{_BIN}.{side}.class": F.expr(f"{item}.class"),
        f"{_FIRST}.{side}": F.expr(f"{item}.first"),
    }
    return exploded.withColumns(made).drop(f"{JOIN_PREFIX}bins", f"{JOIN_PREFIX}own")


def _bin(x: str, width: str, whole: bool) -> str:
    """The bin of a number: its quotient by 2**width, rounded down. It never goes down where the number goes up."""
    if whole:
        return f"shiftright({x}, least({width}, 62))"
    scaled = f"floor({x} * pow(2D, -({width})))"
    return f"CAST(greatest(least({scaled}, 9e18D), -9e18D) AS BIGINT)"
