"""Results of dataset queries as files: written in an attempt, and visible as a whole or not at all."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa

from clinker_spark.dataset.errors import DatasetError
from clinker_spark.query.values import json_text
from clinker_spark.runtime.commit.attempt import Attempt
from clinker_spark.runtime.commit.claims import Claim

FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".parquet": "parquet"}
STDOUT = "-"
Write = Callable[[pa.RecordBatch], None]


def write_result(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, path: str, form: str | None = None, *, force: bool = False
) -> int:
    """Write all rows; how many there are. `-` is standard output."""
    kind = form or ("jsonl" if path == STDOUT else FORMATS.get(Path(path).suffix.lower()))
    if kind is None:
        raise DatasetError("E854", f"'{path}': it is not known how to write this file", "use .jsonl, .csv or .parquet")
    if kind == "csv" and (nested := [field.name for field in schema if pa.types.is_nested(field.type)]):
        raise DatasetError("E854", f"column '{nested[0]}' is no single value: CSV cannot hold it", "write .jsonl")
    if path == STDOUT:
        return _write(batches, schema, kind, sys.stdout.buffer)
    with _in_place(path, force=force) as file:
        return _write(batches, schema, kind, file)


def _write(batches: Iterator[pa.RecordBatch], schema: pa.Schema, kind: str, file: IO[bytes]) -> int:
    rows = 0
    with _writer(schema, kind, file) as write:
        for batch in batches:
            write(batch)
            rows += batch.num_rows
    return rows


@contextmanager
def _writer(schema: pa.Schema, kind: str, file: IO[bytes]) -> Iterator[Write]:
    if kind == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetWriter(file, schema) as parquet:
            yield _gathered(parquet.write_batch)
    elif kind == "csv":
        from pyarrow import csv

        with csv.CSVWriter(file, schema, write_options=csv.WriteOptions(quoting_style="needed")) as text:
            yield text.write_batch
    else:

        def lines(batch: pa.RecordBatch) -> None:
            rows = (json_text(row, sort=False, indent=None, whole=False) for row in batch.to_pylist())
            file.write("".join(f"{row}\n" for row in rows).encode())

        yield lines


def _gathered(write: Callable[[pa.RecordBatch, int], None]) -> Write:
    return lambda batch: write(batch, max(batch.num_rows, 1))


@contextmanager
def _in_place(path: str, *, force: bool) -> Iterator[IO[bytes]]:
    attempt = Attempt(str(uuid.uuid4()), pipeline="dataset", force=force, keeps_manifest=False)
    try:
        attempt.claim([Claim("result", Path(path), shown=path)])
        made = attempt.folder(Path(path), "result") / "final"
        with open(made, "wb") as file:
            yield file
        attempt.put(made, Path(path), "result")
        attempt.publish()
    finally:
        attempt.clean()
