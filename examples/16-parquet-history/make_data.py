"""Writes data/stations.parquet, the input of this example. It is committed; run this only to change it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

STATIONS = [
    (1, "Alder Quay", dt.date(1998, 5, 4), Decimal("12.50"), True, ["tide", "wind"]),
    (2, "Beacon Hill", dt.date(2004, 9, 12), Decimal("310.00"), True, ["wind"]),
    (3, "Crag End", dt.date(1987, 1, 30), Decimal("845.25"), False, []),
    (4, "Dune Bar", dt.date(2015, 7, 1), Decimal("3.75"), True, ["tide"]),
    (5, "Elm Gate", None, Decimal("98.00"), True, None),
    (6, "Fjord Arm", dt.date(2011, 12, 31), Decimal("0.50"), False, ["tide", "salt", "wind"]),
    (7, "Gale Top", dt.date(1979, 3, 18), Decimal("1204.00"), True, ["wind", "snow"]),
    (8, "Heron Weir", dt.date(2020, 2, 29), None, True, ["flow"]),
    (9, "Isle Nord", dt.date(1993, 8, 8), Decimal("27.10"), False, ["tide"]),
    (10, "Juniper", dt.date(2008, 10, 20), Decimal("455.00"), True, ["snow"]),
]
SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("name", pa.string()),
        ("opened", pa.date32()),
        ("height", pa.decimal128(8, 2)),
        ("active", pa.bool_()),
        ("sensors", pa.list_(pa.string())),
    ]
)


def main() -> None:
    columns = zip(*STATIONS, strict=True)
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)
    pq.write_table(table, Path(__file__).parent / "data" / "stations.parquet")


if __name__ == "__main__":
    main()
