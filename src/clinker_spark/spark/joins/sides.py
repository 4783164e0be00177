"""The two sides of a join with their keys as columns, and what is done with pairs whatever way they were found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from clinker_spark.core.types import ANY, Kind, Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.conditions import as_program
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN, ERROR_TYPE
from clinker_spark.cxl.lower.keys import join_key_sql
from clinker_spark.cxl.lower.plan import LoweredProgram, Project, quote
from clinker_spark.plan.columns import ARRAY_PREFIX, CK_PREFIX, JOIN_PREFIX, MATCHED_PREFIX, ORIGIN_COLUMN
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.combine import COLLECT_LIMIT, CombinePlan, CombineStep
from clinker_spark.plan.run_statistics import MOST_SHOWN, Sketch
from clinker_spark.spark.build.stream import Stream
from clinker_spark.spark.columns.programs import apply, lower, run_steps
from clinker_spark.spark.columns.select import named, select_sql
from clinker_spark.spark.columns.types import read_as
from clinker_spark.spark.joins.names import BUILD, BUILD_RANGE, LEFT, LEFT_RANGE, OK, place_column

if TYPE_CHECKING:
    from clinker_spark.cxl.program import Program
    from clinker_spark.cxl.system import Context
    from clinker_spark.spark.build.builder import Builder


HIT = f"{JOIN_PREFIX}hit"
"""True for a pair, null for a record of the probe side that has none."""
_ONLY = f"{JOIN_PREFIX}only"
SKETCHED = ("grace_hash", "sort_merge", "adaptive")
"""Where many records, or many of one key, would make a difference to the next plan."""
_TOKEN = re.compile(r"'[^']*'|`(?:[^`]|``)*`")
"""A literal (see `sql_string`: there is no quote in it) or a quoted name."""
_MOST_TEXT = 20_000
"""Longer conditions are computed after the join: Spark's parser would take too long for them."""


@dataclass(frozen=True)
class Residual:
    """What must also hold of a pair, as SQL over the columns of both sides."""

    value: str
    error: str | None


