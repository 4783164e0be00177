"""How large the arrays and maps are that a program builds, and the bound on them.

A record may build `MAX_CONSTRUCTED_BYTES` with array and map literals and comprehensions. The statements of a
program share that; what a closure, a comprehension's parts or an `emit each` block build is measured piece by
piece. The size of an array is 24 bytes per element and what the elements hold: a text its UTF-8 bytes, an array
or map its own size, a value of any type the bytes of its JSON text, anything else nothing. A map counts the bytes
of its keys as well.
"""

from __future__ import annotations

from typing import Any

from clinker_spark.core.types import ANY, Kind, Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.text import json_text
from clinker_spark.cxl.limits import MAX_CONSTRUCTED_BYTES

ENTRY_BYTES = 24
TOO_LARGE = f"the record builds arrays and maps of more than {MAX_CONSTRUCTED_BYTES // 2**20} MiB"


def size_of(value: Any, type: Type) -> int:
    """The bytes a value counts for.

    >>> from clinker_spark.core.types import INT, STRING, array_of
    >>> size_of(["ab", "ü", None], array_of(STRING)), size_of(7, INT)
    (76, 0)
    """
    if value is None:
        return 0
    if type.is_dynamic:
        return len(json_text(value).encode("utf-8", "surrogatepass"))
    element = type.element or ANY
    match type.kind:
        case Kind.STRING:
            return len(value.encode("utf-8", "surrogatepass"))
        case Kind.ARRAY:
            return ENTRY_BYTES * len(value) + sum(size_of(item, element) for item in value)
        case Kind.MAP:
            texts = sum(len(str(key).encode("utf-8", "surrogatepass")) for key in value)
            return ENTRY_BYTES * len(value) + texts + sum(size_of(item, element) for item in value.values())
    return 0


def size_sql(sql: str, type: Type) -> str | None:
    """SQL for `size_of`; None when it is always 0.

    >>> from clinker_spark.core.types import INT, STRING, array_of
    >>> size_sql("x", array_of(INT)), size_sql("n", INT)
    ('coalesce(CAST(24 AS BIGINT) * size(x), 0)', None)
    """
    if type.is_dynamic:
        return f"coalesce(octet_length(to_json({sql})), 0)"
    match type.kind:
        case Kind.STRING:
            return f"coalesce(octet_length({sql}), 0)"
        case Kind.ARRAY:
            return _array_sql(sql, type.element or ANY)
        case Kind.MAP:
            keys = f"coalesce(octet_length(array_join(map_keys({sql}), '')), 0)"
            return f"({keys} + {_array_sql(f'map_values({sql})', type.element or ANY)})"
    return None


def _array_sql(sql: str, element: Type) -> str:
    own = f"coalesce(CAST({ENTRY_BYTES} AS BIGINT) * size({sql}), 0)"
    if element.kind is Kind.STRING and not element.is_dynamic:
        return f"({own} + coalesce(octet_length(array_join({sql}, '')), 0))"
    inner = size_sql("cxl_e", element)
    if inner is None:
        return own
    total = f"aggregate({sql}, CAST(0 AS BIGINT), (cxl_a, cxl_e) -> cxl_a + {inner})"
    return f"({own} + coalesce({total}, 0))"


def is_limited(e: ir.TExpr) -> bool:
    """Can what this expression builds be too large? Only where it holds texts or loops over data."""
    match e:
        case ir.Comprehend():
            return True
        case ir.MakeArray():
            known = [_known_size(item) for item in e.items]
        case ir.MakeMap():
            known = [_known_size(part) for part in (*e.keys, *e.values)]
        case _:
            return False
    sizes = [size for size in known if size is not None]
    return len(sizes) < len(known) or sum(sizes) + ENTRY_BYTES * len(known) > MAX_CONSTRUCTED_BYTES


def _known_size(e: ir.TExpr) -> int | None:
    if isinstance(e, ir.Const):
        return size_of(e.value, e.type)
    if isinstance(e, ir.MakeArray | ir.MakeMap):
        parts = e.items if isinstance(e, ir.MakeArray) else (*e.keys, *e.values)
        sizes = [_known_size(part) for part in parts]
        return None if None in sizes else sum(size or 0 for size in sizes) + ENTRY_BYTES * len(parts)
    return 0 if size_sql("x", e.type) is None else None
