"""Files of queries before Spark sees them: their format and the type of their rows. Pure Python, no Java.

The ending of a path says the format unless an option does. Types come from the declared type, from a Parquet footer,
or from the values (see `guesses` for those of CSV files).
"""

from __future__ import annotations

import csv
import glob
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import Kind
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import BLOCK_COLUMN, FILE_COLUMN, ROW_COLUMN
from clinker_spark.plan.query.csv_files import WHOLE, csv_names, csv_row, shown_path
from clinker_spark.query.failures import Failed
from clinker_spark.query.types import (
    ANY,
    INT,
    NULL,
    STRING,
    ListType,
    QType,
    RecordType,
    Scalar,
    is_any,
    is_null,
    type_of_value,
    unify,
)

FORMATS = ("csv", "tsv", "json", "jsonl", "yaml", "parquet")
_ENDINGS = {**{f".{name}": name for name in FORMATS}, ".yml": "yaml", ".ndjson": "jsonl"}
FILE_PLACES = (FILE_COLUMN, BLOCK_COLUMN, ROW_COLUMN)
"""Hidden columns that say where a row stands: the last one is enough for a list and for one Parquet file."""
PLACES: dict[str, QType] = dict(zip(FILE_PLACES, (STRING, INT, INT), strict=True))
"""Their types."""
BROKEN = "E712: "
"""How the message of a query begins that met a record of a file that it cannot use."""
_JSON_BLOCK = 16 * 2**20
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
        found, schema = _parquet_row(paths)
        return FileSource(paths, kind, _declared(found, declared), found.names, schema=schema)
    if kind == "yaml":
        rows = _yaml_rows(paths)
        found = _row_type(rows, paths)
        return FileSource(paths, kind, _declared(found, declared), found.names, rows=rows)
    found = _row_type(_json_rows(paths, kind), paths)
    row = _declared(found, declared)
    return FileSource(paths, kind, row, row.names)


def _declared(found: RecordType, declared: QType | None) -> RecordType:
    """The fields of the declared type; each must be there. A column may still hold nulls."""
    if declared is None or is_any(declared):
        return found
    if not isinstance(declared, RecordType):
        raise Failed(f"rows of a file are records, not {declared}", code="E711")
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


# ------------------------------------------------------------------------- json


def _json_rows(paths: tuple[str, ...], kind: str) -> tuple[Any, ...]:
    """The records that tell the types: all of them, but of a long file with a record a line only as many as differ."""
    rows: list[Any] = []
    for path in paths:
        with open(path, "rb") as file:
            if kind == "json":
                found = _json_value(file.read(), path, None)
                rows += found if isinstance(found, list) else [found]
                continue
            size = os.path.getsize(path)
            beginning = size if size <= WHOLE or not _fits_its_beginning(path) else _JSON_BLOCK
            start = file.tell()
            for number, line in enumerate(file, 1):
                if line.strip():
                    rows.append(_json_value(line, path, number))
                start += len(line)
                if start >= beginning:
                    break
    return tuple(rows)


def _json_value(data: bytes, path: str, number: int | None) -> Any:
    where = f"line {number} of '{shown_path(path)}'" if number is not None else f"'{shown_path(path)}'"
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise Failed(f"{where} is not UTF-8", "convert the file, for example with iconv", code="E712") from None
    except ValueError as error:
        reason = str(error) if number is None else str(error).split(": line ")[0]
        raise Failed(f"{where} is not JSON: {reason}", code="E712") from None


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def _fits_its_beginning(path: str) -> bool:
    """Have all records of a long file the fields and the types of those at its beginning?"""
    import pyarrow as pa
    from pyarrow import json as pa_json

    try:
        reader = pa_json.open_json(path, pa_json.ReadOptions(block_size=_JSON_BLOCK))
        return sum(1 for _ in reader) > 0
    except pa.ArrowInvalid:
        return False


def _yaml_rows(paths: tuple[str, ...]) -> tuple[Any, ...]:
    import yaml

    rows: list[Any] = []
    for path in paths:
        with open(path, encoding="utf-8-sig") as file:
            try:
                found = yaml.safe_load(file)
            except yaml.YAMLError as error:
                raise ValueError(str(error)) from None
        rows += found if isinstance(found, list) else [] if found is None else [found]
    return tuple(rows)


