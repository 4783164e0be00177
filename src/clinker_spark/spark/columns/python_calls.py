"""Columns that the interpreter computes, in Arrow batches: the calls without a Spark expression."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from clinker_spark.core.recursion import deep_recursion
from clinker_spark.core.types import ANY, Kind, Type
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.errors import EvalError
from clinker_spark.cxl.hidden import ERROR_TYPE
from clinker_spark.cxl.interpret.expressions import compile_expr
from clinker_spark.cxl.interpret.frame import Frame
from clinker_spark.cxl.lower.plan import PythonColumn
from clinker_spark.cxl.regex.columns import over_columns
from clinker_spark.cxl.system import Context
from clinker_spark.spark.columns.variants import decode, encode

# The mark on the second field is how Spark knows a variant from an ordinary struct.
_VARIANT = pa.struct(
    [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, metadata={"variant": "true"})]
)
_ERROR = pa.struct([(name, pa.string()) for name in ("kind", "field", "value", "message")])
_SCALARS = {
    Kind.NULL: pa.string(),
    Kind.BOOL: pa.bool_(),
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.DATETIME: pa.timestamp("us"),
}


def arrow_type(t: Type) -> pa.DataType:
    """The Arrow type of a CXL type's physical form."""
    if t.is_dynamic:
        return _VARIANT
    if t.kind is Kind.DECIMAL:
        return pa.string() if t.scale is None else pa.decimal128(29, t.scale)
    if t.kind is Kind.ARRAY:
        return pa.list_(arrow_type(t.element or ANY))
    if t.kind is Kind.MAP:
        return pa.map_(pa.string(), arrow_type(t.element or ANY))
    return _SCALARS[t.kind]


def from_arrow(value: Any, t: Type) -> Any:
    """A value out of an Arrow array (`as_py`) as the interpreter knows it."""
    if value is None:
        return None
    if t.is_dynamic:
        return decode(value["value"], value["metadata"])
    if t.kind is Kind.DECIMAL:
        return value if isinstance(value, Decimal) else Decimal(value)
    if t.kind is Kind.ARRAY:
        return [from_arrow(v, t.element or ANY) for v in value]
    if t.kind is Kind.MAP:
        return {k: from_arrow(v, t.element or ANY) for k, v in value}
    return value


def to_arrow(value: Any, t: Type) -> Any:
    """The inverse of `from_arrow`."""
    if value is None:
        return None
    if t.is_dynamic:
        data, metadata = encode(value)
        return {"value": data, "metadata": metadata}
    if t.kind is Kind.DECIMAL and t.scale is None:
        return format(value, "f")
    if t.kind is Kind.ARRAY:
        return [to_arrow(v, t.element or ANY) for v in value]
    if t.kind is Kind.MAP:
        return [(k, to_arrow(v, t.element or ANY)) for k, v in value.items()]
    return value


def python_column(column: PythonColumn, context: Context) -> Column:
    """The column as an Arrow UDF over its inputs. It gives a struct of value and error and never raises."""
    result, types = column.expression.type, [t for _, _, t in column.inputs]
    returned = f"STRUCT<value: {physical(result)}, error: {ERROR_TYPE}>"
    run = _batch_function(column, context, result, types)
    inputs = [F.expr(sql) for _, sql, _ in column.inputs] or [F.lit(0)]
    return F.arrow_udf(run, returnType=returned)(*inputs)  # type: ignore[attr-defined]


def _batch_function(column: PythonColumn, context: Context, result: Type, types: list[Type]) -> Callable[..., pa.Array]:
    slots = [slot for slot, _, _ in column.inputs]
    expression = column.expression
    arrow = pa.struct([("value", arrow_type(result)), ("error", _ERROR)])

    def run(*arrays: pa.Array) -> pa.Array:
        whole = over_columns(expression)
        if whole is not None:
            values = whole(arrays[0]).cast(arrow_type(result))
            return pa.StructArray.from_arrays([values, pa.nulls(len(values), _ERROR)], fields=list(arrow))
        with deep_recursion():
            return rows_of(*arrays)

    def rows_of(*arrays: pa.Array) -> pa.Array:
        evaluate = compile_expr(expression)
        decoded = [[from_arrow(v, t) for v in a.to_pylist()] for a, t in zip(arrays, types, strict=False)]
        rows = []
        for i in range(len(arrays[0])):
            frame = Frame({}, context, {slot: values[i] for slot, values in zip(slots, decoded, strict=True)})
            try:
                rows.append({"value": to_arrow(evaluate(frame), result), "error": None})
            except EvalError as e:
                error = {"kind": e.kind, "field": e.field, "value": e.value, "message": e.message}
                rows.append({"value": None, "error": error})
        return pa.array(rows, arrow)

    # Spark reads the annotations to learn that the function takes and returns Arrow arrays.
    run.__annotations__ = {"arrays": pa.Array, "return": pa.Array}
    return run
