"""Canonical text: spelling, parentheses, line breaks, comments and blank lines."""

from __future__ import annotations

from textwrap import dedent

import pytest

from clinker_spark.core.span import Source
from clinker_spark.cxl.format.expressions import quote_string
from clinker_spark.cxl.format.formatter import WIDTH, format_expression, format_source
from clinker_spark.cxl.syntax.lexer import tokenize
from clinker_spark.cxl.syntax.parser import parse_expression
from tests.cxl.syntax.trees import tree


def check(text: str) -> str:
    """The formatted text, after the promises that hold for every program."""
    formatted = format_source(Source("t", text))
    assert format_source(Source("t", formatted)) == formatted
    assert tree(formatted) == tree(text)
    words = [comment.text.rstrip() for comment in tokenize(text)[1]]
    assert sorted(comment.text for comment in tokenize(formatted)[1]) == sorted(words)
    return formatted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1+2*3", "1 + 2 * 3"),
        ("((1+2))*(3)", "(1 + 2) * 3"),
        ("a-(b-c)-d", "a - (b - c) - d"),
        ("(a-b)-c", "a - b - c"),
        ("a*(b/c)", "a * (b / c)"),
        ("(a ?? b) ?? (c ?? d)", "(a ?? b) ?? c ?? d"),
        ("(a and b) or (c and d)", "a and b or c and d"),
        ("(a or b) and c", "(a or b) and c"),
        ("(a == b) == c", "(a == b) == c"),
        ("a == (b == c)", "a == (b == c)"),
        ("not (a == b)", "not a == b"),
        ("(not a) == b", "(not a) == b"),
        ("not (a and b)", "not (a and b)"),
        ("(-a).abs()", "(-a).abs()"),
        ("-(a.abs())", "-a.abs()"),
        ("-(-(a))", "--a"),
        ("-(a*b)", "-(a * b)"),
        ("(-a)*b", "-a * b"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("(-9223372036854775808).abs()", "(-9223372036854775808).abs()"),
        ("(a+b).c(d)[0]", "(a + b).c(d)[0]"),
        ("($vars.a).b", "($vars.a).b"),
        ("($vars.a).b()", "$vars.a.b()"),
        ("$doc.a.b[ 0 ]", "$doc.a.b[0]"),
        ("if(a)then b else(c)", "if a then b else c"),
        ("if (a ?? b) then c ?? d", "if (a ?? b) then c ?? d"),
        ("if a then (if b then c) else d", "if a then (if b then c) else d"),
        ("if a then b else (if c then d)", "if a then b else if c then d"),
        ("(if a then b else c) + 1", "(if a then b else c) + 1"),
        ("match s{1=>2 _=>3}", "match s { 1 => 2, _ => 3 }"),
        ("match{a=>1}", "match { a => 1 }"),
        ("match ({a: 1}) { _ => 1 }", "match ({a: 1}) { _ => 1 }"),
        ("match ({a: 1}.a + 1) { _ => 1 }", "match ({a: 1}.a + 1) { _ => 1 }"),
        ("xs.filter(it=>it>1)", "xs.filter(it => it > 1)"),
        ("count( * )+count()", "count(*) + count()"),
        ("$window.lag( 1 ).price", "$window.lag(1).price"),
        ("[ 1,2, ]", "[1, 2]"),
        ("{ }", "{}"),
        ("{'a':1,'b c':2,[k]:3,'if':4,'_':5}", '{a: 1, "b c": 2, [k]: 3, if: 4, "_": 5}'),
        (r'{"\@id": 1, "\\\\x": 2}', r'{"@id": 1, "\\\x": 2}'),
        ("[x for x in xs if(x>0)]", "[x for x in xs if x > 0]"),
        ("'it\\'s'", '"it\'s"'),
        ("'say \"hi\"'", r'"say \"hi\""'),
        (r"'\d+ \\ \\n \n'", r'"\d+ \ \\n \n"'),
        ("#2024-03-15#", "#2024-03-15#"),
        ("[true,false,null,now]", "[true, false, null, now]"),
        ("1.50", "1.50"),
    ],
)
def test_expressions(text: str, expected: str) -> None:
    assert check(f"emit v = {text}") == f"emit v = {expected}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use  a.b  as c", "use a.b as c"),
        ("emit $pipeline . x=1", "emit $pipeline.x = 1"),
        ("distinct   by  k", "distinct by k"),
        ("fn f( a,b )=a", "fn f(a, b) = a"),
        ("trace 'm'", 'trace debug "m"'),
        ("trace info", "trace debug info"),
        ("trace warn if a>1 'm'", 'trace warn if a > 1 "m"'),
        ("trace (if a then b else c)", "trace debug (if a then b else c)"),
        ("trace info if (a) (b or c) and d", "trace info if (a) (b or c) and d"),
        ("trace info if (a) (-b)", "trace info if (a) (-b)"),
        ("trace info if (a) ([b])", "trace info if (a) ([b])"),
        ("trace info if (if a then b else c) (if d then e)", "trace info if (if a then b else c) (if d then e)"),
        ("[1].debug()", "[1].debug()"),
        ("filter a\n(-b + c)", "filter a\n(-b + c)"),
        ("emit a = 1 emit b = 2", "emit a = 1\nemit b = 2"),
        ("emit each it in xs outer{emit v=it}", "emit each it in xs outer {\n  emit v = it\n}"),
        ("emit each x in (if a then b else c) { }", "emit each x in (if a then b else c) {\n}"),
        ("\r\nemit a = 1\r\n\r\n\r\nemit b = 2\r\n", "emit a = 1\n\nemit b = 2"),
        ("emit a = 1\remit b = 2", "emit a = 1\nemit b = 2"),
    ],
)
def test_statements(text: str, expected: str) -> None:
    assert check(text) == expected + "\n"