@dataclass(frozen=True)
class Sides:
    """Both sides of a step, ready to be joined."""

    left: DataFrame
    build: DataFrame
    step: CombineStep
    match: str
    on_miss: str
    residual: Residual | None = None
    later: LoweredProgram | None = None
    """The residual condition, when it cannot be part of the join."""
    context: Context | None = None

    @property
    def place(self) -> str:
        """Where a record of the build stands among its like."""
        return place_column(self.step.build)

    @property
    def array(self) -> str:
        return array_column(self.step)

    @property
    def build_keys(self) -> list[str]:
        return [f"{BUILD}{i}" for i in range(len(self.step.equalities))]

    @property
    def by_probe(self) -> bool:
        """Must the matches of a record of the probe side be sorted out after the join?"""
        return bool(self.step.ranges) or self.step.residual is not None

    @property
    def how(self) -> str:
        """Misses are kept unless nobody wants them; what is left of a pair is only known later when `later` is."""
        dropped = self.on_miss == "skip" and self.match != "collect" and self.later is None
        return "inner" if dropped else "left"

    def equal(self) -> list[Column]:
        pairs = range(len(self.step.equalities))
        return [F.col(quote(f"{LEFT}{i}")) == F.col(quote(f"{BUILD}{i}")) for i in pairs]

    def in_range(self) -> list[Column]:
        conditions = []
        for i, r in enumerate(self.step.ranges):
            conditions.append(F.expr(f"{quote(f'{LEFT_RANGE}{i}')} {r.op} {quote(f'{BUILD_RANGE}{i}')}"))
        return conditions

    def condition(self, *others: Column) -> Column:
        """Everything that makes two records a pair. One whose condition fails is one, too: it has an error."""
        parts = [*others, *self.in_range()]
        if self.residual is not None:
            text = f"coalesce({self.residual.value}, FALSE)"
            if self.residual.error is not None:
                text = f"({self.residual.error}) IS NOT NULL OR {text}"
            parts.append(F.expr(text))
        return reduce(Column.__and__, parts, F.lit(True))

    def sort_out(self, joined: DataFrame, *, repeated: bool) -> DataFrame:
        """The pairs that count. `repeated`: records of the probe side were looked up in several places, so that a miss
        may stand beside a pair."""
        if self.later is not None:
            joined, repeated = self._checked(joined), True
        elif self.residual is not None and self.residual.error is not None:
            hit = F.col(quote(HIT)).isNotNull()
            error = F.expr(f"CAST({self.residual.error} AS {ERROR_TYPE})")
            joined = joined.withColumn(ERROR_COLUMN, F.when(hit, error))
        if self.match == "collect":
            return self._gathered(joined)
        if self.match == "first":
            window = Window.partitionBy(quote(ARRIVAL_COLUMN)).orderBy(F.col(quote(self.place)).asc_nulls_last())
            return self._numbered(joined, F.row_number().over(window) == 1)
        if not repeated:
            return joined
        window = Window.partitionBy(quote(ARRIVAL_COLUMN)).orderBy(F.col(quote(self.place)).asc_nulls_last())
        return self._numbered(joined, F.col(quote(HIT)).isNotNull() | (F.row_number().over(window) == 1))

    def _numbered(self, joined: DataFrame, condition: Column) -> DataFrame:
        name = f"{JOIN_PREFIX}kept"
        kept = joined.withColumn(name, condition).where(F.col(quote(name))).drop(name)
        return kept.where(F.col(quote(HIT)).isNotNull()) if self.on_miss == "skip" else kept

    def _checked(self, joined: DataFrame) -> DataFrame:
        """Candidates whose condition does not hold become misses."""
        assert self.later is not None and self.context is not None
        names = joined.columns
        frame = run_steps(joined, self.later.steps, self.context)
        value = dict(self.later.outputs)[OK]
        text = f"coalesce({value}, FALSE)"
        if self.later.error is not None:
            text = f"({self.later.error}) IS NOT NULL OR {text}"
        columns: list[Column] = []
        holds = F.expr(f"{quote(HIT)} IS NOT NULL AND ({text})")
        own = (f"{self.step.build}.", f"{MATCHED_PREFIX}{self.step.build}.", BUILD)
        for name in names:
            column = F.col(quote(name))
            if name == HIT or name == self.place or name.startswith(own):
                column = F.when(holds, column)
            columns.append(column.alias(name))
        if self.later.error is not None:
            columns.append(F.when(holds, F.expr(f"CAST({self.later.error} AS {ERROR_TYPE})")).alias(ERROR_COLUMN))
        return frame.select(*columns)

    def _gathered(self, joined: DataFrame) -> DataFrame:
        """One record for each of the probe side, with its matches as an array."""
        own = (f"{self.step.build}.", JOIN_PREFIX)
        keys = self.matched_keys(joined)
        left = {*joined.columns} - {*keys, ARRIVAL_COLUMN, ERROR_COLUMN}
        names = [name for name in joined.columns if name in left and not name.startswith(own)]
        first = [F.first(quote(name)).alias(name) for name in names] + list(keys.values())
        if ERROR_COLUMN in joined.columns:
            first.append(F.first(quote(ERROR_COLUMN), ignorenulls=True).alias(ERROR_COLUMN))
        arrays = joined.groupBy(quote(ARRIVAL_COLUMN)).agg(*first, self.matches().alias(self.array))
        return arrays.withColumn(HIT, F.lit(True))

    def matched_keys(self, frame: DataFrame) -> dict[str, Column]:
        """Aggregates: the correlation keys that go on, those of the first match."""
        names = [name for name in frame.columns if name.startswith(f"{MATCHED_PREFIX}{self.step.build}.")]
        return {name: F.min_by(quote(name), quote(self.place)).alias(name) for name in names}

    def matches(self) -> Column:
        """An aggregate: the records of the build as maps, in their order, at most so many."""
        fields: list[str] = []
        prefix = f"{self.step.build}."
        for f in self.build.schema.fields:
            if f.name.startswith(prefix):
                value = read_as(quote(f.name), f.dataType, ANY)
                fields.append(f"{sql_string(f.name.removeprefix(prefix))}, {value}")
        item = f"struct({quote(self.place)} AS p, map({', '.join(fields)}) AS m)"
        there = f"CASE WHEN {quote(self.place)} IS NOT NULL THEN {item} END"
        # Maps cannot be compared, and need not be: no two records have one place.
        order = "(x, y) -> CASE WHEN x.p < y.p THEN -1 WHEN x.p > y.p THEN 1 ELSE 0 END"
        listed = f"slice(array_sort(collect_list({there}), {order}), 1, {COLLECT_LIMIT})"
        return F.expr(f"transform({listed}, x -> x.m)")


