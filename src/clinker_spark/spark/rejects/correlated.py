"""Source records behind what failed or is withheld: what totals were made of, and what reached an output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.hidden import ERROR_COLUMN, RANK_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import (
    BUILT_TYPE,
    CK_AGGREGATE_PREFIX,
    CK_PREFIX,
    FAMILY_COLUMN,
    GROUP_PREFIX,
    HELD_COLUMN,
    ID_COLUMN,
    LETTER_COLUMN,
    NUMBER_COLUMN,
    ORIGIN_COLUMN,
    SIZE_COLUMN,
    UNTRACED,
)
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode, StreamRef
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.spark.build.stream import failed
from clinker_spark.spark.columns.select import select_sql
from clinker_spark.spark.rejects.dirty_groups import key_sql, key_text, writes_records_of

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder
    from clinker_spark.spark.rejects.collected import Diverted


CORRELATED = "correlated"
OVERSIZE = "group_size_exceeded"
TAKEN_MESSAGE = "correlated with failure in group: retracted with a record of '{}'"
DOCUMENT = "document_rejected"
DOCUMENT_MESSAGE = "a record of the same file failed: all of its records are set aside"
HELD_MESSAGE = "correlated with failure in group {}"
OVERSIZE_MESSAGE = "group {} has {} records, more than {}"


def contributions(builder: Builder, totals: Mapping[str, Sequence[str] | DataFrame]) -> DataFrame | None:
    """The source records behind groups of some aggregates: a list of them, or a DataFrame with the column `groups`:
    aggregate -> group.

    Columns: source, file, row, stage, letter, keys. None: nothing was made of groups."""
    plan = builder.plan
    listed = {name: ids for name, ids in totals.items() if not isinstance(ids, DataFrame)}
    wanted = {name: [_ids(ids, name)] if isinstance(ids, DataFrame) else [] for name, ids in totals.items()}
    found: list[DataFrame] = []
    for stage, node in reversed(list(enumerate(plan.nodes))):
        if node.name not in wanted or node.name not in builder.rejects.contributions:
            continue
        rows = builder.rejects.contributions[node.name]
        group = F.col(quote(GROUP_PREFIX + node.name))
        if wanted[node.name]:
            chosen = wanted[node.name]
            if node.name in listed:
                chosen = [*chosen, rows.where(group.isin(list(listed[node.name]))).select(group.alias(ID_COLUMN))]
            rows = rows.join(reduce(DataFrame.union, chosen).distinct(), group == F.col(ID_COLUMN), "left_semi")
        else:
            rows = rows.where(group.isin(list(listed[node.name])))
        found.append(source_records(rows, stage))
        for name in rows.columns:
            upper = name.removeprefix(GROUP_PREFIX)
            if name.startswith(GROUP_PREFIX) and upper != node.name:
                wanted.setdefault(upper, []).append(
                    rows.select(F.col(quote(name)).alias(ID_COLUMN)).where(F.col(ID_COLUMN).isNotNull())
                )
    return reduce(DataFrame.unionByName, found) if found else None


def _ids(ids: DataFrame, aggregate: str) -> DataFrame:
    return ids.select(F.col("groups")[aggregate].alias(ID_COLUMN)).where(F.col(ID_COLUMN).isNotNull())


def source_records(frame: DataFrame, stage: int) -> DataFrame:
    """The records as they were read, those of sources only."""
    origin = quote(ORIGIN_COLUMN)
    columns = [f"{origin}.{name} AS {name}" for name in ("source", "file", "row")]
    columns += [f"{stage} AS stage", f"{quote(LETTER_COLUMN)} AS letter", f"{text_map(frame, CK_PREFIX)} AS keys"]
    return select_sql(frame.where(f"{origin}.source IS NOT NULL"), columns)


def text_map(frame: DataFrame, prefix: str) -> str:
    """SQL for the hidden columns with a prefix as a map of texts: keys, also those that are null; or groups, by the
    names of their aggregates, without those that nothing can be retracted for. The numbers of totals are no keys."""
    names = [name for name in frame.columns if name.startswith(prefix) and not name.startswith(CK_AGGREGATE_PREFIX)]
    pairs: list[str] = []
    for name in names:
        key = name.removeprefix(prefix) if prefix == GROUP_PREFIX else name
        pairs += [sql_string(key), key_sql(frame, name)]
    made = f"CAST(map({', '.join(pairs)}) AS MAP<STRING, STRING>)"
    if not pairs or prefix != GROUP_PREFIX:
        return made
    return f"map_filter({made}, (name, text) -> NOT startswith(text, '{UNTRACED}'))"


def group_text(keys: Column) -> Column:
    """`order_id=O1, line=2` of a map of keys."""
    entries = F.transform(
        F.map_entries(keys), lambda e: F.concat(F.substring(e["key"], 5, 1000), F.lit("="), e["value"])
    )
    return F.array_join(F.array_sort(entries), ", ")


def retracted_message(plan: Plan) -> Column:
    """Why a record was retracted: which aggregate failed."""
    names = F.array(*[F.lit(node.name) for node in plan.nodes])
    name = F.element_at(names, F.col("stage") + 1)
    return _said(TAKEN_MESSAGE, name)


def held_message() -> Column:
    return _said(HELD_MESSAGE, group_text(F.col("keys")))


def _said(message: str, *what: Column) -> Column:
    first, *rest = message.split("{}")
    return F.concat(
        F.lit(first), *[part for said, then in zip(what, rest, strict=True) for part in (said, F.lit(then))]
    )


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


def document_letters(builder: Builder, files: Iterable[tuple[int, int]]) -> DataFrame:
    """The records of some files (source and file), but for those that failed when they were read."""
    found: list[DataFrame] = []
    by_source: dict[int, list[int]] = {}
    for source, file in sorted(files):
        by_source.setdefault(source, []).append(file)
    for index, places in by_source.items():
        node = builder.plan.sources[index]
        stream = builder.stream(StreamRef(node.name))
        frame = stream.frame.where(~failed()) if stream.fallible else stream.frame
        mine = frame.where(F.col(quote(ORIGIN_COLUMN))["file"].isin(places))
        found.append(source_records(mine, builder.plan.nodes.index(node)))
    rows = reduce(DataFrame.unionByName, found)
    return correlated_letters(rows, F.lit(DOCUMENT_MESSAGE)).withColumn("category", F.lit(DOCUMENT))


def held_records(builder: Builder) -> DataFrame | None:
    """What is withheld at outputs, or left out of totals, as the source records it was made of."""
    found: list[DataFrame] = []
    groups: list[DataFrame] = []
    names: set[str] = set()
    if builder.rejects.left_out:
        found.append(_left_out(builder))
    found += [source_records(held.frame, builder.plan.nodes.index(held.node)) for held in builder.rejects.held]
    for frame in (*(held.frame for held in builder.rejects.held), *(frame for frame, _ in builder.rejects.left_out)):
        made = frame.where(F.col(quote(ORIGIN_COLUMN))["source"].isNull())
        groups.append(made.selectExpr(f"{text_map(frame, GROUP_PREFIX)} AS groups"))
        names |= {name.removeprefix(GROUP_PREFIX) for name in frame.columns if name.startswith(GROUP_PREFIX)}
    if not found:
        return None
    made_of = reduce(DataFrame.union, groups) if groups else None
    behind = None if made_of is None else contributions(builder, dict.fromkeys(names, made_of))
    if behind is not None:
        found.append(_without_spared(builder, behind))
    return correlated_letters(reduce(DataFrame.unionByName, found), held_message())


def _left_out(builder: Builder) -> DataFrame:
    """The records that totals were made without. One that was written itself, because a policy spares it, is no dead
    letter: a replay would write it again."""
    place = ["source", "file", "row"]
    origin = F.col(quote(ORIGIN_COLUMN))
    rows = [source_records(frame, builder.plan.nodes.index(node)) for frame, node in builder.rejects.left_out]
    found = reduce(DataFrame.unionByName, rows)
    kept = [held.reached.where(~F.col(quote(HELD_COLUMN))) for held in builder.rejects.held]
    written = [frame.select(*[origin[name].alias(name) for name in place]) for frame in kept]
    return found.join(reduce(DataFrame.union, written), place, "left_anti") if written else found


def _without_spared(builder: Builder, rows: DataFrame) -> DataFrame:
    """The records behind totals that are withheld, without those that were written all the same: a record of a source
    that did not fail is no dead letter when it reached an output that writes records themselves (see
    `runtime.rollback.evidence`)."""
    plan = builder.plan
    if builder.asked.retraction.withheld is None or len(plan.sources) < 2:
        return rows
    for source in plan.sources:
        ends = [end for end in plan.outputs if writes_records_of(plan, end, source)]
        if not ends:
            continue
        own = source.key_columns
        columns = [F.col("keys")[name].alias(name) for name in own]
        spared = rows.where(F.col("source") == source.index).select("source", "file", "row", *columns)
        spared, dirty = builder.asked.retraction.withheld.marked(spared, source, own)
        spared = spared if dirty is None else spared.where(~F.coalesce(dirty, F.lit(False)))
        spared = spared.select("source", "file", "row").distinct()
        reached = []
        for end in ends:
            stream = builder.stream(end.inputs[0])
            origin = F.col(quote(ORIGIN_COLUMN))
            passed = stream.frame.where(~failed()) if stream.fallible else stream.frame
            reached.append(passed.select(*[origin[name].alias(name) for name in ("source", "file", "row")]))
        spared = spared.join(reduce(DataFrame.union, reached), ["source", "file", "row"], "left_semi")
        rows = rows.join(spared, ["source", "file", "row"], "left_anti")
    return rows


def failed_places(places: Iterable[Diverted], keys: Sequence[str] = ()) -> DataFrame:
    """Where the failed records of some places of the plan stand (`source`, `file`, `row`), and the values of their keys
    (`k0`, `k1`...)."""
    origin = F.col(quote(ORIGIN_COLUMN))
    columns = [origin[name].alias(name) for name in ("source", "file", "row")]
    columns += [F.col(quote(name)).alias(f"k{i}") for i, name in enumerate(keys)]
    return reduce(DataFrame.union, [found.frame.select(*columns) for found in places])


def once_each(others: DataFrame, triggers: DataFrame) -> DataFrame:
    """Each record once, and none that failed itself."""
    place = ["source", "file", "row"]
    rest = others.join(triggers.select(*place).distinct(), place, "left_anti")
    window = Window.partitionBy(*place).orderBy("stage", "message")
    return (
        rest.withColumn(RANK_COLUMN, F.row_number().over(window))
        .where(F.col(RANK_COLUMN) == 1)
        .drop(RANK_COLUMN)
        .select(*others.columns)
    )


def has_large_group(builder: Builder, sources: Sequence[SourcePlan], most: int) -> bool:
    """Does any group of some sources, those with the same key taken together, have more records than it may?"""
    counts = [_keyed(builder.stream(StreamRef(node.name)).frame, node).groupBy("group").count() for node in sources]
    together = reduce(DataFrame.union, counts).groupBy("group").agg(F.sum("count").alias("count"))
    return not together.where(F.col("count") > most).isEmpty()


def _keyed(frame: DataFrame, node: SourcePlan) -> DataFrame:
    names = node.key_columns
    there = reduce(Column.__or__, [F.col(quote(name)).isNotNull() for name in names])
    texts = [key_text(frame, name) for name in names]
    return frame.where(there).select(F.array(*texts).alias("group"))


def oversize_letters(builder: Builder, most: int) -> DataFrame | None:
    """The records of groups of which more than `most` reach an output or a total; the first of each is the trigger.

    Records of merged sources with one key are one group. A record counts once, however many ways it takes."""
    plan = builder.plan
    reached = [
        source_records(frame.where(~failed()) if ERROR_COLUMN in frame.columns else frame, plan.nodes.index(node))
        for frame, node in _ends(builder)
    ]
    if not reached:
        return None
    place = ["source", "file", "row"]
    first = Window.partitionBy(*place).orderBy("stage")
    rows = (
        reduce(DataFrame.unionByName, reached)
        .withColumn(RANK_COLUMN, F.row_number().over(first))
        .where(F.col(RANK_COLUMN) == 1)
    )
    families = {
        plan.source(name).index: plan.source(found[0]).index for name, found in plan.facts.correlation.families.items()
    }
    if not families:
        return None
    family = reduce(
        lambda made, pair: made.when(F.col("source") == pair[0], pair[1]),
        families.items(),
        F.when(F.lit(False), F.lit(-1)),
    )
    as_read = F.map_filter(F.col("letter"), lambda name, _: name.startswith(CK_PREFIX))
    stages = F.array(*[F.lit(plan.nodes.index(node)) for node in plan.sources])
    read_at = F.element_at(stages, F.col("source") + 1)
    rows = rows.withColumns({FAMILY_COLUMN: family, "keys": as_read, "stage": read_at})
    values = F.map_values(F.col("keys"))
    rows = rows.where(F.col(FAMILY_COLUMN).isNotNull() & F.exists(values, lambda value: value.isNotNull()))
    window = Window.partitionBy(FAMILY_COLUMN, F.to_json(F.map_entries(F.col("keys"))))
    counted = rows.withColumn(SIZE_COLUMN, F.count(F.lit(1)).over(window)).where(F.col(SIZE_COLUMN) > most)
    numbered = counted.withColumn(NUMBER_COLUMN, F.row_number().over(window.orderBy(*place)))
    found = numbered.select(
        *place,
        "stage",
        "letter",
        "keys",
        (F.col(NUMBER_COLUMN) == 1).alias("trigger"),
        F.col(SIZE_COLUMN).alias("size"),
    )
    size = _said(OVERSIZE_MESSAGE, group_text(F.col("keys")), F.col("size").cast("string"), F.lit(str(most)))
    return correlated_letters(found, F.when(F.col("trigger"), size).otherwise(held_message()), OVERSIZE)


def _ends(builder: Builder) -> Iterator[tuple[DataFrame, PlanNode]]:
    """Where records end: at outputs, and in totals, or before totals that are made without them."""
    yield from builder.rejects.left_out
    for output in builder.plan.outputs:
        yield builder.stream(output.inputs[0]).frame, output
    for node in builder.plan.nodes:
        if node.name in builder.rejects.contributions:
            yield builder.rejects.contributions[node.name], node
