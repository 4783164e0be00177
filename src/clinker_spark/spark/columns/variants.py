"""Python values as VARIANT and back, for the columns that are computed in Python.

The encoding is the open Variant binary format: a dictionary of keys (metadata) and a value. Offsets and
sizes are always four bytes wide here: simple, and these values live only between Python and Spark.
"""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

from pyspark.sql.types import VariantVal

_EPOCH = dt.datetime(1970, 1, 1)
_NULL, _TRUE, _FALSE, _INT64, _DOUBLE, _DATE, _TIMESTAMP_NTZ, _STRING = 0, 1, 2, 6, 7, 11, 13, 16


def encode(value: Any) -> tuple[bytes, bytes]:
    """(value, metadata) of a variant."""
    keys: set[str] = set()
    _collect_keys(value, keys)
    names = sorted(keys, key=lambda k: k.encode())
    ids = {name: i for i, name in enumerate(names)}
    return _value(value, ids), _metadata(names)


def decode(value: bytes, metadata: bytes) -> Any:
    """A variant as the interpreter's values: exact numbers with a fraction are floats there."""
    return _plain(VariantVal(value, metadata).toPython())


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _collect_keys(value: Any, keys: set[str]) -> None:
    if isinstance(value, dict):
        keys.update(value)
        for inner in value.values():
            _collect_keys(inner, keys)
    elif isinstance(value, list):
        for inner in value:
            _collect_keys(inner, keys)


def _metadata(names: list[str]) -> bytes:
    encoded = [n.encode() for n in names]
    offsets, at = [0], 0
    for e in encoded:
        at += len(e)
        offsets.append(at)
    header = 1 | (1 << 4) | (3 << 6)  # version 1, sorted, four-byte offsets
    return struct.pack(f"<BI{len(offsets)}I", header, len(names), *offsets) + b"".join(encoded)


def _primitive(type_id: int, payload: bytes = b"") -> bytes:
    return bytes([type_id << 2]) + payload


def _value(value: Any, ids: dict[str, int]) -> bytes:
    match value:
        case None:
            return _primitive(_NULL)
        case bool():
            return _primitive(_TRUE if value else _FALSE)
        case int():
            return _primitive(_INT64, struct.pack("<q", value))
        case float() | Decimal():
            return _primitive(_DOUBLE, struct.pack("<d", float(value)))
        case str():
            data = value.encode()
            if len(data) < 64:
                return bytes([(len(data) << 2) | 1]) + data
            return _primitive(_STRING, struct.pack("<I", len(data)) + data)
        case dt.datetime():
            return _primitive(_TIMESTAMP_NTZ, struct.pack("<q", (value - _EPOCH) // dt.timedelta(microseconds=1)))
        case dt.date():
            return _primitive(_DATE, struct.pack("<i", (value - _EPOCH.date()).days))
        case list():
            return _container(3 | (3 << 2) | (1 << 4), [_value(v, ids) for v in value], [])
        case dict():
            fields = sorted(value, key=lambda k: ids[k])
            header = 2 | (3 << 2) | (3 << 4) | (1 << 6)
            return _container(header, [_value(value[k], ids) for k in fields], [ids[k] for k in fields])
    raise TypeError(f"no variant for {type(value).__name__}")


def _container(header: int, parts: list[bytes], field_ids: list[int]) -> bytes:
    offsets, at = [0], 0
    for part in parts:
        at += len(part)
        offsets.append(at)
    head = struct.pack(f"<BI{len(field_ids)}I{len(offsets)}I", header, len(parts), *field_ids, *offsets)
    return head + b"".join(parts)
