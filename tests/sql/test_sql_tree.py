"""SQL as a tree: what the renderer prints, what it notes while printing, and what nodes are equal to."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from clinker_spark.core.span import Span
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import ROWS, all_of, any_of, call, columns, marked, marks, or_else, own_columns, when
from clinker_spark.sql.render import render, type_text

A, B, C = (sql.Column(name) for name in "abc")
T = sql.Source(0)


def op(word: str, left: sql.Expr, right: sql.Expr) -> sql.Binary:
    return sql.Binary(word, left, right)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (op("+", op("+", A, B), C), "(`a` + `b` + `c`)"),
        (op("+", A, op("+", B, C)), "(`a` + (`b` + `c`))"),
        (op("*", op("+", A, B), C), "((`a` + `b`) * `c`)"),
        (op("div", op("*", A, B), C), "(`a` * `b` div `c`)"),
        (op("=", op("=", A, B), C), "((`a` = `b`) = `c`)"),
        (all_of((all_of((A, B)), any_of((B, C)))), "(`a` AND `b` AND (`b` OR `c`))"),
        (all_of(()), "TRUE"),
        (or_else(A, or_else(B, C)), "coalesce(`a`, `b`, `c`)"),
        (sql.Field(when(A, B), "f"), "(CASE WHEN `a` THEN `b` END).`f`"),
        (sql.Field(sql.Column("x", "t1_"), "a`b"), "t1_.`x`.`a``b`"),
        (sql.Call("count", (A,), distinct=True, where=B), "count(DISTINCT `a`) FILTER (WHERE `b`)"),
        (sql.Cast(A, sql.ArrayOf(sql.Named("INT")), tries=True), "try_cast(`a` AS ARRAY<INT>)"),
        (call("f", A, sql.Lambda(("x",), sql.Variable("x"))), "f(`a`, x -> x)"),
        (sql.Lambda(("x", "y"), B), "(x, y) -> `b`"),
        (sql.In((A,), (sql.Literal(1), sql.Literal(2))), "(`a` IN (1, 2))"),
        (sql.Literal(Decimal("1.50")), "1.50BD"),
        (sql.Literal(float("inf")), "CAST('inf' AS DOUBLE)"),
        (sql.Literal(dt.date(2024, 1, 5)), "DATE '2024-01-05'"),
        (sql.Literal(dt.datetime(2024, 1, 5, 6, 7)), "TIMESTAMP_NTZ '2024-01-05 06:07:00'"),
        (sql.Literal(True), "TRUE"),
    ],
)
def test_expressions(node: sql.Expr, text: str) -> None:
    assert str(render(node)) == text


def test_queries_are_laid_out() -> None:
    inner = sql.Query((sql.From(T), sql.Where((op("<", A, B), C)), sql.Aggregate(columns({"n": call("count", ROWS)}))))
    steps = (
        sql.From(inner, "x1_"),
        sql.Join("LEFT JOIN", sql.Source(1, True), "y2_", (op("=", sql.Column("n", "x1_"), B),)),
        sql.Explode(A, "z3_", "$pos", "value"),
        sql.Extend((sql.As(sql.Exists(sql.Query((sql.From(T),))), "e"),)),
        sql.Aggregate((), own_columns("ab")),
        sql.OrderBy((sql.Sort(A), sql.Sort(B, "DESC"))),
        sql.Limit(3, 2),
        sql.UnionAll(sql.Query((sql.From(T),))),
    )
    assert render(sql.Query(steps)).text(lambda s: f"t{s.number}{'o' * s.ordered}") == (
        """\
FROM (
  FROM `t0`
  |> WHERE (`a` < `b`) AND `c`
  |> AGGREGATE count(*) AS `n`
) AS x1_
|> LEFT JOIN `t1o` AS y2_ ON (x1_.`n` = `b`)
|> JOIN LATERAL posexplode(`a`) AS z3_(`$pos`, `value`)
|> EXTEND EXISTS (
  FROM `t0`
) AS `e`
|> AGGREGATE GROUP BY `a`, `b`
|> ORDER BY `a`, `b` DESC NULLS LAST
|> LIMIT 3 OFFSET 2
|> UNION ALL (
  FROM `t0`
)"""
    )


def test_printing_notes_places_and_functions() -> None:
    sum_ = sql.Binary("+", sql.Binary("+", A, B, Span(0, 5)), C, Span(0, 9))
    found = sql.Call("mine", (sql.Cast(sum_, sql.Named("INT"), span=Span(1, 2)),), definition="how")
    printed = render(sql.Query((sql.From(T), sql.Select((sql.As(found, "v", Span(3, 4)),)))))
    assert printed.functions == {"mine": "how"}
    assert printed.origins == {
        "`a` + `b`": Span(0, 5),
        "`a` + `b` + `c`": Span(0, 9),
        "CAST((`a` + `b` + `c`) AS INT)": Span(1, 2),
        "`v`": Span(3, 4),
    }


def test_nodes_are_equal_by_content_wherever_they_come_from() -> None:
    assert sql.Binary("+", A, B, Span(0, 1)) == sql.Binary("+", A, B, Span(5, 6))
    assert hash(sql.Cast(A, sql.Named("INT"), span=Span(0, 1))) == hash(sql.Cast(A, sql.Named("INT")))
    assert sql.Literal(1) != sql.Literal(1, long=True) and sql.Column("a") != sql.Variable("a")


def test_a_long_chain_needs_no_deep_stack() -> None:
    chain: sql.Expr = A
    for _ in range(5000):
        chain = op("+", chain, B)
    assert str(render(chain)).count("+") == 5000


def test_text_of_cxl_takes_expressions_in_its_holes() -> None:
    first, second = marks(2)
    made = marked(f"⟦f({first}, '{{0}}')⟧ || {second} || {first}", sql.Literal("\x010\x01"), A)
    assert str(render(made)) == "f(translate('~0~', '~', chr(1)), '{0}') || `a` || translate('~0~', '~', chr(1))"


def test_names_in_types_are_quoted() -> None:
    assert type_text(sql.StructOf((("a b", sql.MapOf(sql.Named("STRING"), sql.Named("INT"))),))) == (
        "STRUCT<`a b`: MAP<STRING, INT>>"
    )