def _row_type(rows: tuple[Any, ...], paths: tuple[str, ...]) -> RecordType:
    found: QType = NULL
    for row in rows:
        if not isinstance(row, dict):
            raise ValueError("its rows are no records")
        found = type_of_value(row) if is_null(found) else unify(found, type_of_value(row))
    if not isinstance(found, RecordType):
        return RecordType(())
    for number, row in enumerate(rows, 1):
        lost = _lost(row, found)
        if lost is not None:
            where = f"'{shown_path(paths[0])}'" if len(paths) == 1 else "the files"
            message = f"record {number} of {where}: {lost} has more digits than a column of numbers can hold"
            raise Failed(message, "write it as a text", code="E712")
    return RecordType(tuple((n, STRING.as_nullable() if is_null(t) else t) for n, t in found.fields))


def _lost(value: Any, t: QType) -> int | None:
    """A whole number inside of a value that its type would change: beyond 64 bits, or rounded as a float."""
    if isinstance(value, dict) and isinstance(t, RecordType):
        found = (_lost(inner, f) for name, inner in value.items() if (f := t.field(name)) is not None)
        return next((n for n in found if n is not None), None)
    if isinstance(value, list) and isinstance(t, ListType):
        return next((n for n in (_lost(inner, t.element) for inner in value) if n is not None), None)
    if not isinstance(value, int) or isinstance(value, bool) or not isinstance(t, Scalar):
        return None
    if t.kind is Kind.INT:
        return None if -(2**63) <= value < 2**63 else value
    return value if t.kind is Kind.FLOAT and not _is_float(value) else None


def _is_float(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


# ---------------------------------------------------------------------- parquet


def _parquet_row(paths: tuple[str, ...]) -> tuple[RecordType, str | None]:
    """The columns of Parquet files, and their Spark schema.

    Footers count nulls: a column without any is joined and compared faster."""
    import pyarrow.parquet as pq

    schema = pq.read_schema(paths[0])
    without_nulls = set(schema.names)
    for path in paths[1:]:
        others = set(pq.read_schema(path).names) ^ set(schema.names)
        if others:
            name = sorted(others)[0]
            which = shown_path(path if name in schema.names else paths[0])
            help_text = "load files with different columns one by one"
            raise Failed(f"'{which}' has no column '{name}', but other files have it", help_text, code="E713")
    for path in paths:
        without_nulls &= _columns_without_nulls(pq.read_metadata(path))
    fields = [(f.name, _arrow_type(f.type)) for f in schema]
    row = RecordType(tuple((n, t if n in without_nulls else t.as_nullable()) for n, t in fields))
    spelled = [(f.name, _spark_spelling(f.type)) for f in schema]
    if any(text is None for _, text in spelled):
        return row, None
    return row, ", ".join(f"{quote(name)} {text}" for name, text in spelled)


def _spark_spelling(t: Any) -> str | None:
    """The Spark type of a flat Parquet column; None for those that Spark should look at itself."""
    import pyarrow as pa

    if pa.types.is_decimal(t):
        return f"DECIMAL({t.precision}, {t.scale})"
    if pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t):
        return "STRING"
    names = {"int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "float": "FLOAT"}
    names |= {"double": "DOUBLE", "bool": "BOOLEAN", "date32[day]": "DATE"}
    return names.get(str(t))


def _columns_without_nulls(metadata: Any) -> set[str]:
    counts: dict[str, int] = {}
    for group in range(metadata.num_row_groups):
        for i in range(metadata.num_columns):
            column = metadata.row_group(group).column(i)
            stats = column.statistics
            nulls = stats.null_count if stats is not None and stats.has_null_count else 1
            counts[column.path_in_schema] = counts.get(column.path_in_schema, 0) + nulls
    return {name for name, nulls in counts.items() if nulls == 0}


def _arrow_type(t: Any) -> QType:
    import pyarrow as pa

    if pa.types.is_boolean(t):
        return Scalar(Kind.BOOL)
    if pa.types.is_integer(t):
        return Scalar(Kind.INT, narrow=t.bit_width < 64)
    if pa.types.is_floating(t):
        return Scalar(Kind.FLOAT, narrow=t.bit_width < 64)
    if pa.types.is_decimal(t):
        return Scalar(Kind.DECIMAL, scale=t.scale)
    if pa.types.is_date(t):
        return Scalar(Kind.DATE)
    if pa.types.is_timestamp(t):
        return Scalar(Kind.DATETIME)
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        return ListType(_arrow_type(t.value_type).as_nullable())
    if pa.types.is_struct(t):
        return RecordType(tuple((f.name, _arrow_type(f.type).as_nullable()) for f in t)).as_nullable()
    if pa.types.is_dictionary(t):
        return _arrow_type(t.value_type)
    if pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t):
        return STRING
    return ANY
