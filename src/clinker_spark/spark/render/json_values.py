"""The JSON text of a value, as Spark SQL. NULL stays NULL at the top and is `null` inside of arrays and maps.

`to_json` does the work where its text is the right one: it writes floats with an exponent (1.0E10), NaN as a
string, decimals as numbers and datetimes with a T, so these are written by hand.

Dynamic values have no type to follow down. What `to_json` writes for them is taken unless it shows a float in
exponent form or a fraction of a second, or has exact numbers; then the value is unrolled, `_LEVELS` deep.
"""

from __future__ import annotations

from clinker_spark.core.types import ANY, DATETIME, FLOAT, Kind, Type, array_of, map_of
from clinker_spark.cxl.builtins.physical import is_null_sql, kind_sql, variant_is
from clinker_spark.cxl.builtins.sqltext import NULL_STRING, sql_string
from clinker_spark.cxl.builtins.text import sql_float_text, sql_let
from clinker_spark.spark.render.cell_text import CellStyle, bound, scalar_text

_LEVELS = 2
# A float in exponent form, or the fraction of a second.
_DOUBTFUL = sql_string(r"[0-9]E-?[0-9]|:[0-9]{2}[.][0-9]")
_BY_TO_JSON = (Kind.BOOL, Kind.INT, Kind.STRING, Kind.DATE, Kind.NULL)
_PLAIN = CellStyle()


def json_string(sql: str) -> str:
    """A STRING in quotes. `to_json` is several times faster than asking with `rlike` whether it is needed."""

    def body(s: str) -> str:
        array = f"to_json(array({s}))"
        return f"CASE WHEN {s} IS NOT NULL THEN substring({array}, 2, length({array}) - 2) END"

    return bound(sql, "out_s", body)


def json_float(sql: str) -> str:
    """Shortest digits without an exponent, whole numbers with `.0`. NaN and infinity are the caller's to refuse."""

    def body(x: str) -> str:
        other = f"concat({sql_float_text(x)}, IF(rint({x}) = {x}, '.0', ''))"
        # The range in which a cast writes just that; see cxl.builtins.text.
        return f"CASE WHEN abs({x}) >= 1E-3D AND abs({x}) < 1E7D THEN CAST({x} AS STRING) ELSE {other} END"

    return bound(sql, "out_f", body)


def json_value(sql: str, t: Type, style: CellStyle = _PLAIN, depth: int = 0) -> str:
    """The JSON of a value. `style` is for the value itself; inside of arrays and maps dates are ISO 8601."""
    if t.is_dynamic:
        return bound(sql, f"out_v{depth}", lambda v: _variant_json(v, style, depth))
    match t.kind:
        case Kind.NULL:
            return NULL_STRING
        case Kind.BOOL | Kind.INT:
            return scalar_text(sql, t, style)
        case Kind.FLOAT:
            return json_float(sql)
        case Kind.STRING:
            return json_string(sql)
        case Kind.DATE if style.date:
            return json_string(scalar_text(sql, t, style))
        case Kind.DATETIME if style.datetime:
            return json_string(scalar_text(sql, t, style))
        case Kind.DECIMAL | Kind.DATE | Kind.DATETIME:
            return f"concat('\"', {scalar_text(sql, t, style)}, '\"')"
    return f"to_json({sql})" if by_to_json(t) else _container(sql, t, depth)


def by_to_json(t: Type) -> bool:
    """Does `to_json` write values of this type as they should be?"""
    if t.is_dynamic:
        return False
    return by_to_json(t.element or ANY) if t.kind in (Kind.ARRAY, Kind.MAP) else t.kind in _BY_TO_JSON


def _container(sql: str, t: Type, depth: int) -> str:
    name = f"out_e{depth}"
    if t.kind is Kind.ARRAY:
        item = f"coalesce({json_value(name, t.element or ANY, depth=depth + 1)}, 'null')"
        return f"concat('[', array_join(transform({sql}, {name} -> {item}), ','), ']')"
    return f"concat('{{', array_join({_members(sql, t.element or ANY, depth)}, ','), '}}')"


