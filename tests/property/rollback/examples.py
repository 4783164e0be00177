"""One small pipeline for each rule, with what must come out, worked out by hand: they check the model, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.property.rollback.graph import CATEGORY, Graph, Node, Row, Source
from tests.property.rollback.model import Letter

KEPT = ["k", "g", "v"]


@dataclass
class Example:
    rule: str
    graph: Graph
    outputs: dict[str, list[str]]
    letters: list[Letter]


def rows(text: str) -> list[Row]:
    """`k g v`, one after the other; `.` is null, `k/h` gives both fields of a key."""
    found: list[Row] = []
    for part in text.split(","):
        k, g, v, *more = part.split()
        k, _, h = k.partition("/")
        row: Row = {"k": None if k == "." else k, "h": None if h == "." else h or "x", "g": g}
        row["v"] = int(v) if v.lstrip("-").isdigit() else v
        found.append(row | ({"more": True} if more else {}))
    return found


def source(name: str, text: str, key: tuple[str, ...] = ("k",), kind: str = "string") -> Source:
    types = {"k": f"nullable({kind})", "h": "nullable(string)", "g": "string", "v": "int"}
    made = rows(text)
    for row in made:
        row["k"] = row["k"] if kind == "string" or row["k"] is None else float(row["k"])
    return Source(name, key, types, made)


def check(name: str, reads: str, *step: Any) -> Node:
    return Node("transform", name, [reads], {"steps": [list(step)]})


def total(name: str, reads: str, *group_by: str) -> Node:
    return Node("aggregate", name, [reads], {"group_by": list(group_by), "also": []})


def output(name: str, reads: str, *columns: str, **options: Any) -> Node:
    return Node("output", name, [reads], {"columns": list(columns) or KEPT, **options})


def combine(name: str, driver: str, build: str, column: str, **options: Any) -> Node:
    usual = {"on": [(column, column)], "match": "first", "on_miss": "skip", "propagate": "driver", "keeps": KEPT}
    return Node("combine", name, [driver, build], {**usual, "out": "j", **options})


def failed(*places: int, name: str = "a", category: str = CATEGORY) -> list[Letter]:
    return [(name, place, True, category) for place in places]


def held(*places: int, name: str = "a") -> list[Letter]:
    return [(name, place, False, "correlated") for place in places]


TOTAL: list[Letter] = [("<merged>", 0, True, CATEGORY)]
INVALID: list[Letter] = [("<merged>", 0, True, "validation_failure")]


def of_nothing(**handling: Any) -> Graph:
    """Two totals that no record is behind, which fail (null has not passed a check), and others besides."""
    return Graph(
        [source("a", "A m 9, A n 0, B m 4, C n 3")],
        [
            check("t", "a", "divide", "x", "v", 0),
            output("lines", "t"),
            total("sums", "t", "g"),
            check("u", "sums", "above", "y", "v", 10),
            output("totals", "u", "g", "v"),
            check("none", "a", "filter", "v", 1, 0),
            total("sum", "none"),
            check("w", "sum", "valid", "v", 100),
            output("nothing", "w", "v"),
            total("again", "sum"),
            check("z", "again", "valid", "v", 100),
            output("never", "z", "v"),
        ],
        handling,
    )


EXAMPLES = [
    Example(
        "A record that fails on another branch does not count when a total is judged.",
        Graph(
            [source("a", "A m 9, B m 10, C n 4")],
            [
                check("t", "a", "divide", "x", "v", 9),
                output("lines", "t"),
                total("sums", "a", "g"),
                check("u", "sums", "above", "y", "v", 10),
                output("totals", "u", "g", "v"),
            ],
        ),
        {"lines": ["k,g,v", "B,m,10", "C,n,4"], "totals": ["g,v", "m,10", "n,4"]},
        failed(1),
    ),
    Example(
        "The same in one line, when the scope takes the peer away that would have been too much.",
        Graph(
            [source("a", "A m 9, A m 0, B m 10, C n 4")],
            [
                check("t", "a", "divide", "x", "v", 0),
                total("sums", "t", "g"),
                check("u", "sums", "above", "y", "v", 10),
                output("totals", "u", "g", "v"),
            ],
            {"retraction_scope": "group"},
        ),
        {"totals": ["g,v", "m,10", "n,4"]},
        failed(2) + held(1),
    ),
    Example(
        "A total whose only record was retracted does not exist, and is no trigger.",
        Graph(
            [source("a", "A m 9, B n 3")],
            [
                check("t", "a", "divide", "x", "v", 9),
                output("lines", "t"),
                total("sums", "a", "g"),
                check("u", "sums", "above", "y", "v", 5),
                output("totals", "u", "g", "v"),
            ],
        ),
        {"lines": ["k,g,v", "B,n,3"], "totals": ["g,v", "n,3"]},
        failed(1),
    ),
    Example(
        "The records of a failed total are retracted as if each had failed: their groups are withheld.",
        Graph(
            [source("a", "A m 9, A n 2, B m 3, C n 4")],
            [
                output("lines", "a"),
                total("sums", "a", "g"),
                check("u", "sums", "above", "y", "v", 10),
                output("totals", "u", "g", "v"),
            ],
        ),
        {"lines": ["k,g,v", "C,n,4"], "totals": ["g,v", "n,6"]},
        TOTAL + held(1, 2, 3),
    ),
    Example(
        "Totals that fail in one iteration are retracted together, and those after them are judged without them.",
        Graph(
            [source("a", "A m 9, B n 8, C o 3")],
            [
                total("sums", "a", "g"),
                check("u", "sums", "above", "y", "v", 5),
                total("sum", "u"),
                check("w", "sum", "above", "z", "v", 3),
                output("totals", "w", "v"),
            ],
        ),
        {"totals": ["v", "3"]},
        TOTAL * 2 + held(1, 2),
    ),
    Example(
        "Group scope leaves records of the failing source out of totals; combines still find what they look up.",
        Graph(
            [source("a", "A m 5, A n 0, B m 7"), source("p", "A m 1, A n 2, A o 0, B m 3", key=("k",))],
            [
                check("s", "p", "divide", "x", "v", 0),
                check("t", "a", "divide", "x", "v", 0),
                combine("c", "t", "s", "g", propagate="driver"),
                output("lines", "c", *KEPT, "j"),
                total("sums", "c", "g"),
                output("totals", "sums", "g", "v"),
            ],
            {"retraction_scope": "group"},
        ),
        {"lines": ["k,g,v,j", "B,m,7,1"], "totals": ["g,v", "m,7"]},
        failed(2) + failed(3, name="p") + held(1),
    ),
    Example(
        "Filtered records are no letters, and do not count for the size of a group.",
        Graph(
            [source("a", "A m 5, A m 10, A m 6, B m 1, B m 2, B m 3, B m 15")],
            [Node("transform", "t", ["a"], {"steps": [["filter", "v", 5, 0]]}), output("lines", "t")],
            {"max_group_buffer": 2},
        ),
        {"lines": ["k,g,v", "A,m,6"]},
        failed(4, category="group_size_exceeded") + held(5, 6),
    ),
    Example(
        "Groups of merged sources that share a key value are one when their size counts.",
        Graph(
            [source("a", "A m 1, B m 2"), source("b", "A m 3, A n 4")],
            [Node("merge", "m", ["a", "b"], {"mode": "concat"}), output("lines", "m")],
            {"max_group_buffer": 2},
        ),
        {"lines": ["k,g,v", "B,m,2"]},
        failed(1, category="group_size_exceeded") + held(1, 2, name="b"),
    ),
    Example(
        "A failure of one source spares the other; what reached every output of records is no letter.",
        Graph(
            [source("a", "A m 1, A m oops, B m 2"), source("b", "A m 3, B m 4, A m 5")],
            [
                Node("merge", "m", ["a", "b"], {"mode": "concat"}),
                Node("transform", "t", ["m"], {"steps": [["filter", "v", 5, 0]]}),
                output("lines", "t"),
                total("sums", "m", "k"),
                output("totals", "sums", "k", "v"),
            ],
        ),
        {"lines": ["k,g,v", "B,m,2", "A,m,3", "B,m,4"], "totals": ["k,v", "B,6"]},
        failed(2) + held(1) + held(3, name="b"),
    ),
    Example(
        "Zero is one key, whatever its sign; a key of null is a group of that record.",
        Graph(
            [source("a", "0.0 m 1, -0.0 m oops, 1.5 m 3, . m 4, . m oops", kind="float")],
            [output("lines", "a")],
        ),
        {"lines": ["k,g,v", "1.5,m,3", ",m,4"]},
        failed(2, 5) + held(1),
    ),
    Example(
        "A partly null key is a group like any other.",
        Graph(
            [source("a", "A/x m 1, A/. m 2, A/. m oops, ./x m 4", key=("k", "h"))],
            [output("lines", "a")],
        ),
        {"lines": ["k,g,v", "A,m,1", ",m,4"]},
        failed(3) + held(2),
    ),
    Example(
        "Of a key of two fields of which one goes on, all records with that one are withheld.",
        Graph(
            [source("a", "A/x m 1, A/y m 2, B/x m 3", key=("k", "h")), source("p", "C m 1", key=())],
            [
                combine("c", "a", "p", "g", propagate=["k"]),
                check("u", "c", "divide", "x", "v", 2),
                output("lines", "u"),
                output("others", "a"),
            ],
        ),
        {"lines": ["k,g,v", "B,m,3"], "others": ["k,g,v", "B,m,3"]},
        failed(2) + held(1),
    ),
    Example(
        "What `distinct` lets through once another record was retracted is judged as well, also in a dirty group.",
        Graph(
            [source("a", "A m 11, B n 11, B n oops, C n 1")],
            [
                check("t", "a", "distinct", "v"),
                check("u", "t", "divide", "x", "v", 11),
                output("lines", "u"),
                total("sums", "t", "g"),
                output("totals", "sums", "g", "v"),
            ],
        ),
        {"lines": ["k,g,v", "C,n,1"], "totals": ["g,v", "n,1"]},
        failed(1, 2, 3),
    ),
    Example(
        "A broken line belongs to its group.",
        Graph([source("a", "A m 1, A m 2 broken, B m 3")], [output("lines", "a")]),
        {"lines": ["k,g,v", "B,m,3"]},
        failed(2, category="structural_validation") + held(1),
    ),
    Example(
        "A total of nothing that fails is a letter, as is a total of such totals: nothing is retracted for it.",
        of_nothing(),
        {"lines": ["k,g,v", "C,n,3"], "totals": ["g,v", "n,3"], "nothing": ["v"], "never": ["v"]},
        failed(2) + TOTAL + INVALID * 2 + held(1, 3),
    ),
    Example(
        "The same with group scope.",
        of_nothing(retraction_scope="group"),
        {"lines": ["k,g,v", "B,m,4", "C,n,3"], "totals": ["g,v", "m,4", "n,3"], "nothing": ["v"], "never": ["v"]},
        failed(2) + INVALID * 2 + held(1),
    ),
    Example(
        "A key that is null is not the first key of the failed record.",
        Graph(
            [source("a", "C m 12, . m 3"), source("p", "P/m m 7", key=("h",))],
            [
                combine("c", "a", "p", "g", propagate="all"),
                check("u", "c", "divide", "x", "v", 12),
                output("any", "u", policy="any"),
                output("all", "u", policy="all"),
                output("primary", "u", policy="primary"),
            ],
        ),
        {"any": ["k,g,v"], "all": ["k,g,v", ",m,3"], "primary": ["k,g,v", ",m,3"]},
        failed(1) + held(2),
    ),
    Example(
        "A record of a source without a key that was written is no letter for a total that is withheld.",
        Graph(
            [source("a", "A m 2, B n 5", key=()), source("p", "C m oops, B m 6, D n 1", key=("g",))],
            [
                combine("c", "a", "p", "g", propagate="all"),
                output("lines", "a"),
                total("sums", "c", "g"),
                output("totals", "sums", "g", "v"),
            ],
        ),
        {"lines": ["k,g,v", "A,m,2", "B,n,5"], "totals": ["g,v", "n,5"]},
        failed(1, name="p"),
    ),
    Example(
        "The groups of a failed total are those of its records, each within its source.",
        Graph(
            [source("a", "A m 5, B m 2"), source("b", "A m 9")],
            [
                Node("merge", "m", ["a", "b"], {"mode": "concat"}),
                output("lines", "m"),
                check("f", "m", "filter", "v", 5, 0),
                total("sums", "f", "k"),
                check("u", "sums", "above", "y", "v", 8),
                output("totals", "u", "k", "v"),
            ],
        ),
        {"lines": ["k,g,v", "A,m,5", "B,m,2"], "totals": ["k,v", "B,2"]},
        TOTAL + held(1, name="b"),
    ),
    Example(
        "Group scope goes by the key as it was read, also where a combine has let a part of it pass.",
        Graph(
            [source("a", "A/x m 9, A/x m 1, A/y m 2, B/x m 3", key=("k", "h")), source("p", "C m 1", key=())],
            [
                check("t", "a", "divide", "x", "v", 9),
                combine("c", "t", "p", "g", propagate=["k"]),
                total("sums", "c", "g"),
                output("totals", "sums", "g", "v"),
            ],
            {"retraction_scope": "group"},
        ),
        {"totals": ["g,v", "m,5"]},
        failed(1) + held(2),
    ),
    Example(
        "What fails behind that combine takes all records with the part that was carried out of totals.",
        Graph(
            [source("a", "A/x m 9, A/x m 1, A/y m 2, B/x m 3", key=("k", "h")), source("p", "C m 1", key=())],
            [
                combine("c", "a", "p", "g", propagate=["k"]),
                check("t", "c", "divide", "x", "v", 9),
                output("lines", "t"),
                total("sums", "a", "g"),
                output("totals", "sums", "g", "v"),
            ],
            {"retraction_scope": "group"},
        ),
        {"lines": ["k,g,v", "B,m,3"], "totals": ["g,v", "m,3"]},
        failed(1) + held(2, 3),
    ),
    Example(
        "Group scope leaves out totals of the group, too, where totals are made of totals.",
        Graph(
            [source("a", "A m 9, A m 1, B m 3, C n 4")],
            [
                check("t", "a", "divide", "x", "v", 9),
                total("strict", "t", "k"),
                total("sum", "strict"),
                output("totals", "sum", "v"),
            ],
            {"retraction_scope": "group"},
        ),
        {"totals": ["v", "7"]},
        failed(1) + held(2),
    ),
]
