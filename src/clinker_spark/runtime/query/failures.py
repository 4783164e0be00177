"""What Spark says when a query cannot go on, in the words of the language."""

from __future__ import annotations

import re
from collections.abc import Mapping

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.span import Span
from clinker_spark.plan.graph import Plan
from clinker_spark.query.failures import Failed
from clinker_spark.query.files.formats import BROKEN
from clinker_spark.spark.session.jvm import words_of

_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.+?)(?: SQLSTATE|\n|$)")
_KNOWN = (
    ("DIVIDE_BY_ZERO", "division by zero", None),
    ("ARITHMETIC_OVERFLOW", "a number does not fit in 64 bits", "compute with floats: multiply by 1.0 first"),
    ("CAST_OVERFLOW", "a number does not fit in 64 bits", "compute with floats: multiply by 1.0 first"),
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


def failure(error: Exception, origins: Mapping[str, Span]) -> Failed | None:
    """A failure of the query; None when the error is none of its values' fault."""
    if not type(error).__module__.startswith(("pyspark", "py4j")):
        return None
    text = words_of(error)
    if text is None:  # the engine is gone
        return None
    found = _known(text)
    if found is None:
        first = text.strip().split("\n", 1)[0][:300]
        return Failed(f"Spark failed: {first}", "run with CLINKER_DEBUG=1 for the whole story")
    found.span = _origin(error, origins)
    return found


def node_failure(error: Exception, plan: Plan) -> Diagnostic | None:
    """The failure of a query node; None when it is none. Nothing else in a pipeline fails because of a value."""
    nodes = [(node, node.sql_origins) for node in plan.nodes if node.sql_origins is not None]
    found = _known(words_of(error) or "") if nodes else None
    if found is None or found.code not in ("E705", "E712"):
        return None
    for node, origins in nodes:
        span = _origin(error, origins)
        if span is not None or len(nodes) == 1:
            message = f"query '{node.name}': {found.message}"
            if span is None:
                return node.diagnostic(found.code, message, "config", "query", help=found.help)
            text = node.file.text_of((*node.path, "config", "query"))
            return text.relocate(Diagnostic(found.code, message, None, span, found.help))
    names = ", ".join(f"'{node.name}'" for node, _ in nodes)
    return Diagnostic(found.code, f"one of the queries {names}: {found.message}", help=found.help)


def _origin(error: Exception, origins: Mapping[str, Span]) -> Span | None:
    """The place in the query that a failing piece of the SQL comes from, if Spark names one that is known."""
    try:
        contexts = error.getQueryContext()  # type: ignore[attr-defined]
        return next((origins[c.fragment()] for c in contexts if c.fragment() in origins), None)
    except Exception:  # only some errors have a context
        return None


def _known(text: str) -> Failed | None:
    raised = _RAISED.search(text)
    if raised is not None:
        told = raised[1].strip()
        if told.startswith(BROKEN):
            return Failed(told.removeprefix(BROKEN), "mend the record, or declare the types: load … as T", code="E712")
        return Failed(told)
    for name, message, help_text in _KNOWN:
        if f"[{name}" in text:
            code = "E708" if "UNSUPPORTED" in name else "E707" if "FILE" in name or "MALFORMED" in name else "E705"
            return Failed(message, help_text, code=code)
    return None
