"""What Spark says when a query cannot go on, in the words of the language."""

from __future__ import annotations

import re

from clinker_spark.query.failures import Failed

_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.+?)(?: SQLSTATE|\n|$)")
_KNOWN = (
    ("DIVIDE_BY_ZERO", "division by zero", None),
    ("ARITHMETIC_OVERFLOW", "a number does not fit in 64 bits", "compute with floats: multiply by 1.0 first"),
    ("CAST_INVALID_INPUT", "a value cannot be converted", "leave such rows out, or use .try_int() and its kin"),
    ("INVALID_ARRAY_INDEX", "an index is out of range", None),
    ("SCALAR_SUBQUERY_TOO_MANY_ROWS", "a sub-query gives more than one row", "use first(…) or an aggregate"),
    ("DATETIME_OVERFLOW", "a date is out of range", None),
    ("MALFORMED_CSV_RECORD", "a line of a CSV file does not fit its columns", "declare the types: load … as T"),
    ("MALFORMED_RECORD_IN_PARSING", "a record does not have the type of its column", "declare the types: load … as T"),
    ("FAILED_READ_FILE", "a file cannot be read as its type", "declare the types: load … as T"),
    ("UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY", "this nested query has no Spark form", "join the rows instead"),
    ("UNSUPPORTED_CORRELATED", "this nested query has no Spark form", "join the rows instead"),
)


def failure(error: Exception) -> Failed | None:
    """A failure of the query; None when the error is none of its values' fault."""
    if not type(error).__module__.startswith(("pyspark", "py4j")):
        return None
    text = str(error)
    raised = _RAISED.search(text)
    if raised is not None:
        return Failed(raised[1].strip())
    for name, message, help_text in _KNOWN:
        if f"[{name}" in text:
            code = (
                "E708"
                if name.startswith("UNSUPPORTED")
                else "E707"
                if "FILE" in name or "MALFORMED" in name
                else "E705"
            )
            return Failed(message, help_text, code=code)
    first = text.strip().split("\n", 1)[0][:300]
    return Failed(f"Spark failed: {first}", "run with CLINKER_DEBUG=1 for the whole story")
