"""Components that were logged both as single values and as lists: `1` at one time, `[]` at another.

Each value stays what it was. Inside, such a component is a struct of two fields of which one is set. Where a column can
have only one type (Parquet, Spark), a single value becomes a list of one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_ONE, _MANY = "$one", "$many"


def either(kind: pa.DataType) -> pa.DataType:
    """The type of values of a type, and of lists of these."""
    return pa.struct([pa.field(_ONE, kind), pa.field(_MANY, pa.list_(kind))])


def is_either(kind: pa.DataType) -> bool:
    """Is it such a type?

    >>> is_either(either(pa.int64())), is_either(pa.struct([("x", pa.int64())]))
    (True, False)
    """
    return pa.types.is_struct(kind) and [field.name for field in kind] == [_ONE, _MANY]


def type_text(kind: pa.DataType) -> str:
    """A type for people.

    >>> type_text(either(pa.int64()))
    'int64 or list<int64>'
    """
    if is_either(kind):
        one = type_text(kind.field(_ONE).type)
        return f"{one} or list<{one}>"
    return f"list<{type_text(kind.value_type)}>" if pa.types.is_list(kind) else str(kind)


def cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values in another type. Raises ArrowInvalid when some do not fit.

    >>> cast(pa.array([[], [2]]), either(pa.int64())).to_pylist()
    [{'$one': None, '$many': []}, {'$one': None, '$many': [2]}]
    """
    if values.type == kind:
        return values
    if not is_either(kind):
        return values.cast(kind)
    one, many = kind.field(_ONE).type, kind.field(_MANY).type
    if is_either(values.type):
        fields = [values.field(_ONE).cast(one), values.field(_MANY).cast(many)]
    elif pa.types.is_list(values.type):
        fields = [pa.nulls(len(values), one), values.cast(many)]
    else:
        fields = [values.cast(one), pa.nulls(len(values), many)]
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=values.is_null())


def joined(one: pa.Array, many: pa.Array, kind: pa.DataType) -> pa.Array:
    """Single values, and lists where there is none, as values of a type that is either.

    >>> joined(pa.array([1, None]), pa.array([None, []], pa.list_(pa.int64())), either(pa.int64())).to_pylist()
    [{'$one': 1, '$many': None}, {'$one': None, '$many': []}]
    """
    fields = [one.cast(kind.field(_ONE).type), many.cast(kind.field(_MANY).type)]
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=pc.and_(one.is_null(), many.is_null()))


def table_type(kind: pa.DataType) -> pa.DataType:
    """The type that a column of a table has: lists, where values were either."""
    if is_either(kind):
        return kind.field(_MANY).type
    return pa.list_(table_type(kind.value_type)) if pa.types.is_list(kind) else kind


def as_table(values: pa.Array) -> pa.Array:
    """Values as they stand in tables.

    >>> lists = pa.array([None, [], None, [2, 3]])
    >>> as_table(joined(pa.array([1, None, None, None]), lists, either(pa.int64()))).to_pylist()
    [[1], [], None, [2, 3]]
    """
    kind = values.type
    if pa.types.is_list(kind) and table_type(kind) != kind:
        gone = np.append(values.is_null().to_numpy(zero_copy_only=False), False)
        counts = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.append(0, np.cumsum(counts)), pa.int32(), mask=gone)
        return pa.ListArray.from_arrays(offsets, as_table(values.flatten()))
    if not is_either(kind):
        return values
    # The fields of a struct that is null are not always null themselves.
    there = values.is_valid()
    one, many = (pc.if_else(there, values.field(i), pa.scalar(None, kind.field(i).type)) for i in range(2))
    single = one.is_valid().to_numpy(zero_copy_only=False)
    counts = np.where(single, 1, pc.fill_null(pc.list_value_length(many), 0).to_numpy(zero_copy_only=False))
    ends = np.cumsum(counts)
    places = np.full(int(ends[-1]) if len(ends) else 0, -1, dtype=np.int64)
    places[ends[single] - 1] = np.flatnonzero(single)
    listed = many.flatten()
    places[places < 0] = len(one) + np.arange(len(listed))
    flat = pa.concat_arrays([one, listed]).take(pa.array(places))
    gone = np.append(~there.to_numpy(zero_copy_only=False), False)
    return pa.ListArray.from_arrays(pa.array(np.append(0, ends), pa.int32(), mask=gone), flat)


def as_logged(cell: Any, kind: pa.DataType) -> Any:
    """A cell as a Python value that is what it was when it was logged."""
    if cell is None:
        return None
    if is_either(kind):
        return cell[_MANY] if cell[_ONE] is None else cell[_ONE]
    return [as_logged(item, kind.value_type) for item in cell]


def holds_either(kind: pa.DataType) -> bool:
    """Do cells of this type need `as_logged`?"""
    return is_either(kind) or (pa.types.is_list(kind) and is_either(kind.value_type))
