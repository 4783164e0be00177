"""Writing results of queries. Each result is a commit of its own: it appears as a whole or not at all.

Writers of formats, and what needs pyspark, are imported where they are used: most programs need none of them.
"""

from __future__ import annotations

import csv
import io
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from clinker_spark.query import values
from clinker_spark.query.evaluate.functions import items
from clinker_spark.query.failures import Failed
from clinker_spark.query.lower.values import VALUE, columns_of
from clinker_spark.query.types import ListType, MapType, QType, RecordType
from clinker_spark.runtime.commit.attempt import Attempt
from clinker_spark.runtime.commit.claims import Claim
from clinker_spark.runtime.errors import IoError

RESULT = "result"


def write_list(value: Any, path: str, kind: str, options: Mapping[str, Any]) -> None:
    """A list of the program, without Spark."""
    rows = items(value) if isinstance(value, list) else [value]
    with _in_place(path) as file:
        _write_rows(file, rows, path, kind, options)


def _write_rows(file: IO[bytes], rows: list[Any], path: str, kind: str, options: Mapping[str, Any]) -> None:
    if kind not in ("parquet", "csv", "tsv"):
        file.writelines(_texts(rows, kind))
        return
    records = [row if isinstance(row, dict) else {VALUE: row} for row in rows]
    names = list(dict.fromkeys(name for row in records for name in row))
    if kind != "parquet":
        file.write(_header(names, kind, options))
        file.write(_csv([[_cell(r.get(n)) for n in names] for r in records], kind, options))
        return
    import pyarrow as pa  # loaded when a list is saved as Parquet
    import pyarrow.parquet as pq

    try:
        pq.write_table(pa.table({n: [r.get(n) for r in records] for n in names}), file)
    except pa.ArrowInvalid as error:
        raise Failed(f"cannot write '{path}': {error}", code="E707") from None


def _texts(rows: Iterable[Any], kind: str) -> Iterator[bytes]:
    if kind == "yaml":
        import yaml  # slow to load

        empty = True
        for row in rows:
            empty = False
            yield yaml.safe_dump([values.plain(row, False)], sort_keys=False, allow_unicode=True).encode()
        if empty:
            yield b"[]\n"
        return
    lines = (values.json_text(row, sort=False, indent=None, whole=False).encode() for row in rows)
    yield from (line + b"\n" for line in lines) if kind == "jsonl" else _array(lines)


def _array(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines of JSON as one array."""
    separator = b"[\n  "
    for line in lines:
        yield separator + line
        separator = b",\n  "
    yield b"[]\n" if separator.startswith(b"[") else b"\n]\n"


def _header(names: list[str], kind: str, options: Mapping[str, Any]) -> bytes:
    return _csv([names], kind, options) if options.get("header", True) else b""


def _csv(rows: Iterable[Iterable[str]], kind: str, options: Mapping[str, Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=_delimiter(kind, options), lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(values.plain(value, False), ensure_ascii=False)
    return values.show(value)


def _delimiter(kind: str, options: Mapping[str, Any]) -> str:
    return str(options.get("delimiter", "\t" if kind == "tsv" else ","))


# ----------------------------------------------------------------------- Spark


def write_dataset(
    frame: Any, row: QType, path: str, kind: str, options: Mapping[str, Any], *, force: bool = False
) -> None:
    """Rows on Spark: parts are written in parallel, in order, and put one after the other."""
    if kind == "yaml":  # Spark has no writer for it
        from clinker_spark.spark.query.results import stream

        with _in_place(path) as file:
            file.writelines(_texts(stream(frame, row), kind))
        return
    from clinker_spark.spark.parts import part_writer

    # A folder that is there stays one. Only Parquet may be one, and only a folder that a query wrote is replaced.
    folder = kind == "parquet" and os.path.isdir(path)
    with _attempt(path, folder=folder, force=force) as attempt:
        made = attempt.folder(Path(path), "result")
        parts = str(made / "parts")
        writer = part_writer(frame, parts)
        if kind == "parquet":
            writer.parquet(parts)
            final = _parquet(made, _part_files(parts), Path(path))
            attempt.keeps_manifest = final.is_dir()
            attempt.put(final, Path(path), RESULT)
            return
        if kind in ("csv", "tsv"):
            if nested := [n for n, t in columns_of(row) if isinstance(t, RecordType | ListType | MapType)]:
                raise Failed(
                    f"column '{nested[0]}' is no single value: CSV cannot hold it", "save as json", code="E707"
                )
            writer.csv(parts, sep=_delimiter(kind, options), header=False, escape='"', emptyValue="", nullValue="")
        else:
            writer.json(parts, ignoreNullFields=False)
        with open(made / "final", "wb") as file:
            _join_parts(file, _part_files(parts), row, kind, options)
        attempt.put(made / "final", Path(path), RESULT)


def _part_files(folder: str) -> list[Path]:
    return sorted(p for p in Path(folder).iterdir() if p.name.startswith("part-"))


def _join_parts(file: IO[bytes], parts: Iterable[Path], row: QType, kind: str, options: Mapping[str, Any]) -> None:
    if kind in ("csv", "tsv"):
        file.write(_header([name for name, _ in columns_of(row)], kind, options))
    file.writelines(_array(_lines(parts, b"\n")) if kind == "json" else _lines(parts))


def _lines(parts: Iterable[Path], end: bytes = b"") -> Iterator[bytes]:
    """The lines of files one after the other, without this end."""
    for part in parts:
        with part.open("rb") as lines:
            yield from (line.removesuffix(end) for line in lines)


def _parquet(made: Path, parts: list[Path], place: Path) -> Path:
    """Parquet is a folder of parts, or one file when there is one part; what is there already decides."""
    if len(parts) == 1 and not place.is_dir():
        return parts[0]
    final = made / "final"
    if place.is_file():
        from clinker_spark.runtime.run.files.parquet_files import one_parquet  # Arrow is slow to load

        one_parquet(parts, final, "snappy")
        return final
    final.mkdir()
    for part in parts:  # without the marks and checksums of Hadoop
        part.rename(final / part.name)
    return final


@contextmanager
def _attempt(path: str, *, folder: bool, force: bool) -> Iterator[Attempt]:
    """An attempt for one result, which is published at the end."""
    attempt = Attempt(str(uuid.uuid4()), pipeline="query", force=force, keeps_manifest=False)
    try:
        attempt.claim([Claim(RESULT, Path(path), folder=folder, shown=path)])
        yield attempt
        attempt.publish()
    except IoError as error:
        found = error.diagnostics[0]
        raise Failed(found.message, found.help, code="E707" if found.code in ("E401", "E405") else found.code) from None
    except OSError as error:
        help_text = "nothing was published, what was there is as it was"
        raise Failed(f"cannot write '{path}': {error.strerror or error}", help_text, code="E707") from None
    finally:
        attempt.clean()


@contextmanager
def _in_place(path: str) -> Iterator[IO[bytes]]:
    with _attempt(path, folder=False, force=False) as attempt:
        made = attempt.folder(Path(path), "result") / "final"
        with open(made, "wb") as file:
            yield file
        attempt.put(made, Path(path), RESULT)
