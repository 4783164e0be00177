"""The numbers that the bounded engine rests on. Those in bytes can be set by variables of the environment; thresholds
and counts are part of the design, and cannot."""

from __future__ import annotations

import os
from collections.abc import Mapping

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError

MIB = 1 << 20

BUDGET_FRACTION = 0.25
"""Fetching may run ahead of the worker by at most this share of all that a query decodes."""
MIN_BUDGET_PER_PARTITION = 64 * MIB
MAX_BUDGET_PER_PARTITION = 1024 * MIB
MAX_CONCURRENT_SEGMENTS = 3
"""Segments that have memory in the worker at one time, besides the limit in bytes."""
INITIAL_ESTIMATE_MULTIPLIER = 1.5
"""The first fetches reserve half as much again as the manifest promises."""
MIN_ESTIMATE_MULTIPLIER = 1.0
MAX_ESTIMATE_MULTIPLIER = 3.0
ESTIMATE_EMA_ALPHA = 0.2
"""The weight of the newest fetch in the average of what fetches took and what they were thought to take."""
STALL_EMPTY_EMIT_THRESHOLD = 20
"""So many fetches in a row without a new row, with a full budget, are a stall."""
STALL_SATURATION_THRESHOLD = 0.95
FLUSH_BATCH_ROWS = 2048
FLUSH_BATCH_BYTES = 200 * MIB

ASSEMBLE_ROWS = 1 << 17
"""Rows that are assembled in one go, and then cut into batches."""
FETCH_TARGET_BYTES = 4 * MIB
"""Small chunks are fetched together up to this size."""
CHANNEL_MESSAGES = 32
"""Fetched batches that wait for the worker."""

VARIABLES = {
    "CLINKER_DATASET_BUDGET_MIN": MIN_BUDGET_PER_PARTITION,
    "CLINKER_DATASET_BUDGET_MAX": MAX_BUDGET_PER_PARTITION,
    "CLINKER_DATASET_BUDGET_FRACTION": BUDGET_FRACTION,
}
_UNITS = {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "B": 1}


def budget_bytes(decoded: int, partitions: int, environment: Mapping[str, str] | None = None) -> int:
    """The budget of one of `partitions` that together decode so many bytes.

    >>> budget_bytes(10 << 30, 4, {}) >> 20, budget_bytes(1, 1, {"CLINKER_DATASET_BUDGET_MIN": "16MiB"}) >> 20
    (640, 16)
    """
    given = os.environ if environment is None else environment
    least = int(_setting(given, "CLINKER_DATASET_BUDGET_MIN"))
    most = int(_setting(given, "CLINKER_DATASET_BUDGET_MAX"))
    share = decoded * _setting(given, "CLINKER_DATASET_BUDGET_FRACTION") / max(partitions, 1)
    return max(1, min(max(int(share), least), most))


def _setting(given: Mapping[str, str], name: str) -> float:
    text = given.get(name, "").strip()
    if not text:
        return VARIABLES[name]
    number, unit = text.upper(), 1
    for suffix, size in _UNITS.items():
        if number.endswith(suffix):
            number, unit = number.removesuffix(suffix).strip(), size
            break
    try:
        found = float(number) * unit
    except ValueError:
        found = -1.0
    if not 0 < found < float("inf"):
        message = f"{name} is '{text}', which is no size"
        raise InputError([Diagnostic("E854", message, help="write 64MiB, 1GiB or a number of bytes; a share as 0.25")])
    return found
