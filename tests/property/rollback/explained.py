"""Further rules with an example each, for the guide (docs/correlation.md): what each of them is drawn from."""

from __future__ import annotations

from tests.property.rollback.examples import KEPT, TOTAL, Example, check, combine, failed, held, output, source, total
from tests.property.rollback.graph import Graph

EXPLAINED = [
    Example(
        "The group is that of the key as it was read, whatever a transform makes of the field.",
        Graph(
            [source("a", "A m 1, A m 9, B m 3")],
            [check("r", "a", "rewrite", "k", "Z"), check("t", "r", "divide", "x", "v", 9), output("lines", "t")],
        ),
        {"lines": ["k,g,v", "Z,m,3"]},
        failed(2) + held(1),
    ),
    Example(
        "What is only withheld still counts in totals; what failed does not.",
        Graph(
            [source("a", "A m 5, A m 9, B m 10, C n 4")],
            [
                check("t", "a", "divide", "x", "v", 9),
                output("lines", "t"),
                total("sums", "a", "g"),
                output("totals", "sums", "g", "v"),
            ],
        ),
        {"lines": ["k,g,v", "B,m,10", "C,n,4"], "totals": ["g,v", "m,15", "n,4"]},
        failed(2) + held(1),
    ),
    Example(
        "A total whose group_by has the whole key belongs to the group, and is withheld with it.",
        Graph(
            [source("a", "A m 5, A m 9, B m 10")],
            [
                check("t", "a", "divide", "x", "v", 9),
                total("sums", "t", "k", "g"),
                output("totals", "sums", "k", "g", "v"),
            ],
        ),
        {"totals": ["k,g,v", "B,m,10"]},
        failed(2) + held(1),
    ),
    Example(
        "Windows are computed over what is left; what is only withheld still counts.",
        Graph(
            [source("a", "A m 9, A m 2, B m 3, C m 4")],
            [
                check("t", "a", "divide", "x", "v", 9),
                output("lines", "t"),
                check("w", "a", "window", "w", ["g"], ["v"], "sum"),
                output("windows", "w", *KEPT, "w"),
            ],
        ),
        {"lines": ["k,g,v", "B,m,3", "C,m,4"], "windows": ["k,g,v,w", "B,m,3,9", "C,m,4,9"]},
        failed(1) + held(2),
    ),
    Example(
        "What a combine made belongs by value to the groups of every source with a key of that name.",
        Graph(
            [source("a", "A m 1, B n 2"), source("b", "A n 5, A o oops, C m 3")],
            [combine("c", "a", "b", "g"), output("joined", "c", *KEPT, "j"), output("others", "a")],
        ),
        {"joined": ["k,g,v,j", "B,n,2,5"], "others": ["k,g,v", "A,m,1", "B,n,2"]},
        failed(2, name="b") + held(1),
    ),
    Example(
        "The fan-out policy says which of the groups of a record withhold it.",
        Graph(
            [
                source("a", "A m 1, A n 2, B m 3, C o 4"),
                source("p", "P/m m 7, Q/n n 8, R/o o 9", key=("h",)),
            ],
            [
                combine("c", "a", "p", "g", propagate="all"),
                check("u", "c", "divide", "x", "v", 1),
                output("any", "u", *KEPT, policy="any"),
                output("all", "u", *KEPT, policy="all"),
                output("primary", "u", *KEPT, policy="primary"),
            ],
        ),
        {
            "any": ["k,g,v", "C,o,4"],
            "all": ["k,g,v", "A,n,2", "B,m,3", "C,o,4"],
            "primary": ["k,g,v", "B,m,3", "C,o,4"],
        },
        failed(1) + held(2, 3),
    ),
    Example(
        "A failed record of a source without a key is missing everywhere, where another source has one.",
        Graph(
            [source("a", "A m 1"), source("p", "x m 9, y m 2, z n 3", key=())],
            [
                output("lines", "a"),
                check("t", "p", "divide", "x", "v", 9),
                output("checked", "t"),
                total("sums", "p", "g"),
                output("totals", "sums", "g", "v"),
            ],
        ),
        {"lines": ["k,g,v", "A,m,1"], "checked": ["k,g,v", "y,m,2", "z,n,3"], "totals": ["g,v", "m,2", "n,3"]},
        failed(1, name="p"),
    ),
    Example(
        "Without include_retracted, what was retracted with a total is no letter; what was withheld is.",
        Graph(
            [source("a", "A m 9, A n 2, B m 3, C n 4")],
            [
                output("lines", "a"),
                total("sums", "a", "g"),
                check("u", "sums", "above", "y", "v", 10),
                output("totals", "u", "g", "v"),
            ],
            {"include_retracted": False},
        ),
        {"lines": ["k,g,v", "C,n,4"], "totals": ["g,v", "n,6"]},
        TOTAL + held(2),
    ),
    Example(
        "A replay feeds each record with letters once, and reads what is looked up from its own file.",
        Graph(
            [source("a", "A m 5, A n 0, B m 7, C n 3"), source("p", "P m 1, Q n 2, R o 4", key=())],
            [
                combine("c", "a", "p", "g"),
                check("t", "c", "divide", "x", "v", 0),
                output("lines", "t", *KEPT, "j"),
                check("u", "c", "divide", "x", "v", 0),
                output("others", "u", *KEPT, "j"),
            ],
        ),
        {"lines": ["k,g,v,j", "B,m,7,1", "C,n,3,2"], "others": ["k,g,v,j", "B,m,7,1", "C,n,3,2"]},
        failed(2, 2) + held(1),
    ),
]

REPLAYED = EXPLAINED[-1]
