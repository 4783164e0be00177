"""Functions and operators on both engines, value for value: texts that are numbers and those that are none, positions
below 0, floats at their limits, nulls."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pyspark.sql import SparkSession

from clinker_spark.query.failures import QueryError
from clinker_spark.query.lower.values import SparkDataset, list_type
from clinker_spark.query.prepare import prepare
from clinker_spark.query.program import compile_query, located, run
from clinker_spark.runtime.query.engine import QueryEngine

TEXTS = ["", "a", "Ab c", " 5 ", "12", "-7", "2.5", "ä🦀b", None, "0x10", "it's"]
FLOATS = [0.0, -1.5, 2.5, 0.25, 1e10, 1e20, 123456789.125, None, -0.5, 0.1]
INTS = [0, 1, -3, 7, 2**40, None, 15]
ROWS: list[dict[str, Any]] = [
    {
        "s": TEXTS[k % len(TEXTS)],
        "f": FLOATS[k % len(FLOATS)],
        "i": INTS[k % len(INTS)],
        "n": str(INTS[k % 4]),
        "a": [[1, 2, 3], [2], [3, None, 1]][k % 3],
    }
    for k in range(22)
]
VALUES = [
    *("len(r.s)", "len(r.a)", "reverse(r.s)", "reverse(r.a)", "str(r.s)", "str(r.i)", "str(r.f)", "r.f as string"),
    *('concat(r.s, "x")', "concat(r.s, str(r.i))", "concat(r.a, [7])", 'contains(r.s, "a")', "contains(r.a, 2)"),
    *("int(r.n)", "float(r.n)", "r.n as int", "int(r.i)", "float(r.i)", "int(r.f / 1e10)", "r.n.to_int()"),
    *("sqrt(r.f * r.f)", "pow(r.i, 2)", "exp(r.i % 5)", "round(r.f)", "round(r.f, 1)", "round(r.i, -1)"),
    *("min(r.i, 2)", "max(r.f, 1.0)", "min(r.a)", "max(r.a)", "sum(r.a)", "avg(r.a)", "count(r.a)", "first(r.a)"),
    *("last(r.a)", "append(r.a, 9)", "distinct(r.a)", "exists(r.a)", 'join(r.a, "-")', "r.a[0]", "r.a[-1]", "r.a[1:]"),
    *('padStart(str(r.i), 3, "0")', 'padStart(r.s, 4, "*")', 'r.s.pad_left(4, "*")', "r.s.pad_left(4)", "r.s[1:]"),
    *("r.a.map(x => x ?? 0)", "r.a.filter(x => x > 1)", "r.a.find(x => x > 1)", "r.a.any(x => x > 2)"),
    *("r.i / 2", "r.i % 3", "r.f % 2.0", "r.f / 3.0", "-r.i", 'r.s + "x"', 'r.s < "b"', "r.i in r.a", "r.f == r.i"),
    *(f"{name}(r.s, {start}, {end})" for start in (-2, 0, 9) for end in (-1, 0, 2) for name in ("substring", "substr")),
]
FAILING = ["int(r.s)", "sqrt(r.f)", "log(r.i)", "pow(r.i, -1)", "exp(r.f)", '"1_000" as int', "int(r.f * 1e10)"]


@pytest.fixture
def engine(quick: SparkSession) -> tuple[QueryEngine, dict[str, Any], dict[str, Any]]:
    engine = QueryEngine(lambda: quick)
    names = {"rs": SparkDataset(engine.inline(ROWS))}
    return engine, names, {name: list_type(value.relation) for name, value in names.items()}


def _text(expressions: list[str]) -> str:
    return f"from r in rs select {{{', '.join(f'v{i}: {e}' for i, e in enumerate(expressions))}}}"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-15)
    return type(a) is type(b) and bool(a == b)


def test_functions_agree(engine: Any) -> None:
    on_spark, names, types = engine
    wrong = []
    for start in range(0, len(VALUES), 30):
        chosen = VALUES[start : start + 30]
        expected = run(compile_query(_text(chosen), names=types), names={"rs": ROWS})
        program = prepare(compile_query(_text(chosen), names=types), on_spark, types, names)
        with located(program.source):
            found = on_spark.rows(run(program, on_spark, names=names))
        for i, e in enumerate(chosen):
            pairs = zip(ROWS, expected, found, strict=True)
            wrong += [(e, row, a[f"v{i}"], b[f"v{i}"]) for row, a, b in pairs if not _same(a[f"v{i}"], b[f"v{i}"])][:2]
    assert not wrong, "\n".join(map(str, wrong))


def test_what_has_no_value_ends_the_query_on_both(engine: Any) -> None:
    on_spark, names, types = engine
    for e in FAILING:
        if "1e10" not in e:  # whole numbers of a list have no limit
            with pytest.raises(QueryError):
                run(compile_query(_text([e]), names=types), names={"rs": ROWS})
        with pytest.raises(QueryError) as error:
            program = prepare(compile_query(_text([e]), names=types), on_spark, types, names)
            with located(program.source):
                on_spark.rows(run(program, on_spark, names=names))
        assert error.value.diagnostics[0].code in ("E705", "E711")
        assert "Spark failed" not in error.value.diagnostics[0].message
