"""What planning lowers is kept: running a program lowers a query again only if it uses another value by then."""

from __future__ import annotations

from typing import Any

import pytest

from clinker_spark.query.lower.values import SparkDataset, list_type
from clinker_spark.query.prepare import Planner, Queries, plan, prepare
from clinker_spark.query.program import compile_query, run
from clinker_spark.query.types import type_of_value

PEOPLE = [{"name": "Ada", "age": 36}, {"name": "Bob", "age": 17}]
PROGRAM = """
let low = 18
let adults = from p in people where p.age >= low select p
var limit = 1
limit = {limit}
from a in adults sort by a.name take limit select a.name
"""


class Counting(Queries):
    def __init__(self) -> None:
        super().__init__()
        self.lowerings: list[str] = []

    def _lower(self, e: Any, scope: Any, types: Any) -> Any:
        self.lowerings.append(type(e).__name__)
        return super()._lower(e, scope, types)


@pytest.mark.parametrize(("limit", "again"), [(1, 0), (5, 1)])
def test_a_query_is_lowered_once(limit: int, again: int) -> None:
    queries = Counting()
    names = {"people": SparkDataset(queries.inline(PEOPLE))}
    types = {"people": list_type(names["people"].relation)}
    program = prepare(compile_query(PROGRAM.format(limit=limit), names=types), queries, types, names)
    assert len(queries.lowerings) == 2
    plan(program, queries, names)
    assert len(queries.lowerings) == 2
    # An assignment is carried out only when the program runs.
    result = run(program, Planner(queries), names=names)
    assert len(queries.lowerings) == 2 + again
    assert f"LIMIT {limit}" in queries.text(result)


def test_lists_of_the_program_may_change_and_are_looked_at_again() -> None:
    queries = Counting()
    names = {"people": SparkDataset(queries.inline(PEOPLE))}
    types = {"people": list_type(names["people"].relation)}
    text = 'var wanted = ["Ada"]\nwanted[0] = "Bob"\nfrom p in people where p.name in wanted select p.age'
    program = prepare(compile_query(text, names=types), queries, types, names)
    result = run(program, Planner(queries), names=names)
    assert "'Bob'" in queries.text(result) and "'Ada'" not in queries.text(result)


def test_planning_changes_nothing_that_the_run_looks_at() -> None:
    queries, given = Queries(), {"xs": [1]}
    types = {"xs": type_of_value(given["xs"])}
    text = "fun more() {\n  xs[0] = xs[0] + 1\n}\nmore()\nsum(xs)"
    program = prepare(compile_query(text, names=types), queries, types, given)
    assert given == {"xs": [1]}
    assert run(program, Planner(queries), names=given) == 2
