"""Groups with a failure, and the records that belong to them.

A group is known by the keys that the failed record had when it failed: those that a combine let pass. A record belongs
to it when both have the same values in the fields that both have, null included, unless all of them are null: a record
without a key is a group of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import CK_PREFIX, FROM_COLUMN, HELD_COLUMN, LEFT_OUT_COLUMN
from clinker_spark.plan.facts import Keys
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.ledger import WITHHELD_FROM, count
from clinker_spark.plan.nodes.aggregate import AggregatePlan
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.spark.operators.stream import Stream
from clinker_spark.spark.scan.row_filter import NULL, SEPARATOR

if TYPE_CHECKING:
    from clinker_spark.spark.operators.build import Builder


KeyTexts = Mapping[str, str | None]
"""The keys of a failed record as texts, by column."""


@dataclass(frozen=True)
class DirtyGroups:
    """Groups with a failure: a list while they are few, else a DataFrame of `source` and `keys`."""

    plan: Plan
    listed: Mapping[int, Sequence[KeyTexts]] | None = None
    """By the position of their source."""
    frame: DataFrame | None = None
    few: bool = True
    """Can every task hold the DataFrame?"""

    def marked(
        self, rows: DataFrame, source: SourcePlan, own: Sequence[str], also: Sequence[str] = ()
    ) -> tuple[DataFrame, Column | None]:
        """Which rows belong to groups of a source, by the fields `own` of its key that they have; None: surely none.
        `also` are keys that must be those of the failed record besides. The rows may get columns to know it by."""
        if self.frame is None:
            found = [
                _joined([key_text(rows, name) for name in columns]).isin(sorted(texts))
                for columns, texts in self.texts(source, own, also)
            ]
            return rows, reduce(Column.__or__, found) if found else None
        found = []
        for number, (fields, shared, columns) in enumerate(_shapes(self.plan, source, own, also)):
            rows, mark = self._by_join(rows, source, fields, shared, columns, f"{HELD_COLUMN}.{source.index}.{number}")
            found.append(mark)
        return rows, reduce(Column.__or__, found) if found else None

    def texts(self, source: SourcePlan, own: Sequence[str], also: Sequence[str]) -> list[tuple[list[str], set[str]]]:
        """For groups that are listed: key columns, and which texts of them together (`joined_text`) are dirty."""
        assert self.listed is not None
        mine = set(source.key_columns)
        found = []
        for fields, shared, columns in _shapes(self.plan, source, own, also):
            groups = [keys for keys in self.listed.get(source.index, ()) if mine & keys.keys() == set(fields)]
            there = [keys for keys in groups if any(keys[name] is not None for name in shared)]
            texts = {joined_text(keys.get(name) for name in columns) for keys in there}
            found += [(columns, texts)] if texts else []
        return found

    def _by_join(
        self,
        rows: DataFrame,
        source: SourcePlan,
        fields: Sequence[str],
        shared: Sequence[str],
        columns: Sequence[str],
        mark: str,
    ) -> tuple[DataFrame, Column]:
        assert self.frame is not None
        keys = F.col("keys")
        dirty = self.frame.where(F.col("source") == source.index)
        for name in source.key_columns:
            has = F.map_contains_key(keys, F.lit(name))
            dirty = dirty.where(has if name in fields else ~has)
        dirty = dirty.where(reduce(Column.__or__, [keys[name].isNotNull() for name in shared]))
        names = [f"{mark}.{i}" for i in range(len(columns))]
        dirty = dirty.select(*[keys[key].alias(name) for key, name in zip(columns, names, strict=True)])
        dirty = dirty.distinct().withColumn(mark, F.lit(True))
        same = [key_text(rows, key).eqNullSafe(F.col(quote(name))) for key, name in zip(columns, names, strict=True)]
        joined = rows.join(dirty.hint("broadcast") if self.few else dirty, reduce(Column.__and__, same), "left")
        return joined.drop(*names), F.col(quote(mark)).isNotNull()


def key_text(frame: DataFrame, name: str) -> Column:
    """A key as text. Both zeros are one key."""
    column = F.col(quote(name))
    if isinstance(frame.schema[name].dataType, DoubleType | FloatType):
        column = column + F.lit(0.0)
    return column.cast("string")


def _shapes(
    plan: Plan, source: SourcePlan, own: Sequence[str], also: Sequence[str]
) -> Iterator[tuple[Sequence[str], list[str], list[str]]]:
    """The fields of a source's key that a failed record can have, those that it shares with records which have `own`,
    and everything that is compared."""
    for fields in plan.facts.carried_keys[source.name]:
        if shared := [name for name in own if name in fields]:
            yield fields, shared, list(dict.fromkeys((*shared, *also)))


def joined_text(texts: Iterable[str | None]) -> str:
    """The texts of several keys as one.

    >>> joined_text(["O1", None])
    'O1\\x1f\\x00'
    """
    return SEPARATOR.join(NULL if text is None else text for text in texts)


def _joined(texts: Sequence[Column]) -> Column:
    """`joined_text` on Spark."""
    there = [F.coalesce(text, F.lit(NULL)) for text in texts]
    return F.concat_ws(SEPARATOR, *there) if len(there) > 1 else there[0]


def dirty_groups(plan: Plan, letters: DataFrame) -> DataFrame:
    """The groups of failed records: `source` and `keys`. What was made of several sources stands once for each."""
    own = F.array(F.col("source"))
    several: list[Column] = []
    for blame in plan.facts.blamed:
        rest = F.array(*[F.lit(index) for index in blame.others]).cast("array<int>")
        several.append(F.when(F.col("source").isNotNull(), own).otherwise(rest) if blame.traced else rest)
    sources = F.element_at(F.array(*several), F.col("stage") + 1)
    return letters.select(F.explode(sources).alias("source"), "keys").where(F.col("source").isNotNull())


def own_groups(letters: DataFrame) -> DataFrame:
    """The groups of records as they were read: `source` and `keys`."""
    keys = F.map_filter(F.col("letter"), lambda name, _: name.startswith(CK_PREFIX)).alias("keys")
    return letters.where(F.col("source").isNotNull()).select("source", keys)


def concerned(plan: Plan, keys: Keys) -> Iterator[tuple[SourcePlan, list[str]]]:
    """The sources whose groups records with such keys belong to, and by which columns."""
    for source in plan.sources:
        own = [name for name in source.key_columns if name in keys.own]
        if source.name in keys.sources and own:
            yield source, own


def also_compared(plan: Plan, node: OutputPlan) -> tuple[str, ...]:
    """The keys that must be those of the failed record, for one of an output to be withheld: by its policy."""
    policy = node.config.correlation_fanout_policy or plan.file.error_handling.correlation_fanout_policy
    own = plan.facts.keys[node.inputs[0].node].own
    return {"any": (), "all": own, "primary": own[:1]}[policy]


def with_held(builder: Builder, node: OutputPlan, stream: Stream) -> Stream:
    """The records of an output with `$held`: does one of their groups have a failure?

    A record belongs to the group of each source it was made of. `any` withholds it for each of them, `all` only if all
    its keys are those of the failure, `primary` only if the first one is. A record that was read from one source is
    spared when only another source failed."""
    keys = builder.plan.facts.keys[node.inputs[0].node]
    if builder.all_held:
        return stream.over(stream.frame.withColumn(HELD_COLUMN, F.lit(True)))
    if builder.dirty is None or not keys.own:
        return stream
    frame, names = stream.frame, stream.frame.columns
    held: list[Column] = []
    for source, own in concerned(builder.plan, keys):
        frame, mark = builder.dirty.marked(frame, source, own, also_compared(builder.plan, node))
        if mark is not None and keys.single and len(keys.sources) > 1:
            mark = mark & (F.col(quote(FROM_COLUMN)) == source.index)
        held += [] if mark is None else [mark]
    marked = frame.withColumn(HELD_COLUMN, F.coalesce(reduce(Column.__or__, held, F.lit(False)), F.lit(False)))
    marked = marked.select(*[F.col(quote(name)) for name in (*names, HELD_COLUMN)])
    return replace(stream.over(marked), in_place=stream.in_place and builder.few)


def without_left_out(builder: Builder, node: AggregatePlan, stream: Stream) -> Stream:
    """What a relaxed aggregate is made of, with `retraction_scope: group`: not of the other records of a group with a
    failure, as far as they come from the failed record's source."""
    groups, keys = builder.left_out, builder.plan.facts.keys[node.inputs[0].node]
    if groups is None or not keys.own:
        return stream
    frame, names = stream.frame, stream.frame.columns
    gone: list[Column] = []
    for source, own in concerned(builder.plan, keys):
        frame, mark = groups.marked(frame, source, own)
        if mark is not None and FROM_COLUMN in names:  # what was read, or driven by what was read, has one source
            mark = mark & (F.col(quote(FROM_COLUMN)) == source.index)
        gone += [] if mark is None else [mark]
    if not gone:
        return stream
    flag = F.when(reduce(Column.__or__, gone), True)
    frame = frame.withColumn(LEFT_OUT_COLUMN, flag).select(*[F.col(quote(name)) for name in (*names, LEFT_OUT_COLUMN)])
    flow = stream.flow
    if builder.letters:
        builder.without.append((frame.where(F.col(quote(LEFT_OUT_COLUMN)).isNotNull()), node))
    else:
        name = f"{node.name}.left out"
        frame = builder.count(name, frame, rows=F.count(F.lit(1)), gone=F.count(quote(LEFT_OUT_COLUMN)))
        rows, left = count(f"{name}: rows"), count(f"{name}: gone")
        what = "takes {left} records, and {right} were looked at for their groups"
        builder.ledger.law(node.name, what, flow, rows)
        builder.ledger.entry(node.name).dropped[WITHHELD_FROM, 0] = left
        flow = rows - left
    kept = frame.where(F.col(quote(LEFT_OUT_COLUMN)).isNull()).drop(LEFT_OUT_COLUMN)
    return replace(stream.over(kept), flow=flow, pushes=False)
