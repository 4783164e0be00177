"""Grouping keys as Python values: which values `distinct` and `group_by` take for one, and which they refuse.

The same rules as SQL are in `lower/keys.py`.

>>> grouping_key(1) == grouping_key(1.0), grouping_key(1) == grouping_key(True), grouping_key(0.0) == grouping_key(-0.0)
(True, False, True)
>>> shown_key(-0.0)
0.0
"""

from __future__ import annotations

import math
from typing import Any

from clinker_spark.cxl import values
from clinker_spark.cxl.builtins.text import json_text


def bad_key(statement: str) -> str:
    """The message of a record whose key is refused by `distinct` or `group_by`."""
    return f"a key of {statement} cannot be NaN, an array or a map"


def is_bad_key(value: Any) -> bool:
    """NaN equals nothing, and neither do arrays and maps: nothing could ever be grouped with them."""
    return isinstance(value, list | dict) or _is_nan(value)


def grouping_key(value: Any) -> Any:
    """A value as something to hash: null is a key, 1 and 1.0 are one, and no other two types are."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return (values.type_name(value), value)
    return ("number", value)


def partition_key(value: Any) -> Any:
    """The key of a window partition or a tie. No record fails here, so all NaN are one; arrays and maps go by text."""
    if is_bad_key(value):
        return ("text", json_text(value))
    return grouping_key(value)


def shown_key(value: Any) -> Any:
    """How a group shows its key: -0.0 and 0.0 are one group, and that is 0.0."""
    return value + 0.0 if isinstance(value, float) else value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
