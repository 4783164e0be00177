"""Outputs: files that are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from clinker_spark.config.model.schema import Column
from clinker_spark.config.paths.templates import PER_FILE, Token, parse_template
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.cxl.vector.reasons import is_vector_type
from clinker_spark.plan.columns import CK_PREFIX
from clinker_spark.plan.facts import Keys, Required
from clinker_spark.plan.nodes.framing import Framing
from clinker_spark.plan.nodes.narrow import NarrowPlan


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputPlan(NarrowPlan):
    """Writes records. `columns` pairs each column of the file with the column it comes from."""

    kind = "output"
    shape = "folder"
    verb = "written"
    category = None
    made_category = None

    config: Any
    columns: tuple[tuple[str, str], ...]
    declared: tuple[Column, ...] | None
    output_name: str
    framing: Framing | None = None
    """What stands around the records of each document."""
    undeclared: tuple[str, ...] = ()
    """Columns of `mapping` that no schema names. Files may have them."""
    sorted_undeclared: tuple[str, ...] = ()
    """The same for `sort_order`."""

    conserves = True
    one_for_one = True

    @property
    def streams(self) -> tuple[str | None, ...]:
        return ()

    @property
    def can_fail(self) -> bool:
        # A NaN has no JSON, a long text no room in a fixed-width field, an empty text is no name of a folder.
        return str(self.config.type) != "parquet" or bool(self.partition_by)

    @property
    def per_file(self) -> bool:
        """Does it make one file of each input file?"""
        return any(isinstance(part, Token) and part.name in PER_FILE for part in parse_template(self.config.path))

    @property
    def shows_keys(self) -> bool:
        """Does it write correlation columns, all of them or those that `mapping` names, or sort by one?"""
        sources = [*(source for _, source in self.columns), *(item.field for item in self.config.sort_order)]
        named = any(source.startswith(CK_PREFIX) for source in sources)
        return named or bool(self.config.include_correlation_keys)

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The columns of the file whose values are folders."""
        return tuple(getattr(self.config, "partition_by", ()))

    @property
    def job_kind(self) -> object | None:
        """What outputs have in common that one job can write; None for those that need a job of their own."""
        config = self.config
        if config.type == "parquet" or config.stream_only or self.framing is not None:
            return None
        return config.type, config.options, config.split is None, self.per_file

    @property
    def vector_reason(self) -> str | None:
        config = self.config
        if config.type not in ("csv", "json") or (config.type == "json" and config.options.pretty):
            return "only CSV and JSON with one record per line have a vector form"
        if config.split is not None or self.per_file:
            return "it makes several files"
        if config.sort_order:
            return "'sort_order' brings records into another order"
        if config.include_correlation_keys:
            return "it writes correlation keys"
        return next((why for name, source in self.columns if (why := self._unwritten(name, source))), None)

    def _unwritten(self, name: str, source: str) -> str | None:
        """Why a column has no text in a fragment."""
        t = self.schema[source]
        if self.config.type == "json" and ("." in name or not name.isprintable()):
            return f"column '{name}' is an object of its own"
        return None if is_vector_type(t) else f"column '{name}' is of type {t}"

    def sorts(self, *, in_order: bool) -> bool:
        # The records of one input file must come together to be written to one file.
        as_it_comes = in_order or (self.config.order == "any" and not self.per_file)
        return bool(self.config.sort_order or self.partition_by or self.framing) or not as_it_comes

    def required(self, i: int, need: Required, *, in_order: bool) -> Required:
        config = self.config
        columns = {source for _, source in self.columns} | {item.field for item in config.sort_order}
        if config.split is not None and config.split.group_key is not None:
            columns.add(config.split.group_key)
        columns -= {*self.undeclared, *self.sorted_undeclared}
        moved = bool(self.partition_by) or not in_order
        arrival = bool(config.sort_order) or (config.order == "source" and moved)
        if self.framing is not None:
            return Required(frozenset(columns | self.framing.columns), True, self.framing.by_file)
        return Required(frozenset(columns), arrival, self.per_file)

    def idle_keys(self, before: Sequence[Keys]) -> Iterator[Diagnostic]:
        config = self.config
        if not before[0].columns:
            why = "no source of these records has a 'correlation_key'"
            if config.include_correlation_keys:
                yield self.idle_key("include_correlation_keys", why)
            if config.correlation_fanout_policy is not None:
                yield self.idle_key("correlation_fanout_policy", why)
        if config.type in ("csv", "json", "xml") and isinstance(config.schema_, tuple):
            # Columns that no schema of a source names are texts: a scale or a format means nothing to them.
            written = {name for name, _ in self.columns}
            for i, column in enumerate(config.schema_):
                name = column.source_name or column.name
                if name not in written:
                    message = f"'{name}' in the schema has no effect here: no column of that name is written"
                    help_text = did_you_mean(name, written) or f"the columns are {', '.join(written)}"
                    yield self.diagnostic("W027", message, "config", "schema", i, "name", help=help_text)

    @property
    def tag(self) -> str:
        return f"output:{self.config.type}"

    @property
    def files_written(self) -> str:
        return str(self.config.place)

    def details(self) -> dict[str, Any]:
        columns = [{"name": name, "from": source} for name, source in self.columns]
        return {"format": self.config.type, "path": self.config.place, "columns": columns}
