"""Remote text files are copied to this machine before they are read."""

from __future__ import annotations

import atexit
import datetime as dt
import posixpath
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import TYPED, SourcePlan
from clinker_spark.runtime.discover.sources import Left, discover, is_remote
from clinker_spark.runtime.errors import IoError
from clinker_spark.spark.remote_files import RemoteFiles
from clinker_spark.spark.scan.request import SourceFile
from clinker_spark.spark.session.sessions import SparkSession, is_local


def remote_files(spark: SparkSession) -> RemoteFiles | None:
    """The remote storage of a session; None when its files could not be brought to where the tasks are."""
    return RemoteFiles(spark) if is_local(spark) else None


def with_copies(
    spark: SparkSession, node: SourcePlan, files: tuple[SourceFile, ...], folder: str | Path
) -> tuple[SourceFile, ...]:
    """The files with copies of the remote ones, except those that Spark reads itself. Raises `IoError`."""
    if node.config.type in TYPED or not any(is_remote(file.path) for file in files):
        return files
    storage = remote_files(spark)
    if storage is None:
        [first, *_] = [file for file in files if is_remote(file.path)]
        message = f"'{first.name}' is read as {node.config.type} only by a session on this machine"
        help_text = "run with --master local[*], mount the storage and give that path, or keep the data as parquet"
        raise IoError([node.diagnostic("E248", message, "config", help=help_text)])
    return tuple(_copied(storage, node, file, i, Path(folder)) for i, file in enumerate(files))


def _copied(storage: RemoteFiles, node: SourcePlan, file: SourceFile, i: int, folder: Path) -> SourceFile:
    if not is_remote(file.path):
        return file
    # The name keeps its end, which says how the file is compressed.
    place = folder / f"{node.index}-{i}-{posixpath.basename(file.path)}"
    try:
        storage.copy(file.path, place)
        now = storage.status(file.path)
        if (now.size, now.modified) != (file.size, file.modified) or place.stat().st_size != file.size:
            message = f"'{file.name}' was changed while it was copied"
            raise IoError([node.diagnostic("E434", message, "config", help="run again when nobody writes to it")])
    except OSError as error:
        message = f"cannot read '{file.name}': {error}"
        help_text = "check the address and the settings of the storage (spark.hadoop.fs...)"
        raise IoError([node.diagnostic("E229", message, "config", help=help_text)]) from None
    return replace(file, path=str(place), size=place.stat().st_size, uri=file.path)


def found_files(
    spark: SparkSession, plan: Plan, base: Path, now: dt.datetime, left: Left | None = None
) -> dict[str, tuple[SourceFile, ...]]:
    """The files of all sources, or those that are `left` of them, for those who run no stages. Copies last as long as
    this process: a DataFrame is read later than it is made."""
    storage = remote_files(spark)
    found = {node.name: discover(node, base, now, storage, left).files for node in plan.sources}
    if not any(is_remote(file.path) for files in found.values() for file in files):
        return found
    folder = tempfile.mkdtemp(prefix="clinker-remote-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {node.name: with_copies(spark, node, found[node.name], folder) for node in plan.sources}
