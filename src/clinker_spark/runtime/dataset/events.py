"""Events: records with a segment, an entity, index values and components, read from files in blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.dataset.errors import DatasetError
from clinker_spark.dataset.indexes import NUMBER, TIME

SEGMENT, ENTITY = "segment", "entity"
INDEX_VALUE = "an index value is a whole number or a time, 2026-01-31T12:00:00Z"


@dataclass(frozen=True)
class Block:
    """Events of one entity of one segment with the same indexes, in the order of the file. `numbers` count the events
    of the entity in its segment, whatever their indexes."""

    segment: str
    entity: str
    numbers: np.ndarray
    indexes: dict[str, np.ndarray]
    components: dict[str, pa.Array]


@dataclass
class Reading:
    """The indexes of a dataset and their types, as far as a value was seen; and how many events of each entity in each
    segment were read. Events without a value say nothing, and are not counted."""

    names: tuple[str, ...]
    known: dict[str, str] = field(default_factory=dict)
    counted: Counter[tuple[str, str]] = field(default_factory=Counter)
    types: Mapping[str, Mapping[str, pa.DataType]] = field(default_factory=dict)
    """The types of components that are known, by entity: what a text in a table means depends on them."""
    notes: list[Diagnostic] = field(default_factory=list)
    """What the user should know, though it is no error."""

    def check(self, name: str, kind: str, where: str) -> None:
        before = self.known.setdefault(name, kind)
        if before != kind:
            words = {NUMBER: "whole numbers", TIME: "times"}
            message = f"{where}: the values of index '{name}' are {words[kind]} here, and {words[before]} elsewhere"
            raise DatasetError("E852", message, "an index has values of one type")


def entity_path(text: str) -> str:
    """`arm/left` as `/arm/left`."""
    return "/" + text.strip("/")