def test_nothing_stays_nothing() -> None:
    assert format_source(Source("t", "")) == ""
    assert format_source(Source("t", " \n\n ")) == ""


LAYOUTS = {
    "operators": """
        emit name = first_name.trim() + " " + middle_name.trim() + " " + last_name.trim() + " " + suffix_of_name
        """,
    "match": """
        emit label = match status {
          "A" => "Active",
          "I" => "Inactive",
          "P" => "Pending a decision",
          _ => "The status is not known: " + status,
        }
        """,
    "if": """
        emit tier = if amount > 1000000 then "platinum"
          else if amount > 500000 then "gold"
          else if amount > 100000 then "silver"
          else "bronze"
        """,
    "arguments": """
        emit code = some_rather_long_column_name.replace(
          "a text to be found in it",
          "and the text that takes its place afterwards"
        )
        """,
    "calls": """
        emit skus = items
          .filter(it => it["price"] > threshold and it["quantity"] > 0)
          .map(it => it["sku"].upper())
          .join(", ")
        """,
    "nested": """
        filter (status_of_the_order == "open" or status_of_the_order == "waiting")
          and (amount_of_the_order > 1000
            or customer_of_the_order.starts_with("VIP")
            or priority_of_the_order == "urgent and important")
        """,
    "map": """
        emit payload = {
          identifier: order_identifier,
          lines: [{sku: line["sku"], quantity: line["qty"]} for line in order_lines],
          "full name": first_name + last_name,
        }
        """,
    "emit each": """
        emit each line in lines {
          emit each part in line["parts"] outer {
            emit sku = part["sku_of_the_manufacturer"]
              ?? line["sku_of_the_wholesaler"]
              ?? line["sku_of_the_shop"]
              ?? "none"
          }
        }
        """,
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_at_the_margin(name: str) -> None:
    text = dedent(LAYOUTS[name]).lstrip("\n")
    assert check(text) == (text if name != "operators" else _BROKEN_OPERATORS)
    assert all(len(line) <= WIDTH for line in check(text).splitlines())


_BROKEN_OPERATORS = """\
emit name = first_name.trim()
  + " "
  + middle_name.trim()
  + " "
  + last_name.trim()
  + " "
  + suffix_of_name
"""

COMMENTS = {
    "between statements": """
        # top
        use a.b  # module

        # about a
        emit a = 1  # trailing

        # end
        """,
    "match": """
        emit m = match {
          # first
          a > 1 => 2,  # two
          # wildcard
          _ => 3,
          # last
        }
        """,
    "operators": """
        emit c = a
          # why
          ?? b  # because
          ?? c
        """,
    "if": """
        emit t = if a then 1  # small
          else if b then 2
          # otherwise
          else 3
        """,
    "calls": """
        emit n = name  # raw
          .trim()  # strip
          # shout
          .upper()
        """,
    "arguments": """
        emit f = foo(
          # first
          a,  # A
          b  # B
          # done
        )
        """,
    "empty brackets": """
        emit f = foo(
          # nothing
        )
        """,
    "containers": """
        emit f = [
          1,  # one
          {
            # key
            a: 2,
          },
        ]
        emit g = [
          x  # value
          for x in xs
          # only some
          if x > 0
        ]
        """,
    "emit each": """
        emit each x in xs {  # header
          # own line

          emit v = x  # v
          # last
        }  # after
        """,
}


@pytest.mark.parametrize("name", COMMENTS)
def test_comments_stay_where_they_are(name: str) -> None:
    text = dedent(COMMENTS[name]).lstrip("\n")
    assert check(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("emit a = # why\n  1", "# why\nemit a = 1\n"),
        ("emit a = (1 # why\n)", "# why\nemit a = 1\n"),
        ("emit a = b[ # why\n 0]", "# why\nemit a = b[0]\n"),
        ("emit a = f(b[ # why\n 0], c)", "emit a = f(\n  # why\n  b[0],\n  c\n)\n"),
        ("emit a = x + b[ # why\n 0]", "emit a = x\n  # why\n  + b[0]\n"),
        ("emit each x in # why\n xs {\n}", "# why\nemit each x in xs {\n}\n"),
        ("emit a = (b # why\n) + c", "emit a = b  # why\n  + c\n"),
        ("use a. # why\nb", "# why\nuse a.b\n"),
        ("#x  \n#y", "#x\n#y\n"),
    ],
)
def test_comments_without_a_place_move_up(text: str, expected: str) -> None:
    assert check(text) == expected


