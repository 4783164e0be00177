"""The records that others are looked up in, with their keys and places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.errors import InputError
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import WIDENED_COLUMN
from clinker_spark.plan.nodes.combine import CombinePlan, CombineStep
from clinker_spark.spark.build.stream import Stream
from clinker_spark.spark.columns import undeclared
from clinker_spark.spark.columns.select import named, select_sql
from clinker_spark.spark.joins.sides import with_build_keys

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


def build_side(builder: Builder, node: CombinePlan, step: CombineStep, build: Stream) -> DataFrame:
    """The records of an input as a step looks them up; those whose keys cannot be computed are diverted."""
    lifted = _with_lifted(builder, node, step, build.frame)
    taken = builder.absorb(node, build.over(qualified(lifted, step.build)), step.build)
    return with_build_keys(builder, node, step, taken)


def _with_lifted(builder: Builder, node: CombinePlan, step: CombineStep, frame: DataFrame) -> DataFrame:
    """The build side with those of its undeclared columns that the program names. The others end here."""
    names = node.lifted.get(step.build, ())
    if not names:
        return frame
    ref = node.inputs[node.qualifiers.index(step.build)]
    known = undeclared.names_of(builder.plan, ref.node, {name: scan.widened for name, scan in builder.scans.items()})
    for name in names:
        if name not in known or WIDENED_COLUMN not in frame.columns:
            message = f"'{step.build}' has no column '{name}': no schema declares it, and no file has it"
            help_text = did_you_mean(name, known) or f"undeclared columns: {', '.join(known) or 'none'}"
            raise InputError([node.diagnostic("E714", message, "config", "cxl", help=help_text)])
    kind = frame.schema[WIDENED_COLUMN].dataType
    return frame.select("*", *[F.expr(undeclared.value(name, kind)).alias(name) for name in names])


def qualified(frame: DataFrame, qualifier: str) -> DataFrame:
    """Columns as the programs of a combine call them; hidden ones keep their names."""
    names = {name: name if name.startswith("$") else f"{qualifier}.{name}" for name in frame.columns}
    return select_sql(frame, [named(quote(old), new) for old, new in names.items()])
