"""The two engines under the cases: the interpreter, one case at a time; Spark, hundreds of cases in a job."""

from __future__ import annotations

from typing import Any

from clinker_spark.core.types import Type, parse_type
from clinker_spark.cxl.errors import EvalError
from clinker_spark.cxl.interpret.coerce import coerce_record
from clinker_spark.cxl.interpret.statements import Outcome
from clinker_spark.cxl.ir import TDistinct, TEach, has_statement
from clinker_spark.cxl.program import Program
from tests.conformance.cases import Case, Got, compile_case, context, difference, plain, same

Failures = list[tuple[str, str]]
BATCH = 150
"""Cases in one Spark job."""


def run_interpreter(cases: list[Case]) -> Failures:
    """(id, difference) of each case that fails."""
    failures: Failures = []
    for case in cases:
        program, problem = compile_case(case)
        if problem is None and program is not None:
            problem = _interpret(case, program)
        if problem is not None:
            failures.append((case.id, problem))
    return failures


def _interpret(case: Case, program: Program) -> str | None:
    schema = program.typed.schema
    try:
        if case.mode == "aggregate":
            return difference(case, program, Got(rows=program.aggregate(case.raw["rows"], context())))
        if case.mode == "window":
            rows = [coerce_record(r, schema) for r in case.raw["partition"]]
            found = program.execution(context()).run_window(rows, case.raw.get("sort_by", ()))
            return difference(case, program, _got(found[case.raw["current"]]))
        if isinstance(case.expect, dict) and "stream" in case.expect:
            execution = program.execution(context())
            return _stream(case, [_attempt(program, r, execution) for r in case.raw["input"]])
        return difference(case, program, _got(program.outcome(case.raw.get("input", {}), context())))
    except EvalError as error:
        return difference(case, program, Got(error=error.kind))


def _attempt(program: Program, record: dict[str, Any], execution: Any) -> Got:
    try:
        return _got(execution.run(coerce_record(record, program.typed.schema)))
    except EvalError as error:
        return Got(error=error.kind)


def _got(found: Outcome | EvalError) -> Got:
    if isinstance(found, EvalError):
        return Got(error=found.kind)
    scoped = {f"${scope}.{name}": v for scope, written in found.scoped.items() for name, v in written.items()}
    return Got(rows=found.rows, skipped=found.skipped, scoped=scoped)


def _stream(case: Case, found: list[Got]) -> str | None:
    """Per record: `{"emit": ...}`, `{"skip": ...}` or an error; or, when no skips are listed, the rows that pass."""
    expected = case.expect["stream"]
    if len(expected) != len(found):
        rows = [row for got in found for row in got.rows or []]
        wanted = [e.get("emit", e) if isinstance(e, dict) else e for e in expected]
        return None if same(wanted, plain(rows)) else f"expected {expected!r}, got {rows!r}"
    for i, (want, got) in enumerate(zip(expected, found, strict=True)):
        if isinstance(want, dict) and "skip" in want:
            fine = got.skipped is not None
        elif isinstance(want, dict) and "error" in want:
            fine = got.error == want["error"]
        else:
            row = want.get("emit", want) if isinstance(want, dict) else want
            fine = got.rows is not None and len(got.rows) == 1 and same(row, plain(got.rows[0]))
        if not fine:
            return f"record {i}: expected {want!r}, got {got!r}"
    return None


# ------------------------------------------------------------------------ Spark


def run_spark(cases: list[Case], spark: Any, one_by_one: Any = None) -> Failures:
    """(id, difference) of each case that fails. `one_by_one` is a session for cases that need a job of their own."""
    from tests.property.batches import alike

    failures: Failures = []
    batch: list[tuple[Case, Program]] = []
    for case in cases:
        program, problem = compile_case(case)
        if problem is not None:
            failures.append((case.id, problem))
        elif program is not None:
            if case.mode == "row" and not has_statement(program.typed.statements, (TEach, TDistinct)):
                batch.append((case, program))
            else:
                problem = _run_alone(case, program, one_by_one or spark)
                if problem is not None:
                    failures.append((case.id, problem))
    for part in alike(batch, lambda pair: pair[1], BATCH, context()):
        failures += _run_together(part, spark)
    order = {case.id: i for i, case in enumerate(cases)}
    return sorted(failures, key=lambda f: order[f[0]])


