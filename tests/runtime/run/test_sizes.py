"""Sizes that the checker accepts also run: a thousand of anything, on Spark as in the interpreter."""

from __future__ import annotations

import json
import os
from typing import Any

from clinker_spark.cxl.errors import EvalError
from clinker_spark.cxl.program import compile
from tests.support.workbench import Workbench

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
N = 1000
SOME = N if EVERYTHING else 100
"""Of what Spark plans slowly: a thousand of them take ten to thirty seconds each."""
SCHEMA = {"id": "int", "x": "int", "y": "nullable(int)"}
BIG = 2**63 - 1 - 150

PROGRAMS = {
    "sum": "emit v_sum = " + " + ".join("y" if i == 900 else "x" for i in range(N)),
    "mixed": "emit v_mixed = x * 2" + "".join(f" {'-' if i % 3 else '+'} (id + {i})" for i in range(SOME)),
    "match": "emit v_match = match id { " + ", ".join(f"{i} => {i} / y" for i in range(SOME)) + ", _ => -1 }",
    "lets": "let a0 = y + 1\n"
    + "\n".join(f"let a{i} = a{i - 1} + {i % 7}" for i in range(1, SOME))
    + f"\nemit v_lets = a{SOME - 1}",
    "logic": "emit v_logic = " + " and ".join(f"id != {i + 1000}" for i in range(N)),
}
RECORDS = [
    {"id": 1, "x": 3, "y": 2},
    {"id": 2, "x": 2**62, "y": None},  # the sum overflows long before the null
    {"id": 3, "x": 1, "y": None},
    {"id": 4, "x": 1, "y": 0},  # fails in match
    {"id": 5, "x": 1, "y": BIG},  # fails in a let
    {"id": 2000, "x": -5, "y": 7},
]


def expected(record: dict[str, Any]) -> dict[str, Any] | tuple[str, str]:
    """The record after all programs, or the node and the message of its failure."""
    known: dict[str, Any] = dict(record)
    for name, text in PROGRAMS.items():
        try:
            known.update(compile(text, SCHEMA).evaluate(record)[0])
        except EvalError as error:
            return f"transform:{name}", error.message
    return known


def shown(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def test_a_thousand_terms_arms_lets_and_conditions(bench: Workbench) -> None:
    rows = "".join(f"{r['id']},{r['x']},{shown(r['y'])}\n" for r in RECORDS)
    bench.file("in.csv", "id,x,y\n" + rows)
    nodes = [
        "  - type: source\n    name: s\n"
        "    config: { type: csv, path: in.csv, schema: { id: int, x: int, y: nullable(int) } }",
    ]
    previous = "s"
    for name, text in PROGRAMS.items():
        lines = "\n".join("        " + line for line in text.splitlines())
        nodes.append(
            f"  - type: transform\n    name: {name}\n    input: {previous}\n    config:\n      cxl: |\n{lines}"
        )
        previous = name
    nodes.append(f"  - {{ type: output, name: o, input: {previous}, config: {{ type: json, path: out.json }} }}")
    report = bench.run(
        "pipeline: { name: sizes }\nnodes:\n"
        + "\n".join(nodes)
        + "\nerror_handling: { strategy: continue, dlq: { path: dead.csv } }\n"
    )
    wanted = [expected(r) for r in RECORDS]
    assert [w for w in wanted if isinstance(w, tuple)], "some records must fail"
    fine = [{k: v for k, v in w.items() if v is not None} for w in wanted if isinstance(w, dict)]
    assert json.loads(bench.text("out.json")) == fine  # nulls are left out of JSON
    failed = [(r["_cxl_dlq_stage"], r["_cxl_dlq_error_detail"]) for r in bench.letters()]
    assert report.dead_letters == len(failed) == sum(isinstance(w, tuple) for w in wanted)
    for (stage, detail), want in zip(failed, [w for w in wanted if isinstance(w, tuple)], strict=True):
        assert stage == want[0] and want[1] in detail


def test_hundreds_of_transforms_in_a_row(bench: Workbench) -> None:
    """One record fails in the middle: it is a letter of that very node, and the others arrive."""
    bench.file("in.csv", f"id,v\n1,10\n2,{2**63 - 1 - 100}\n3,\n")
    many = N if EVERYTHING else 120
    before = ["s", *(f"t{i}" for i in range(many))]
    chain = "".join(
        f"  - {{ type: transform, name: t{i}, input: {before[i]}, config: {{ cxl: 'emit v = v + 1' }} }}\n"
        for i in range(many)
    )
    report = bench.run(
        "pipeline: { name: chain }\nnodes:\n"
        "  - { type: source, name: s, config: { type: csv, path: in.csv, schema: { id: int, v: nullable(int) } } }\n"
        f"{chain}"
        f"  - {{ type: output, name: o, input: t{many - 1}, config: {{ type: csv, path: out.csv }} }}\n"
        "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"
    )
    assert bench.text("out.csv") == f"id,v\n1,{10 + many}\n3,\n"
    letters = bench.letters()
    assert report.dead_letters == 1 and [r["_cxl_dlq_stage"] for r in letters] == ["transform:t100"]
    assert "overflow" in letters[0]["_cxl_dlq_error_detail"]


def test_hundreds_of_transforms_in_a_fragment(bench: Workbench) -> None:
    """A fragment is a list of steps: nested ones would need more frames of Python than there are, also for pickling."""
    many = N if EVERYTHING else 400
    before = ["s", *(f"t{i}" for i in range(many))]
    chain = "".join(
        f"  - {{ type: transform, name: t{i}, input: {before[i]}, config: {{ cxl: 'emit v = v + 1' }} }}\n"
        for i in range(many)
    )
    bench.file("in.csv", "id,v\n1,10\n3,\n")
    bench.run(
        "pipeline: { name: chain, engine: vector }\nnodes:\n"
        "  - { type: source, name: s, config: { type: csv, path: in.csv, schema: { id: int, v: nullable(int) } } }\n"
        f"{chain}"
        f"  - {{ type: output, name: o, input: t{many - 1}, config: {{ type: csv, path: out.csv }} }}\n"
    )
    assert bench.text("out.csv") == f"id,v\n1,{10 + many}\n3,\n"
