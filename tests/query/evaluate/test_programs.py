"""The language on plain lists: every clause, values, functions, output."""

from __future__ import annotations

import io
from typing import Any

import pytest

from clinker_spark.query.failures import QueryError
from clinker_spark.query.program import compile_query, run
from clinker_spark.query.types import type_of_value
from clinker_spark.query.values import show
from tests.query.programs import CASES, ORDERS, PEOPLE

NAMES = {"people": PEOPLE, "orders": ORDERS}


def evaluate(text: str, **names: Any) -> Any:
    types = {name: type_of_value(value) for name, value in names.items()}
    return run(compile_query(text, names=types), out=io.StringIO(), names=names)


def printed(text: str) -> str:
    out = io.StringIO()
    run(compile_query(text), out=out)
    return out.getvalue()


@pytest.mark.parametrize("name", CASES)
def test_cases_on_lists(name: str) -> None:
    text, answer = CASES[name]
    assert evaluate(text, **NAMES) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("from x in [] group by x into g select g.key", []),
        ("from g in [[1, 2], [3]] select sum(g)", [3, 3]),
        ("sum([]) + count([]) + avg([])", 0.0),
        ("min([3, null, 1])", 1),
        ("[1, 2] union [2, 3] union all [1]", [1, 2, 3, 1]),
        ("first([]) ?? 5", 5),
        ("from r in [{a: 1}, {b: 2}] select r.b", [None, 2]),
        ("from e in {x: 1, y: 2} select e.key + str(e.value)", ["x1", "y2"]),
        ("[10, 20, 30][-1] + [10, 20, 30][0:2][1]", 50),
        ('"hello"[1:3] + upper("x") + join(["a", "b"], "-")', "elXa-b"),
        ("[n * n for n in [1, 2, 3] if n > 1]", [4, 9]),
        ("[1, 2, 3].filter(it => it > 1).map(it => it * 10)", [20, 30]),
        ("1 == 1.0 and true != null and [1] == [1.0]", True),
        ("7 / -2", -3),
        ("9223372036854775807 + 1", 9223372036854775808),
        ("null + 1 ?? 3", 3),
        ("let add = fun(a: int, b: int): int => a + b\nlet inc = add(1)\ninc(41)", 42),
        ("fun fact(n: int): int { if n < 2 { return 1 } return n * fact(n - 1) }\nfact(20)", 2432902008176640000),
        ('type P { name: string, age: int }\nlet p = P {name: "Ada", age: 3}\np.age + ("4" as int)', 7),
        ("var t = 0\nfor i in 1..4 { if i == 2 { continue } t = t + i }\nt", 4),
        ("var m = {a: 1}\nm[\"b\"] = 2\nlen(m)", 2),
        ('let x = 3\nmatch x { 1 => "one", _ => "many" }', "many"),
        ("#2024-03-01# < #2024-03-02#", True),
        ('"2024-03-01".to_date().year()', 2024),
        ("type T = Leaf | Node(l: T, v: int)\nfun s(t: T): int => match t { Leaf => 0, Node(l, v) => s(l) + v }\n"
         "s(Node(Node(Leaf, 1), 2))", 3),
        ("let xs = [{n: 1}, {n: 2}]\nupdate xs set {n: n + 10} where n > 1\nxs[1].n", 12),
        ("let x = if 1 < 2 { 5 } else { 6 }\nx", 5),
        ("from a in [1, 2] from b in [a, a * 10] select b", [1, 10, 2, 20]),
        ("from x in [{k: 1, v: 2}] group by x.k into g select g.items[0].v", [2]),
    ],
)  # fmt: skip
def test_expressions(text: str, answer: Any) -> None:
    assert evaluate(text) == answer


def test_print_and_json() -> None:
    text = 'print("a", 1, 2.0, null)\nprint([2.0, "x", {b: 1, a: true}])\njson({b: 2.0, a: null})'
    assert printed(text) == 'a 1 2 null\n[2.0, "x", {"a": true, "b": 1}]\n{\n  "a": null,\n  "b": 2\n}\n'


def test_print_in_select_runs_in_order() -> None:
    assert printed("from n in [3, 1, 2] sort by n select print(n)\nprint()") == "1\n2\n3\n\n"


def test_save_to_standard_output() -> None:
    assert printed('save [{a: 1}, {a: 2}] to "-" with {format: "jsonl"}') == '{"a": 1}\n{"a": 2}\n'


def test_a_program_can_be_a_test() -> None:
    assert printed('test "sums" { expect 1 + 1 == 2 }\nprint("ok")') == "ok\n"
    with pytest.raises(QueryError) as error:
        printed('test "sums" { expect sum([1, 2]) == 4 }')
    found = error.value.diagnostics[0]
    assert (found.code, found.message, found.help) == ("E706", "test 'sums': this does not hold", "it is 3\nnot   4")


def test_comments_of_every_kind() -> None:
    assert evaluate("# one\n// two\n/* three\nfour */ 4 // five") == 4


def test_words_of_clauses_are_names_elsewhere() -> None:
    assert evaluate("let limit = 1\nlet group = {order: 2, select: 3}\nlimit + group.order + group.select") == 6


def test_a_long_recursion_is_a_finding() -> None:
    with pytest.raises(QueryError, match="calls itself too often"):
        evaluate("fun f(n: int): int { return f(n + 1) }\nf(0)")


def test_show_escapes_only_inside() -> None:
    assert (show('a"b'), show(['a"b'])) == ('a"b', '["a\\"b"]')
