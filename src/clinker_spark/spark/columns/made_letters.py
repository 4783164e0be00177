"""Records that were made of several others, as their dead letters show them: there is no line that was read."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from clinker_spark.core.types import Type
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import LETTER_COLUMN, LETTER_TYPE, ORIGIN_COLUMN, ORIGIN_TYPE


def made_letter(schema: Mapping[str, Type]) -> dict[str, Column]:
    """The hidden columns of a record that was made here: read nowhere, and shown by its columns as texts."""
    pairs = [item for name, t in schema.items() for item in (F.lit(name), F.expr(sql_text(quote(name), t)))]
    return {ORIGIN_COLUMN: F.lit(None).cast(ORIGIN_TYPE), LETTER_COLUMN: F.create_map(*pairs).cast(LETTER_TYPE)}
