"""Texts of a program come out of Spark as they went in, wherever they stand: SQL is put together, never edited."""

from __future__ import annotations

import csv
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import clinker_spark
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.query.lower.values import SparkDataset
from clinker_spark.query.prepare import prepare
from clinker_spark.query.program import compile_query, run
from clinker_spark.query.types import ListType
from clinker_spark.runtime.query.engine import QueryEngine
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import marked
from clinker_spark.sql.render import render

SOURCE = Path(clinker_spark.__file__).parent

TEXTS = [
    "two  blanks",
    "   ",
    "a\nb",
    "a\n  b\r\n\tc",
    "it's",
    'say "so"',
    "back\\slash\\n",
    "`quoted`",
    "`$arrival`",
    "/* no */ -- comment",
    "$x ${HOME} {0} {r} {1}",
    "x1_.n p1_.t",
    "|> WHERE FALSE",
    "⟦once⟧",
    "\x01\x01 \x02'`view 0`'\x02",
    "ünïcödé 🦀",
    "%s \\u0041",
    "",
]


def _written(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


PROGRAM = """
from x in xs
where x.t == {text} || x.t in [{text}, "other"]
group by x.t + {text} into g
sort by g.key
select {{
  key: g.key,
  first: first(from y in g select y.t + {text}),
  hits: count(from y in g where y.t == {text} select y),
  same: (from y in g where y.t != {text} + "x" select {text} + y.t),
  sub: count(from z in xs where z.t == {text} select z),
  found: exists(from z in xs where z.t == {text} select z) && {text} in (from z in xs select z.t),
  known: match g.key {{ {text} => "no", _ => if g.key == {text} + {text} then {text} else "other" }},
  made: {text}.replace({text}, "{{0}}") + {text}.trim() + {text}.upper()
}}
"""


def test_every_text_in_every_place(quick: SparkSession) -> None:
    """The same program with each text, over rows that hold it, on Spark and by the evaluator."""

    def wrong(text: str | None) -> Any:
        engine = QueryEngine(lambda: quick)
        rows: list[Any] = [{"t": ""}]
        names: dict[str, Any] = {"xs": SparkDataset(engine.inline(rows))}
        if text is None:  # the names of the views that the program itself reads, and all the other texts
            text = "  \n ".join(TEXTS + [f"`{s.name(o)}`" for s in engine.scans for o in (False, True)])
        rows[:] = [{"t": text}, {"t": "other"}, {"t": text}]
        program = PROGRAM.format(text=_written(text))
        types = {"xs": ListType(names["xs"].relation.row, dataset=True)}
        expected = run(compile_query(program, names=types), names={"xs": rows})
        found = engine.rows(
            run(prepare(compile_query(program, names=types), engine, types, names), engine, names=names)
        )
        return None if found == expected else (text, found, expected)

    texts = [None, *(TEXTS if os.environ.get("CLINKER_CASES") == "all" else TEXTS[:1])]
    with ThreadPoolExecutor(4) as pool:  # small jobs wait more than they work
        assert [found for found in pool.map(wrong, texts) if found] == []


PIPELINE = """\
pipeline: {{ name: demo }}
error_handling: {{ strategy: continue, dlq: {{ path: dlq.csv }} }}
nodes:
  - type: source
    name: orders
    config: {{ type: csv, path: orders.csv, schema: {{ id: int, t: string }} }}
  - type: query
    name: q
    inputs: [orders]
    config:
      query: {query}
  - type: output
    name: out
    input: q
    config: {{ type: json, path: out.json }}
"""


def test_a_text_with_a_line_end_keeps_the_dead_letters(quick: SparkSession, tmp_path: Path) -> None:
    """Also one that looks like the alias of the rows, or like the mark of a sub-query."""
    (tmp_path / "orders.csv").write_text("id,t\n0,a\n2,b\n5,c\n")
    odd = 'a\n  b "o1_.`id` x1_.id'
    query = (
        f"from o in (from x in orders where 10 / x.id > 0 select {{id: x.id, s: {_written(odd)} + x.t}})\n"
        f"where o.s != {_written(odd)} select {{id: o.id, s: o.s, d: 1}}"
    )
    (tmp_path / "p.yaml").write_text(PIPELINE.format(query=json.dumps(query)))
    clinker_spark.load(tmp_path / "p.yaml").run(quick)
    assert json.loads((tmp_path / "out.json").read_text()) == [
        {"id": 2, "s": odd + "b", "d": 1},
        {"id": 5, "s": odd + "c", "d": 1},
    ]
    letters = list(csv.DictReader((tmp_path / "dlq.csv").open(newline="")))
    assert [(row["id"], row["_cxl_dlq_error_detail"]) for row in letters] == [("0", "division by zero: 10 / x.id")]


def test_escapes_are_read_once() -> None:
    for text in ("a\\u0041", "\\n", "\\\\u0041", "\U0001f980", "tab\t", "\\", 'q"\\"'):
        assert run(compile_query(json.dumps(text))) == text
    assert run(compile_query(r'"\u005cn \u0041"')) == r"\n A"


def test_what_a_program_writes_is_never_taken_for_a_piece_of_sql() -> None:
    """Names, literals and the views of sources are told apart by the tree, whatever they are called."""
    source = sql.Source(0, True)
    for odd in ("\x01" + "0\x01", "{0} {r}", "⟦once⟧", "`source 0`", "|> WHERE", "a\n  |> b"):
        made = sql.Query((sql.From(source), sql.Select((sql.As(marked("\x010\x01 || 'x'", sql.Literal(odd)), odd),))))
        printed = render(made)
        assert [piece for piece in printed.pieces if not isinstance(piece, str)] == [source]
        assert printed.text(lambda _: "t") == f"FROM `t`\n|> SELECT {sql_string(odd)} || 'x' AS {quote(odd)}"


def test_finished_sql_is_not_edited() -> None:
    """Text that holds literals is neither replaced in, nor cut, nor searched by lines: it is printed once."""
    folders = ("query/lower", "sql", "plan/query", "runtime/query", "spark/query")
    files = [path for folder in folders for path in sorted((SOURCE / folder).glob("*.py"))]
    for path in [*files, SOURCE / "spark/operators/query.py"]:
        code = path.read_text()
        if path.name != "quoting.py":
            for edit in (".replace(", ".splitlines(", '.split("\\n")', '"\\n" in', "[1:-1]"):
                assert edit not in code, (path.name, edit)
            prints = path.name == "render.py" or "/spark/operators/" in path.as_posix()  # those of pipelines
            assert prints or not re.search(r"\b(quote|sql_string|identifier|string)\(", code), path.name
