"""Where the rows of a query come from: files, lists of the program, DataFrames, inputs of a node."""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.query.check.declared import TypeTable
from clinker_spark.query.failures import Failed
from clinker_spark.query.files.formats import PLACES, file_source
from clinker_spark.query.hidden import ROW_COLUMN
from clinker_spark.query.lower.order import ARRIVAL
from clinker_spark.query.lower.values import Lowered, OrderTerm, Relation, SparkDataset
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import ANY, ListType, QType, RecordType, is_null, type_of_value, unified
from clinker_spark.sql import tree as sql

_numbers = itertools.count(1)


@dataclass(frozen=True)
class ListSource:
    """A list of the program that takes part in a query on Spark."""

    rows: list[Any] = field(repr=False)
    row: QType


@dataclass(frozen=True)
class Scan:
    """A source under the name of a view. `content` says where its rows come from; `order` are its hidden columns."""

    view: str
    label: str
    content: Any
    order: tuple[str, ...]

    def name(self, ordered: bool) -> str:
        return self.view + ("_in_order" if ordered and self.order else "")


class Sources:
    """All sources of a program; each has a number, under which SQL refers to it (`sql.Source`)."""

    def __init__(self) -> None:
        self.scans: list[Scan] = []
        self._prefix = f"q{next(_numbers)}"
        self._files: dict[int, tuple[ast.Load, SparkDataset]] = {}
        self._lists: dict[int, tuple[list[Any], Relation]] = {}

    def load(self, e: ast.Load, path: str | None, options: dict[str, Any], types: TypeTable) -> SparkDataset:
        if id(e) not in self._files:
            declared = types.resolve(e.type) if e.type is not None else None
            source = file_source(path, options, declared)
            label = re.sub(r"\W+", "_", os.path.splitext(os.path.basename(source.paths[0]))[0])
            # With the node, so that its id stays its own.
            self._files[id(e)] = e, self.source(label, source.row, source, source.places)
        return self._files[id(e)][1]

    def inline(self, rows: list[Any]) -> Relation:
        """A list of the program as rows on Spark."""
        known = self._lists.get(id(rows))
        if known is None:
            row = element_type(rows)
            made = self.source("list", row, ListSource(rows, row), (ROW_COLUMN,))
            known = self._lists[id(rows)] = (rows, made.relation)
        return known[1]

    def source(self, label: str, row: QType, content: Any, order: tuple[str, ...]) -> SparkDataset:
        """Rows of a type that come from somewhere, in an order that hidden columns keep (none: no order)."""
        number = len(self.scans)
        self.scans.append(Scan(f"{self._prefix}_{number + 1}_{label}".lower(), label, content, order))

        def build(ordered: bool) -> Lowered:
            places = [OrderTerm(sql.Column(name), type=PLACES.get(name, ARRIVAL)) for name in order]
            read = sql.From(sql.Source(number, ordered and bool(order)))
            return Lowered(sql.Query((read,)), tuple(places) if ordered else ())

        return SparkDataset(Relation(row, build))

    def name(self, source: sql.Source) -> str:
        """The name of the view of a source."""
        return self.scans[source.number].name(source.ordered)


def element_type(rows: list[Any]) -> QType:
    """The type of the rows of a list, as columns can hold them."""
    found = unified(map(type_of_value, rows))
    if not rows or is_null(found):
        return RecordType(()) if not rows else ANY
    if ANY in (found, found.element if isinstance(found, ListType) else found):
        raise Failed("a list of different kinds of values cannot go to Spark", code="E708")
    return found
