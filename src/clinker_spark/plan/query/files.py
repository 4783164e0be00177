"""Files of queries before Spark sees them: their format and the type of their rows. Pure Python, no Java.

The ending of a path says the format unless an option does. Types come from the declared type, from a Parquet footer,
or from the values: a CSV column is Int if all its cells are, else Float, else String.
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

from clinker_spark.core.suggest import did_you_mean
from clinker_spark.core.types import Kind
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.query.failures import Failed
from clinker_spark.query.types import (
    ANY,
    FLOAT,
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
PLACE = "$row"
FILE_PLACES = ("$file", "$block", PLACE)
"""Hidden columns that say where a row stands: the last one is enough for a list and for one Parquet file."""
PLACES: dict[str, QType] = dict(zip(FILE_PLACES, (STRING, INT, INT), strict=True))
"""Their types."""
OPTIONS = ("format", "header", "delimiter", "multiline")
_WHOLE = 64 * 2**20
"""Files up to this size are looked at as a whole; of larger ones only the beginning."""
_SAMPLE = 10_000


@dataclass(frozen=True)
class FileSource:
    """A file (or several) to read: `names` are all columns of the file in order, `row` those that the query has."""

    paths: tuple[str, ...]
    format: str
    row: RecordType
    names: tuple[str, ...] = ()
    header: bool = True
    delimiter: str = ","
    multiline: bool = False
    schema: str | None = None
    """The Spark schema of a Parquet file, so that Spark need not look for it; None when only Spark can tell."""
    rows: tuple[Any, ...] | None = None
    """The rows themselves, for formats that Spark does not read."""

    @property
    def places(self) -> tuple[str, ...]:
        """The hidden columns that keep the order of the rows. Parquet numbers the rows of a file by itself."""
        if self.rows is not None:
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
        multiline = bool(options.get("multiline", False))
        names, found = _csv_row(paths, delimiter, header, declared)
        return FileSource(paths, kind, _declared(found, declared), names, header, delimiter, multiline)
    if kind == "parquet":
        found, schema = _parquet_row(paths)
        return FileSource(paths, kind, _declared(found, declared), found.names, schema=schema)
    if kind == "yaml":
        rows = _yaml_rows(paths)
        found = _row_type(rows)
        return FileSource(paths, kind, _declared(found, declared), found.names, rows=rows)
    found = _row_type(_json_sample(paths, kind))
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


# -------------------------------------------------------------------------- csv


def _csv_row(
    paths: tuple[str, ...], delimiter: str, header: bool, declared: QType | None
) -> tuple[tuple[str, ...], RecordType]:
    import pyarrow as pa
    from pyarrow import csv as pa_csv

    if len(delimiter) != 1:
        raise Failed("a delimiter is one character", code="E707")
    with open(paths[0], encoding="utf-8-sig", newline="") as file:
        first = next(csv.reader(file, delimiter=delimiter), None)
    if first is None:
        raise ValueError("it is empty")
    names = tuple(first) if header else tuple(f"c{i}" for i in range(len(first)))
    if len(set(names)) != len(names):
        raise ValueError("two columns have one name")
    if isinstance(declared, RecordType):
        return names, RecordType(tuple((n, (declared.field(n) or STRING).as_nullable()) for n in names))
    read = pa_csv.ReadOptions(column_names=list(names), skip_rows=1 if header else 0)
    parse = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    convert = pa_csv.ConvertOptions(strings_can_be_null=False, null_values=[""])
    whole = sum(os.path.getsize(p) for p in paths) <= _WHOLE
    types: dict[str, QType] = {}
    for path in paths:
        try:
            if whole:
                table = pa_csv.read_csv(path, read, parse, convert)
                found = {n: _csv_type(table.column(n).type, table.column(n).null_count, pa) for n in names}
            else:
                with pa_csv.open_csv(path, read, parse, convert) as reader:
                    found = {field.name: _csv_type(field.type, 1, pa) for field in reader.schema}
        except pa.ArrowInvalid as error:
            if "Empty CSV" not in str(error):
                raise
            continue
        types = {n: unify(types[n], t) if n in types else t for n, t in found.items()}
    return names, RecordType(tuple((n, STRING if is_any(t := types.get(n, STRING)) else t) for n in names))


def _csv_type(t: Any, nulls: int, pa: Any) -> QType:
    made: QType = INT if pa.types.is_integer(t) else FLOAT if pa.types.is_floating(t) else STRING
    if pa.types.is_null(t):
        return STRING
    return made.as_nullable() if nulls and made is not STRING else made


# ------------------------------------------------------------------------- json


def _json_sample(paths: tuple[str, ...], kind: str) -> tuple[Any, ...]:
    rows: list[Any] = []
    for path in paths:
        with open(path, encoding="utf-8-sig") as file:
            if kind == "jsonl":
                limit = None if os.path.getsize(path) <= _WHOLE else _SAMPLE
                rows += [json.loads(line) for line in islice(file, limit) if line.strip()]
            else:
                found = json.load(file)
                rows += found if isinstance(found, list) else [found]
    return tuple(rows)


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


def _row_type(rows: tuple[Any, ...]) -> RecordType:
    found: QType = NULL
    for row in rows:
        if not isinstance(row, dict):
            raise ValueError("its rows are no records")
        found = type_of_value(row) if is_null(found) else unify(found, type_of_value(row))
    if not isinstance(found, RecordType):
        return RecordType(())
    return RecordType(tuple((n, STRING.as_nullable() if is_null(t) else t) for n, t in found.fields))


# ---------------------------------------------------------------------- parquet


def _parquet_row(paths: tuple[str, ...]) -> tuple[RecordType, str | None]:
    """The columns of Parquet files, and their Spark schema.

    Footers count nulls: a column without any is joined and compared faster."""
    import pyarrow.parquet as pq

    schema = pq.read_schema(paths[0])
    without_nulls = set(schema.names)
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
