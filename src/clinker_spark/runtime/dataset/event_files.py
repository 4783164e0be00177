"""Files of events, by their format."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from clinker_spark.dataset.errors import DatasetError
from clinker_spark.runtime.dataset.events import Block, Reading
from clinker_spark.runtime.dataset.json_lines import json_events
from clinker_spark.runtime.dataset.recordings import read_recording, timelines_of
from clinker_spark.runtime.dataset.tables import csv_events, parquet_events

FORMATS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".rrd": "rrd",
}


def indexes_of(path: str, form: str | None = None) -> list[str]:
    """The indexes that a file says it has: only recordings do."""
    if _form(path, form) != "rrd":
        return []
    try:
        return timelines_of(path)
    except OSError as error:
        raise _unreadable(path, error) from None


def read_events(path: str, reading: Reading, form: str | None = None) -> Iterator[Block]:
    """The events of a file. Raises DatasetError, with the place of what is wrong."""
    form = _form(path, form)
    try:
        if form == "jsonl":
            with _open(path) as file:
                yield from json_events(file, path, reading)
        elif form == "csv":
            with _open(path) as file:
                yield from csv_events(file, path, reading)
        elif form == "parquet":
            yield from parquet_events(path, reading)
        elif form == "rrd":
            yield from read_recording(path, reading)
        else:
            help_text = "events are read from .jsonl, .csv, .parquet and .rrd files; or say --format"
            raise DatasetError("E852", f"'{path}': it is not known how to read this file", help_text)
    except OSError as error:
        raise _unreadable(path, error) from None
    except (pa.ArrowException, UnicodeDecodeError, EOFError) as error:
        raise DatasetError("E852", f"cannot read '{path}': {str(error).splitlines()[0]}") from None


def _form(path: str, form: str | None) -> str | None:
    name = Path(path).name.removesuffix(".gz").removesuffix(".bz2")
    return form or FORMATS.get(Path(name).suffix.lower())


def _unreadable(path: str, error: OSError) -> DatasetError:
    return DatasetError("E852", f"cannot read '{path}': {(error.strerror or str(error)).lower()}")


def _open(path: str) -> IO[bytes]:
    if path.endswith(".gz"):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return bz2.open(path, "rb") if path.endswith(".bz2") else open(path, "rb")