def _members(sql: str, element: Type, depth: int) -> str:
    """An array with the text `"key":value` of every entry of a map."""
    name = f"out_e{depth}"
    value = f"coalesce({json_value(f'{name}.value', element, depth=depth + 1)}, 'null')"
    return f"transform(map_entries({sql}), {name} -> concat({json_string(f'{name}.key')}, ':', {value}))"


def _variant_json(v: str, style: CellStyle, depth: int) -> str:
    kind = kind_sql(v)
    number = sql_let(f"try_variant_get({v}, '$', 'double')", "out_f", json_float("out_f"))
    moment = json_value(f"try_variant_get({v}, '$', 'timestamp_ntz')", DATETIME, style, depth)
    arms = [
        f"WHEN {is_null_sql(v, ANY)} THEN NULL",
        f"WHEN {variant_is(kind, Kind.FLOAT, exact=True)} THEN {number}",
        f"WHEN {variant_is(kind, Kind.DATETIME)} THEN {moment}",
    ]
    if depth < _LEVELS:
        exact = f"contains({kind}, 'DECIMAL') OR contains({kind}, 'VARIANT')"  # to_json writes 100.0 as 100 then
        doubtful = f"({exact} OR to_json({v}) RLIKE {_DOUBTFUL})"
        array = _container(f"try_cast({v} AS ARRAY<VARIANT>)", array_of(ANY), depth)
        members = _container(f"try_cast({v} AS MAP<STRING, VARIANT>)", map_of(ANY), depth)
        arms.append(f"WHEN {variant_is(kind, Kind.ARRAY)} AND {doubtful} THEN {array}")
        arms.append(f"WHEN {variant_is(kind, Kind.MAP)} AND {doubtful} THEN {members}")
    return f"CASE {' '.join(arms)} ELSE to_json({v}) END"


# ------------------------------------------------------------- what JSON cannot hold


def not_finite(sql: str, t: Type, depth: int = 0) -> str | None:
    """A condition: is there NaN or an infinity in the value? None when there cannot be; it may be null."""
    if t.is_dynamic:
        return bound(sql, f"out_v{depth}", lambda v: _variant_not_finite(v, depth))
    name = f"out_e{depth}"
    if t.kind is Kind.FLOAT:
        return f"(isnan({sql}) OR abs({sql}) = double('Infinity'))"
    if t.kind is Kind.ARRAY:
        inner = not_finite(name, t.element or ANY, depth + 1)
        return None if inner is None else f"exists({sql}, {name} -> coalesce({inner}, false))"
    if t.kind is Kind.MAP:
        inner = not_finite(name, t.element or ANY, depth + 1)
        return None if inner is None else f"exists(map_values({sql}), {name} -> coalesce({inner}, false))"
    return None


def _variant_not_finite(v: str, depth: int) -> str:
    kind = kind_sql(v)
    number = not_finite(f"try_variant_get({v}, '$', 'double')", FLOAT)
    arms = [f"WHEN {kind} IN ('DOUBLE', 'FLOAT') THEN {number}"]
    if depth < _LEVELS:
        # to_json writes them as strings, so a value without these texts has none.
        suspect = f"(contains(to_json({v}), '\"NaN\"') OR contains(to_json({v}), 'Infinity\"'))"
        array = not_finite(f"try_cast({v} AS ARRAY<VARIANT>)", array_of(ANY), depth)
        members = not_finite(f"try_cast({v} AS MAP<STRING, VARIANT>)", map_of(ANY), depth)
        arms.append(f"WHEN {variant_is(kind, Kind.ARRAY)} AND {suspect} THEN {array}")
        arms.append(f"WHEN {variant_is(kind, Kind.MAP)} AND {suspect} THEN {members}")
    return f"(CASE {' '.join(arms)} ELSE false END)"


def not_finite_text(sql: str, t: Type) -> str:
    """The offending value, for the error."""
    if t.kind is Kind.FLOAT and not t.is_dynamic:
        return f"CASE WHEN isnan({sql}) THEN 'NaN' WHEN {sql} > 0D THEN 'inf' ELSE '-inf' END"
    return f"to_json({sql})"
