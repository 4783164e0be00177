"""Results of dataset queries as files: written in an attempt, and visible as a whole or not at all."""

from __future__ import annotations

import errno
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.dataset.constants import FLUSH_BATCH_BYTES
from clinker_spark.dataset.either import as_table, table_type
from clinker_spark.dataset.errors import DatasetError
from clinker_spark.runtime.commit.attempt import Attempt
from clinker_spark.runtime.commit.claims import Claim
from clinker_spark.runtime.dataset.text_cells import json_lines, times
from clinker_spark.runtime.errors import IoError

FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".parquet": "parquet"}
STDOUT = "-"
Write = Callable[[pa.RecordBatch], object]
_ROW_GROUP = 1 << 17


def write_result(
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    path: str,
    form: str | None = None,
    *,
    dataset: str | None = None,
    force: bool = False,
) -> int:
    """Write all rows; how many there are. `-` is standard output. Nothing is written into the folder of the dataset."""
    kind = _kind(schema, path, form)
    if dataset is not None and path != STDOUT and Path(dataset).resolve() in Path(path).resolve().parents:
        message = f"'{path}' is in the folder of the dataset, whose files would be mixed with the result"
        raise DatasetError("E854", message, "write it beside the dataset")
    try:
        if path == STDOUT:
            return _write(batches, schema, kind, sys.stdout.buffer)
        with _in_place(path, force=force) as file:
            return _write(batches, schema, kind, file)
    except BrokenPipeError:
        raise  # nobody wants more
    except OSError as error:
        code = "E405" if error.errno == errno.ENOSPC else "E401"
        where = "the result" if path == STDOUT else f"'{path}'"
        message = f"cannot write {where}: {(error.strerror or str(error)).lower()}"
        raise IoError([Diagnostic(code, message, help="free space or choose another place, and ask again")]) from None


def _kind(schema: pa.Schema, path: str, form: str | None) -> str:
    """The kind of file, by what was asked or its name. Raises DatasetError if there is none, or it cannot hold this."""
    kind = form or ("jsonl" if path == STDOUT else FORMATS.get(Path(path).suffix.lower()))
    if kind is None:
        raise DatasetError("E854", f"'{path}': it is not known how to write this file", "use .jsonl, .csv or .parquet")
    if kind == "csv" and (nested := [field.name for field in schema if pa.types.is_nested(field.type)]):
        raise DatasetError("E854", f"column '{nested[0]}' is no single value: CSV cannot hold it", "write .jsonl")
    return kind


def _write(batches: Iterator[pa.RecordBatch], schema: pa.Schema, kind: str, file: IO[bytes]) -> int:
    rows = 0
    try:
        with _WRITERS[kind](schema, file) as write:
            for batch in batches:
                write(batch)
                rows += batch.num_rows
        file.flush()
    except pa.ArrowException as error:
        message = f"the result cannot be written as {kind}: {str(error).splitlines()[0]}"
        raise DatasetError("E854", message, "write .jsonl, or ask for other --columns") from None
    return rows


@contextmanager
def _parquet(schema: pa.Schema, file: IO[bytes]) -> Iterator[Write]:
    import pyarrow.parquet as pq  # Arrow's formats are loaded by who asks for them

    table = pa.schema([pa.field(f.name, table_type(f.type)) for f in schema])
    held: list[pa.RecordBatch] = []
    with pq.ParquetWriter(file, table) as parquet:

        def flush() -> None:
            if held:
                parquet.write_table(pa.Table.from_batches(held))
            held.clear()

        def write(batch: pa.RecordBatch) -> None:
            held.append(_converted(batch, table, as_table))
            if sum(batch.num_rows for batch in held) >= _ROW_GROUP or sum(b.nbytes for b in held) >= FLUSH_BATCH_BYTES:
                flush()

        yield write
        flush()


@contextmanager
def _csv(schema: pa.Schema, file: IO[bytes]) -> Iterator[Write]:
    from pyarrow import csv  # Arrow's formats are loaded by who asks for them

    texts = pa.schema([pa.field(f.name, pa.string() if pa.types.is_timestamp(f.type) else f.type) for f in schema])
    with csv.CSVWriter(file, texts, write_options=csv.WriteOptions(quoting_style="needed")) as writer:
        yield lambda batch: writer.write_batch(_converted(batch, texts, _without_times))


@contextmanager
def _jsonl(schema: pa.Schema, file: IO[bytes]) -> Iterator[Write]:
    yield lambda batch: file.write(json_lines(batch))


_WRITERS = {"parquet": _parquet, "csv": _csv, "jsonl": _jsonl}


def _converted(batch: pa.RecordBatch, schema: pa.Schema, how: Callable[[pa.Array], pa.Array]) -> pa.RecordBatch:
    return pa.record_batch([how(column) for column in batch.columns], schema=schema)


def _without_times(column: pa.Array) -> pa.Array:
    return times(column) if pa.types.is_timestamp(column.type) else column


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
