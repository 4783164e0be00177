"""What a file of dead letters is known by, and the hash that shows whether somebody edited one. Needs neither Spark nor
Arrow."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

PREFIX = "_cxl_dlq_"
REQUIRED = ("source_file", "source_name", "source_row", "stage")
"""The columns that every dead-letter file has, after `PREFIX`."""
_HASH_DIGITS = 16
_CELL_SEPARATOR = "\x1f"


def source_hash(cells: Sequence[str | None], line: str | None) -> str:
    """What `source_hash` says of a record with these cells and this line."""
    texts = (_CELL_SEPARATOR.join(cell or "" for cell in cells), line or "")
    return "-".join(hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS] for text in texts)
