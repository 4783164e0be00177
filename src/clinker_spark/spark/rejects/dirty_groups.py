"""Groups with a failure, and the records that belong to them.

A group is known by the keys that the failed record had when it failed: those that a combine let pass. A record belongs
to it when both have the same values in the fields that both have, null included, unless all of them are null: a record
without a key is a group of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType

from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import CK_PREFIX, HELD_COLUMN
from clinker_spark.plan.facts import Keys
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.spark.scan.row_filter import NULL, SEPARATOR

KeyTexts = Mapping[str, str | None]
"""The keys of a failed record as texts, by column."""


@dataclass(frozen=True)
class DirtyGroups:
    """Groups with a failure: a list while they are few, else a DataFrame of `source` and `keys`."""

    plan: Plan
    listed: Mapping[int, Sequence[KeyTexts]] | None = None
    """By the position of their source."""
    frame: DataFrame | None = None
    broadcastable: bool = True
    """Can every task hold the DataFrame?"""

    def marked(
        self, rows: DataFrame, source: SourcePlan, own: Sequence[str], also: Sequence[str] = ()
    ) -> tuple[DataFrame, Column | None]:
        """Which rows belong to groups of a source, by the fields `own` of its key that they have; None: surely none.
        `also` are keys that must be those of the failed record besides. The rows may get columns to know it by."""
        if self.frame is None:
            listed = [
                f"{_joined([key_sql(rows, name) for name in columns])} IN ({', '.join(map(sql_string, sorted(texts)))})"
                for columns, texts in self.texts(source, own, also)
            ]
            return rows, F.expr(" OR ".join(listed)) if listed else None
        found: list[Column] = []
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
        joined = rows.join(
            dirty.hint("broadcast") if self.broadcastable else dirty, reduce(Column.__and__, same), "left"
        )
        return joined.drop(*names), F.col(quote(mark)).isNotNull()


def key_text(frame: DataFrame, name: str) -> Column:
    """A key as text. Both zeros are one key."""
    return F.expr(key_sql(frame, name))


def key_sql(frame: DataFrame, name: str) -> str:
    """SQL for that."""
    zero = " + 0.0D" if isinstance(frame.schema[name].dataType, DoubleType | FloatType) else ""
    return f"CAST({quote(name)}{zero} AS STRING)"


def _shapes(
    plan: Plan, source: SourcePlan, own: Sequence[str], also: Sequence[str]
) -> Iterator[tuple[Sequence[str], list[str], list[str]]]:
    """The fields of a source's key that a failed record can have, those that it shares with records which have `own`,
    and everything that is compared."""
    for fields in plan.facts.correlation.carried_keys[source.name]:
        if shared := [name for name in own if name in fields]:
            yield fields, shared, list(dict.fromkeys((*shared, *also)))


def joined_text(texts: Iterable[str | None]) -> str:
    """The texts of several keys as one.

    >>> joined_text(["O1", None])
    'O1\\x1f\\x00'
    """
    return SEPARATOR.join(NULL if text is None else text for text in texts)


def _joined(texts: Sequence[str]) -> str:
    """SQL for `joined_text`."""
    there = [f"coalesce({text}, {sql_string(NULL)})" for text in texts]
    return f"concat_ws({sql_string(SEPARATOR)}, {', '.join(there)})" if len(there) > 1 else there[0]


def dirty_groups(plan: Plan, letters: DataFrame) -> DataFrame:
    """The groups of failed records: `source` and `keys`. What was made of several sources stands once for each. A
    failed total concerns the groups of the records it was made of (`own_groups`): by itself only those of records that
    it was combined with."""
    own = F.array(F.col("source"))
    several: list[Column] = []
    for blame in plan.facts.correlation.blamed:
        rest = F.array(*[F.lit(index) for index in blame.others]).cast("array<int>")
        several.append(F.when(F.col("source").isNotNull(), own).otherwise(rest) if blame.traced else rest)
    sources = F.element_at(F.array(*several), F.col("stage") + 1)
    found = letters.select(F.explode(sources).alias("blamed"), "source", "keys", "groups")
    made_of: dict[int, list[str]] = {}
    for node in plan.nodes if any(blame.others for blame in plan.facts.correlation.blamed) else ():
        for source in plan.sources_of(node.name) if node.totals else ():
            made_of.setdefault(source.index, []).append(node.name)
    for index, totals in made_of.items():
        total = reduce(Column.__or__, [F.map_contains_key("groups", F.lit(name)) for name in totals])
        found = found.where((F.col("blamed") != index) | F.col("source").isNotNull() | ~total)
    return found.where(F.col("blamed").isNotNull()).select(F.col("blamed").alias("source"), "keys")


def carried_groups(letters: DataFrame) -> DataFrame:
    """The groups of failed records within their own sources, by the keys they had when they failed."""
    return letters.where(F.col("source").isNotNull()).select("source", "keys")


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


def writes_records_of(plan: Plan, end: PlanNode, source: SourcePlan) -> bool:
    """Does an output write records of a source themselves, not only what was made of them?"""
    keys = plan.facts.correlation.keys[end.inputs[0].node]
    return keys.single and source in plan.sources_of(end.name)
