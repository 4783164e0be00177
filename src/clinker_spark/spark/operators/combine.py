"""Combines: the records of the probe side look up their matches, step by step; then the program runs on each pair.

Inside, columns are named `input.column`. Both sides of a step get their keys as columns first, so that every way to
join compares the same values and gives the same records.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from clinker_spark.core.types import ANY
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN, ERROR_TYPE
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import (
    ARRAY_PREFIX,
    BUILT_COLUMN,
    CK_PREFIX,
    JOIN_PREFIX,
    MATCHED_PREFIX,
    ORIGIN_COLUMN,
)
from clinker_spark.plan.ledger import Flow
from clinker_spark.plan.memory import held_whole
from clinker_spark.plan.nodes.combine import ADAPTIVE, COLLECT_LIMIT, CombinePlan, CombineStep
from clinker_spark.spark.build.counting import Tap
from clinker_spark.spark.build.stream import Stream
from clinker_spark.spark.columns.programs import apply
from clinker_spark.spark.columns.select import named, select_sql
from clinker_spark.spark.joins.as_of import join_latest
from clinker_spark.spark.joins.build_side import build_side, qualified
from clinker_spark.spark.joins.flow import matched
from clinker_spark.spark.joins.names import BUILD, LEFT, place_column
from clinker_spark.spark.joins.range import join_range
from clinker_spark.spark.joins.sides import HIT, Sides, array_column, with_left_keys, with_residual

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


PART_BYTES = 16 << 20
"""About how much of a build one task of a grace hash join holds."""
MISS = "combine_miss"
"""The kind of error of a record without a match, where that is one."""
ONE_TASK = "one_task"
"""Both sides of a join are in one task: a hash table of the build is made there, and the left side keeps its order."""
HINTS = {
    "broadcast": "broadcast",
    "grace_hash": "shuffle_hash",
    "sort_merge": "merge",
    "nested_loop": "broadcast",
    ONE_TASK: "shuffle_hash",
}


def build_combine(builder: Builder, node: CombinePlan) -> Stream:
    """The driver's records with their matches, as the program makes them."""
    streams = dict(zip(node.qualifiers, builder.inputs(node), strict=True))
    probe = streams[node.probe_name]
    left = probe.over(builder.with_file_values(node, qualified(probe.frame, node.probe_name)))
    for step in node.steps:
        left = _join(builder, node, step, left, streams[step.build])
    left = left.over(_with_correlation(builder, node, left.frame))
    result, flow = (_collected(node, left.frame), left.flow) if node.program is None else _shaped(builder, node, left)
    stream = Stream(result, probe.in_place and node.order_preserving, probe.route, flow, left.carried)
    return builder.mark(node, stream)


def _with_correlation(builder: Builder, node: CombinePlan, frame: DataFrame) -> DataFrame:
    """The correlation columns that the result carries: those of the probe side, or else of the matched record."""
    wanted = builder.plan.facts.correlation.keys[node.name].columns
    names = [n for n in frame.columns if not n.startswith((CK_PREFIX, MATCHED_PREFIX, BUILT_COLUMN)) or n in wanted]
    columns = [quote(name) for name in names]
    for name in (name for name in wanted if name not in frame.columns):
        options = [f"{MATCHED_PREFIX}{step.build}.{name}" for step in node.steps]
        there = [quote(option) for option in options if option in frame.columns]
        if there:
            columns.append(named(f"coalesce({', '.join(there)})", name))
    return select_sql(frame, [*columns, *_built_of(frame)])


def _built_of(frame: DataFrame) -> list[str]:
    """Where the matched records were read, added to what is known already."""
    origins = [n for n in frame.columns if n.startswith(MATCHED_PREFIX) and n.endswith(ORIGIN_COLUMN)]
    if not origins:
        return []
    built = f"filter(array({', '.join(map(quote, origins))}), origin -> origin.source IS NOT NULL)"
    before = f"{quote(BUILT_COLUMN)}, " if BUILT_COLUMN in frame.columns else ""
    return [named(f"concat({before}{built})", BUILT_COLUMN)]


