"""A query of a dataset as partitions: each a few segments, or a part of a long one, with a budget of its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.dataset.constants import MIB, budget_bytes
from clinker_spark.dataset.either import as_table, is_either, table_type
from clinker_spark.dataset.files.manifest import Dataset
from clinker_spark.dataset.files.store import Store
from clinker_spark.dataset.flow.budget import PipelineBudget
from clinker_spark.dataset.query import run
from clinker_spark.dataset.selection import Layout, Part, Query, select, split

BATCH_ROWS = 1 << 14
"""Rows of a batch on its way to the JVM. Each costs about a third of a millisecond, whatever its size."""
LEAST = 16 * MIB
"""Decoded bytes for which another task is worth its start."""
_log = logging.getLogger("clinker.dataset")


@dataclass(frozen=True)
class Partitions:
    """What the tasks of a query need: everything is decided on the driver."""

    store: Store
    layout: Layout
    groups: tuple[tuple[Part, ...], ...]
    budget: int

    @classmethod
    def of(cls, dataset: Dataset, asked: Query, most: int) -> Partitions:
        """At most about `most` partitions. Raises DatasetError."""
        selection = select(dataset, asked)
        groups = split(dataset, selection, most, LEAST)
        budget = budget_bytes(selection.size, len(groups))
        return cls(dataset.store, selection.layout, tuple(groups), budget)

    def read(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of a partition, in types that Spark has."""
        schema = self.arrow_schema
        budget = PipelineBudget(self.budget)
        for batch in run(self.store, self.layout, self.groups[number], budget, BATCH_ROWS, _tell):
            yield batch if batch.schema == schema else _in_types(batch, schema)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        return _arrow_schema(self.layout)

    @cached_property
    def spark_schema(self) -> StructType:
        return spark_schema(self.layout)


def spark_schema(layout: Layout) -> StructType:
    """The columns of a result on Spark."""
    return StructType([StructField(field.name, _spark_type(field.type)) for field in _arrow_schema(layout)])


def sql_fields(schema: StructType) -> list[tuple[str, str]]:
    """Names and types, as SQL writes them: fields of structs may have any name."""
    return [(field.name, _sql_type(field.dataType)) for field in schema.fields]


def _sql_type(kind: DataType) -> str:
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(f'{quote(f.name)}: {_sql_type(f.dataType)}' for f in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{_sql_type(kind.elementType)}>"
    return kind.simpleString()


def _arrow_schema(layout: Layout) -> pa.Schema:
    return pa.schema([pa.field(field.name, _known(field.type)) for field in layout.schema])


def _tell(found: Diagnostic) -> None:
    _log.warning("%s: %s", found.code, found.message)


def _in_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [as_table(column).cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.record_batch(columns, schema=schema)


def _known(kind: pa.DataType) -> pa.DataType:
    """Empty lists alone say nothing about their elements: texts are as good as any."""
    if is_either(kind):
        return _known(table_type(kind))
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_known(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _known(f.type)) for f in kind])
    return kind


def _spark_type(kind: pa.DataType) -> DataType:
    return from_arrow_type(kind, prefer_timestamp_ntz=True)
