"""Arrays and maps. The closure methods (filter, map, find, any, flat_map) are rows of `HIGHER_ORDER`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clinker_spark.core.types import ANY, ARRAY, INT, MAP, STRING, Kind, Type, array_of, map_of, unify
from clinker_spark.cxl.builtins import mappaths
from clinker_spark.cxl.builtins.physical import physical, to_dynamic, widen_sql
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.builtins.table import Builtin, Nulls, Overload, SqlCall


def _element(types: Sequence[Type]) -> Type:
    return (types[0].element or ANY).as_nullable()


def _same(types: Sequence[Type]) -> Type:
    return types[0].unwrap()


def _index_array(array: list[Any], index: int) -> Any:
    return array[index] if 0 <= index < len(array) else None


def _index_array_sql(call: SqlCall) -> str:
    array, index = call.args
    literal = call.literal(1)
    if isinstance(literal, int):
        return f"get({array}, {literal})" if 0 <= literal < 2**31 else f"CAST(NULL AS {physical(_element(call.types))})"
    # Negative or huge indexes are simply out of range; -1 is out of range for get().
    return f"get({array}, CAST(CASE WHEN {index} BETWEEN 0L AND 2147483646L THEN {index} ELSE -1L END AS INT))"


def _remove(array: list[Any], index: int) -> list[Any]:
    return array[:index] + array[index + 1 :] if 0 <= index < len(array) else array


def _merged_type(types: Sequence[Type]) -> Type:
    left, right = types[0].element or ANY, types[1].element or ANY
    return map_of(unify(left, right) or ANY)


def _merge(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    return {**left, **right}


def _merge_maps_sql(left: str, right: str) -> str:
    """Right wins, keys keep the place where they came first. Both maps have one value type."""
    keys = f"array_distinct(concat(map_keys({left}), map_keys({right})))"
    value = f"CASE WHEN map_contains_key({right}, cxl_k) THEN {right}[cxl_k] ELSE {left}[cxl_k] END"
    return f"map_from_arrays({keys}, transform({keys}, cxl_k -> {value}))"


def _merge_sql(call: SqlCall) -> str:
    target = _merged_type(call.types)
    left, right = (widen_sql(sql, t, target) for sql, t in zip(call.args, call.types, strict=True))
    return _merge_maps_sql(left, right)


def _set_type(types: Sequence[Type]) -> Type:
    # A path may reach into values, so only a dynamic map is sure to hold the result.
    return MAP


def _set(target: dict[str, Any], path: str | None, value: Any) -> dict[str, Any] | None:
    changed = None if path is None else mappaths.set_path(target, path, value)
    # What the path went through is a dynamic value, whose keys are in sorted order; the map itself keeps its own.
    return None if changed is None else {key: to_dynamic(inner) for key, inner in changed.items()}


def _set_sql(call: SqlCall) -> str | None:
    key = call.literal(1)
    if not isinstance(key, str) or len(mappaths.parse_path(key) or ()) != 1:
        return None
    entry = f"map({sql_string(key)}, {widen_sql(call.args[2], call.types[2], ANY)})"
    return _merge_maps_sql(widen_sql(call.args[0], call.types[0], MAP), entry)


def _unset_sql(call: SqlCall) -> str | None:
    key = call.literal(1)
    if not isinstance(key, str):
        return None
    steps = mappaths.parse_path(key)
    if steps is None:
        return call.args[0]
    return _without(call.args[0], sql_string(key)) if len(steps) == 1 else None


def _without(target: str, key: str) -> str:
    return f"IF({key} IS NULL, NULL, map_filter({target}, (cxl_k, cxl_e) -> cxl_k <> {key}))"


_PATH_REASON = "a path into nested values is walked step by step; Spark has no expression that edits inside a value"

BUILTINS: tuple[Builtin, ...] = (
    Builtin(
        "[]",
        "operator",
        "An array's element by 0-based index, or a map's value by key; null when there is none.",
        (
            Overload((ARRAY, INT), _element, _index_array, _index_array_sql),
            Overload((MAP, STRING), _element, lambda m, k: m.get(k), "try_element_at({0}, {1})"),
        ),
        examples=(("[10, 20][1]", "20"), ("[10, 20][9]", "null"), ('{a: 1}["a"]', "1")),
    ),
    Builtin(
        "remove",
        "array",
        "The array without the element at an index; unchanged when the index is out of range.",
        (
            Overload(
                (ARRAY, INT),
                _same,
                _remove,
                "IF({1} IS NULL, NULL, filter({0}, (cxl_e, cxl_i) -> CAST(cxl_i AS BIGINT) <> {1}))",
            ),
        ),
        examples=(("[10, 20, 30].remove(1)", "[10, 30]"), ("[1].remove(-1)", "[1]")),
    ),
    Builtin(
        "keys",
        "map",
        "The keys of a map, in their order.",
        (Overload((MAP,), array_of(STRING), lambda m: list(m), "map_keys({0})"),),
        examples=(("{a: 1, b: 2}.keys()", '["a", "b"]'), ("{}.keys()", "[]")),
    ),
    Builtin(
        "values",
        "map",
        "The values of a map, in the order of its keys.",
        (
            Overload(
                (MAP,),
                lambda types: array_of(types[0].element or ANY),
                lambda m: list(m.values()),
                "map_values({0})",
            ),
        ),
        examples=(("{a: 1, b: 2}.values()", "[1, 2]"), ("{}.values()", "[]")),
    ),
    Builtin(
        "merge",
        "map",
        "Both maps as one; the argument's values win, existing keys keep their place.",
        (Overload((MAP, MAP), _merged_type, _merge, _merge_sql),),
        examples=(("{a: 1, b: 2}.merge({b: 3})", '{"a": 1, "b": 3}'), ("{a: 1}.merge({})", '{"a": 1}')),
    ),
    Builtin(
        "set",
        "map",
        "The map with a value at a path such as `a.b[0].c`; missing maps are made, a misfit gives null.",
        (
            Overload(
                (MAP, STRING, ANY),
                _set_type,
                _set,
                _set_sql,
                python_reason=_PATH_REASON,
            ),
        ),
        nulls=Nulls.RECEIVER,
        examples=(('{a: 1}.set("b", 2)', '{"a": 1, "b": 2}'), ('{a: 1}.set("a.b", 2)', "null")),
    ),
    Builtin(
        "unset",
        "map",
        "The map without what stands at a path; unchanged when nothing stands there.",
        (Overload((MAP, STRING), _same, mappaths.unset_path, _unset_sql, python_reason=_PATH_REASON),),
        examples=(('{a: 1, b: 2}.unset("a")', '{"b": 2}'), ('{a: 1}.unset("x.y")', '{"a": 1}')),
    ),
    Builtin(
        "remove_field",
        "map",
        "The map without one top-level key, taken literally; unchanged when it is absent.",
        (
            Overload(
                (MAP, STRING),
                _same,
                lambda m, k: {key: v for key, v in m.items() if key != k},
                lambda call: _without(*call.args),
            ),
        ),
        examples=(('{a: 1, b: 2}.remove_field("a")', '{"b": 2}'), ('{a: 1}.remove_field("z")', '{"a": 1}')),
    ),
)


@dataclass(frozen=True)
class HigherOrderMethod:
    """An array method that takes a closure over `it`."""

    name: str
    doc: str
    predicate: bool
    examples: tuple[tuple[str, str], ...]

    def result_type(self, element: Type, body: Type) -> Type:
        if self.name == "filter":
            return array_of(element)
        if self.name == "map":
            return array_of(body)
        if self.name == "find":
            return element.as_nullable()
        if self.name == "any":
            return Type(Kind.BOOL)
        if body.is_dynamic:  # flat_map
            return ARRAY
        return array_of(body.element or ANY) if body.kind is Kind.ARRAY else array_of(body.unwrap())


HIGHER_ORDER = {
    row.name: row
    for row in (
        HigherOrderMethod(
            "filter",
            "The elements for which the closure is true.",
            True,
            (("[1, 2, 3].filter(it => it > 1)", "[2, 3]"),),
        ),
        HigherOrderMethod(
            "map", "The closure's value for each element.", False, (("[1, 2].map(it => it * 10)", "[10, 20]"),)
        ),
        HigherOrderMethod(
            "find",
            "The first element for which the closure is true, or null.",
            True,
            (("[1, 2, 3].find(it => it > 1)", "2"), ("[1].find(it => it > 9)", "null")),
        ),
        HigherOrderMethod(
            "any",
            "Is the closure true for some element? False on an empty array.",
            True,
            (("[1, 2].any(it => it > 1)", "true"), ("[].any(it => true)", "false")),
        ),
        HigherOrderMethod(
            "flat_map",
            "The closure's arrays joined into one; null adds nothing, a single value adds itself.",
            False,
            (("[[1], [2, 3]].flat_map(it => it)", "[1, 2, 3]"),),
        ),
    )
}
