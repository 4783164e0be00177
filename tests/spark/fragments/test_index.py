"""Candidates of lookups, against a look at all pairs."""

from __future__ import annotations

import os
import random
from decimal import Decimal
from itertools import pairwise
from typing import Any

import polars as pl
import pytest

from clinker_spark.spark.fragments.joins import index
from clinker_spark.spark.fragments.joins.index import Index, Span

TABLES = 3_000 if os.environ.get("CLINKER_CASES") == "all" else 150


def _value(rng: random.Random, *, floats: bool) -> float | None:
    if rng.random() < 0.1:
        return None
    return rng.choice([0.5, -1.5, -0.0, 0.0, 7.25, 1e9]) if floats else rng.randrange(-20, 20)


def _frame(rng: random.Random, size: int, ends: tuple[str, str], *, floats: bool) -> pl.DataFrame:
    low = [_value(rng, floats=floats) for _ in range(size)]
    high = [None if v is None or rng.random() < 0.1 else v + rng.choice([0, 1, 3, 100, 10_000]) for v in low]
    number: Any = pl.Float64 if floats else pl.Int64
    schema = {"k": number, "s": pl.String, ends[0]: number, ends[1]: number}
    keys = [_value(rng, floats=True) if floats else rng.choice([1, 2, 3, None]) for _ in range(size)]
    texts = [rng.choice(["a", "b", None]) for _ in range(size)]
    return pl.DataFrame({"k": keys, "s": texts, ends[0]: low, ends[1]: high}, schema=schema, strict=False)


def _within(mine: float | None, other: float | None, *, above: bool, is_open: bool) -> bool:
    if mine is None or other is None:
        return False
    return (mine > other if above else mine < other) or (mine == other and not is_open)


def test_decimals_of_any_size_have_their_order() -> None:
    """Those with more than 64 bits of digits, too."""
    t = pl.Decimal(38, 2)
    ends = [Decimal(text) for text in ("-123456789012345678901234567.89", "-1.50", "0.00", "2.25", "9" * 27 + ".99")]
    for values in (ends, ends[1:4]):
        table = pl.DataFrame({"low": values[:-1], "high": values[1:]}, schema={"low": t, "high": t})
        for looked in (ends, ends[1:4]):
            made = Index(table, [], Span("low", "high", open_low=True))
            pairs = made.pairs(pl.DataFrame({"x": looked}, schema={"x": t}), [], ("x", "x"))
            found = {pair for records, rows in pairs for pair in zip(records.tolist(), rows.tolist(), strict=True)}
            wanted = {
                (i, j)
                for i, x in enumerate(looked)
                for j, (low, high) in enumerate(pairwise(values))
                if low < x <= high
            }
            assert found == wanted


@pytest.mark.parametrize("at_once", [1, 7, 1 << 20])
def test_all_pairs_are_found_and_once(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MOST_AT_ONCE", at_once)
    inexact = 0
    for seed in range(TABLES):
        rng = random.Random(seed)
        floats = rng.random() < 0.5
        keys = rng.choice([[], ["k"], ["k", "s"]])
        table = _frame(rng, rng.choice([0, 1, 5, 40, 200]), ("low", "high"), floats=floats)
        looked = _frame(rng, rng.choice([0, 1, 20]), ("x", "y"), floats=floats)
        low, high = rng.choice([(True, True), (True, False), (False, True), (False, False)])
        span = Span("low" if low else None, "high" if high else None, rng.random() < 0.5, rng.random() < 0.5)
        made = Index(table, keys, span if low or high else None)
        exact = all(part.exact for part in made.parts)
        inexact += not exact

        def holds(a: dict[str, Any], b: dict[str, Any], keys: list[str] = keys, span: Span = span) -> bool:
            if any(a[key] is None or a[key] != b[key] for key in keys):
                return False
            lower = span.low is None or _within(a["x"], b["low"], above=True, is_open=span.open_low)
            return lower and (span.high is None or _within(a["y"], b["high"], above=False, is_open=span.open_high))

        rows, others = looked.to_dicts(), table.to_dicts()
        wanted = {(i, j) for i, a in enumerate(rows) for j, b in enumerate(others) if holds(a, b)}
        ends = ("x" if low else None, "y" if high else None)
        pairs = [(records.tolist(), at.tolist()) for records, at in made.pairs(looked, keys, ends)]
        found = [pair for part in pairs for pair in zip(*part, strict=True)]
        assert len(set(found)) == len(found), seed
        assert wanted <= set(found), seed
        assert not exact or wanted == set(found), seed
    assert inexact > TABLES // 20


def test_the_first_of_all_on_one_side_is_found_alone() -> None:
    for seed in range(TABLES):
        rng = random.Random(seed)
        keys = rng.choice([[], ["k"], ["k", "s"]])
        table = _frame(rng, rng.choice([1, 5, 40]), ("low", "high"), floats=False)
        looked = _frame(rng, 20, ("x", "y"), floats=False)
        upwards = rng.random() < 0.5
        ends = ("x", None) if upwards else (None, "y")
        made = Index(table, keys, Span("low", None) if upwards else Span(None, "high"))
        assert made.has_earliest
        first: dict[int, int] = {}
        for records, rows in made.pairs(looked, keys, ends):
            for record, row in zip(records.tolist(), rows.tolist(), strict=True):
                first[record] = min(row, first.get(record, row))
        records, rows = made.earliest(looked, keys, ends)
        assert dict(zip(records.tolist(), rows.tolist(), strict=True)) == first, seed


def test_many_short_intervals_behind_a_long_one_are_no_candidates() -> None:
    """A long interval must not make everything that begins after it a candidate."""
    size = 20_000
    low = list(range(0, 10 * size, 10))
    table = pl.DataFrame({"low": low, "high": [10 * size if i % 1_000 == 0 else at + 5 for i, at in enumerate(low)]})
    looked = pl.DataFrame({"x": range(3, 10 * size, 97)})
    found = sum(len(rows) for _, rows in Index(table, [], Span("low", "high")).pairs(looked, [], ("x", "x")))
    assert found < 4 * 22 * looked.height


def test_nan_is_a_key_and_there_is_one_zero() -> None:
    table = pl.DataFrame({"k": [float("nan"), -0.0, None, 2.0]})
    looked = pl.DataFrame({"k": [0.0, -float("nan"), None, 3.0]})
    [(records, rows)] = Index(table, ["k"]).pairs(looked, ["k"])
    assert (records.tolist(), rows.tolist()) == ([0, 1], [1, 0])