def _join(builder: Builder, node: CombinePlan, step: CombineStep, left: Stream, build: Stream) -> Stream:
    """One step: the left side with the columns of the build, all null for a miss."""
    left = with_left_keys(builder, node, step, left)
    sides = Sides(left.frame, build_side(builder, node, step, build), step, node.match, node.on_miss)
    sides = with_residual(builder, node, sides)
    strategy = _strategy(builder, node, step)
    if strategy == "latest":
        joined = join_latest(sides, node.config)
    elif strategy == "range":
        joined = join_range(builder, node, sides)
    else:
        joined = _plain(sides, strategy, ahead=step.build in builder.plan.facts.resources.ahead.get(node.name, ()))
    if node.on_miss == "error":
        joined = _fail_misses(joined, node, step)
    elif node.on_miss == "skip" and node.match == "collect":
        joined = joined.where(~_no_matches(step))
    return replace(
        left.over(_with_order(joined, node, step)), flow=matched(builder, node, step, left.flow), pushes=False
    )


def _strategy(builder: Builder, node: CombinePlan, step: CombineStep) -> str:
    """That of the plan, unless another one is forced and possible."""
    forced = builder.run.forced_join
    if builder.run.small and forced is None and step.equalities and step.strategy in HINTS | {"adaptive": ""}:
        return ONE_TASK
    possible = {"nested_loop"}
    if step.equalities:
        possible |= {"broadcast", "grace_hash", "sort_merge", "adaptive"}
    if step.strategy == "range":
        possible.add("range")
    if forced in possible and step.strategy != "latest":
        return forced
    return "broadcast" if step.strategy == ADAPTIVE and _is_little(builder, node, step) else step.strategy


def _is_little(builder: Builder, node: CombinePlan, step: CombineStep) -> bool:
    """Now that its files are known: can every task hold what is looked up?"""
    name = node.inputs[node.qualifiers.index(step.build)].node
    before = builder.plan.up_to([name])
    if any(part.multiplies for part in before if part.inputs):
        return False
    files = builder.run.files
    sources = [source for source in builder.plan.sources if source in before]
    if any(source.name not in files for source in sources):
        return False
    size = sum(source.unpacked(file.origin, file.size) for source in sources for file in files[source.name])
    return size <= held_whole(builder.plan.memory_limit)


def _plain(sides: Sides, strategy: str, *, ahead: bool) -> DataFrame:
    """A join by equal keys, or of every record with every other. What else must hold is part of its condition. A build
    that is made first goes `ahead`: a task sorts its left side before it begins the right one."""
    build = sides.build
    once = sides.match != "all" and not sides.by_probe
    if once:
        build = _one_of_each_key(build, sides)
    build = build.withColumn(HIT, F.lit(True))
    left = sides.left
    if strategy == "grace_hash":
        left, build = _in_small_parts(sides, build)
    hint = HINTS.get(strategy)
    if hint is not None:
        build = build.hint(hint)
    if ahead and sides.how == "inner" and strategy in ("sort_merge", "adaptive"):
        left, build = build, left
    joined = left.join(build, sides.condition(*sides.equal()), sides.how)
    return joined if once else sides.sort_out(joined, repeated=False)


