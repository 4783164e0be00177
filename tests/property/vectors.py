"""The vector engine beside the interpreter: programs over records, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from clinker_spark.core.types import Type
from clinker_spark.cxl.hidden import ERROR_COLUMN
from clinker_spark.cxl.program import Program
from clinker_spark.cxl.system import Context
from clinker_spark.cxl.vector.call import as_kept, dtype_of, interpreter_value, is_digits
from clinker_spark.cxl.vector.program import lower_program
from clinker_spark.cxl.vector.reasons import is_vector_type, program_reason
from tests.property.agreement import Disagreement, crash, interpret, same_result
from tests.support.batch import Result

_NUMBER = "$number"


def has_vector_form(program: Program) -> bool:
    return program_reason(program.typed) is None


def vector_frame(schema: Mapping[str, Type], records: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """The columns that fragments compute with, and the number of each record."""
    columns = {
        name: pl.Series(
            name,
            [as_kept(record.get(name)) if is_digits(t) else record.get(name) for record in records],
            dtype=dtype_of(t),
        )
        for name, t in schema.items()
        if is_vector_type(t)
    }
    return pl.DataFrame({**columns, _NUMBER: pl.Series(range(len(records)), dtype=pl.Int64)})


def run_vector(program: Program, frame: pl.DataFrame, context: Context) -> list[Result]:
    """What the vector engine makes of each record."""
    found = [Result(skipped=True)] * frame.height
    try:
        batch = lower_program(program.typed, context, texts=True).run(frame)
        for rejected in batch.rejected:
            for row in rejected.select(_NUMBER, ERROR_COLUMN).to_dicts():
                found[row[_NUMBER]] = Result(error=row[ERROR_COLUMN])
        names = [name for name in program.output if name in batch.frame.columns]
        for row in batch.frame.select(_NUMBER, *names).to_dicts():
            number = row.pop(_NUMBER)
            found[number] = Result({name: interpreter_value(row[name], program.output[name]) for name in names})
    except Exception as error:
        return [crash(error)] * frame.height
    return found


def vector_disagreements(
    programs: Sequence[Program], records: Sequence[Mapping[str, Any]], schema: Mapping[str, Type], context: Context
) -> list[Disagreement]:
    """Where the vector engine and the interpreter differ, of programs that have a vector form."""
    frame = vector_frame(schema, records)
    found = []
    for i, program in enumerate(programs):
        pairs = zip(interpret(program, records, context), run_vector(program, frame, context), strict=True)
        found += [Disagreement(i, n, a, b) for n, (a, b) in enumerate(pairs) if not same_result(a, b)]
    return found
