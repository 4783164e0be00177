"""Files of queries before Spark sees them: their format and the type of their rows. Pure Python, no Java.

The ending of a path says the format unless an option does. Types come from the declared type, from a Parquet footer,
or from the values (see `guesses` for those of CSV files).
"""

from __future__ import annotations

import csv
import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import INT, STRING
from clinker_spark.query.evaluate.casts import cast
from clinker_spark.query.failures import Failed
from clinker_spark.query.files.csv import csv_names, csv_row
from clinker_spark.query.files.documents import json_rows, row_type, yaml_rows
from clinker_spark.query.files.parquet import parquet_row
from clinker_spark.query.hidden import BLOCK_COLUMN, FILE_COLUMN, ROW_COLUMN
from clinker_spark.query.types import QType, RecordType, is_any, is_null

FORMATS = ("csv", "tsv", "json", "jsonl", "yaml", "parquet")
_ENDINGS = {**{f".{name}": name for name in FORMATS}, ".yml": "yaml", ".ndjson": "jsonl"}
FILE_PLACES = (FILE_COLUMN, BLOCK_COLUMN, ROW_COLUMN)
"""Hidden columns that say where a row stands: the last one is enough for a list and for one Parquet file."""
PLACES: dict[str, QType] = dict(zip(FILE_PLACES, (STRING, INT, INT), strict=True))
"""Their types."""
BROKEN = "E712: "
"""How the message of a query begins that met a record of a file that it cannot use."""
OPTIONS = ("format", "header", "delimiter")


@dataclass(frozen=True)
class FileSource:
    """A file (or several) to read: `names` are all columns of the file in order, `row` those that the query has."""

    paths: tuple[str, ...]
    format: str
    row: RecordType
    names: tuple[str, ...] = ()
    header: bool = True
    delimiter: str = ","
    patterns: tuple[tuple[str, str], ...] = ()
    """Columns whose types were guessed from the beginning of the files, with what all of their texts must match."""
    schema: str | None = None
    """The Spark schema of a Parquet file, so that Spark need not look for it; None when only Spark can tell."""
    rows: tuple[Any, ...] | None = None
    """The rows themselves, for formats that Spark does not read."""

    @property
    def places(self) -> tuple[str, ...]:
        """The hidden columns that keep the order of the rows. Parquet numbers the rows of a file by itself, and CSV
        files are read in their order."""
        if self.rows is not None or self.format in ("csv", "tsv"):
            return FILE_PLACES[-1:]
        first = 0 if len(self.paths) > 1 else 2 if self.format == "parquet" else 1
        return FILE_PLACES[first:]


def format_of(path: str, options: Mapping[str, Any]) -> str:
    """The format of a file.

    >>> format_of("people.CSV", {}), format_of("data", {"format": "jsonl"})
    ('csv', 'jsonl')
    """
    for name in options:
        if name not in OPTIONS:
            raise Failed(
                f"unknown option '{name}'", did_you_mean(name, OPTIONS) or f"options: {', '.join(OPTIONS)}", code="E707"
            )
    given = options.get("format")
    if given is not None:
        wanted = str(given).lower()
        if wanted not in FORMATS:
            help_text = did_you_mean(wanted, FORMATS) or f"the formats are {', '.join(FORMATS)}"
            raise Failed(f"unknown format '{given}'", help_text, code="E707")
        return wanted
    found = _ENDINGS.get(Path(path).suffix.lower())
    if found is None:
        help_text = 'name it: with {format: "csv"}; the formats are ' + ", ".join(FORMATS)
        raise Failed(f"the ending of '{path}' says no format", help_text, code="E707")
    return found


def file_source(path: str | None, options: Mapping[str, Any], declared: QType | None) -> FileSource:
    """A file as a source of rows; raises `Failed` when it cannot be one."""
    if not path:
        raise Failed("load needs a path", 'write load "people.csv"', code="E707")
    kind = format_of(path, options)
    paths = _existing(path)
    try:
        made = _read(paths, kind, options, declared)
    except OSError as error:
        raise Failed(f"cannot read '{path}': {error.strerror or error}", code="E707") from None
    except (ValueError, UnicodeDecodeError, csv.Error) as error:
        raise Failed(f"'{path}' is not {kind}: {str(error).splitlines()[0]}", code="E707") from None
    return made


def _existing(path: str) -> tuple[str, ...]:
    if os.path.isdir(path):
        found = sorted(str(p) for p in Path(path).iterdir() if p.is_file() and p.name[0] not in "._")
    elif os.path.exists(path):
        found = [path]
    else:
        found = sorted(glob.glob(path)) if any(c in path for c in "*?[") else []
    if not found:
        folder = Path(path).parent
        names = [p.name for p in islice(folder.iterdir(), 200)] if folder.is_dir() else []
        raise Failed(f"there is no file '{path}'", did_you_mean(Path(path).name, names), code="E707")
    return tuple(os.path.abspath(p) for p in found)


def _read(paths: tuple[str, ...], kind: str, options: Mapping[str, Any], declared: QType | None) -> FileSource:
    if kind in ("csv", "tsv"):
        delimiter = str(options.get("delimiter", "\t" if kind == "tsv" else ","))
        header = bool(options.get("header", True))
        names = csv_names(paths, delimiter, header)
        found, patterns = csv_row(paths, names, delimiter, header, declared)
        return FileSource(paths, kind, _declared(found, declared), names, header, delimiter, patterns)
    if kind == "parquet":
        found, schema = parquet_row(paths)
        return FileSource(paths, kind, _declared(found, declared), found.names, schema=schema)
    if kind == "yaml":
        rows = yaml_rows(paths)
        found = row_type(rows, paths)
        row = _declared(found, declared)
        if row is not found:
            rows = tuple(cast(item, row) for item in rows)
        return FileSource(paths, kind, row, found.names, rows=rows)
    found = row_type(json_rows(paths, kind), paths)
    row = _declared(found, declared)
    return FileSource(paths, kind, row, row.names)


def _declared(found: RecordType, declared: QType | None) -> RecordType:
    """The fields of the declared type; each must be there. A column may still hold nulls."""
    if declared is None or is_any(declared):
        return found
    if not isinstance(declared, RecordType):
        raise Failed(f"rows of a file are records, not {declared:?}", code="E711")
    missing = [name for name in declared.names if found.field(name) is None]
    if missing:
        shown = f" for {declared.name}" if declared.name else ""
        raise Failed(f"missing field {missing[0]}{shown}", f"the file has {', '.join(found.names)}", code="E711")
    fields = []
    for name, want in declared.fields:
        have = found.field(name)
        assert have is not None
        fields.append((name, want.as_nullable() if have.nullable or is_null(have) else want))
    return RecordType(tuple(fields), name=declared.name)
