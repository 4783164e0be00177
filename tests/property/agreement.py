"""Interpreter against Spark: the same programs over the same records, compared without mercy.

Floats agree bit for bit (all NaNs are one), maps in the order of their keys, decimals in their scale too, errors in
kind, field, offending value and message.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame

from clinker_spark.cxl.errors import EvalError
from clinker_spark.cxl.interpret.execution import Execution
from clinker_spark.cxl.program import Program
from clinker_spark.cxl.system import Context
from tests.property.batches import run_batch
from tests.support.batch import Result

_RAISED = re.compile(r"[A-Za-z_.]+(Error|Exception|Fail|Invalid)\b")


@dataclass(frozen=True)
class Disagreement:
    """Program number, record number, and what each engine says."""

    program: int
    record: int
    interpreter: Result
    spark: Result

    def __str__(self) -> str:
        return f"  interpreter: {shown(self.interpreter)}\n  spark:       {shown(self.spark)}"


def identical(a: Any, b: Any) -> bool:
    """The same value of the same type."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, Decimal):
        return str(a) == str(b)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(identical, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(identical(a[k], b[k]) for k in a)
    return bool(a == b)


def same_result(a: Result, b: Result) -> bool:
    """Both skipped, both failed alike, or both with identical rows and scoped variables."""
    if a.error is not None or b.error is not None:
        return a.error == b.error and "message" in (a.error or {})
    if a.skipped or b.skipped:
        return a.skipped == b.skipped
    return identical(a.row, b.row) and identical(a.scoped or {}, b.scoped or {})


def shown(result: Result) -> str:
    if result.error is not None:
        return f"error {result.error}"
    if result.skipped:
        return "filtered"
    return f"{result.row!r}" + (f" scoped {result.scoped!r}" if result.scoped else "")


def error_of(error: EvalError) -> dict[str, Any]:
    """An interpreter's error as it stands in Spark's error column."""
    return {"kind": error.kind, "field": error.field, "value": error.value, "message": error.message}


def crash(error: BaseException) -> Result:
    """An engine that raised: never right, and never the same as the other engine's result."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    raised = [line for line in lines if _RAISED.match(line)]  # the end of a traceback in a Python worker
    return Result(error={"kind": f"{type(error).__name__}: {(raised or lines)[0][:500]}"})


def interpret(program: Program, records: Sequence[Mapping[str, Any]], context: Context) -> list[Result]:
    """The interpreter's results; records are already of the schema's types."""
    execution = program.execution(context)
    return [_interpret_one(execution, record) for record in records]


def _interpret_one(execution: Execution, record: Mapping[str, Any]) -> Result:
    try:
        outcome = execution.run(record)
    except EvalError as error:
        return Result(error=error_of(error))
    except Exception as error:
        return crash(error)
    scoped = {f"${scope}.{name}": v for scope, written in outcome.scoped.items() for name, v in written.items()}
    skipped = outcome.skipped is not None
    return Result(None if skipped else outcome.rows[0], None, skipped, scoped)


def run_on_spark(df: DataFrame, programs: Sequence[Program], context: Context, rows: int) -> list[list[Result]]:
    """Spark's results. When the job fails, its programs run in halves until the one is found that makes it fail."""
    try:
        return run_batch(df, programs, context)
    except Exception as error:
        if len(programs) == 1:
            return [[crash(error)] * rows]
    middle = len(programs) // 2
    first, second = (run_on_spark(df, part, context, rows) for part in (programs[:middle], programs[middle:]))
    return first + second


def disagreements(
    programs: Sequence[Program], records: Sequence[Mapping[str, Any]], df: DataFrame, context: Context
) -> tuple[list[Disagreement], list[list[Result]]]:
    """Where the engines differ, and the interpreter's results. `df` holds `records`."""
    ours = [interpret(p, records, context) for p in programs]
    theirs = run_on_spark(df, programs, context, len(records))
    found = [
        Disagreement(i, n, a, b)
        for i, (mine, spark) in enumerate(zip(ours, theirs, strict=True))
        for n, (a, b) in enumerate(zip(mine, spark, strict=True))
        if not same_result(a, b)
    ]
    return found, ours
