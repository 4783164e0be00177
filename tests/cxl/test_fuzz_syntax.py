"""Generated text: nothing raises, spans stay inside, and formatting keeps meaning, comments and itself."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from clinker_spark.core.span import Source
from clinker_spark.cxl.formatter import format_source
from clinker_spark.cxl.lexer import tokenize
from clinker_spark.cxl.parser import parse, parse_expression
from tests.cxl.syntax_trees import show

FAST = settings(max_examples=150, deadline=None)

SOUP = ["let", "emit", "if", "then", "else", "and", "or", "not", "match", "use", "as", "fn", "trace", "null", "true", "false", "now", "it", "filter", "distinct", "by", "for", "in", "each", "outer", "info", "a", "b", "$vars", "$window", "$pipeline", "1", "2.5", "9223372036854775808", "99999999999999999999", "'x'", '"y"', "#2024-01-01#", "#2024-99-01#", "\n", "\n", "#", "??", "=>", "==", "!=", ">=", "<=", "<", ">", "+", "-", "*", "/", "%", "=", ".", ",", ":", "::", "(", ")", "[", "]", "{", "}", "_", "&&", "||", "!", ";", "é", '"', "'"]

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

names = st.sampled_from(["a", "b", "price", "x_1", "each", "outer", "info", "a_rather_long_column_name"])
strings = st.text(alphabet="ab\\'\"\n\tnrt#é😀 ", max_size=6).map(
    lambda s: '"' + s.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
)
leaves = st.one_of(
    names,
    strings,
    st.integers(0, 2**63 - 1).map(str),
    st.floats(0, 1e20, allow_nan=False).map(lambda f: f"{f:.3f}"),
    st.sampled_from(["true", "null", "now", "#2024-03-15#", "$vars.x", "$doc.a.b", "'q'", "-9223372036854775808"]),
    st.sampled_from(["$window.rank()", "count(*)", "count()", "[]", "{}", r"'\d+'"]),
)
binary = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", ">", "<", ">=", "<=", "and", "or", "??"])


def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Operands stand in parentheses half of the time, needed or not."""
    operand = st.one_of(inner.map(lambda e: f"({e})"), leaves)
    several = st.lists(inner, min_size=1, max_size=3).map(", ".join)
    return st.one_of(
        st.builds(lambda a, op, b: f"{a} {op} {b}", operand, binary, operand),
        st.builds(lambda parts, op: f" {op} ".join(parts), st.lists(operand, min_size=2, max_size=5), st.sampled_from(
            ["+", "and", "or", "??"])),
        st.builds(lambda op, a: f"{op} {a}", st.sampled_from(["-", "not"]), operand),
        st.builds(lambda a, m, b: f"{a}.{m}({b})", operand, st.sampled_from(["concat", "filter", "set"]), several),
        st.builds(lambda a, ms: a + "".join(ms), operand, st.lists(
            st.sampled_from([".upper()", ".b", "[0]", ".map(it => it + 1)", ".trim()"]), min_size=1, max_size=4)),
        st.builds(lambda a, b: f"{a}[{b}]", operand, inner),
        st.builds(lambda c, a, b: f"if ({c}) then {a} else {b}", inner, inner, inner),
        st.builds(lambda c, a: f"if ({c}) then {a}", inner, inner),
        st.builds(lambda s, p, a, b: f"match ({s}) {{ ({p}) => {a}, _ => {b} }}", inner, inner, inner, inner),
        st.builds(lambda p, a: f"match {{ ({p}) => {a} }}", inner, inner),
        st.builds(lambda a: f"weighted_avg({a})", several),
        st.builds(lambda a: f"[{a}]", several),
        st.builds(lambda a, b, c: f"{{k: {a}, 'two words': {b}, [({b})]: {c}}}", inner, inner, inner),
        st.builds(lambda a, b, c: f"[{a} for v in {b} if {c}]", inner, inner, inner),
    )


expressions = st.recursive(leaves, grow, max_leaves=8)
simple = st.one_of(
    st.builds(lambda n, e: f"emit {n} = {e}", names, expressions),
    st.builds(lambda n, e: f"let {n} = {e}", names, expressions),
    st.builds(lambda s, n, e: f"emit ${s}.{n} = {e}", st.sampled_from(["pipeline", "source", "record"]), names,
              expressions),
    st.builds(lambda e: f"filter {e}", expressions),
    st.builds(lambda w, e: f"trace {w}({e})", st.sampled_from(["", "warn ", "info "]), expressions),
    st.builds(lambda c, e: f"trace if ({c}) ({e})", expressions, expressions),
    st.builds(lambda e: f"({e})", expressions),
    st.builds(lambda e: f"fn f(p, q) = {e}", expressions),
    st.sampled_from(["distinct", "distinct by a", "trace info"]),
)
blocks = st.builds(
    lambda source, outer, body: f"emit each x in ({source}) {outer}{{\n" + "\n".join(body) + "\n}",
    expressions,
    st.sampled_from(["", "outer "]),
    st.lists(simple, max_size=3),
)
programs = st.lists(st.one_of(simple, simple, blocks), max_size=4).map("\n".join)

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


@settings(max_examples=250, deadline=None)
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
