"""The tables of a fragment: what Spark computes of the inputs that are looked up, in a form that workers can map.

Only inputs that are known to be small get here. Should one turn out to be much larger, nobody has to hold it: each task
stops when it has too much, and Spark joins.
"""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.nodes.combine import CombinePlan, CombineStep
from clinker_spark.plan.nodes.fields import fields_of, program_fields
from clinker_spark.spark.arrow_batches import over_batches
from clinker_spark.spark.columns.select import select_sql
from clinker_spark.spark.fragments.joins.steps import Tables
from clinker_spark.spark.fragments.task import Table
from clinker_spark.spark.joins.build_side import build_side
from clinker_spark.spark.joins.names import is_of_join, place_column

if TYPE_CHECKING:
    import polars as pl

    from clinker_spark.spark.build.builder import Builder

MOST_MAPPED = 512 << 20
"""The most bytes of a table that is a file which all workers of a machine map."""
MOST_SENT = 48 << 20
"""The most bytes of one that Spark sends to each task: that of a message of Spark Connect is limited to 128 MB."""
_FIELDS = "size BIGINT, path STRING, content BINARY"


def tables_of(builder: Builder, nodes: Sequence[CombinePlan]) -> Tables | None:
    """What the combines of a fragment look up in; None if any of it is too large."""
    found: dict[tuple[str, str], Table] = {}
    for node in nodes:
        streams = dict(zip(node.qualifiers, node.inputs, strict=True))
        for step in node.steps:
            frame = build_side(builder, node, step, builder.stream(streams[step.build]))
            table = _table(builder, step, _needed(node, step, frame), once=_once(node, step))
            if table is None:
                builder.metrics.built_anew()
                return None
            found[node.name, step.build] = table
    return found


def _once(node: CombinePlan, step: CombineStep) -> bool:
    """Does only the first record of each key count?"""
    return node.match == "first" and not step.ranges and step.residual is None


def _needed(node: CombinePlan, step: CombineStep, frame: DataFrame) -> DataFrame:
    """The columns of a build that programs read, its keys and its place."""
    read = {name for program in node.programs for name in program_fields(program)}
    for each in node.steps:
        read |= set() if each.residual is None else set(fields_of(each.residual))
    return select_sql(frame, [quote(name) for name in frame.columns if name in read or is_of_join(name)])


def _table(builder: Builder, step: CombineStep, frame: DataFrame, *, once: bool) -> Table | None:
    import polars as pl  # not all runs have fragments with joins, and it is slow to load

    name = uuid.uuid4().hex
    folder = builder.run.folder if builder.run.local else None
    most = MOST_SENT if folder is None else MOST_MAPPED
    start = None if folder is None else os.path.join(folder, f"{name}.part-")
    plain = frame.toDF(*[f"c{i}" for i in range(len(frame.columns))])  # PySpark takes a dot for a step inside
    parts = over_batches(plain, partial(_packed, start, most), _FIELDS).collect()
    if sum(part["size"] for part in parts) > most:
        return None
    read = [pl.read_ipc(part["path"] or io.BytesIO(part["content"])) for part in parts if part["size"]]
    empty = pl.from_arrow(pa.Table.from_batches([], _arrow_schema(plain)))
    assert isinstance(empty, pl.DataFrame)
    together = pl.concat([empty, *read])
    together.columns = frame.columns
    table = _in_order(together, step)
    if once:
        keys = [column for column in table.columns if is_of_join(column)]
        table = table.drop_nulls(keys).unique(keys, keep="first", maintain_order=True)
    for part in parts:
        if part["path"] is not None:
            os.unlink(part["path"])
    if folder is None:
        content = io.BytesIO()
        table.write_ipc(content, compression="zstd")
        return Table(name, None, content.getvalue())
    path = Path(folder) / f"{name}.arrow"
    table.write_ipc(path)
    return Table(name, str(path))


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    return to_arrow_schema(frame.schema)


def _in_order(table: pl.DataFrame, step: CombineStep) -> pl.DataFrame:
    """The records by their places: numbers that are compared one after the other, a shorter row of them first."""
    import polars as pl  # as above

    place = place_column(step.build)
    longest = table[place].list.len().max() or 0
    assert isinstance(longest, int)
    items = table.select([pl.col(place).list.get(i, null_on_oob=True).alias(f"{i}") for i in range(longest)])
    order = items.select(pl.arg_sort_by(items.columns, nulls_last=False, maintain_order=True)) if longest else None
    table = table.drop(place)
    return table if order is None else table[order.to_series()]


def _packed(start: str | None, most: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The records of a task as a file that `start` begins the name of, or as its content; only the size, if that is
    too much."""
    size = 0
    writer: pa.ipc.RecordBatchFileWriter | None = None
    path = None if start is None else f"{start}{uuid.uuid4().hex}"
    sink: io.BytesIO | pa.NativeFile = io.BytesIO() if path is None else pa.OSFile(path, "wb")
    for batch in batches:
        size += batch.nbytes
        if size > most:
            break
        writer = writer or pa.ipc.new_file(sink, batch.schema)
        writer.write_batch(batch)
    if writer is not None:
        writer.close()
    content = sink.getvalue() if isinstance(sink, io.BytesIO) and size <= most else None
    sink.close()
    row = {"size": size, "path": path, "content": content}
    yield pa.RecordBatch.from_pylist(
        [row], pa.schema([("size", pa.int64()), ("path", pa.string()), ("content", pa.binary())])
    )
