"""`upper` and `lower` over Unicode: the interpreter and Spark agree, alone and one after the other."""

from __future__ import annotations

import unicodedata

import pandas as pd
from pyspark.sql import SparkSession

from clinker_spark.core.types import STRING
from clinker_spark.cxl.builtins.stringops import lower, upper
from clinker_spark.cxl.program import compile as compile_program
from clinker_spark.cxl.regex.charclasses import _CASED_BLOCKS, later_case_pairs
from clinker_spark.spark.columns.programs import apply

PROGRAM = """
emit upper = t.upper()
emit lower = t.lower()
emit up_low = t.upper().lower()
emit low_up = t.lower().upper()
emit twice = lower.lower()
"""
# Around a character stand letters, and a sigma, whose small form depends on what is around it.
AROUND = ("{}", "A{}Σ", "AΣ{}b")


def test_every_character(spark: SparkSession) -> None:
    # What this Python's Unicode does not know yet may be a letter for one engine and nothing for the other.
    cased = [c for block in _CASED_BLOCKS for c in block if unicodedata.category(chr(c)) != "Cn"]
    cased += [c for pair in later_case_pairs() for c in pair]
    others = [c for c in range(0x3000, 0x110000, 61) if not 0xD800 <= c <= 0xDFFF]  # scripts without case
    texts = [form.format(chr(c)) for form in AROUND for c in cased] + [chr(c) for c in others]
    texts += ["straße", "İstanbul", "ΟΔΥΣΣΕΥΣ", "ΑΣ.", "ﬃ", "ŉ", "i\u0307", "ΑΣ" + "." * 50]
    program = compile_program(PROGRAM, {"t": STRING})
    rows = apply(program, spark.createDataFrame(pd.DataFrame({"t": texts}))).toPandas()
    differ = []
    for row in rows.itertuples(index=False):
        up, low = upper(row.t), lower(row.t)
        if (row.upper, row.lower, row.up_low, row.low_up, row.twice) != (up, low, lower(up), upper(low), lower(low)):
            differ.append(ascii(row.t))
    assert len(rows) == len(texts) and differ == []
