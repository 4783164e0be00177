"""The vector engine against the interpreter, value for value and error for error: the builtin table, the conformance
cases and generated programs. That the interpreter and Spark agree on all of these is tested beside; so three engines
have one meaning. No Spark runs here, and many cases are cheap."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from decimal import Decimal
from itertools import islice
from typing import Any

from clinker_spark.cxl.builtins import all_builtins
from clinker_spark.cxl.interpret.coerce import coerce_record
from clinker_spark.cxl.program import compile
from tests.conformance.cases import compile_case, context, read_cases
from tests.conformance.test_builtin_table import _compiled, calls, rows, types
from tests.conformance.test_cases import GIVEN, OWN
from tests.property import records
from tests.property.agreement import Disagreement, interpret
from tests.property.campaign import CONTEXT, Coverage, compiled
from tests.property.vectors import has_vector_form, vector_disagreements, vector_frame

SEED = int(os.environ.get("CXL_SEED", "20261119"))
PROGRAMS = 20_000 if os.environ.get("CLINKER_CASES") == "all" else 2_500


def _shown(found: list[Disagreement], texts: list[str], data: Any) -> str:
    first = {d.program: d for d in reversed(found)}
    lines = [f"{texts[i]} with {data[d.record]!r}\n{d}" for i, d in sorted(first.items())]
    return f"{len(lines)} of {len(texts)} differ\n\n" + "\n\n".join(lines[:20])


def test_every_vector_form_agrees() -> None:
    programs = _compiled(t for b in all_builtins() for o in b.overloads for t in calls(b, o))
    chosen = [(text, program) for text, program in programs if has_vector_form(program)]
    assert len(chosen) > 550
    data = list(rows())
    found = vector_disagreements([p for _, p in chosen], data, types(), CONTEXT)
    assert not found, _shown(found, [text for text, _ in chosen], data)


def test_conformance_cases_agree() -> None:
    seen = 0
    for file in (OWN, GIVEN):
        for case in read_cases(file) if file.exists() else []:
            program, _ = compile_case(case)
            if case.mode != "row" or program is None or not has_vector_form(program):
                continue
            raw = case.raw.get("input", {})
            data = [coerce_record(record, program.typed.schema) for record in (raw if isinstance(raw, list) else [raw])]
            found = vector_disagreements([program], data, program.typed.schema, context())
            assert not found, f"{case.id}: {_shown(found, [case.source], data)}"
            seen += 1
    assert seen > 150


def test_generated_programs_agree() -> None:
    data = records.generate(random.Random(SEED), 40)
    made = list(islice(compiled(random.Random(SEED), Coverage()), PROGRAMS))
    chosen = [(candidate.text, program) for candidate, program in made if has_vector_form(program)]
    assert len(chosen) > PROGRAMS // 20
    found = vector_disagreements([p for _, p in chosen], data, records.schema(), CONTEXT)
    assert not found, f"seed {SEED}: {_shown(found, [text for text, _ in chosen], data)}"


def test_a_branch_that_is_not_taken_does_not_fail() -> None:
    program = compile("emit v = if a > 0 then 10 / a else (b ?? 1) / 1", {"a": "int", "b": "nullable(int)"})
    data = [{"a": 0, "b": None}, {"a": 2, "b": 0}]
    assert vector_disagreements([program], data, program.typed.schema, CONTEXT) == []


def test_a_constant_is_compared_with_a_column_of_one_value() -> None:
    program = compile('emit v = "2024-03-15T14:30:00".to_datetime() > b.try_datetime()', {"b": "int"})
    assert has_vector_form(program)
    assert vector_disagreements([program], [{"b": 1}, {"b": 2}], program.typed.schema, CONTEXT) == []


def test_a_bound_that_is_null_counts_for_the_scale() -> None:
    program = compile("emit v = d.clamp(e, d)", {"d": "decimal(2)", "e": "nullable(decimal(4))"})
    data = [{"d": Decimal("1.50"), "e": None}, {"d": Decimal("9" * 27 + ".99"), "e": None}]
    assert vector_disagreements([program], data, program.typed.schema, CONTEXT) == []
    found = interpret(program, data, CONTEXT)
    assert str((found[0].row or {})["v"]) == "1.5000" and found[1].error is not None


def test_planning_does_not_load_polars() -> None:
    """It takes half a second, and only workers need it."""
    code = "import sys, clinker_spark.cli.app, clinker_spark.plan.prepare, clinker_spark.plan.passes.all\n"
    code += "assert 'polars' not in sys.modules and 'clinker_spark.cxl.vector.reasons' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_batches_without_records() -> None:
    """Nothing is computed for no records, and nothing breaks: constants are columns of no length then."""
    from clinker_spark.cxl.vector.program import lower_program

    for text in ("f % 0.5", "1.5 + f", "s.upper()", "2 * n", "s.to_float()", "(1).to_string()"):
        program = compile(f"filter n > 0\nemit v = {text}", {"f": "float", "s": "string", "n": "int"})
        frame = vector_frame(program.typed.schema, [{"f": 1.0, "s": "é", "n": 0}])
        assert lower_program(program.typed, CONTEXT).run(frame).frame.height == 0
