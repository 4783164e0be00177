"""Generated text: nothing raises, spans stay inside, and formatting keeps meaning, comments and itself."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from clinker_spark.core.span import Source
from clinker_spark.cxl.format.formatter import format_source
from clinker_spark.cxl.syntax.lexer import tokenize
from clinker_spark.cxl.syntax.parser import parse, parse_expression
from tests.cxl.syntax.trees import show

FAST = settings(max_examples=150, deadline=None)

SOUP = (
    *("let", "emit", "if", "then", "else", "and", "or", "not", "match", "use", "as", "fn", "trace", "null", "true"),
    *("false", "now", "it", "filter", "distinct", "by", "for", "in", "each", "outer", "info", "a", "b", "é", "_"),
    *("$vars", "$window", "$pipeline", "1", "2.5", "9223372036854775808", "99999999999999999999", "'x'", '"y"'),
    *("#2024-01-01#", "#2024-99-01#", "\n", "\n", "# c\n", "??", "=>", "==", "!=", ">=", "<=", "<", ">", "+", "-"),
    *("*", "/", "%", "=", ".", ",", ":", "::", "(", ")", "[", "]", "{", "}", "&&", "||", "!", ";", '"', "'"),
)

SEEDS = (
    'use shared.money as m\nlet rate = m.RATE ?? 0.21\nfilter status == "open" and not amount.is_null()\n'
    "emit net = (amount * (1 - rate)).round(2)  # rounded\ndistinct by order_id\n",
    'emit tier = match { amount > 1000 => "gold", _ => if vip then "gold" else "base" }\n'
    'trace info if amount > 10 "big"\nemit $pipeline.last = $source.row\n',
    'emit each line in items.filter(it => it["qty"] > 0) outer {\n  emit sku = line["sku"].upper()\n'
    "  emit each t in line.tags {\n    emit tag = t\n  }\n}\n",
    'emit doc = {id: order_id, "full name": first + last, [key]: [x * 2 for x in xs if x > 0]}\n'
    "emit prev = $window.lag(1).price\nemit n = count(*)\nfn f(a, b) = a ?? b\n",
)


def check_diagnostics(text: str) -> None:
    """Parsing gives a tree and diagnostics, each complete and inside the text."""
    for kind in ("program", "module"):
        _, problems = parse(Source("fuzz", text), kind=kind)
        for problem in problems:
            assert problem.code == "E202" and problem.phase == "parse" and problem.message and problem.help
            assert problem.span is not None and 0 <= problem.span.start <= problem.span.end <= len(text)
            assert all(0 <= label.span.start <= label.span.end <= len(text) for label in problem.labels)
        lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
        assert len(problems) <= len(text.split()) + lines
    node, problems = parse_expression(Source("fuzz", text))
    assert (node is None) == bool(problems) and len(problems) <= 1
    # Not promised to be of use for broken text, but it must not raise.
    format_source(Source("fuzz", text))


@FAST
@given(st.text(max_size=80))
def test_random_text(text: str) -> None:
    check_diagnostics(text)


@FAST
@given(st.text(alphabet="ab1.'\"#$()[]{}=>?!&|+-*/%:,_\\ \n\r\té", max_size=80))
def test_random_punctuation(text: str) -> None:
    check_diagnostics(text)


@FAST
@given(st.lists(st.sampled_from(SOUP), max_size=40).map(" ".join))
def test_token_soup(text: str) -> None:
    check_diagnostics(text)


@FAST
@given(st.data())
def test_mutated_programs(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(SEEDS))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 6)))
        text = text[:start] + data.draw(st.sampled_from([*SOUP, ""])) + text[end:]
    check_diagnostics(text)


# ------------------------------------------------------------ valid programs

NAMES = ("a", "b", "price", "x_1", "each", "outer", "info", "a_rather_long_column_name")
LEAVES = (
    *NAMES,
    *("0", "42", "9223372036854775807", "0.50", "100000000000000000000000.0", "true", "null", "now", "#2024-03-15#"),
    *("$vars.x", "$doc.a.b", "(-9223372036854775808)", "$window.rank()", "count(*)", "count()", "[]", "{}"),
    *("'q'", '"é😀"', r"'\d+'", r"'it\'s'", r'"\\\n\t"', "'\"'", "'#'", "'a longer text with several words in it'"),
)
BINARY = ("+", "-", "*", "/", "%", "==", "!=", ">", "<", ">=", "<=", "and", "or", "??")
FORMS = (
    *("(§e) §op (§e)", "§leaf §op (§e)", "(§e) §op §leaf", "§leaf + §leaf + (§e) - §leaf", "- (§e)"),
    *("(§e) ?? (§e) ?? (§e)", "(§e) and §leaf and (§e)", "(§e) or §leaf or (§e)", "not (§e)", "not §leaf"),
    *("(§e).concat(§e, §e)", "§leaf.filter(it => §e).b", "(§e)[§e]", "(§e).trim().upper()[0].b", "§leaf.b[0]"),
    *("if (§e) then §e", "if (§e) then §e else §e", "if §leaf then (§e) else if §leaf then (§e) else §e"),
    *("match (§e) { (§e) => §e, §leaf => §e, _ => §e }", "match { (§e) => §e }", "weighted_avg(§e, §e)"),
    *("[§e, §e]", "{k: §e, 'two words': §e, [§e]: §e}", "[§e for v in §e if §e]", "$window.sum(§e).b"),
)
STATEMENTS = (
    *("emit §name = §e", "let §name = §e", "emit $record.§name = §e", "filter §e", "trace warn §leaf.b(§e)", "(§e)"),
    *("trace info if (§e) (§e)", "trace (§e)", "fn f(p, q) = §e", "distinct", "distinct by a", "trace info"),
)


def fill(draw: st.DrawFn, form: str, depth: int) -> str:
    """A form with its holes filled. Drawn by hand: the text of nested strategies grows without bound."""
    pieces: dict[str, Any] = {
        "e": lambda: expression(draw, depth - 1),
        "leaf": lambda: draw(st.sampled_from(LEAVES)),
        "name": lambda: draw(st.sampled_from(NAMES)),
        "op": lambda: draw(st.sampled_from(BINARY)),
    }
    return re.sub(r"§(\w+)", lambda hole: pieces[hole[1]](), form)


def expression(draw: st.DrawFn, depth: int) -> str:
    if depth <= 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(LEAVES))
    return fill(draw, draw(st.sampled_from(FORMS)), depth)


def statements(draw: st.DrawFn, blocks: int) -> str:
    found = []
    for _ in range(draw(st.integers(0, 3))):
        if blocks and draw(st.integers(0, 4)) == 0:
            outer = draw(st.sampled_from(["", "outer "]))
            found.append(f"emit each x in ({expression(draw, 1)}) {outer}{{\n{statements(draw, blocks - 1)}\n}}")
        else:
            found.append(fill(draw, draw(st.sampled_from(STATEMENTS)), 3))
    return "\n".join(found)


expressions = st.composite(lambda draw: expression(draw, 3))()
programs = st.composite(lambda draw: statements(draw, 2))()

BEFORE = frozenset(["+", "*", "/", "%", "==", "!=", ">", "<", ">=", "<=", "and", "or", "??", ".", "then", "else"])
AFTER = frozenset(["(", ",", "{", "=", "=>", "for", "in", *BEFORE]) - {"."}
CLOSING = frozenset([")", "]", "}"])


@st.composite
def relaid(draw: st.DrawFn) -> str:
    """A program with line ends and comments wherever a line may end."""
    text = draw(programs)
    tokens, _ = tokenize(text)
    out: list[str] = []
    end = 0
    previous = ""
    for number, token in enumerate(tokens):
        out.append(text[end : token.start])
        may_break = token.line_start or token.kind in BEFORE or previous in AFTER or token.kind in CLOSING
        if may_break and number and draw(st.integers(0, 5)) == 0:
            out.append(draw(st.sampled_from(["\n", "\n\n\n", f" # note {number}\n", f"\n  # note {number}\n", "\r\n"])))
        out.append(token.text)
        end, previous = token.end, token.kind
    return "".join(out)


def shapes(text: str) -> list[str]:
    program, problems = parse(Source("fuzz", text))
    assert not problems, (text, [problem.message for problem in problems])
    return [show(statement) for statement in program.statements]


@settings(max_examples=150, deadline=None)
@given(relaid())
def test_formatting_keeps_meaning_comments_and_itself(text: str) -> None:
    formatted = format_source(Source("fuzz", text))
    assert shapes(formatted) == shapes(text)
    assert format_source(Source("fuzz", formatted)) == formatted
    comments = sorted(comment.text for comment in tokenize(text)[1])
    assert sorted(comment.text for comment in tokenize(formatted)[1]) == comments


@FAST
@given(expressions)
def test_line_ends_inside_brackets_do_not_matter(text: str) -> None:
    tokens, _ = tokenize(f"({text})")
    spread = "\n".join(token.text for token in tokens)
    if "match" in spread:
        return  # between the arms of a match lines do count
    one, _ = parse_expression(Source("fuzz", text))
    other, problems = parse_expression(Source("fuzz", spread))
    assert one is not None and other is not None, (text, problems)
    assert show(one) == show(other)
