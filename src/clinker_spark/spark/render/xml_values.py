"""A value as XML, as Spark SQL: text, attribute text, or elements. NULL stays NULL.

An array is the same element several times, a map an element with others inside. Dynamic values are followed
`_LEVELS` deep; what is below that, and arrays directly inside of arrays, is written as JSON text.
"""

from __future__ import annotations

from dataclasses import dataclass

from clinker_spark.core.types import ANY, Kind, Type, array_of, map_of
from clinker_spark.cxl.builtins.physical import kind_sql, variant_is
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.spark.render.cell_text import CellStyle, bound, is_plain, scalar_text
from clinker_spark.spark.render.flat_cells import flat_text
from clinker_spark.spark.render.xml_names import NAME_SQL

_LEVELS = 2
_PLAIN = CellStyle()
# Readers turn a carriage return into a line end, and every white space in an attribute into a blank.
_IN_TEXT = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_IN_ATTRIBUTE = {**_IN_TEXT, '"': "&quot;", "\n": "&#10;", "\t": "&#9;"}


def escaped(text: str, *, attribute: bool = False) -> str:
    """A STRING with what has a meaning in XML written as entities."""
    entities = _IN_ATTRIBUTE if attribute else _IN_TEXT

    def body(s: str) -> str:
        found = " OR ".join(f"contains({s}, {sql_string(char)})" for char in entities)
        replaced = s
        for char, entity in entities.items():
            replaced = f"replace({replaced}, {sql_string(char)}, '{entity}')"
        return f"CASE WHEN {found} THEN {replaced} ELSE {s} END"

    return bound(text, "out_x", body)


def xml_text(sql: str, t: Type, style: CellStyle, *, attribute: bool = False) -> str:
    """The escaped text of a value; arrays are JSON."""
    text = flat_text(sql, t, style)
    special = "".join(_IN_ATTRIBUTE if attribute else _IN_TEXT)
    return text if is_plain(t, style, special) else escaped(text, attribute=attribute)


@dataclass(frozen=True)
class Tag:
    """An element's name in its three forms, as SQL."""

    open: str
    close: str
    empty: str

    @classmethod
    def named(cls, name: str) -> Tag:
        return cls(*map(sql_string, (f"<{name}>", f"</{name}>", f"<{name}/>")))

    @classmethod
    def computed(cls, sql: str) -> Tag:
        return cls(f"concat('<', {sql}, '>')", f"concat('</', {sql}, '>')", f"concat('<', {sql}, '/>')")

    def around(self, content: str) -> str:
        return f"concat({self.open}, {content}, {self.close})"


@dataclass(frozen=True)
class Elements:
    """Writes values as elements; `nulls`: also those of maps that are null, as empty elements."""

    nulls: bool

    def of(
        self, tag: Tag, sql: str, t: Type, style: CellStyle = _PLAIN, depth: int = 0, *, single: bool = False
    ) -> str:
        """The element or elements of a value. `single`: there is one element, whatever the value is."""
        if t.is_dynamic:
            return bound(sql, f"out_v{depth}", lambda v: self._of_variant(tag, v, style, depth, single))
        if t.kind is Kind.ARRAY and not single:
            name = f"out_e{depth}"
            item = self.of(tag, name, t.element or ANY, depth=depth + 1, single=True)
            return f"array_join(transform({sql}, {name} -> coalesce({item}, {tag.empty})), '')"
        if t.kind is Kind.MAP:
            return tag.around(f"array_join({self.entries(sql, t.element or ANY, depth)}, '')")
        return tag.around(xml_text(sql, t, style))

    def entries(self, sql: str, element: Type, depth: int = 0) -> str:
        """An array with the elements of the entries of a map; null for those to leave out."""
        name = f"out_e{depth}"
        tag = Tag.computed(f"{name}.key")
        item = self.of(tag, f"{name}.value", element, depth=depth + 1)
        item = f"coalesce({item}, {tag.empty})" if self.nulls else item
        return f"transform(map_entries({sql}), {name} -> {item})"

    def _of_variant(self, tag: Tag, v: str, style: CellStyle, depth: int, single: bool) -> str:
        kind = kind_sql(v)
        arms = []
        if depth < _LEVELS:
            if not single:
                array = self.of(tag, f"try_cast({v} AS ARRAY<VARIANT>)", array_of(ANY), depth=depth)
                arms.append(f"WHEN {variant_is(kind, Kind.ARRAY)} THEN {array}")
            members = self.of(tag, f"try_cast({v} AS MAP<STRING, VARIANT>)", map_of(ANY), depth=depth)
            arms.append(f"WHEN {variant_is(kind, Kind.MAP)} THEN {members}")
        rest = tag.around(escaped(scalar_text(v, ANY, style)))  # which is JSON for what is nested deeper
        return f"CASE {' '.join(arms)} ELSE {rest} END" if arms else rest


def bad_key(sql: str, t: Type, depth: int = 0) -> str | None:
    """A condition: has a map in the value a key that is no name? None when there is no map; it may be null."""
    name, key = f"out_e{depth}", f"out_k{depth}"
    if t.is_dynamic:
        if depth >= _LEVELS:
            return None
        kind = kind_sql(sql)
        array = bad_key(f"try_cast({sql} AS ARRAY<VARIANT>)", array_of(ANY), depth)
        members = bad_key(f"try_cast({sql} AS MAP<STRING, VARIANT>)", map_of(ANY), depth)
        arms = f"WHEN {variant_is(kind, Kind.MAP)} THEN {members}"
        if array is not None:
            arms += f" WHEN {variant_is(kind, Kind.ARRAY)} THEN {array}"
        return f"(CASE {arms} ELSE false END)"
    if t.kind is Kind.ARRAY:
        inner = bad_key(name, t.element or ANY, depth + 1)
        return None if inner is None else f"exists({sql}, {name} -> coalesce({inner}, false))"
    if t.kind is Kind.MAP:
        own = f"exists(map_keys({sql}), {key} -> NOT {key} RLIKE {NAME_SQL})"
        inner = bad_key(name, t.element or ANY, depth + 1)
        return own if inner is None else f"({own} OR exists(map_values({sql}), {name} -> coalesce({inner}, false)))"
    return None
