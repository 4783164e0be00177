"""How many records a node will probably have, from what is known before the run. Never a made-up number.

A count comes from the size of the file (`file metadata`), or was measured by the last run of the same pipeline
(`exec sketch`). Nodes that make or drop records have no count of their own: theirs is an upper bound at best, and only
the rows of the sources are ever shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from clinker_spark.plan.nodes import AggregatePlan, MergePlan, PlanNode, RoutePlan, SourcePlan, TransformPlan

FILE_METADATA, EXEC_SKETCH = "file metadata", "exec sketch"
PACKED = 4
"""How much larger compressed text is when it is read."""
_PARQUET_WIDTH = 12
_PACKED_SUFFIXES = (".gz", ".bz2", ".zst", ".zstd")


@dataclass(frozen=True)
class Estimate:
    """About how many records, and bytes of text, a node has."""

    rows: int
    bytes: int
    provenance: str

    def __str__(self) -> str:
        return f"{'' if self.provenance == EXEC_SKETCH else '≈'}{self.rows:,} rows [{self.provenance}]"


def source_estimate(node: SourcePlan, folder: Path, measured: Mapping[str, int]) -> Estimate | None:
    """The records of one source; None for several files, or one that cannot be read."""
    config = node.config
    if config.path is None or "://" in str(config.path):
        return None
    path = folder / str(config.path)
    try:
        size = path.stat().st_size if path.is_file() else None
    except OSError:
        size = None
    if size is None:
        return None
    if config.type == "parquet":
        rows = _parquet_rows(path)
        found = None if rows is None else Estimate(rows, rows * _PARQUET_WIDTH * len(node.columns), FILE_METADATA)
    else:
        size *= PACKED if path.suffix in _PACKED_SUFFIXES else 1
        found = Estimate(max(1, round(size / _record_bytes(node))) if size else 0, size, FILE_METADATA)
    if found is not None and node.name in measured:
        found = replace(found, rows=measured[node.name], provenance=EXEC_SKETCH)
    return found


def _record_bytes(node: SourcePlan) -> int:
    """A rule of thumb: what a column takes in a text file."""
    return max(8, 8 * len(node.columns))


def _parquet_rows(path: Path) -> int | None:
    from pyarrow import ArrowException, parquet

    try:
        return int(parquet.read_metadata(path).num_rows)
    except (OSError, ArrowException):
        return None


def estimate(name: str, node_of: Callable[[str], PlanNode], sources: Mapping[str, Estimate | None]) -> Estimate | None:
    """At most how many records leave a node; None where nothing is known, and after joins and fan-outs."""
    node = node_of(name)
    if isinstance(node, SourcePlan):
        return sources.get(node.name)
    narrow = isinstance(node, MergePlan | RoutePlan | AggregatePlan) or (
        isinstance(node, TransformPlan) and not node.expands
    )
    if not narrow:
        return None
    found = [estimate(ref.node, node_of, sources) for ref in node.inputs]
    if not found or any(item is None for item in found):
        return None
    known = [item for item in found if item is not None]
    if not isinstance(node, MergePlan):
        return known[0]
    provenance = EXEC_SKETCH if all(item.provenance == EXEC_SKETCH for item in known) else FILE_METADATA
    return Estimate(sum(item.rows for item in known), sum(item.bytes for item in known), provenance)
