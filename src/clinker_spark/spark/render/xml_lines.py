"""XML: one element per record, all in one line, without a declaration."""

from __future__ import annotations

from collections.abc import Iterator

from clinker_spark.config.model.output import XmlOutput
from clinker_spark.config.model.schema import Column
from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.physical import is_null_sql
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.lower.errors import first_error
from clinker_spark.cxl.lower.plan import Failing
from clinker_spark.spark.render.cell_text import CellStyle, check_style, declared, is_kind, is_plain
from clinker_spark.spark.render.contract import OutColumn, Rendering, unwritable
from clinker_spark.spark.render.dotted_names import Branch, nested, path_of
from clinker_spark.spark.render.flat_cells import flat_text
from clinker_spark.spark.render.xml_names import ESCAPED_FORBIDDEN_SQL, FORBIDDEN_SQL, check_name
from clinker_spark.spark.render.xml_values import Elements, Tag, bad_key, xml_text

_STYLE = CellStyle()
_ANY_CHARACTER = "\x01"  # none of the texts that are known to be harmless has one of the forbidden ones


def xml_rendering(config: XmlOutput, columns: tuple[OutColumn, ...], schema: tuple[Column, ...]) -> Rendering:
    """`<Root><Record>...</Record>...</Root>` and a line end."""
    options = config.options
    check_name(options.root_element, "'root_element'")
    check_name(options.record_element, "'record_element'")
    writer = _Records(options.attribute_prefix, config.preserve_nulls, declared(schema))
    line = writer.element(options.record_element, nested(columns, writer.is_attribute))
    failures = [f for column in columns for f in writer.failures(column)]
    root = options.root_element
    error = first_error(failures) if failures else None
    start, end = f"<{root}>".encode(), f"</{root}>\n".encode()
    return Rendering(line, error, start, b"", end, start + end, repeat_prefix=True)


_FORBIDDEN = "the text has a control character that XML cannot hold"


class _Records:
    """Elements with the columns of a branch as attributes and inner elements. `concat_ws` leaves out nulls."""

    def __init__(self, prefix: str, nulls: bool, schema: dict[str, Column]) -> None:
        self.prefix = prefix
        self.nulls = nulls
        self.schema = schema
        self.elements = Elements(nulls)

    def is_attribute(self, name: str) -> bool:
        """Without a prefix there are no attributes."""
        return bool(self.prefix) and name.startswith(self.prefix)

    def element(self, name: str, branch: Branch) -> str:
        """One element, there even if it is empty."""
        attributes, inner = self._parts(branch)
        start = [sql_string(f"<{name}"), *attributes, "'>'"] if attributes else [sql_string(f"<{name}>")]
        return f"concat_ws('', {', '.join([*start, *inner, sql_string(f'</{name}>')])})"

    def _parts(self, branch: Branch) -> tuple[list[str], list[str]]:
        attributes, inner = [], []
        if branch.text is not None:
            text = xml_text(branch.text.sql, branch.text.type, self._style(branch.text))
            inner.append(f"coalesce({text}, '')" if self.nulls else text)
        for name, item in branch.children.items():
            if isinstance(item, OutColumn) and self.is_attribute(name):
                attributes.append(self._attribute(name.removeprefix(self.prefix), item))
            elif isinstance(item, OutColumn):
                inner.append(self._column(name, item))
            else:
                inner.append(self._branch(name, item))
        return attributes, inner

    def _attribute(self, name: str, column: OutColumn) -> str:
        check_name(name, f"column '{column.name}'")
        value = xml_text(column.sql, column.type, self._style(column), attribute=True)
        value = f"coalesce({value}, '')" if self.nulls else value
        return f"concat({sql_string(f' {name}=')}, '\"', {value}, '\"')"

    def _column(self, name: str, column: OutColumn) -> str:
        check_name(name, f"column '{column.name}'")
        tag = Tag.named(name)
        text = self.elements.of(tag, column.sql, column.type, self._style(column))
        return f"coalesce({text}, {tag.empty})" if self.nulls else text

    def _branch(self, name: str, branch: Branch) -> str:
        check_name(name, "a column")
        element = self.element(name, branch)
        if self.nulls:
            return element
        there = " OR ".join(f"NOT {is_null_sql(c.sql, c.type)}" for c in _columns_of(branch))
        return f"CASE WHEN {there} THEN {element} END"

    def _style(self, column: OutColumn) -> CellStyle:
        known = self.schema.get(column.name)
        check_style(column.name, column.type, known)
        return _STYLE.of(known)

    def failures(self, column: OutColumn) -> Iterator[tuple[Failing, str | None]]:
        """Characters and names that XML cannot hold, and maps as attributes."""
        sql, t = column.sql, column.type
        style = self._style(column)
        attribute = self.is_attribute(path_of(column.name)[-1])
        is_map = is_kind(sql, t, Kind.MAP)
        if attribute and is_map is not None:
            yield unwritable(is_map, f"to_json({sql})", "a map cannot be an attribute"), column.name
        elif (bad := bad_key(sql, t)) is not None:
            yield unwritable(bad, f"to_json({sql})", "the map has a key that is no XML name"), column.name
        if is_plain(t, style, _ANY_CHARACTER):
            return
        if t.kind in (Kind.ARRAY, Kind.MAP) or t.is_dynamic:
            json = f"to_json({sql})"
            yield unwritable(f"{json} RLIKE {ESCAPED_FORBIDDEN_SQL}", json, _FORBIDDEN), column.name
            return
        text = flat_text(sql, t, style)
        yield unwritable(f"{text} RLIKE {FORBIDDEN_SQL}", text, _FORBIDDEN), column.name


def _columns_of(branch: Branch) -> Iterator[OutColumn]:
    if branch.text is not None:
        yield branch.text
    for item in branch.children.values():
        if isinstance(item, OutColumn):
            yield item
        else:
            yield from _columns_of(item)
