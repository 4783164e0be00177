"""What is wrong with a program, and where: code, line, column, underlined text, help."""

from __future__ import annotations

import pytest

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.render import render_text
from clinker_spark.cxl.builtins.table import FORMAT_HELP, PATTERN_HELP
from clinker_spark.query.failures import QueryError
from clinker_spark.query.program import compile_query, run

PEOPLE = 'let people = [{name: "Ada", age: 36, city: "London"}]\n'


def problems(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(QueryError) as error:
        run(compile_query(text, "q"))
    return error.value.diagnostics


def underlined(found: Diagnostic) -> str:
    assert found.source is not None and found.span is not None
    return found.source.text[found.span.start : found.span.end]


@pytest.mark.parametrize(
    ("text", "code", "marked", "help_text"),
    [
        ("from p in people where p.agee > 3 select p", "E701", "agee", "did you mean 'age'?"),
        ("from p in poeple select p", "E701", "poeple", "did you mean 'people'?"),
        ("from p in people select upcase(p.name)", "E701", "upcase", None),
        ("from p in people select p.name.uper()", "E701", "uper", "did you mean 'upper'?"),
        ("from p in people group by p.city into g select g.nam", "E701", "nam", None),
        ("from p in people join q in people on p.age select p", "E703", "p.age", None),
        ("from p in people where p.age select p", "E702", "p.age", None),
        ("from p in people group by p.city into g having count(g) select g.key", "E702", "count(g)", None),
        ("from p in people select {n: sum(p.age)}", "E704", "sum(p.age)", None),
        ("from p in people where count(p) > 1 select p", "E704", "count(p)", None),
        ('from p in people where p.name > 3 select p', "E702", "p.name > 3", None),
        ('from p in people select p.age + "x"', "E702", 'p.age + "x"', None),
        ("from p in people select sum(from q in people select q.name)", "E702", "from q in people select q.name", None),
        ("from p in people take -1 select p", "E710", "-1", None),
        ("from p in people take 1.5 select p", "E710", "1.5", None),
        ("from p in 5 select p", "E709", "5", None),
        ("from p in people select p where p.age > 1", "E700", "where", None),
        ("from p in people where p.age > select p", "E700", "select", None),
        ("from p in people limit 1 limit 2 select p", "E700", "limit", None),
        ("from p in people group by p.city select p", "E700", "select", None),
        ("let x: int = \"a\"", "E702", '"a"', None),
        ('from p in people select p.name.matches("a(?=b)")', "E702", '"a(?=b)"', PATTERN_HELP),
        ('from p in people where p.name.find("(a") select p', "E702", '"(a"', PATTERN_HELP),
        ('"x".capture("a++")', "E702", '"a++"', PATTERN_HELP),
        ('from p in people select p.name.to_date("%Q")', "E702", '"%Q"', FORMAT_HELP),
        ("[1].append()", "E702", "append", None),
        ("let x = 1\nx = 2", "E702", "x", "define it with var"),
        ("type P { name: string }\nP {nam: 'x'}", "E711", "P", None),
        ("let p: Persn = 1", "E701", "Persn", None),
        ("1 +", "E700", "", None),
        ('let s = "abc', "E700", '"abc', None),
    ],
)  # fmt: skip
def test_mistakes(text: str, code: str, marked: str, help_text: str | None) -> None:
    found = problems(PEOPLE + text)[0]
    assert (found.code, underlined(found)) == (code, marked)
    if help_text is not None:
        assert found.help == help_text


@pytest.mark.parametrize(
    ("text", "code", "marked"),
    [
        ("from n in [1, 0] select 1 / n", "E705", "1 / n"),
        ("[1, 2][5]", "E705", "[1, 2][5]"),
        ('let p = "("\n"x".matches(p)', "E705", '"x".matches(p)'),
        ('from r in [{t: "x", p: "a("}] select r.t.find(r.p)', "E705", "r.t.find(r.p)"),
        ('"x".padStart(9223372036854775807)', "E705", '"x".padStart(9223372036854775807)'),
        ("let n = 0 - 2\nfrom x in [1] take n select x", "E710", "n"),
        ('("x" as int) + 1', "E711", '"x" as int'),
        ("expect 1 == 2", "E706", "1 == 2"),
    ],
)
def test_failures_while_running(text: str, code: str, marked: str) -> None:
    found = problems(text)[0]
    assert (found.code, underlined(found)) == (code, marked)


def test_all_mistakes_are_reported_at_once_in_order() -> None:
    found = problems("let a = from x in\nlet b = 1 +\nlet c = 2 2")
    assert [(f.code, f.source.position(f.span.start)[0]) for f in found if f.source and f.span] == [
        ("E700", 2),
        ("E700", 3),
        ("E700", 3),
    ]


def test_how_a_mistake_looks() -> None:
    found = problems(PEOPLE + "from p in people\nwhere p.agee > 3\nselect p")[0]
    assert render_text(found, color=False, hint=False) == (
        "error[E701]: unknown field 'agee'\n"
        "  --> q:3:9\n"
        "   |\n"
        " 3 | where p.agee > 3\n"
        "   |         ^^^^\n"
        "   |\n"
        "   = help: did you mean 'age'?"
    )
