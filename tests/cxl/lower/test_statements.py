"""Lowering without Java: the SQL text a program becomes, and the shape of its steps."""

from __future__ import annotations

import pytest

from clinker_spark.cxl import compile
from clinker_spark.cxl.lower.plan import LoweredProgram, Project, PythonColumn, Where
from clinker_spark.cxl.lower.statements import lower_program
from clinker_spark.cxl.system import default_context

SCHEMA = {
    "a": "int",
    "b": "int",
    "x": "float",
    "s": "string",
    "ok": "bool",
    "d": "date",
    "items": "array",
    "nums": "array(int)",
    "doc": "map",
    "any": "any",
    "price": "decimal(2)",
    "we`ird": "int",
}


def lowered(text: str) -> LoweredProgram:
    return lower_program(compile(text, SCHEMA).typed, default_context())


def columns(program: LoweredProgram) -> list[str]:
    return [text for step in program.steps if isinstance(step, Project) for _, text in step.columns]


TEXTS = [
    ("a + 1", "try_add(`a`, 1L)"),
    ("x + 1", "(`x` + 1.0D)"),
    ("x + a", "(`x` + CAST(`a` AS DOUBLE))"),
    ("s + s", "concat(`s`, `s`)"),
    ("a / 4", "(`a` div 4L)"),
    ("x / 2.5", "(`x` / 2.5D)"),
    ("a == b", "(`a` <=> `b`)"),
    ("a != 1", "(NOT (`a` <=> 1L))"),
    ("a == null", "(`a` IS NULL)"),
    ("x == 1.5", "(`x` <=> 1.5D AND NOT isnan(`x`))"),
    ("x > 1.5", "(`x` > 1.5D AND NOT isnan(`x`))"),
    ("x < 1.5", "(`x` < 1.5D)"),
    ("a > b and ok", "((`a` > `b`) AND `ok`)"),
    ("not ok", "(NOT `ok`)"),
    ('s ?? "none"', "coalesce(`s`, 'none')"),
    ("if ok then 1 else 2", "CASE WHEN `ok` THEN 1L ELSE 2L END"),
    ("[a, b]", "array(`a`, `b`)"),
    ("nums[0]", "get(`nums`, 0)"),
    ('doc["k"]', "try_element_at(`doc`, 'k')"),
    ("any.city", "try_variant_get(`any`, '$.city', 'variant')"),
    ("nums.map(it => it > a)", "transform(`nums`, cxl_x1 -> (cxl_x1 > `a`))"),
    ("price * 2", "try_cast(try_multiply(`price`, CAST('2' AS DECIMAL(29, 0))) AS DECIMAL(29, 2))"),
]


@pytest.mark.parametrize(("expression", "sql"), TEXTS, ids=[t[0] for t in TEXTS])
def test_sql_of_an_expression(expression: str, sql: str) -> None:
    program = lowered(f"emit v = {expression}")
    texts = columns(program)
    assert (texts[0] if texts else program.outputs[0][1]) == sql


def test_a_program_that_cannot_fail_has_no_error_column() -> None:
    assert (
        lowered("emit v = x * 0.5\nemit w = s + s\nemit u = a * 1.5 + 2.5\nemit t = x - a\nemit r = x / 3.0").error
        is None
    )
    assert lowered("emit v = a + b").error is not None
    assert lowered("emit v = x * 2.0").error is not None  # no float is twice as large as the largest


def test_a_guarded_failure_counts_only_where_its_branch_is_taken() -> None:
    error = columns(lowered("emit v = if b != 0 then a / b else 0"))[-1]
    assert error.startswith("CASE WHEN (`$t") and "IS TRUE) AND (`b` = 0 AND `a` IS NOT NULL)" in error


def test_a_filter_keeps_the_rows_that_failed_before_it() -> None:
    steps = lowered("emit v = a + b\nfilter v > 3").steps
    assert [s.condition for s in steps if isinstance(s, Where)] == ["`$t2` IS NOT NULL OR (`$t1` > 3L)"]


def test_a_value_needed_twice_is_computed_once() -> None:
    """Each level of a deep tree is a column, so the text grows with the depth and not with its power."""
    tree = "a"
    for _ in range(60):
        tree = f"(b + {tree})"
    program = lowered(f"emit v = {tree}")
    texts = columns(program)
    assert sum("try_add" in t for t in texts) == 60
    assert max(len(t) for t in texts if "try_add" in t) < 40


def test_a_marked_part_of_a_builtin_is_computed_once() -> None:
    texts = columns(lowered("emit v = (s + s).trim_start()"))
    texts = texts[1:]
    assert texts[0] == "ltrim(`$t1`)" and "`$t2` >= '!'" in texts[1] and "⟦" not in texts[1]


def test_deep_expressions_are_cut_into_columns() -> None:
    assert len(lowered("emit v = " + "not (" * 120 + "a > b" + ")" * 120).steps) >= 5


def test_names_are_quoted() -> None:
    program = compile("emit v = n + 1", {"n": "int"})
    assert lower_program(program.typed, default_context(), fields={"n": "`we``ird`"}).steps[0].columns[0][1] == (  # type: ignore[union-attr]
        "try_add(`we``ird`, 1L)"
    )


def test_what_has_no_spark_expression_is_a_python_column_with_native_arguments() -> None:
    program = lowered('emit v = doc.set("a.b", a + b)')
    [column] = [s for s in program.steps if isinstance(s, PythonColumn)]
    assert [sql for _, sql, _ in column.inputs] == ["`doc`", "`$t1`"]
    assert program.python_reasons == (column.reason,) and "set" in column.reason


def test_a_closure_with_such_a_call_moves_to_python_whole() -> None:
    program = lowered('emit v = items.map(it => doc.set("a.b", it))')
    [column] = [s for s in program.steps if isinstance(s, PythonColumn)]
    assert sorted(sql for _, sql, _ in column.inputs) == ["`doc`", "`items`"]
