"""Generated typed programs over generated records: the interpreter and Spark must agree, value for value and error
for error. Another run with a seed of your own: `CXL_SEED=7 pytest tests/property`, or `python -m tests.property 7`.
"""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins import all_builtins
from clinker_spark.cxl.builtins.families.collections import HIGHER_ORDER
from tests.property import campaign

SEED = int(os.environ.get("CXL_SEED", "20261115"))
PROGRAMS = 2_000 if os.environ.get("CLINKER_CASES") == "all" else 1_000
"""Planning a thousand programs takes Spark a minute or two; fewer do not reach every builtin."""

# Statements and nodes that need several rows or a window have tests of their own.
ELSEWHERE = {ir.AggregateCall, ir.WindowRef, ir.FanOut, ir.LetIn, ir.SystemRef}


def test_engines_agree(spark: SparkSession) -> None:
    findings, coverage = campaign.run(spark, SEED, PROGRAMS)
    print(f"seed {SEED}, {PROGRAMS} programs: {coverage}")
    assert not findings, campaign.report(spark, SEED, findings)
    # Nothing was left out, and what ran was not all null and not all fine.
    missing = {b.name for b in all_builtins()} - coverage.builtins.keys()
    missing |= {*HIGHER_ORDER, "==", "!=", "<", "<=", ">", ">=", "and", "or", "??"} - coverage.operators.keys()
    missing |= {n.__name__ for n in ir.TExpr.__subclasses__() if n not in ELSEWHERE} - coverage.nodes.keys()
    assert not missing
    total = coverage.values + coverage.nulls + coverage.skips + sum(coverage.errors.values())
    assert coverage.values > total * 0.25
    assert sum(coverage.errors.values()) > total * 0.03
    assert coverage.errors.keys() >= {"conversion_failed", "division_by_zero", "integer_overflow", "type_mismatch"}
