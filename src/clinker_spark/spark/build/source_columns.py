"""A few columns of a source, read for themselves: nothing that the plan does with the records."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.spark.scan.formats import read
from clinker_spark.spark.scan.request import Conventions, Readers, ReadRequest, SourceFile
from clinker_spark.spark.scan.text.cleaning import Cleaning
from clinker_spark.spark.scan.text.rows_of_values import value_rows


def conventions_of(node: SourcePlan, on_unmapped: str, date_formats: tuple[str, ...]) -> Conventions:
    """How the files of a source are to be understood."""
    config = node.config
    cleaning = Cleaning(config.trim, tuple(config.null_values))
    return Conventions(
        config.compression,
        on_unmapped,
        date_formats,
        cleaning,
        kinds=node.kinds,
        row_splits=value_rows(config.split_to_rows, node.columns),
        whole_files=node.by_document,
    )


def read_columns(
    spark: SparkSession,
    plan: Plan,
    node: SourcePlan,
    files: tuple[SourceFile, ...],
    wanted: frozenset[str],
    *,
    positions: bool = False,
    limit: int | None = None,
) -> DataFrame:
    """The wanted columns of all records, good or bad; no columns at all are enough to count them."""
    request = ReadRequest(
        source=node.name,
        files=files,
        columns=node.columns,
        options=node.config.options,
        conventions=conventions_of(node, "drop", tuple(plan.file.settings.date_formats)),
        wanted=wanted,
        positions=positions,
        readers=Readers(limit=limit),
    )
    return read(spark, node.reader, request).frame
