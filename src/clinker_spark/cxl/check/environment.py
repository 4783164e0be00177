"""What a program is compiled against: the columns, variables and modules it may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.core.span import Source
from clinker_spark.core.types import Type
from clinker_spark.cxl.check.modules import Module


@dataclass(frozen=True)
class Environment:
    """`schema` None is the open world of `cxl check`: every bare name is a column of type Any.

    `declares` maps a scope (pipeline, source, record) to its declared variables; None accepts every write
    and lets a program read back what it wrote itself. `window_schema` are the columns that `$window` functions see when
    they look into other records than those of the program. With `least_of_documents`, a group has one value of each
    `$doc.section.field`: that of its file, or the least where its records come from several.
    """

    source: Source
    schema: Mapping[str, Type] | None = None
    mode: str = "row"  # or "aggregate"
    group_by: tuple[str, ...] = ()
    vars: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] | None = None
    declares: Mapping[str, Mapping[str, Type]] | None = None
    modules: Mapping[str, Module] = field(default_factory=dict)
    max_expansion: int = 10_000
    window_schema: Mapping[str, Type] | None = None
    least_of_documents: bool = False

    def dotted_field(self, name: str, member: str) -> str | None:
        """`input.field`, when the schema has a column of that dotted name."""
        dotted = f"{name}.{member}"
        return dotted if self.schema is not None and dotted in self.schema else None

    def is_qualifier(self, name: str) -> bool:
        """Does some column's dotted name start with `name.`?"""
        return self.schema is not None and any(column.startswith(f"{name}.") for column in self.schema)
