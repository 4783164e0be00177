"""Methods that look at a value whatever it is, null included."""

from __future__ import annotations

from typing import Any

from clinker_spark.core.types import ANY, BOOL, STRING, Kind
from clinker_spark.cxl.builtins.physical import is_null_sql, kind_sql, variant_is
from clinker_spark.cxl.builtins.table import Builtin, Nulls, Overload, SqlCall
from clinker_spark.cxl.values import type_name


def _type_of_sql(call: SqlCall) -> str:
    x, type = call.args[0], call.types[0]
    missing = is_null_sql(x, type)
    if not type.is_dynamic:
        return "'null'" if type.kind is Kind.NULL else f"IF({missing}, 'null', '{type.kind.value.lower()}')"
    kinds = (Kind.INT, Kind.FLOAT, Kind.STRING, Kind.BOOL, Kind.DATE, Kind.DATETIME, Kind.ARRAY, Kind.MAP)
    arms = (f"WHEN {variant_is(kind_sql(x), k, exact=True)} THEN '{k.value.lower()}'" for k in kinds)
    return f"CASE WHEN {missing} THEN 'null' {' '.join(arms)} END"


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list) and len(value) == 0)


def _is_empty_sql(call: SqlCall) -> str:
    x, type = call.args[0], call.types[0]
    missing = is_null_sql(x, type)
    if type.is_dynamic:
        kind = kind_sql(x)
        text = f"WHEN {variant_is(kind, Kind.STRING)} THEN try_variant_get({x}, '$', 'string') = ''"
        # an array without elements has no element type
        array = f"WHEN {kind} = 'ARRAY<VOID>' THEN size(try_cast({x} AS ARRAY<VARIANT>)) = 0"
        return f"CASE WHEN {missing} THEN TRUE {text} {array} ELSE FALSE END"
    if type.kind is Kind.STRING:
        return f"({missing} OR {x} = '')"
    return f"({missing} OR size({x}) = 0)" if type.kind is Kind.ARRAY else missing


def _debug(value: Any, label: str | None = None) -> Any:
    return value


BUILTINS: tuple[Builtin, ...] = (
    Builtin(
        "type_of",
        "introspection",
        "The name of the value's type: null bool int float decimal string date datetime array map.",
        (Overload((ANY,), STRING, type_name, _type_of_sql, vector="strings.type_of"),),
        Nulls.PASS,
        (('"hello".type_of()', '"string"'), ("null.type_of()", '"null"'), ("3.0.type_of()", '"float"')),
    ),
    Builtin(
        "is_null",
        "introspection",
        "Is there no value?",
        (
            Overload(
                (ANY,),
                BOOL,
                lambda value: value is None,
                lambda c: is_null_sql(c.args[0], c.types[0]),
                vector="strings.is_null",
            ),
        ),
        Nulls.PASS,
        (("42.is_null()", "false"), ("null.is_null()", "true")),
    ),
    Builtin(
        "is_empty",
        "introspection",
        "Is it null, an empty String or an empty Array? Nothing else is empty, not even a Map without keys.",
        (Overload((ANY,), BOOL, _is_empty, _is_empty_sql, vector="strings.is_empty"),),
        Nulls.PASS,
        (('"".is_empty()', "true"), ("[].is_empty()", "true"), ("0.is_empty()", "false")),
    ),
    Builtin(
        "debug",
        "introspection",
        "The value itself; traces it under a label when tracing is on.",
        (Overload((ANY, STRING), lambda types: types[0], _debug, "{0}", optional=1, vector="strings.itself"),),
        Nulls.PASS,
        (('42.debug("check value")', "42"), ("null.debug()", "null")),
    ),
)
