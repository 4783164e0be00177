"""What is said of a hidden column."""

from __future__ import annotations

from dataclasses import dataclass

ARRIVAL_TYPE = "BIGINT, or ARRAY<BIGINT> where records were made of others"


@dataclass(frozen=True)
class HiddenColumn:
    """A column, or all columns whose names begin with `name` and end with a number or a name.

    `written_by` and `read_by` are modules that use the name, as they are called inside the package. Who makes the text
    or the program that writes a column writes it; who drops or shows it reads it.
    """

    name: str
    holds: str
    type: str
    written_by: tuple[str, ...]
    read_by: tuple[str, ...]


def within(name: str, holds: str, type: str, *modules: str) -> HiddenColumn:
    """A column that each of the modules makes for itself."""
    return HiddenColumn(name, holds, type, modules, modules)


READERS = ("spark.scan.csv.records", "spark.scan.parquet.columns", "spark.scan.record_batches")
"""What makes records of files."""
