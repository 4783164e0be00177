"""Names of the hidden columns that the language's own lowering makes or reads.

Hidden columns ride along with the columns of a record and have names that begin with `$`, as no other column has. What
each holds, who writes it and who reads it stands in `plan.hidden`, with those of the pipeline.
"""

from __future__ import annotations

ERROR_COLUMN = "$error"
ERROR_TYPE = "STRUCT<kind: STRING, field: STRING, value: STRING, message: STRING>"
ARRIVAL_COLUMN = "$arrival"
VARIABLE_PREFIX = "$"
LOOKUP_PREFIX = "$window."

# A number follows each of these.
BOUND_PREFIX = "$t"
GROUP_KEY_PREFIX = "$k"
PARTIAL_PREFIX = "$a"
RANK_COLUMN = "$n"
LEAF_PREFIX = "$leaf"
PYTHON_PREFIX = "$p"

# Fields of the structs that a fan-out makes records of, besides their columns.
LEAF_ERROR_FIELD = "$e"
LEAF_EMPTY_FIELD = "$none"


def variable_column(namespace: str, *path: str) -> str:
    """The column of a system variable has the name by which programs read it.

    >>> variable_column("source", "row")
    '$source.row'
    """
    return f"{VARIABLE_PREFIX}{namespace}.{'.'.join(path)}"


def lookup_column(number: int) -> str:
    """The column with the value of a `$window` function over other records."""
    return f"{LOOKUP_PREFIX}{number}"
