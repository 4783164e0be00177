"""JSON: one object per record, in an array or one per line.

Columns side by side that `to_json` writes as they should be are written by it together, as one struct: for four
columns of 1.5 million rows that took 0.5 s more than a bare join of the texts, and 4 s more with `rlike` per text. What
is written as a text, such as dates, is one in that struct: two times among four other columns are not three structs
that are taken apart again, which took twice as long.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby

from clinker_spark.config.model.output import JsonOutput
from clinker_spark.config.model.schema import Column
from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.lower.errors import first_error
from clinker_spark.cxl.lower.plan import Failing
from clinker_spark.spark.render.cell_text import CellStyle, check_style, declared, scalar_text
from clinker_spark.spark.render.contract import NAN, OutColumn, Rendering, unwritable
from clinker_spark.spark.render.dotted_names import Branch, nested
from clinker_spark.spark.render.json_values import by_to_json, json_value, not_finite, not_finite_text

_STYLE = CellStyle()
_TEXTS = (Kind.DATE, Kind.DATETIME, Kind.DECIMAL)
"""What is written as a text, in quotes, which needs no other escapes than those of `to_json`."""
_NOT_JSON = "JSON has neither NaN nor infinity"


def json_rendering(config: JsonOutput, columns: tuple[OutColumn, ...], schema: tuple[Column, ...]) -> Rendering:
    """An array has one object per line too, so that both forms read well and split well."""
    writer = _Objects(config.options.pretty, config.preserve_nulls, declared(schema))
    found = [failure for failure in map(_failure, columns) if failure is not None]
    line = writer.object(nested(columns), 0)
    error = first_error(found) if found else None
    if config.options.format == "ndjson":
        return Rendering(line, error, b"", b"\n", b"\n", b"", repeat_prefix=True)
    return Rendering(line, error, b"[\n", b",\n", b"\n]\n", b"[]\n", repeat_prefix=True)


class _Objects:
    """Objects with the columns of a branch. `concat_ws` leaves out the members that are null."""

    def __init__(self, pretty: bool, nulls: bool, schema: dict[str, Column]) -> None:
        self.pretty = pretty
        self.nulls = nulls
        self.schema = schema

    def object(self, branch: Branch, depth: int) -> str:
        if branch.children and all(map(self._goes_to_json, branch.children.values())):
            return self._struct_json(branch.children.items())
        inner = self.members(branch, depth)
        if not self.pretty:
            return f"concat('{{', {inner}, '}}')"
        filled = f"concat('{{\n{self.indent(depth + 1)}', nullif({inner}, ''), '\n{self.indent(depth)}}}')"
        return f"coalesce({filled}, '{{}}')"

    def members(self, branch: Branch, depth: int) -> str:
        parts: list[str] = []
        for together, group in groupby(branch.children.items(), lambda entry: self._goes_to_json(entry[1])):
            if together:
                # No value of them ends in a brace, so only those around the struct are trimmed.
                parts.append(f"nullif(btrim({self._struct_json(group)}, '{{}}'), '')")
            else:
                parts += [self.member(name, item, depth + 1) for name, item in group]
        between = f"',\n{self.indent(depth + 1)}'" if self.pretty else "','"
        return f"concat_ws({between}, {', '.join(parts)})" if parts else "''"

    def member(self, name: str, item: Branch | OutColumn, depth: int) -> str:
        key = json.dumps(name, ensure_ascii=False) + (": " if self.pretty else ":")
        if isinstance(item, Branch):
            if self.nulls:  # then an object always has members
                return f"concat({sql_string(key)}, {self.object(item, depth)})"
            inner = f"nullif({self.members(item, depth)}, '')"
            start, end = ("{", "}")
            if self.pretty:
                start, end = f"{{\n{self.indent(depth + 1)}", f"\n{self.indent(depth)}}}"
            return f"concat({sql_string(key + start)}, {inner}, '{end}')"
        column = self.schema.get(item.name)
        check_style(item.name, item.type, column)
        value = item.json if item.json is not None else json_value(item.sql, item.type, _STYLE.of(column))
        if self.nulls:
            value = f"coalesce({value}, 'null')"
        return f"concat({sql_string(key)}, {value})"

    def _goes_to_json(self, item: Branch | OutColumn) -> bool:
        if self.pretty or isinstance(item, Branch) or item.type.kind is Kind.MAP or item.json is not None:
            return False
        return by_to_json(item.type) or (item.type.kind in _TEXTS and not item.type.is_dynamic)

    def _field(self, item: OutColumn) -> str:
        """SQL for the value in a struct: itself, or the text that it is written as."""
        column = self.schema.get(item.name)
        if by_to_json(item.type) and (column is None or column.format is None):
            return item.sql
        check_style(item.name, item.type, column)
        return scalar_text(item.sql, item.type, _STYLE.of(column))

    def _struct_json(self, items: Iterable[tuple[str, Branch | OutColumn]]) -> str:
        fields = ", ".join(f"{sql_string(n)}, {self._field(c)}" for n, c in items if isinstance(c, OutColumn))
        return f"to_json(named_struct({fields}), map('ignoreNullFields', '{str(not self.nulls).lower()}'))"

    @staticmethod
    def indent(depth: int) -> str:
        return "  " * depth


def _failure(column: OutColumn) -> tuple[Failing, str] | None:
    when = not_finite(column.sql, column.type)
    if when is None:
        return None
    return unwritable(when, not_finite_text(column.sql, column.type), _NOT_JSON, NAN), column.name
