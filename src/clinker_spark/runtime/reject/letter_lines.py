"""Dead letters as lines of CSV, written by Python: a Spark job for a few of them would only have to be compiled.

Both kinds of letters come here, those that readers kept and those that a pass found.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.spark.rejects.letter_marks import source_hash
from clinker_spark.spark.scan.lines import shown_line
from clinker_spark.spark.scan.text.cells import quoted_where_needed

REASON = ("error_category", "error_detail")


def text_column(text: str | None, rows: int) -> pa.Array:
    """The same text in every row."""
    return pa.repeat(pa.scalar(text, pa.string()), rows)


def write_lines(
    out: BinaryIO,
    engine: Mapping[str, pa.Array],
    record: Sequence[pa.Array],
    lines: pa.Array,
    headers: pa.Array,
    now: dt.datetime,
    handling: Any,
    fed: Sequence[Mapping[str, str] | None] | None = None,
) -> None:
    """The lines of some letters. `engine` are columns of texts by their names without prefix, all but the identifier
    and the time, in the order of the file; `record` are the columns of the records as they were read, `lines` their
    bytes in the form of `source_lines`, `headers` the header lines of their files. Of a replay, `fed` is
    what the letters of the records said before."""
    rows = len(engine["source_file"])
    identifiers = _identifiers(now, rows)
    if fed is not None:
        identifiers = [(known or {}).get("id") or new for new, known in zip(identifiers, fed, strict=True)]
        engine = {**engine, **_as_before(engine, fed)}
    chosen = [column for name, column in engine.items() if handling.include_reason or name not in REASON]
    stamps = [pa.array(identifiers, pa.string()), text_column(now.strftime("%Y-%m-%dT%H:%M:%SZ"), rows)]
    source = [*_source_columns(record, lines, headers), *record] if handling.include_source_row else []
    cells = [quoted_where_needed(cell, ",") for cell in (*stamps, *chosen, *source)]
    lines = pc.binary_join_element_wise(*cells, ",", null_handling="replace", null_replacement="")
    out.write("".join(line + "\n" for line in lines.to_pylist()).encode())


def _as_before(engine: Mapping[str, pa.Array], fed: Sequence[Mapping[str, str] | None]) -> dict[str, pa.Array]:
    """The row of the file that a record came from, and, if it fails as it did before, the words of that: they can
    name a line of that file."""
    names = ("source_row", "error_category", "triggering_value", "error_detail")
    found: dict[str, list[str | None]] = {"source_row": [], "error_detail": []}
    columns = [engine[name].to_pylist() for name in names]
    for row, category, value, detail, known in zip(*columns, fed, strict=True):
        before = known or {}
        same = before.get("error_category") == category and before.get("triggering_value", "") == (value or "")
        found["source_row"].append(before.get("source_row", row))
        found["error_detail"].append(before.get("error_detail", detail) if same else detail)
    return {name: pa.array(column, pa.string()) for name, column in found.items()}


def _source_columns(record: Sequence[pa.Array], lines: pa.Array, headers: pa.Array) -> list[pa.Array]:
    """`SOURCE_COLUMNS` of some letters."""
    shown = [(None, None) if text is None else shown_line(text) for text in lines.to_pylist()]
    titles = [None if text is None else title for (text, _), title in zip(shown, headers.to_pylist(), strict=True)]
    cells = zip(*(column.to_pylist() for column in record), strict=True) if record else [()] * len(shown)
    hashes = [source_hash(row, text) for row, (text, _) in zip(cells, shown, strict=True)]
    columns = ([text for text, _ in shown], [encoding for _, encoding in shown], titles, hashes)
    return [pa.array(column, pa.string()) for column in columns]


def _identifiers(now: dt.datetime, count: int) -> list[str]:
    """Identifiers that sort by time (version 7)."""
    stamp = f"{int(now.replace(tzinfo=dt.UTC).timestamp() * 1000):012x}"
    start = f"{stamp[:8]}-{stamp[8:]}-7"
    digits = os.urandom(10 * count).hex()
    found = []
    for at in range(0, 20 * count, 20):
        variant = "89ab"[int(digits[at + 3], 16) & 3]
        found.append(f"{start}{digits[at : at + 3]}-{variant}{digits[at + 4 : at + 7]}-{digits[at + 7 : at + 19]}")
    return found
