"""`upper` and `lower` over all of Unicode: the interpreter and Spark agree, alone and one after the other."""

from __future__ import annotations

from pyspark.sql import SparkSession

from clinker_spark.core.types import STRING
from clinker_spark.cxl.program import compile as compile_program
from clinker_spark.spark.columns import apply

PROGRAM = """
emit upper = t.upper()
emit lower = t.lower()
emit up_low = t.upper().lower()
emit low_up = t.lower().upper()
emit twice = lower.lower()
"""
# Before and after a character: letters, and a sigma, whose small form depends on what is around it.
AROUND = ("{}", "A{}Σ", "AΣ{}b", "{}\u0307")


def test_every_character(spark: SparkSession) -> None:
    codes = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF and (c < 0x20000 or 0xE0000 <= c < 0xE1000)]
    texts = [form.format(chr(c)) for form in AROUND for c in codes if form == "{}" or chr(c).isalpha() or c < 0x3000]
    texts += ["straße", "İstanbul", "ΟΔΥΣΣΕΥΣ", "ΑΣ.", "ﬃ", "ǆ", "ŉ", "ı", "ΐ", "\u1fd3"]
    program = compile_program(PROGRAM, {"t": STRING})
    import pandas as pd

    rows = apply(program, spark.createDataFrame(pd.DataFrame({"t": texts}))).toPandas()
    evaluate = program.evaluate
    differ = []
    for row in rows.itertuples(index=False):
        [expected] = evaluate({"t": row.t})
        if (row.upper, row.lower, row.up_low, row.low_up, row.twice) != tuple(
            expected[name] for name in ("upper", "lower", "up_low", "low_up", "twice")
        ):
            differ.append(ascii(row.t))
    assert len(rows) == len(texts) and differ == []