def test_blank_lines() -> None:
    text = "\n\nemit a = 1\n\n\n# c\n\n\nemit each x in xs {\n\n  emit b = 1\n\n\n  emit c = 2\n\n}\n\n\nemit d = 1\n\n"
    expected = "emit a = 1\n\n# c\n\nemit each x in xs {\n  emit b = 1\n\n  emit c = 2\n}\n\nemit d = 1\n"
    assert check(text) == expected


@pytest.mark.parametrize(
    "value", ["", "\\", "\\\\", "\\n", "\n\\", "\\\n", '\\"', "a\\'b", "\\d", "tab\there", "é😀", "\r\n", "\\t", "x\\"]
)
def test_strings_survive(value: str) -> None:
    (token, _) = tokenize(quote_string(value))[0]
    assert (token.kind, token.value) == ("string", value)


def test_format_expression_is_one_line() -> None:
    text = " and ".join(f"column_number_{i} > {i}" for i in range(20))
    node, _ = parse_expression(Source("t", text))
    assert node is not None and format_expression(node) == text


def test_floats_without_their_source_are_written_out() -> None:
    for text in ("0.1", "1.0", "100000000000000000000000.0", "0.00000000000000000001"):
        node, _ = parse_expression(Source("t", text))
        assert node is not None and format_expression(node) == text


def test_deep_programs_do_not_exhaust_the_stack() -> None:
    for text in ("+".join(["a"] * 256), "??".join(["a"] * 256), "not " * 255 + "a", "f(" * 127 + "1" + ")" * 127):
        check(f"emit a = {text}")


def test_a_broken_program_does_not_raise() -> None:
    assert format_source(Source("t", "emit a = (\nemit b = 2 # c")) == "emit b = 2  # c\n"
