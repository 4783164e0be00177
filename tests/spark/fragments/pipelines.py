"""Pipelines whose nodes all have vector forms, and files with everything that can go wrong in them."""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import random
from pathlib import Path

HEADER = ["id", "name", "qty", "price", "day", "at", "flag", "big"]
SCHEMA = """
      schema:
        - { name: id, type: int }
        - { name: name, type: string }
        - { name: qty, type: "nullable(int)" }
        - { name: price, type: "nullable(float)" }
        - { name: day, type: "nullable(date)" }
        - { name: at, type: "nullable(date_time)" }
        - { name: flag, type: "nullable(bool)" }
        - { name: big, type: "nullable(decimal(2))" }
"""
NAMES = [
    "Ada",
    "Grace, Hopper",
    'O"Neill',
    "two\nlines",
    "",
    "straße",
    "ÉCOLE İI",
    "tab\there",
    "back\\slash",
    " x ",
    "\u2028",
]
PRICES = ["1.5", "100", "0.1", "1e20", "-0.0", "1e-9", "123456789.125", "", "inf", "nan", "3.0", "0.30000000000000004"]
QUANTITIES = ["1", "0", "-7", "9223372036854775807", "", "42", "5", "x7"]
DAYS = ["2024-02-29", "0001-01-01", "9999-12-31", "", "2023-06-01", "soon"]
TIMES = ["2024-03-15T14:30:00", "2024-03-15T14:30:00.5", "1969-12-31T23:59:59.123456", "", "2000-01-01T00:00:00"]
FLAGS = ["true", "false", ""]
BIGS = ["0.10", "-12345678901234567890.55", "", "7.00", "0.001"]

ONE_OUTPUT = """
  - type: transform
    name: priced
    input: s
    config:
      cxl: |
        filter qty == null or qty != 5
        emit gross = (price ?? 1.0) * 2.5
        emit part = 100 / (qty ?? 1)
        filter name != "Ada" or part > 0
        emit twice = (qty ?? 1) * 3
        emit label = if (flag ?? false) then name.upper() else name.trim().lower()
        emit year = day.year()
        emit later = day.add_months(1)
        emit shown = at.format_date("%d.%m.%Y %H:%M")
        emit text = price.to_string()
        emit rounded = price.round(2)
        emit kind = match { price > 100.0 => "dear", price > 1.0 => "fair", _ => "cheap" }
  - { type: output, name: out, input: priced, config: { type: OUT, path: out.EXT, include_unmapped: true OPTIONS } }
"""
ROUTED = """
  - { type: transform, name: t1, input: s, config: { cxl: "emit n = name.length()" } }
  - type: transform
    name: t2
    input: t1
    config:
      cxl: "emit q = 1000 / (qty ?? 3)"
      validations:
        - { field: n, check: "n < 9", message: too long }
        - { name: even, check: "q % 2 == 0", message: odd, severity: warn }
  - type: route
    name: r
    input: t2
    config: { mode: MODE, conditions: { low: "q < 10", some: "q * 3 > 300", none: "price < 0.0" }, default: rest }
  - { type: output, name: low, input: r.low, config: { type: OUT, path: low.EXT OPTIONS } }
  - { type: output, name: some, input: r.some, config: { type: OUT, path: some.EXT OPTIONS } }
  - { type: transform, name: t3, input: r.rest, config: { cxl: "filter n > 1\\nemit w = price ?? 0.0" } }
  - type: output
    name: rest
    input: t3
    config: { type: OUT, path: rest.EXT, mapping: [id, w, {was: name}] OPTIONS }
  - { type: output, name: all, input: t2, config: { type: OUT, path: all.EXT OPTIONS } }
"""
DECIMALS = """
  - type: transform
    name: counted
    input: s
    config:
      cxl: |
        filter big == null or big != 7
        emit sum = (big ?? 1) + (qty ?? 0)
        emit product = big * qty
        emit fee = (big * "0.019".to_decimal()).round(2)
        emit share = big / 7
        emit exact = (price ?? 0.5).try_decimal()
        emit part = if share > 100 then share.to_string() else "part: ".concat(share)
        emit larger = big.max("0.105".to_decimal())
        emit whole = big.floor().to_int() ?? 0
        emit float = big.to_float()
        emit back = (-sum).abs().to_string().to_decimal() - 1
  - type: route
    name: r
    input: counted
    config: { conditions: { low: "sum < 1", dear: "back >= larger" }, default: rest }
  - { type: output, name: low, input: r.low, config: { type: OUT, path: low.EXT OPTIONS } }
  - type: output
    name: dear
    input: r.dear
    config:
      { type: OUT, path: dear.EXT, schema: [{name: share, type: decimal(3)}, {name: sum, type: decimal(1)}] OPTIONS }
  - { type: output, name: rest, input: r.rest, config: { type: OUT, path: rest.EXT OPTIONS } }
"""
KINDS = {
    "csv": ("csv", "csv", ""),
    "semicolons": ("csv", "csv", ", options: { delimiter: ';' }"),
    "ndjson": ("json", "json", ", options: { format: ndjson }"),
    "array": ("json", "json", ", preserve_nulls: false"),
}
MIXED = ("csv", "array", "ndjson")
"""The kinds that outputs of `mixed` take in turn."""


def pipeline(source: str, nodes: str, kind: str, engine: str, mode: str = "exclusive") -> str:
    text = nodes.replace("MODE", mode)
    for each in itertools.cycle(MIXED if kind == "mixed" else [kind]):
        if "OUT" not in text:
            break
        for word, value in zip(("OUT", "EXT", "OPTIONS"), KINDS[each], strict=True):
            text = text.replace(word, value, 1)
    name = "in.csv" if source == "csv" else "in.json"
    of_json = "" if source == "csv" else "      options: { format: ndjson }\n"
    return (
        f"pipeline: {{ name: p, engine: {engine} }}\nnodes:\n  - type: source\n    name: s\n    config:\n"
        f"      type: {source}\n      path: {name}\n{of_json}{SCHEMA}{text}"
        "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"
    )


def write_files(folder: Path, seed: int, records: int) -> None:
    """The same records as CSV, with some broken lines, and as JSON lines."""
    rng = random.Random(seed)
    rows = []
    for i in range(records):
        row = [str(i)] + [rng.choice(pool) for pool in (NAMES, QUANTITIES, PRICES, DAYS, TIMES, FLAGS, BIGS)]
        rows.append(row if rng.random() > 0.03 else row[:3])
    with open(folder / "in.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([[*HEADER, "more"], *([*row, "m,1"] for row in rows)])
    lines = []
    for row in rows:
        record: dict[str, object] = {name: text or None for name, text in zip(HEADER, row, strict=False)}
        record["name"] = row[1]
        for name in ("id", "qty", "price"):
            text = record.get(name)
            with contextlib.suppress(ValueError):
                record[name] = None if text is None else json.loads(str(text))
        record["flag"] = {"true": True, "false": False}.get(str(record.get("flag")))
        lines.append(json.dumps(record, ensure_ascii=False) if rng.random() > 0.02 else "{broken")
    (folder / "in.json").write_text("\n".join(lines) + "\n")