def _in_small_parts(sides: Sides, build: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Both sides sent to tasks by key. Each holds its part of the build, so a large one needs many parts."""
    found = sides.step.estimate
    usual = int(build.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    parts = 0 if found is None else math.ceil(found.bytes / PART_BYTES)
    if parts <= usual:
        return sides.left, build
    keys = range(len(sides.step.equalities))
    left = sides.left.repartition(parts, *[F.col(quote(f"{LEFT}{i}")) for i in keys])
    return left, build.repartition(parts, *[F.col(quote(f"{BUILD}{i}")) for i in keys])


def _one_of_each_key(build: DataFrame, sides: Sides) -> DataFrame:
    """The first record of each key, or all of them as an array.

    Spark joins what a window leaves without moving it once more."""
    keys = [quote(name) for name in sides.build_keys]
    most = 1 if sides.match == "first" else COLLECT_LIMIT
    number = f"{JOIN_PREFIX}n"
    window = f"PARTITION BY {', '.join(keys) or '1'} ORDER BY {quote(sides.place)}"
    there = build.where(" AND ".join(["TRUE", *(f"{key} IS NOT NULL" for key in keys)]))
    kept = there.withColumn(number, F.expr(f"row_number() OVER ({window})")).where(f"{quote(number)} <= {most}")
    kept = kept.drop(number)
    if sides.match == "first":
        return kept
    return kept.groupBy(*[F.col(key) for key in keys]).agg(
        sides.matches().alias(sides.array), *sides.matched_keys(kept).values()
    )


def _fail_misses(frame: DataFrame, node: CombinePlan, step: CombineStep) -> DataFrame:
    message = f"no record of '{step.build}' matches"
    error = f"named_struct('kind', {sql_string(MISS)}, 'field', NULL, 'value', NULL, 'message', {sql_string(message)})"
    missing = _no_matches(step) if node.match == "collect" else F.col(quote(HIT)).isNull()
    found = F.when(missing, F.expr(f"CAST({error} AS {ERROR_TYPE})"))
    known = F.coalesce(F.col(quote(ERROR_COLUMN)), found) if ERROR_COLUMN in frame.columns else found
    return frame.withColumn(ERROR_COLUMN, known)


def _no_matches(step: CombineStep) -> Column:
    return F.coalesce(F.size(quote(array_column(step))), F.lit(0)) == 0


def _with_order(frame: DataFrame, node: CombinePlan, step: CombineStep) -> DataFrame:
    """Without what only the join needed. The order of the pairs is that of the probe side, then that of the build."""
    names = [name for name in frame.columns if not name.startswith(JOIN_PREFIX) and name != ARRIVAL_COLUMN]
    columns = [quote(name) for name in names]
    if ARRIVAL_COLUMN in frame.columns:
        arrival = quote(ARRIVAL_COLUMN)
        if node.match == "all":
            if not isinstance(frame.schema[ARRIVAL_COLUMN].dataType, ArrayType):
                arrival = f"array({arrival})"
            arrival = f"concat({arrival}, coalesce({quote(place_column(step.build))}, CAST(array() AS ARRAY<BIGINT>)))"
        columns.append(named(arrival, ARRIVAL_COLUMN))
    return select_sql(frame, columns)


def _shaped(builder: Builder, node: CombinePlan, left: Stream) -> tuple[DataFrame, Flow]:
    """What the program makes of each pair, and how many it keeps."""
    assert node.program is not None
    tap = Tap(builder, node, left)
    frame = apply(node.program, left.frame, context=builder.context(node), counter=tap)
    hidden = [name for name in frame.columns if name.startswith("$") and name not in node.schema]
    result = select_sql(frame, [quote(name) for name in (*node.schema, *hidden)])
    if node.config.max_output_rows is not None and not builder.finds:
        result = builder.metrics.count(f"{node.name}.pairs", result, pairs=F.count(F.lit(1)))
    return result, tap.flow


def _collected(node: CombinePlan, frame: DataFrame) -> DataFrame:
    """The driver's columns, and an array of maps for each build, which replaces a column of its name."""
    columns = {
        name: F.col(quote(f"{node.probe_name}.{name}")).alias(name)
        for name in node.schemas[node.probe_name]
        if f"{node.probe_name}.{name}" in frame.columns
    }
    for step in node.steps:
        empty = F.expr(f"CAST(array() AS ARRAY<MAP<STRING, {physical(ANY)}>>)")
        columns[step.build] = F.coalesce(F.col(quote(array_column(step))), empty).alias(step.build)
    hidden = [name for name in frame.columns if name.startswith("$") and not name.startswith(ARRAY_PREFIX)]
    return frame.select(*columns.values(), *[F.col(quote(name)) for name in hidden])
