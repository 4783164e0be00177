"""Groups that are held back: which records belong to them, and which source records they were made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.correlation import PREFIX, Keys, key_columns
from clinker_spark.plan.nodes import AggregatePlan, OutputPlan, Plan, SourcePlan, StreamRef
from clinker_spark.spark.operators.stream import (
    BUILT_TYPE,
    FROM_COLUMN,
    GROUP_PREFIX,
    LETTER_COLUMN,
    ORIGIN_COLUMN,
    Stream,
    failed,
)

if TYPE_CHECKING:
    from clinker_spark.spark.operators.build import Builder

HELD = "$held"
CORRELATED = "correlated"
OVERSIZE = "group_size_exceeded"


def with_held(builder: Builder, node: OutputPlan, stream: Stream) -> Stream:
    """The records of an output with `$held`: does one of their groups have a failure?

    A record belongs to the group of each source it was made of. `any` holds it back for each of them, `all` only if
    all its keys are those of the failure, `primary` only if the first one is. A record that was read from one source
    is spared when only another source failed."""
    keys = builder.plan.keys[node.inputs[0].node]
    if builder.all_held:
        return stream.over(stream.frame.withColumn(HELD, F.lit(True)))
    if builder.dirty is None or not keys.own:
        return stream
    policy = node.config.correlation_fanout_policy or builder.plan.file.error_handling.correlation_fanout_policy
    frame = stream.frame
    marks: list[str] = []
    for source in builder.plan.sources:
        own = [name for name in key_columns(source) if name in keys.own]
        if source.name not in keys.sources or not own:
            continue
        also = {"any": (), "all": keys.own, "primary": keys.own[:1]}[policy]
        columns = list(dict.fromkeys((*own, *also)))
        mark = f"$held.{source.index}"
        names = [f"$dirty.{source.index}.{i}" for i in range(len(columns))]
        dirty = builder.dirty.where(F.col("source") == source.index)
        dirty = dirty.select(*[F.col("keys")[key].alias(name) for key, name in zip(columns, names, strict=True)])
        dirty = dirty.where(reduce(Column.__and__, [F.col(quote(name)).isNotNull() for name in names[: len(own)]]))
        dirty = dirty.distinct().withColumn(mark, F.lit(True))
        same: Column = F.lit(True)
        for key, name in zip(columns, names, strict=True):
            left, right = F.col(quote(key)).cast("string"), F.col(quote(name))
            same = same & (left == right if key in own else left.eqNullSafe(right))
        if keys.single and len(keys.sources) > 1:
            same = same & (F.col(quote(FROM_COLUMN)) == source.index)
        frame = frame.join(dirty.hint("broadcast") if builder.few else dirty, same, "left").drop(*names)
        marks.append(mark)
    held = reduce(Column.__or__, [F.col(quote(mark)).isNotNull() for mark in marks], F.lit(False))
    return replace(stream.over(frame.withColumn(HELD, held)), in_place=stream.in_place and builder.few)


def dirty_groups(plan: Plan, letters: DataFrame) -> DataFrame:
    """The groups of failed records: `source` and `keys`. What was made of several sources stands once for each."""
    several: list[Column] = []
    for i, node in enumerate(plan.nodes):
        keys = _keys_at(plan, i)
        before = plan.keys[node.inputs[0].node] if isinstance(node, AggregatePlan) else keys
        single = F.array(F.col("source"))
        indexes = [source.index for source in plan.sources if source.name in keys.sources]
        all_of = F.array(*[F.lit(index) for index in indexes]).cast("array<int>")
        contributed = single if keys.single else all_of
        if isinstance(node, AggregatePlan) and before.single:
            contributed = F.when(F.col("source").isNotNull(), single).otherwise(all_of)
        several.append(contributed)
    sources = F.element_at(F.array(*several), F.col("stage") + 1)
    exploded = letters.where(F.size("keys") > 0).select(F.explode(sources).alias("source"), "keys")
    return exploded.where(F.col("source").isNotNull())


def _keys_at(plan: Plan, stage: int) -> Keys:
    node = plan.nodes[stage]
    return plan.keys[node.inputs[0].node] if isinstance(node, OutputPlan) else plan.keys[node.name]


def contributions(builder: Builder, ids: DataFrame, aggregates: Iterable[str]) -> DataFrame | None:
    """The source records behind groups of some aggregates. `ids` has the column `groups`: aggregate -> group.

    Columns: source, file, row, stage, letter, keys. None: nothing was made of groups."""
    plan = builder.plan
    wanted = {name: [_ids(ids, name)] for name in aggregates}
    found: list[DataFrame] = []
    for stage, node in reversed(list(enumerate(plan.nodes))):
        if node.name not in wanted or node.name not in builder.contributions:
            continue
        rows = builder.contributions[node.name]
        chosen = reduce(DataFrame.union, wanted[node.name]).distinct()
        rows = rows.join(chosen, F.col(quote(GROUP_PREFIX + node.name)) == F.col("$id"), "left_semi")
        found.append(source_records(rows, stage))
        for name in rows.columns:
            upper = name.removeprefix(GROUP_PREFIX)
            if name.startswith(GROUP_PREFIX) and upper != node.name:
                wanted.setdefault(upper, []).append(
                    rows.select(F.col(quote(name)).alias("$id")).where("`$id` IS NOT NULL")
                )
    return reduce(DataFrame.unionByName, found) if found else None


def _ids(ids: DataFrame, aggregate: str) -> DataFrame:
    return ids.select(F.col("groups")[aggregate].alias("$id")).where("`$id` IS NOT NULL")


def source_records(frame: DataFrame, stage: int) -> DataFrame:
    """The records as they were read, those of sources only."""
    origin = F.col(quote(ORIGIN_COLUMN))
    return frame.where(origin["source"].isNotNull()).select(
        origin["source"].alias("source"),
        origin["file"].alias("file"),
        origin["row"].alias("row"),
        F.lit(stage).alias("stage"),
        F.col(quote(LETTER_COLUMN)).alias("letter"),
        text_map(frame, PREFIX).alias("keys"),
    )


def text_map(frame: DataFrame, prefix: str) -> Column:
    """The hidden columns with a prefix as a map of texts; those of aggregates by their names."""
    names = [name for name in frame.columns if name.startswith(prefix)]
    pairs: list[Column] = []
    for name in names:
        key = name.removeprefix(prefix) if prefix == GROUP_PREFIX else name
        pairs += [F.lit(key), F.col(quote(name)).cast("string")]
    made = F.create_map(*pairs) if pairs else F.create_map()
    return F.map_filter(made.cast("map<string,string>"), lambda _, value: value.isNotNull())


def group_text(keys: Column) -> Column:
    """`order_id=O1, line=2` of a map of keys."""
    entries = F.transform(
        F.map_entries(keys), lambda e: F.concat(F.substring(e["key"], 5, 1000), F.lit("="), e["value"])
    )
    return F.array_join(F.array_sort(entries), ", ")


def retracted_message(plan: Plan) -> Column:
    """Why a record was taken back: which aggregate failed."""
    names = F.array(*[F.lit(node.name) for node in plan.nodes])
    name = F.element_at(names, F.col("stage") + 1)
    return F.concat(F.lit("correlated with failure in group: taken back with a record of '"), name, F.lit("'"))


def held_message() -> Column:
    return F.concat(F.lit("correlated with failure in group "), group_text(F.col("keys")))


def correlated_letters(frame: DataFrame, message: Column, category: str = CORRELATED) -> DataFrame:
    """Source records that did not fail themselves, as dead letters."""
    none = F.lit(None).cast("string")
    trigger = F.col("trigger") if "trigger" in frame.columns else F.lit(False)
    return frame.select(
        *("source", "file", "row", "stage"),
        none.alias("route"),
        F.when(trigger, F.lit(category)).otherwise(F.lit(CORRELATED)).alias("category"),
        none.alias("field"),
        none.alias("value"),
        message.alias("message"),
        "letter",
        F.array().cast("array<bigint>").alias("tie"),
        "keys",
        F.create_map().cast("map<string,string>").alias("groups"),
        trigger.alias("trigger"),
        F.array().cast(BUILT_TYPE).alias("built"),
    )


def held_records(builder: Builder) -> DataFrame | None:
    """What is held back at outputs, as the source records it was made of."""
    found: list[DataFrame] = []
    groups: list[DataFrame] = []
    names: set[str] = set()
    for frame, node, _ in builder.held:
        found.append(source_records(frame, builder.plan.nodes.index(node)))
        made = frame.where(F.col(quote(ORIGIN_COLUMN))["source"].isNull())
        groups.append(made.select(text_map(frame, GROUP_PREFIX).alias("groups")))
        names |= {name.removeprefix(GROUP_PREFIX) for name in frame.columns if name.startswith(GROUP_PREFIX)}
    if not found:
        return None
    behind = contributions(builder, reduce(DataFrame.union, groups), names)
    if behind is not None:
        found.append(_without_spared(builder, behind))
    return correlated_letters(reduce(DataFrame.unionByName, found), held_message())


def _without_spared(builder: Builder, rows: DataFrame) -> DataFrame:
    """The records behind totals that are held back, without those that were written everywhere else: a record of a
    source that did not fail is no dead letter when it reached every output that writes records themselves."""
    plan = builder.plan
    keyed = [source for source in plan.sources if key_columns(source)]
    if builder.dirty is None or len(keyed) < 2:
        return rows
    for source in keyed:
        ends = [
            end
            for end in plan.outputs
            if (keys := plan.keys[end.inputs[0].node]).own and keys.single and source.name in keys.sources
        ]
        if not ends:
            continue
        dirty = builder.dirty.where(F.col("source") == source.index)
        dirty = dirty.select(*[F.col("keys")[name].alias(f"$dirty.{i}") for i, name in enumerate(key_columns(source))])
        same = [F.col("keys")[name] == F.col(quote(f"$dirty.{i}")) for i, name in enumerate(key_columns(source))]
        spared = rows.where(F.col("source") == source.index).select("source", "file", "row", "keys")
        spared = spared.join(dirty, reduce(Column.__and__, same), "left_anti").drop("keys").distinct()
        for end in ends:
            stream = builder.stream(end.inputs[0])
            origin = F.col(quote(ORIGIN_COLUMN))
            passed = stream.frame.where(~failed()) if stream.fallible else stream.frame
            reached = passed.select(*[origin[name].alias(name) for name in ("source", "file", "row")])
            spared = spared.join(reached, ["source", "file", "row"], "left_semi")
        rows = rows.join(spared, ["source", "file", "row"], "left_anti")
    return rows


def failed_places(builder: Builder, source: SourcePlan) -> DataFrame:
    """Where the failed records of a source stand (`file`, `row`), and the values of their keys (`k0`, `k1`...)."""
    origin = F.col(quote(ORIGIN_COLUMN))
    keys = [F.col(quote(name)).alias(f"k{i}") for i, name in enumerate(key_columns(source))]
    places = [origin["file"].alias("file"), origin["row"].alias("row"), *keys]
    return reduce(DataFrame.union, [frame.select(*places) for frame, _, _ in builder.failures])


def once_each(others: DataFrame, triggers: DataFrame) -> DataFrame:
    """Each record once, and none that failed itself."""
    place = ["source", "file", "row"]
    rest = others.join(triggers.select(*place).distinct(), place, "left_anti")
    window = Window.partitionBy(*place).orderBy("stage", "message")
    return rest.withColumn("$n", F.row_number().over(window)).where("`$n` = 1").drop("$n").select(*others.columns)


def group_members(builder: Builder, dirty: DataFrame) -> DataFrame | None:
    """All records of groups, each within its source."""
    found: list[DataFrame] = []
    for node in builder.plan.sources:
        keys = key_columns(node)
        if not keys:
            continue
        frame = builder.stream(StreamRef(node.name)).frame
        mine = dirty.where(F.col("source") == node.index)
        mine = mine.select(*[F.col("keys")[name].alias(f"$dirty.{i}") for i, name in enumerate(keys)]).distinct()
        same = [F.col(quote(name)).cast("string") == F.col(quote(f"$dirty.{i}")) for i, name in enumerate(keys)]
        members = frame.join(mine, reduce(Column.__and__, same), "left_semi")
        found.append(source_records(members, builder.plan.nodes.index(node)))
    return correlated_letters(reduce(DataFrame.unionByName, found), held_message()) if found else None


def has_oversize_group(builder: Builder, node: SourcePlan, most: int) -> bool:
    """Does any group of a source have more records than it may?"""
    frame = builder.stream(StreamRef(node.name)).frame
    keys = [F.col(quote(name)) for name in key_columns(node)]
    there = reduce(Column.__and__, [key.isNotNull() for key in keys])
    counts = frame.where(there).groupBy(*[key.cast("string") for key in keys]).count()
    return not counts.where(F.col("count") > most).isEmpty()


def oversize_letters(builder: Builder, source: str, most: int) -> DataFrame:
    """The records of groups that have more than they may; the first of each is the trigger."""
    node = next(s for s in builder.plan.sources if s.name == source)
    frame = builder.stream(StreamRef(source)).frame
    keys = [F.col(quote(name)) for name in key_columns(node)]
    window = Window.partitionBy(*[key.cast("string") for key in keys])
    there = reduce(Column.__and__, [key.isNotNull() for key in keys])
    counted = frame.where(there).withColumn("$size", F.count(F.lit(1)).over(window))
    counted = counted.where(F.col(quote("$size")) > most)
    numbered = counted.withColumn("$number", F.row_number().over(window.orderBy(F.col(quote(ORIGIN_COLUMN)))))
    rows = numbered.select(
        *[F.col(quote(ORIGIN_COLUMN))[name].alias(name) for name in ("source", "file", "row")],
        F.lit(builder.plan.nodes.index(node)).alias("stage"),
        F.col(quote(LETTER_COLUMN)).alias("letter"),
        text_map(numbered, PREFIX).alias("keys"),
        (F.col(quote("$number")) == 1).alias("trigger"),
        F.col(quote("$size")).alias("size"),
    )
    group = group_text(F.col("keys"))
    size = F.concat(
        F.lit("group "), group, F.lit(" has "), F.col("size").cast("string"), F.lit(f" records, more than {most}")
    )
    return correlated_letters(rows, F.when(F.col("trigger"), size).otherwise(held_message()), OVERSIZE)
