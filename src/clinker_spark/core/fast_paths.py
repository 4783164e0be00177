"""Fast paths: second ways to the same bytes, there only because they are faster.

Each costs code, and a case that tests must know. So each has a row here, asks `taken` before it is taken, and has a
job in `benchmarks/bench_fast_paths.py` that runs with it and without it. One that no longer saves anything is deleted.
The switch is for that benchmark and for tests, which compare the bytes: nobody needs it to get a right result.

>>> with without("small_inputs"):
...     taken("small_inputs"), taken("fragments")
(False, True)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

FAST_PATHS: dict[str, str] = {
    "small_inputs": "inputs of a few megabytes are planned for one task: no exchange, no adaptive execution",
    "interpreted_expressions": "expressions over very small inputs are interpreted, and not compiled to Java",
    "rows_in_plan": "the driver reads small inputs, so that no job of a run reads them again",
    "shared_rows": "rows of small inputs that several nodes read are planned and computed once",
    "outputs_together": "lines of several outputs of small inputs are written by one job",
    "fragments": "workers that read a split make the lines of outputs of it, as Polars expressions",
    "worker_parts": "workers of fragments write the parts of outputs themselves",
    "growing_files": "the file of an output is put together while workers still write its parts",
    "whole_pieces": "pieces of JSON lines are read by Arrow, or cut at quotes where all lines are alike",
    "finished_cells": "cells of CSV and members of JSON that nothing changes are texts of the reader, and not values",
    "guessed_names": "undeclared names of JSON lines are looked up in a few places; who reads all of them finds others",
    "kept_results": "what a shuffle made for several outputs is kept until the last of them is written",
    "readers_letters": "readers of CSV keep broken lines, so that no second pass has to find them",
    "few_letters": "some thousand dead letters are written by the driver, and not by a Spark job",
    "small_groups": "groups to withhold are found in small inputs by one job for each turn, and decided in the driver",
    "row_groups": "groups of records that go their own way are cut out of the output, which is not written again",
    "listed_groups": "while few records fail, what follows from them is decided in the driver, without Spark",
    "failures_alone": "where records fail is found first, and only these are read with their text",
    "one_message": "all columns of a DataFrame are sent to the JVM as one text",
}
"""What each of them does."""

_left_out: set[str] = set()


def taken(name: str) -> bool:
    """May this way be taken?"""
    assert name in FAST_PATHS, name
    return name not in _left_out


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Meanwhile these are left out, by plans that are made and runs that begin in this process."""
    assert set(names) <= FAST_PATHS.keys(), names
    new = set(names) - _left_out
    _left_out.update(new)
    try:
        yield
    finally:
        _left_out.difference_update(new)
