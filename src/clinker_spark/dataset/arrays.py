"""Numbers from NumPy to Arrow and back, by their bytes.

`pyarrow.array` and `to_numpy` do the same, and load pandas first, if it is installed: a quarter of a second, more than
most queries take.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def of_numbers(numbers: np.ndarray, missing: np.ndarray | None = None) -> pa.Array:
    """Whole numbers as an Arrow array; null where they are missing.

    >>> of_numbers(np.array([1, 2, 3]), np.array([False, True, False])).to_pylist()
    [1, None, 3]
    """
    content = pa.py_buffer(np.ascontiguousarray(numbers, dtype=np.int64))
    if missing is None or not missing.any():
        return pa.Array.from_buffers(pa.int64(), len(numbers), [None, content], 0)
    valid = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(pa.int64(), len(numbers), [valid, content], int(missing.sum()))


def numbers_in(array: pa.Array) -> np.ndarray:
    """The whole numbers of an Arrow array without nulls.

    >>> numbers_in(pa.array([1, 2, 3]).slice(1)).tolist()
    [2, 3]
    """
    if not len(array):
        return np.empty(0, dtype=np.int64)
    return np.frombuffer(array.buffers()[1], dtype=np.int64)[array.offset :][: len(array)]


def has_value(array: pa.Array) -> np.ndarray:
    """Where an Arrow array has values.

    >>> has_value(pa.array(["x", None, "y"]).slice(1)).tolist()
    [False, True]
    """
    bitmap = array.buffers()[0]
    if bitmap is None:
        return np.full(len(array), not pa.types.is_null(array.type))
    bits = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), bitorder="little")
    return bits[array.offset :][: len(array)].astype(bool)


def repeated(text: str, count: int) -> pa.Array:
    """One text in every row.

    >>> repeated("ü", 2).to_pylist()
    ['ü', 'ü']
    """
    content = text.encode()
    if len(content) * count >= 2**31:  # more than the offsets of texts can say
        raise pa.ArrowInvalid(f"a name of {len(content)} bytes is too long")
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(len(content))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content * count)]
    return pa.Array.from_buffers(pa.string(), count, buffers, 0)
