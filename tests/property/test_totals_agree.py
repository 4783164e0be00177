"""Totals of workers against the interpreter: every function over every type, cut into parts in all kinds of ways, for
keys of all types. No Spark runs here."""

from __future__ import annotations

import math
import os
import random
from itertools import pairwise
from typing import Any

import polars as pl
import pytest

from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.families.aggregates import AGGREGATES
from clinker_spark.cxl.errors import EvalError
from clinker_spark.cxl.program import Program, compile
from clinker_spark.cxl.system import default_context
from clinker_spark.cxl.vector.reasons import is_vector_type, totals_reason
from clinker_spark.cxl.vector.totals import lower_totals
from clinker_spark.spark.fragments.totals.finals import finished
from clinker_spark.spark.fragments.totals.states import FIRST, merged, states
from tests.property import records
from tests.property.vectors import vector_frame

SEED = int(os.environ.get("CXL_SEED", "20261119"))
TURNS = 60 if os.environ.get("CLINKER_CASES") == "all" else 4
CONTEXT = default_context("totals")
FLOATS = [1e308, -1e308, 1.7e308, math.inf, -math.inf, math.nan, 2.0**62, -(2.0**62), 1e20, 5e-324, -0.0, None]


def _columns(schema: Any, function: str) -> list[str]:
    kinds = AGGREGATES[function].vector
    return [name for name, t in schema.items() if is_vector_type(t) and t.kind in kinds]


def _program(schema: Any, keys: list[str], calls: list[str]) -> Program:
    text = "\n".join(f"emit o{i} = {call}" for i, call in enumerate(calls))
    program = compile(text, schema, mode="aggregate", group_by=keys)
    assert totals_reason(program.typed) is None
    return program


def _in_parts(rng: random.Random, program: Program, frame: pl.DataFrame) -> list[dict[str, Any]]:
    """What workers make of the records, when they come in several parts, some of which meet before others."""
    totals = lower_totals(program.typed, CONTEXT)
    batch = totals.rows.run(frame)
    assert not batch.failed
    rows = batch.frame.select(totals.columns).with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(FIRST))
    cuts = sorted({0, rows.height, *(rng.randrange(rows.height) for _ in range(rng.randint(0, 5)))})
    parts = [states(totals, rows[a:b]) for a, b in pairwise(cuts)]
    rng.shuffle(parts)
    half = rng.randint(1, len(parts))
    found = finished(totals, merged(totals, [merged(totals, parts[:half]), *parts[half:]]))
    return found.sort(FIRST).to_dicts()


def _alone(program: Program, members: list[dict[str, Any]], name: str) -> Any:
    """The value of one group, or that it has none."""
    try:
        return program.aggregate(members, CONTEXT)[0][name]
    except EvalError as error:
        return error.__class__


@pytest.mark.parametrize("turn", range(TURNS))
def test_totals_agree(turn: int) -> None:
    rng = random.Random(SEED + turn)
    schema = records.schema()
    data = records.generate(rng, 200)
    for record in data:
        record |= {name: rng.choice(FLOATS) for name in ("f", "g") if turn % 2 and rng.random() < 0.1}
        record |= {name: rng.choice([7, -1, 2**62, None]) for name in ("i", "k") if turn % 3 and rng.random() < 0.9}
    keyed = [name for name, t in schema.items() if is_vector_type(t) and t.kind is not Kind.NULL]
    keys = rng.sample(keyed, rng.randint(1, 2))
    for record in data:  # many of the same key, and none that is refused
        for key in keys:
            value = rng.choice(data[:20])[key]
            nan = isinstance(value, float) and math.isnan(value)
            record[key] = 0.5 if nan else value
    frame = vector_frame(schema, data)
    calls = ["count(*)"]
    calls += [f"{f}({name})" for f in AGGREGATES if AGGREGATES[f].vector for name in _columns(schema, f)]
    seen = _in_parts(rng, _program(schema, keys, calls), frame)
    order = _program(schema, keys, ["count(*)"]).aggregate(data, CONTEXT)
    shown = [tuple(row[f"k{i}"] for i in range(len(keys))) for row in seen]
    assert repr(shown) == repr([tuple(row[key] for key in keys) for row in order])
    assert [row["v0"] for row in seen] == [row["o0"] for row in order]
    of_group: dict[str, list[dict[str, Any]]] = {repr(key): [] for key in shown}
    whole = _program(schema, keys, ["count(*)"])
    for record in data:
        [row] = whole.aggregate([record], CONTEXT)
        of_group[repr(tuple(row[key] for key in keys))].append(record)
    for i, call in enumerate(calls[1:], 1):
        program = _program(schema, keys, [call])
        for row, members in zip(seen, of_group.values(), strict=True):
            expected = _alone(program, members, "o0")
            if row.get(f"l{i}"):
                assert expected is EvalError, (call, members)
            else:
                assert repr(row[f"v{i}"]) == repr(expected), (call, members)
