"""Running the TPC-H queries in both languages, and comparing their answers."""

from __future__ import annotations

import math
import subprocess
import sysconfig
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
NUMBERS = range(1, 23)


def generate(folder: Path, scale: float) -> Path:
    """The eight tables as Parquet files; those that are there already are kept."""
    if not all((folder / f"{name}.parquet").exists() for name in TABLES):
        folder.mkdir(parents=True, exist_ok=True)
        tool = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
        command = [str(tool), "parquet", "-s", str(scale), f"--output-dir={folder}"]
        subprocess.run(command, check=True, capture_output=True)
    return folder


def program(number: int, folder: Path, scale: float) -> str:
    """A query with the tables it loads in front of it."""
    text = (HERE / f"q{number:02}.mochi").read_text(encoding="utf-8").replace("FRACTION", str(scale))
    loads = [f'let {name} = load "{folder / name}.parquet"' for name in TABLES if name in text]
    return "\n".join([*loads, "", text])


def sql(number: int, scale: float) -> str:
    return (HERE / f"q{number:02}.sql").read_text(encoding="utf-8").replace("FRACTION", str(scale))


def rows_of(value: Any) -> list[tuple[Any, ...]]:
    """A result of the language as rows of values: a single value is one row of one column."""
    if not isinstance(value, list):
        return [(value,)]
    return [tuple(row.values()) if isinstance(row, dict) else (row,) for row in value]


def duckdb_runner(folder: Path) -> Callable[[str], list[tuple[Any, ...]]]:
    """DuckDB over the same files."""
    import duckdb

    connection = duckdb.connect()
    for name in TABLES:
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder / name}.parquet'")
    return lambda text: connection.execute(text).fetchall()


def same(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> str | None:
    """What differs between two answers, or None. Numbers may differ in the ninth digit; ties may change places."""
    if len(ours) != len(theirs):
        return f"{len(ours)} rows, not {len(theirs)}"
    for a, b in zip(sorted(ours, key=_key), sorted(theirs, key=_key), strict=True):
        if len(a) != len(b) or not all(_equal(x, y) for x, y in zip(a, b, strict=True)):
            return f"{a} is not {b}"
    return None


def _key(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(f"{float(v):.3e}" if isinstance(v, int | float | Decimal) else str(v) for v in row)


def _equal(a: Any, b: Any) -> bool:
    numeric = (int, float, Decimal)
    if isinstance(a, numeric) and isinstance(b, numeric):
        return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-6)
    return str(a) == str(b) or (a in (None, 0) and b in (None, 0))
