"""The types of components: what can be kept as it is, and what two types have in common."""

from __future__ import annotations

import pyarrow as pa

from clinker_spark.dataset.either import either, is_either
from clinker_spark.dataset.errors import DatasetError

_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.int64()}


def kept(kind: pa.DataType) -> pa.DataType:
    """The type in which values are kept: themselves, except where Spark has no such values.

    >>> str(kept(pa.uint8())), str(kept(pa.timestamp("ns"))), str(kept(pa.large_string()))
    ('int16', 'timestamp[us]', 'string')
    """
    if kind in _SIGNED:
        return _SIGNED[kind]
    if pa.types.is_dictionary(kind):
        return kept(kind.value_type)
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz=kind.tz)
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(kept(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, kept(f.type)) for f in kind])
    return kind


def as_kept(values: pa.Array, what: str) -> pa.Array:
    """Values in the type in which they are kept. Raises DatasetError, with what they are, if there is none."""
    kind = kept(values.type)
    if not _is_known(kind):
        message = f"{what} has values of type {values.type}, which cannot be kept"
        raise DatasetError("E853", message, "make them numbers, texts, times, lists or structs of these")
    if values.type == kind:
        return values
    try:
        return values.cast(kind)
    except pa.ArrowException as error:
        message = f"{what} has values that do not fit into {kind}: {str(error).splitlines()[0]}"
        raise DatasetError("E853", message) from None


def _is_known(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind):
        return _is_known(kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_known(f.type) for f in kind)
    tests = (
        pa.types.is_null,
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal128,
        pa.types.is_string,
        pa.types.is_binary,
        pa.types.is_date32,
        pa.types.is_timestamp,
    )
    return any(test(kind) for test in tests)


def common(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The type for values of both, or None.

    >>> str(common(pa.int64(), pa.float64())), common(pa.int64(), pa.string())
    ('double', None)
    >>> str(common(pa.list_(pa.null()), pa.list_(pa.int64())).value_type)
    'int64'
    >>> common(pa.int64(), pa.list_(pa.null())) == either(pa.int64())
    True
    """
    if pa.types.is_null(a) or pa.types.is_null(b):
        return b if pa.types.is_null(a) else a
    if is_either(a) or is_either(b) or pa.types.is_list(a) != pa.types.is_list(b):
        inner = _common(_inner(a), _inner(b))
        return None if inner is None else either(inner)
    return _common(a, b)


def _inner(kind: pa.DataType) -> pa.DataType:
    if is_either(kind):
        return kind.field(0).type
    return kind.value_type if pa.types.is_list(kind) else kind


def _common(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    if a == b or pa.types.is_null(b):
        return a
    if pa.types.is_null(a):
        return b
    if pa.types.is_integer(a) and pa.types.is_integer(b):
        return max(a, b, key=lambda kind: kind.bit_width)
    if _is_number(a) and _is_number(b):
        single = {a, b} == {pa.float32()} or (pa.float32() in (a, b) and min(a.bit_width, b.bit_width) <= 16)
        return pa.float32() if single else pa.float64()
    if pa.types.is_list(a) and pa.types.is_list(b):
        inner = _common(a.value_type, b.value_type)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_struct(a) and pa.types.is_struct(b):
        fields = {f.name: f.type for f in a}
        for f in b:
            inner = _common(fields.get(f.name, pa.null()), f.type)
            if inner is None:
                return None
            fields[f.name] = inner
        return pa.struct(list(fields.items()))
    return None


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)
