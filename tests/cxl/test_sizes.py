"""Programs of a thousand parts, each kind: they check, evaluate and lower, and the SQL grows with their length only."""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from clinker_spark.core.span import Source
from clinker_spark.cxl import limits
from clinker_spark.cxl.errors import CxlError, EvalError
from clinker_spark.cxl.format.formatter import format_source
from clinker_spark.cxl.lower.plan import LoweredProgram, Project, Where
from clinker_spark.cxl.lower.statements import lower_program
from clinker_spark.cxl.program import Program, compile
from clinker_spark.cxl.system import default_context

N = 1000
SCHEMA = {
    "x": "int",
    "y": "int",
    "f": "float",
    "d": "decimal(2)",
    "s": "string",
    "n": "int",
    "m": "any",
    "q": "any",
    "b": "bool",
    "xs": "array(int)",
}
RECORD = {
    "x": 3,
    "y": 2,
    "f": 0.5,
    "d": Decimal("1.25"),
    "s": "a",
    "n": None,
    "m": {"a": None},
    "q": 1,
    "b": True,
    "xs": [1, 2],
}


def joined(part: Callable[[int], str], separator: str, n: int) -> str:
    return separator.join(part(i) for i in range(n))


PROGRAMS: dict[str, tuple[Callable[[int], str], Callable[[int], Any]]] = {
    "sum": (lambda n: "emit v = " + joined(lambda i: "x", " + ", n), lambda n: 3 * n),
    "difference": (
        lambda n: "emit v = " + joined(lambda i: "x" if i % 2 else "y", " - ", n),
        lambda n: 2 - 3 * (n // 2) - 2 * (n // 2 - 1),
    ),
    "floats": (lambda n: "emit v = " + joined(lambda i: "f", " + ", n), lambda n: n / 2),
    "decimals": (lambda n: "emit v = " + joined(lambda i: "d", " + ", n), lambda n: Decimal("1.25") * n),
    "products": (lambda n: "emit v = " + joined(lambda i: "x * y", " + ", n), lambda n: 6 * n),
    "any": (lambda n: "emit v = " + joined(lambda i: "q", " + ", n), lambda n: n),
    "texts": (lambda n: "emit v = " + joined(lambda i: "s", " + ", n), lambda n: "a" * n),
    "and": (lambda n: "emit v = " + joined(lambda i: f"x != {i + 100}", " and ", n), lambda n: True),
    "or": (lambda n: "emit v = " + joined(lambda i: f"10 / x == {i + 100}", " or ", n), lambda n: False),
    "coalesce": (lambda n: "emit v = " + joined(lambda i: "n", " ?? ", n) + " ?? 1", lambda n: 1),
    "match": (
        lambda n: "emit v = match x { " + joined(lambda i: f"{i} => {i} / y", ", ", n) + ", _ => 0 }",
        lambda n: 1,
    ),
    "else if": (
        lambda n: "emit v = " + joined(lambda i: f"if x == {i} then {i}", " else ", n) + " else 0",
        lambda n: 3,
    ),
    "lets": (
        lambda n: (
            "let a0 = x + 1\n" + "\n".join(f"let a{i} = a{i - 1} + 1" for i in range(1, n)) + f"\nemit v = a{n - 1}"
        ),
        lambda n: 3 + n,
    ),
    "doubling lets": (
        lambda n: (
            "let a0 = f\n" + "\n".join(f"let a{i} = a{i - 1} * a{i - 1}" for i in range(1, n)) + f"\nemit v = a{n - 1}"
        ),
        lambda n: 0.0,
    ),
    "methods": (lambda n: "emit v = s" + ".trim()" * n, lambda n: "a"),
    "steps": (lambda n: "emit v = m" + ".a" * n, lambda n: None),
    "indexes": (lambda n: "emit v = m" + "[0]" * n, lambda n: None),
    "array": (lambda n: "emit v = [" + joined(lambda i: "x", ", ", n) + "]", lambda n: [3] * n),
    "map": (
        lambda n: "emit v = {" + joined(lambda i: f"k{i}: x", ", ", n) + "}",
        lambda n: {f"k{i}": 3 for i in range(n)},
    ),
    "closure": (
        lambda n: "emit v = xs.map(it => " + joined(lambda i: "it", " + ", n) + ")",
        lambda n: [n, 2 * n],
    ),
    "constants": (lambda n: "emit v = " + joined(lambda i: "1", " + ", n), lambda n: n),
    "filters": (lambda n: joined(lambda i: f"filter x != {i + 100}", "\n", n) + "\nemit v = x", lambda n: 3),
    "emits": (lambda n: joined(lambda i: f"emit v = x + {i}", "\n", n), lambda n: 3 + n - 1),
    "literals": (lambda n: joined(lambda i: f"emit v = [s, '{i}']", "\n", n), lambda n: ["a", str(n - 1)]),
}


def lowered(program: Program) -> LoweredProgram:
    return lower_program(program.typed, default_context("test"))


def size(program: LoweredProgram) -> int:
    texts = [text for _, text in program.outputs]
    for step in program.steps:
        if isinstance(step, Project):
            texts += [text for _, text in step.columns]
        elif isinstance(step, Where):
            texts.append(step.condition)
    return sum(map(len, texts))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_thousand_of_each(name: str) -> None:
    text, value = PROGRAMS[name]
    before = sys.getrecursionlimit()
    program = compile(text(N), SCHEMA)
    assert program.evaluate(RECORD) == [{"v": value(N)}]
    assert size(lowered(program)) < 5 * size(lowered(compile(text(N // 4), SCHEMA))) + 20_000
    assert sys.getrecursionlimit() == before
    formatted = format_source(Source("t", text(N)))
    assert compile(formatted, SCHEMA).evaluate(RECORD) == [{"v": value(N)}]


@pytest.mark.parametrize("name", ["sum", "texts", "and", "coalesce", "else if", "steps", "match"])
def test_as_long_as_a_program_may_be(name: str) -> None:
    """The text of a program is what bounds a chain, nothing else."""
    text = PROGRAMS[name][0]
    n = 100
    while len(text(n * 2)) < limits.MAX_SOURCE_BYTES:
        n *= 2
    program = compile(text(n), SCHEMA)
    assert program.evaluate(RECORD) == [{"v": PROGRAMS[name][1](n)}]
    assert lowered(program).outputs


def failing(text: str, **changes: Any) -> str:
    with pytest.raises(EvalError) as caught:
        compile(text, SCHEMA).evaluate({**RECORD, **changes})
    return caught.value.kind


def test_the_first_failure_of_a_long_chain_is_the_one_that_counts() -> None:
    zero = ["x"] * N
    zero[500] = "(x / y)"
    assert failing("emit v = " + " + ".join(zero), y=0) == "division_by_zero"
    assert failing("emit v = " + " + ".join(zero), y=0, x=2**62) == "integer_overflow"
    nothing = ["x"] * N
    nothing[500] = "n"
    assert compile("emit v = " + " + ".join(nothing), SCHEMA).evaluate(RECORD) == [{"v": None}]
    assert failing("emit v = " + " + ".join(nothing), x=2**62) == "integer_overflow"


@pytest.mark.parametrize(
    "text",
    ["(" * N + "x" + ")" * N, "(x + " * N + "x" + ")" * N, "not " * N + "b", "-" * N + "x", "[" * N + "]" * N],
)
def test_what_is_nested_too_deeply_is_one_diagnostic(text: str) -> None:
    with pytest.raises(CxlError) as caught:
        compile(f"emit v = {text}", SCHEMA)
    assert [d.code for d in caught.value.diagnostics] == ["E202"]


@pytest.mark.parametrize(
    "text",
    ["(" * 250 + "x" + ")" * 250, "(x + " * 125 + "x" + ")" * 125, "(x / " * 125 + "x" + ")" * 125, "-" * 250 + "x"],
)
def test_what_may_nest_also_evaluates_and_lowers(text: str) -> None:
    program = compile(f"emit v = {text}", SCHEMA)
    assert program.evaluate({**RECORD, "x": 1}) != []
    assert lowered(program).outputs
