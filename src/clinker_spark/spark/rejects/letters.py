"""Dead letters: every failure of a pass in one DataFrame, and that as lines of CSV."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from clinker_spark.config.model.output import CsvOutput
from clinker_spark.core.types import BOOL, INT, STRING
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import (
    BUILT_COLUMN,
    BUILT_TYPE,
    CK_PREFIX,
    GROUP_PREFIX,
    LETTER_COLUMN,
    LINE_COLUMN,
    ORIGIN_COLUMN,
    STAGE_COLUMN,
)
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.spark.operators.build import Builder, SetAside
from clinker_spark.spark.operators.combine import MISS
from clinker_spark.spark.parts import part_writer
from clinker_spark.spark.rejects.correlated import text_map
from clinker_spark.spark.rejects.letter_marks import CELL_SEPARATOR, HASH_DIGITS
from clinker_spark.spark.render.rendering import OutColumn, Rendering, render
from clinker_spark.spark.scan.lines import BASE64, TEXT
from clinker_spark.spark.scan.request import SourceFile

MERGED = "<merged>"
"""The file of a record that was made of several."""
AS_IS = (MISS, "validation_failure", "expansion_limit_exceeded", "nan_in_output_field")
"""Kinds of errors that are categories of dead letters themselves, wherever they happen."""


@dataclass(frozen=True)
class LetterCount:
    """How many dead letters have the same source, stage and category."""

    source: int | None
    stage: int
    category: str
    count: int


def letters(builder: Builder, suspected: Callable[[SetAside], bool] = lambda place: True) -> DataFrame | None:
    """All failures at suspected places; None when no record can fail there. Columns: source, file, row, stage, route,
    category, field, value, message, letter, tie, keys, groups, trigger, built."""
    frames = [_letters(builder.plan, found) for found in builder.failures if suspected(found)]
    return reduce(DataFrame.unionByName, frames) if frames else None


def _letters(plan: Plan, found: SetAside) -> DataFrame:
    frame, stream = found.frame, found.stream
    origin, error, stage = (F.col(quote(name)) for name in (ORIGIN_COLUMN, ERROR_COLUMN, STAGE_COLUMN))
    tie: Column = F.array().cast("array<bigint>")
    if ARRIVAL_COLUMN in frame.columns:
        arrival = F.col(quote(ARRIVAL_COLUMN))
        tie = arrival if isinstance(frame.schema[ARRIVAL_COLUMN].dataType, ArrayType) else F.array(arrival)
    return frame.select(
        origin["source"].alias("source"),
        origin["file"].alias("file"),
        origin["row"].alias("row"),
        stage.alias("stage"),
        F.lit(stream.route).cast("string").alias("route"),
        _category(plan, stage, error["kind"], origin["source"]).alias("category"),
        F.when(~error["field"].startswith("$"), error["field"]).alias("field"),  # not our own columns
        error["value"].alias("value"),
        error["message"].alias("message"),
        F.col(quote(LETTER_COLUMN)).alias("letter"),
        tie.cast("array<bigint>").alias("tie"),
        text_map(frame, CK_PREFIX).alias("keys"),
        text_map(frame, GROUP_PREFIX).alias("groups"),
        F.lit(True).alias("trigger"),
        (F.col(quote(BUILT_COLUMN)) if BUILT_COLUMN in frame.columns else F.array()).cast(BUILT_TYPE).alias("built"),
    )


def _category(plan: Plan, stage: Column, kind: Column, source: Column) -> Column:
    own = [i for i, node in enumerate(plan.nodes) if node.category is None]
    found = F.when(stage.isin(own) | kind.isin(*AS_IS), kind)
    by_category: dict[tuple[str, str], list[int]] = {}
    for i, node in enumerate(plan.nodes):
        if node.category is not None and node.made_category is not None and node.category != PlanNode.category:
            by_category.setdefault((node.category, node.made_category), []).append(i)
    for (category, made), places in by_category.items():
        if made != category:
            found = found.when(stage.isin(places) & source.isNull(), F.lit(made))
        found = found.when(stage.isin(places), F.lit(category))
    return found.otherwise(F.lit(PlanNode.category))


def in_order(frame: DataFrame) -> DataFrame:
    """In source and row order; what was made of several records comes last."""
    return frame.orderBy(F.col("source").asc_nulls_last(), "file", "row", "stage", "tie")


def first_letters(frame: DataFrame, most: int) -> list[Any]:
    """The first letters as rows, for messages and previews."""
    return in_order(frame).limit(most).collect()


def of_sources(frame: DataFrame, sources: Sequence[int], *, others: bool = False) -> DataFrame:
    """The letters of some sources, or of all others and of none."""
    mine = F.col("source").isin(list(sources))
    return frame.where(F.col("source").isNull() | ~mine if others else mine)


def write_letters(lines: DataFrame, folder: str) -> None:
    """Run the job: parts in `folder`."""
    part_writer(lines, folder).text(folder)


def layout(plan: Plan, counts: Sequence[LetterCount]) -> list[str]:
    """The columns of the records: as declared when all have the same ones, else all of them by name."""
    found: list[tuple[str, ...]] = []
    for count in counts:
        if count.source is not None:
            source = plan.sources[count.source]
            columns = (*(c.name for c in source.columns), *source.key_columns)
        else:
            node = plan.nodes[count.stage]
            made = [n for n in (*plan.upstream(node.name), node) if n.totals]
            columns = tuple(made[-1].schema) if made else ()
        if columns not in found:
            found.append(columns)
    if len(found) == 1:
        return list(found[0])
    return sorted({name for columns in found for name in columns})


def letter_lines(
    plan: Plan,
    frame: DataFrame,
    columns: Sequence[str],
    files: Mapping[str, tuple[SourceFile, ...]],
    headers: Mapping[str, tuple[str, ...]],
    now: dt.datetime,
    handling: Any,
) -> tuple[DataFrame, Rendering]:
    """The dead letters in source and row order as lines of CSV. `headers` are the header lines of the files."""
    names = F.array(*[F.lit(source.source_name) for source in plan.sources])
    paths = F.array(
        *[F.array(*[F.lit(f.name) for f in files[source.name]]).cast("array<string>") for source in plan.sources]
    )
    titles = F.array(
        *[F.array(*[F.lit(line) for line in headers.get(s.name, ())]).cast("array<string>") for s in plan.sources]
    )
    stages = F.array(*[F.lit(node.stage) for node in plan.nodes])
    line = F.col("letter")[LINE_COLUMN]
    coded = line.startswith("\0")
    shown = F.when(coded, F.expr(f"substring(letter[{sql_string(LINE_COLUMN)}], 2)")).otherwise(line)
    cells = F.concat_ws(CELL_SEPARATOR, *[F.coalesce(F.col("letter")[name], F.lit("")) for name in columns])
    marks = [F.substring(F.sha2(text, 256), 1, HASH_DIGITS) for text in (cells, F.coalesce(shown, F.lit("")))]
    source = F.col("source")
    full = in_order(frame).select(
        F.expr(_uuid7(now)).alias("_cxl_dlq_id"),
        F.lit(now.strftime("%Y-%m-%dT%H:%M:%SZ")).alias("_cxl_dlq_timestamp"),
        F.coalesce(F.try_element_at(F.try_element_at(paths, source + 1), F.col("file") + 1), F.lit(MERGED)).alias(
            "_cxl_dlq_source_file"
        ),
        F.coalesce(F.try_element_at(names, source + 1), F.lit(MERGED)).alias("_cxl_dlq_source_name"),
        F.col("row").alias("_cxl_dlq_source_row"),
        F.col("field").alias("_cxl_dlq_triggering_field"),
        F.col("value").alias("_cxl_dlq_triggering_value"),
        F.col("category").alias("_cxl_dlq_error_category"),
        F.col("message").alias("_cxl_dlq_error_detail"),
        F.element_at(stages, F.col("stage") + 1).alias("_cxl_dlq_stage"),
        F.col("route").alias("_cxl_dlq_route"),
        F.col("trigger").alias("_cxl_dlq_trigger"),
        shown.alias("_cxl_dlq_source_line"),
        F.when(line.isNotNull(), F.when(coded, BASE64).otherwise(TEXT)).alias("_cxl_dlq_source_line_encoding"),
        F.when(line.isNotNull(), F.try_element_at(F.try_element_at(titles, source + 1), F.col("file") + 1)).alias(
            "_cxl_dlq_source_header"
        ),
        F.concat_ws("-", *marks).alias("_cxl_dlq_source_hash"),
        F.col("letter"),
    )
    rendering = _letter_rendering(columns, handling)
    return full.select(F.expr(rendering.line).alias("value")), rendering


_ENGINE_COLUMNS = (
    "id",
    "timestamp",
    "source_file",
    "source_name",
    "source_row",
    "triggering_field",
    "triggering_value",
    "error_category",
    "error_detail",
    "stage",
    "route",
    "trigger",
)
SOURCE_COLUMNS = ("source_line", "source_line_encoding", "source_header", "source_hash")
"""With the records themselves: their bytes, what these mean, and a hash that shows whether somebody edited them."""


def _letter_rendering(columns: Sequence[str], handling: Any) -> Rendering:
    types = {"source_row": INT.as_nullable(), "trigger": BOOL}
    left_out: tuple[str, ...] = () if handling.include_reason else ("error_category", "error_detail")
    left_out += () if handling.include_source_row else SOURCE_COLUMNS
    out = [
        OutColumn(f"_cxl_dlq_{name}", types.get(name, STRING.as_nullable()), quote(f"_cxl_dlq_{name}"))
        for name in (*_ENGINE_COLUMNS, *SOURCE_COLUMNS)
        if name not in left_out
    ]
    if handling.include_source_row:
        out += [OutColumn(name, STRING.as_nullable(), f"letter[{sql_string(name)}]") for name in columns]
    return render(CsvOutput(type="csv", path="dead-letters.csv"), tuple(out), None)


def letter_header(columns: Sequence[str], handling: Any) -> bytes:
    """The first line of a dead-letter file, whose records have these columns."""
    return _letter_rendering(columns, handling).prefix


def _uuid7(now: dt.datetime) -> str:
    """SQL for an identifier that sorts by time (version 7); the random part comes from Spark."""
    stamp = f"{int(now.replace(tzinfo=dt.UTC).timestamp() * 1000):012x}"
    return f"regexp_replace(uuid(), '^.{{8}}-.{{4}}-.', '{stamp[:8]}-{stamp[8:]}-7')"