def _schema(case: Case) -> dict[str, Type]:
    found = {name: parse_type(t) for name, t in case.raw.get("schema", {}).items()}
    return {name: t for name, t in found.items() if t is not None}


def _run_together(batch: list[tuple[Case, Program]], spark: Any) -> Failures:
    from tests.support.batch import Job, frame, run_batch

    schema: dict[str, Type] = {}
    record: dict[str, Any] = {}
    jobs = []
    for i, (case, program) in enumerate(batch):
        types = _schema(case)
        values = coerce_record(case.raw.get("input", {}), types)
        for name, t in types.items():
            schema[f"c{i}.{name}"] = t
            record[f"c{i}.{name}"] = values.get(name)
        jobs.append(Job(program, {name: f"`c{i}.{name}`" for name in types}))
    results = run_batch(frame(spark, schema, [record]), jobs, context())
    failures: Failures = []
    for (case, program), [result] in zip(batch, results, strict=True):
        if result.error is not None:
            got = Got(error=result.error["kind"])
        elif result.skipped:
            got = Got(skipped="filtered")
        else:
            got = Got(rows=[result.row or {}], scoped=result.scoped)
        problem = difference(case, program, got)
        if problem is not None:
            failures.append((case.id, problem))
    return failures


def _run_alone(case: Case, program: Program, spark: Any) -> str | None:
    from clinker_spark.spark.columns.programs import Window, apply, apply_aggregate
    from tests.support.batch import frame
    from tests.support.rows import from_row

    schema = _schema(case)
    raw = next((case.raw[key] for key in ("rows", "partition", "input") if key in case.raw), {})  # rows may be []
    records = [coerce_record(r, schema) for r in (raw if isinstance(raw, list) else [raw])]
    df = frame(spark, schema, records).coalesce(1)
    if case.mode == "aggregate":
        groups, failed = apply_aggregate(program, df, context=context())
        rejected = [] if failed is None else failed.collect()
        if rejected:  # a row that failed before it could be grouped
            return difference(case, program, Got(error=rejected[0]["$error"]["kind"]))
        found = groups.collect()
        if "$error" in groups.columns:
            errors = [r["$error"]["kind"] for r in found if r["$error"] is not None]
            if errors:
                return difference(case, program, Got(error=errors[0]))
        rows = [{n: from_row(row[n], t) for n, t in program.output.items()} for row in found]
        return difference(case, program, Got(rows=rows))
    window = Window((), tuple(case.raw.get("sort_by", ()))) if case.mode == "window" else None
    out = apply(program, df, context=context(), window=window, include_unmapped=False)
    found = out.collect()
    results = [
        Got(error=row["$error"]["kind"])
        if "$error" in out.columns and row["$error"] is not None
        else Got(rows=[{n: from_row(row[n], t) for n, t in program.output.items()}])
        for row in found
    ]
    if isinstance(case.expect, dict) and "stream" in case.expect:
        kept = [e for e in case.expect["stream"] if not (isinstance(e, dict) and "skip" in e)]
        return _stream(Case(case.id, {**case.raw, "expect": {"stream": kept}}), results)
    if case.mode == "window":
        return difference(case, program, results[case.raw["current"]])
    errors = [r for r in results if r.error is not None]
    if errors:
        return difference(case, program, errors[0])
    if not results and isinstance(case.expect, dict) and "skip" in case.expect:
        return None
    return difference(case, program, Got(rows=[r for got in results for r in got.rows or []]))