def array_column(step: CombineStep) -> str:
    return f"{ARRAY_PREFIX}{step.build}"


def with_left_keys(builder: Builder, node: CombinePlan, step: CombineStep, left: Stream) -> Stream:
    """The left side with the keys of a step; records whose keys cannot be computed are diverted."""
    frame = apply(left_keys(node, step), left.frame, context=builder.context(node))
    fine = builder.divert(node, builder.mark(node, left.over(frame)), f"keys for {step.build}")
    return fine.over(_comparable(fine.frame, step, left=True))


def left_keys(node: CombinePlan, step: CombineStep) -> Program:
    """Makes what the left side is looked up by."""
    columns = [(f"{LEFT}{i}", e.left) for i, e in enumerate(step.equalities)]
    columns += [(f"{LEFT_RANGE}{i}", r.left) for i, r in enumerate(step.ranges)]
    return as_program(_schema(node), columns)


def residual_program(node: CombinePlan, residual: ir.TExpr) -> Program:
    """Says whether a pair is one."""
    return as_program(_schema(node), [(OK, residual)])


def with_build_keys(builder: Builder, node: CombinePlan, step: CombineStep, build: Stream) -> DataFrame:
    """The build side with its keys and places, and without anything else that is hidden."""
    columns = [(f"{BUILD}{i}", e.right) for i, e in enumerate(step.equalities)]
    columns += [(f"{BUILD_RANGE}{i}", r.right) for i, r in enumerate(step.ranges)]
    if step.only is not None:
        columns.append((_ONLY, step.only))
    frame = _with(builder, node, build.frame, columns)
    if step.only is not None:
        frame = frame.where(F.col(quote(_ONLY))).drop(_ONLY)
        build = replace(build, flow=builder.ledger.unknown(f"{node.name}.chosen of {step.build}"))
    frame = builder.divert(node, builder.mark(node, build.over(frame)), f"keys of {step.build}").frame
    place = quote(ARRIVAL_COLUMN)
    if not isinstance(frame.schema[ARRIVAL_COLUMN].dataType, ArrayType):
        place = f"array({place})"
    columns_kept = _own_columns(builder, node, step, frame)
    frame = _comparable(select_sql(frame, [*columns_kept, named(place, place_column(step.build))]), step, left=False)
    if builder.finds or step.strategy not in SKETCHED:
        return frame
    metrics: dict[str, Column] = {}
    for i in range(len(step.equalities)):
        metrics[f"distinct{i}"] = F.approx_count_distinct(quote(f"{BUILD}{i}"))
        metrics[f"heavy{i}"] = F.expr(f"approx_top_k(CAST({quote(f'{BUILD}{i}')} AS STRING), {MOST_SHOWN}, 1000)")
    return builder.metrics.count(node.sketch_name(step), frame, **metrics)


def _own_columns(builder: Builder, node: CombinePlan, step: CombineStep, frame: DataFrame) -> list[str]:
    """The columns and keys of the build side, and what tells which records were matched, under names of their own."""
    kept = [quote(name) for name in frame.columns if name.startswith((f"{step.build}.", JOIN_PREFIX))]
    if node.config.propagate_ck.keys != "driver":
        keys = [name for name in frame.columns if name.startswith(CK_PREFIX)]
        kept += [named(quote(name), f"{MATCHED_PREFIX}{step.build}.{name}") for name in keys]
    if builder.traces and node.match != "collect":
        kept.append(named(quote(ORIGIN_COLUMN), f"{MATCHED_PREFIX}{step.build}.{ORIGIN_COLUMN}"))
    return kept


