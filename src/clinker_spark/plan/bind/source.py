"""Binding sources: their columns are declared, and their files say about how many records they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from clinker_spark.config.model.source import SourceNode
from clinker_spark.config.model.sources.config import SourceConfig
from clinker_spark.plan.bind.node import NodeBinder, Streams
from clinker_spark.plan.bind.split_values import as_texts, bind_splits
from clinker_spark.plan.facts import EXEC_SKETCH, FILE_METADATA, Estimate
from clinker_spark.plan.nodes.source import PlannedKinds, SourcePlan

PACKED = 4
"""How much larger compressed text is when it is read."""
_PARQUET_WIDTH = 12
_PACKED_SUFFIXES = (".gz", ".bz2", ".zst", ".zstd")


def bind_source(binder: NodeBinder, node: SourceNode) -> Streams | None:
    declared = binder.file.schema_of(node.name)
    assert declared is not None
    config = _with_resource(binder, node.config)
    if config is None:
        return None
    node = node.model_copy(update={"config": config})
    kinds = declared.kinds
    columns = as_texts(declared.columns, node.config.split_values)
    schema = {column.name: column.data_type for column in columns}
    plan = SourcePlan(
        **binder.common(schema, tuple(schema)),
        config=node.config,
        columns=columns,
        source_name=node.source_name,
        index=len(binder.binder.sources),
        kinds=None if kinds is None else PlannedKinds(kinds, kinds.left_out(node.config.envelope)),
    )
    binder.binder.sources[plan.name] = plan
    file = file_of(plan, binder.file.folder)
    if file is not None:
        binder.binder.known.file_sizes[plan.name] = file[1]
    binder.binder.known.sizes[plan.name] = None if file is None else source_size(plan, *file, binder.binder.measured)
    split = any(not split.json_ for split in node.config.split_values)
    return bind_splits(binder, plan, declared.columns) if split else binder.made(plan)


def _with_resource(binder: NodeBinder, config: SourceConfig) -> SourceConfig | None:
    """What a source reads, with the file of its slot, if it reads one; None where there is no such slot."""
    if config.resource is None:
        return config
    slots = binder.scope.resources
    if slots is None or config.resource not in slots:
        where = "the pipeline has no slots" if slots is None else f"the slots are {', '.join(slots) or 'none'}"
        help_text = "write 'path' in a pipeline" if slots is None else "declare it in _compose.resources_schema"
        message = f"there is no resource '{config.resource}': {where}"
        binder.problem("E343", message, "config", "resource", help=help_text)
        return None
    path = slots[config.resource]
    if path is None:
        files = config.files.model_copy(update={"on_no_match": "skip"})
        return config.model_copy(update={"glob": ".clinker-nothing", "files": files})
    return config.model_copy(update={"path": path})


def file_of(node: SourcePlan, folder: Path) -> tuple[Path, int] | None:
    """The file of a source and its bytes on disk; None for several files, or one that cannot be read."""
    config = node.config
    if config.path is None or "://" in str(config.path):
        return None
    path = folder / str(config.path)
    try:
        return (path, path.stat().st_size) if path.is_file() else None
    except OSError:
        return None


def source_size(node: SourcePlan, path: Path, size: int, measured: Mapping[str, int]) -> Estimate | None:
    """The records of a source of one file, by its size (`file metadata`) or as the last run of the same pipeline
    measured them (`exec sketch`); None where the file does not say it."""
    if node.config.type == "parquet":
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
    from pyarrow import ArrowException, parquet  # slow to load, and most plans read no Parquet

    try:
        return int(parquet.read_metadata(path).num_rows)
    except (OSError, ArrowException):
        return None
