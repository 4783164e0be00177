"""What needs no other system: records that are made up, and an output that is read on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from clinker_spark.config.model.base import Finding, Model
from clinker_spark.config.model.schema import Column
from clinker_spark.config.values import Count
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import Kind

MADE = {"number": Kind.INT, "at": Kind.DATETIME, "key": Kind.STRING, "value": Kind.INT}
"""The columns that a made-up record can have."""
_WORDS = {Kind.INT: "int", Kind.DATETIME: "date_time", Kind.STRING: "string"}


class RateRead(Model):
    """Records that are made up, so many in a second."""

    rows_per_second: Count = 1
    """How many records there are for each second."""
    rows: Count | None = None
    """With it, only so many, the same ones each time, and all at once. Their times begin on 2026-01-01."""
    keys: Count = 10
    """How many different values 'key' has: k0, k1, ..."""
    max_rows: Count = 100_000
    """The most records of a batch."""

    @property
    def place(self) -> str:
        return f"{self.rows_per_second} records a second"

    def check_made(self, columns: tuple[Column, ...]) -> Iterator[Finding]:
        """Are these columns that a made-up record has?"""
        for i, column in enumerate(columns):
            kind = MADE.get(column.name)
            at = ("schema", column.name) if isinstance(column.name, str) else ("schema", i)
            if kind is None:
                known = ", ".join(f"{name}: {_WORDS[kind]}" for name, kind in MADE.items())
                help_text = did_you_mean(column.name, MADE) or f"the columns are {known}"
                yield Finding("E529", f"made-up records have no column '{column.name}'", at, help_text)
            elif column.data_type.kind is not kind:
                message = f"'{column.name}' of made-up records is no {column.data_type}"
                yield Finding("E529", message, at, f"declare it as {_WORDS[kind]}")


class ConsoleWrite(Model):
    """The first records of each batch, on the screen."""

    rows: Count = 20
    """So many records of a batch are shown."""
    format: Literal["table", "json"] = "table"
    """A table for people; or a line of JSON for each record, for programs."""

    @property
    def place(self) -> str:
        return "the console"