def key_sketches(plan: Plan, builder: Builder) -> dict[str, Sketch]:
    """What was counted about the keys of looked-up inputs: `combine/input/column`."""
    found: dict[str, Sketch] = {}
    for place, columns in (sketched for node in plan.nodes for sketched in node.sketched_keys()):
        counted: dict[str, Any] = builder.metrics.counted(place)
        for i, column in enumerate(columns):
            if f"distinct{i}" in counted:
                heavy = tuple((row["item"], row["count"]) for row in counted[f"heavy{i}"] if row["item"] is not None)
                found[column] = Sketch(counted[f"distinct{i}"], heavy)
    return found


def _with(builder: Builder, node: CombinePlan, frame: DataFrame, columns: Sequence[tuple[str, ir.TExpr]]) -> DataFrame:
    program = as_program(_schema(node), columns)
    return apply(program, frame, context=builder.context(node))


def _schema(node: CombinePlan) -> dict[str, Type]:
    return {f"{q}.{name}": t for q, schema in node.schemas.items() for name, t in schema.items()}


def _comparable(frame: DataFrame, step: CombineStep, *, left: bool) -> DataFrame:
    """Keys as values that Spark compares as a combine does."""
    changed: dict[str, Column] = {}
    for i, e in enumerate(step.equalities):
        name = f"{LEFT if left else BUILD}{i}"
        mine, other = (e.left.type, e.right.type) if left else (e.right.type, e.left.type)
        text = quote(name)
        if other.is_dynamic and not mine.is_dynamic:
            nested = mine.kind in (Kind.ARRAY, Kind.MAP)
            text, mine = f"to_variant_object({text})" if nested else f"CAST({text} AS VARIANT)", ANY
        changed[name] = F.expr(join_key_sql(text, mine))
    for i, r in enumerate(step.ranges):
        name = f"{LEFT_RANGE if left else BUILD_RANGE}{i}"
        changed[name] = F.expr(_range_sql(quote(name), (r.left if left else r.right).type))
    return frame.withColumns(changed) if changed else frame


def _range_sql(x: str, t: Type) -> str:
    """A value on an axis; null for what has no place on it."""
    if t.kind is Kind.FLOAT:
        return f"CASE WHEN NOT isnan({x}) AND abs({x}) < double('infinity') THEN {x} END"
    if t.kind is Kind.DECIMAL and t.scale is None:
        return f"try_cast({x} AS DECIMAL(38, 18))"
    return x


def with_residual(builder: Builder, node: CombinePlan, sides: Sides) -> Sides:
    """The rest of the condition, as part of the join where it can be."""
    residual = sides.step.residual
    if residual is None:
        return sides
    context = builder.context(node)
    lowered = lower(residual_program(node, residual), sides.left.join(sides.build), context)
    texts = dict(lowered.outputs)
    inlined = _inlined(lowered, [texts[OK], lowered.error or ""])
    if inlined is None:
        return replace(sides, later=lowered, context=context)
    value, error = inlined
    return replace(sides, residual=Residual(value, error or None))


def inlined_condition(program: Program, name: str, frame: DataFrame, context: Context) -> str:
    """What a program that cannot fail emits as `name`, as one SQL condition over the columns of a frame."""
    lowered = lower(program, frame, context)
    inlined = _inlined(lowered, [dict(lowered.outputs)[name]])
    if inlined is None:
        raise NotImplementedError("a condition that is no single expression of Spark")
    return f"coalesce({inlined[0]}, FALSE)"


def _inlined(lowered: LoweredProgram, texts: list[str]) -> list[str] | None:
    """The texts without the columns that steps would compute for them; None when that is not possible."""
    known: dict[str, str] = {}
    for step in lowered.steps:
        if not isinstance(step, Project):
            return None
        for name, text in step.columns:
            known[quote(name)] = f"({_replaced(text, known)})"
            if len(known[quote(name)]) > _MOST_TEXT:
                return None
    result = [_replaced(text, known) for text in texts]
    return result if all(len(text) <= _MOST_TEXT for text in result) else None


def _replaced(text: str, known: dict[str, str]) -> str:
    """The text with columns written out. It is read as Spark reads it, name by name and literal by literal: what looks
    like a column inside a literal, or inside another name, is none."""
    return _TOKEN.sub(lambda m: known.get(m[0], m[0]), text)
