"""Adding to outputs that are there: records to a file, files to a folder. What is there must have the same columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.runtime.errors import IoError
from clinker_spark.runtime.paths.outputs import Target
from clinker_spark.runtime.run.files import assemble
from clinker_spark.runtime.run.options import Options
from clinker_spark.spark.operators.output import Prepared

_NUMBER = re.compile(r"part-(\d{5,})\.\w+")


def adds_to(node: OutputPlan, options: Options) -> bool:
    """Does what this run makes come to what is there?"""
    return options.replay == "append" or (node.config.if_exists == "append" and options.adds)


def before(node: OutputPlan, place: Target, options: Options) -> Path | None:
    """The file that is added to; None when there is none, or nothing in it."""
    return place.path if adds_to(node, options) and holds(place.path) else None


def holds(path: Path) -> bool:
    """Is there a file with something in it?"""
    return path.is_file() and path.stat().st_size > 0


def check_fits(prepared: Prepared, place: Target, options: Options) -> None:
    """What is there must begin, and end, as what is added to it would. Raises `IoError`."""
    node, rendering = prepared.node, prepared.rendering
    there = place.path
    if rendering is not None and place.folder:
        first = next(_parts(there), None) if there.is_dir() else None
        if first is None:
            return
        there = first
    if rendering is not None and holds(there):
        begins = assemble.begins_with(there, rendering.prefix) or assemble.begins_with(there, rendering.empty)
        if not begins or not (assemble.is_lines(rendering) or assemble.can_go_on(there, rendering)):
            raise _refused(node, options)


def check_schema(node: OutputPlan, part: Path, folder: Path, options: Options) -> None:
    """The same for a folder of Parquet files, once there is a part to compare with them. Raises `IoError`."""
    there = next(_parts(folder), None) if folder.is_dir() else None
    if there is None:
        return
    mine, known = pq.read_schema(part), pq.read_schema(there)
    levels = len(there.relative_to(folder).parts) - 1
    folders = [name.partition("=")[0] for name in there.relative_to(folder).parts[:levels]]
    if not mine.equals(known, check_metadata=False) or folders != list(node.partition_by):
        raise _refused(node, options)


def _refused(node: OutputPlan, options: Options) -> IoError:
    message = f"cannot add to '{node.config.path}': its columns are not those of the records"
    help_text = "move it away, or run with --full: all files are read then, and it is written anew"
    if options.replay is not None:
        help_text = "replay without --append, or run the pipeline again: the whole output has the new columns then"
    return IoError([node.diagnostic("E020", message, "config", "path", help=help_text)])


def next_number(folder: Path) -> int:
    """The number of the next part of a folder.

    >>> next_number(Path("/not there"))
    0
    """
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return 1 + max((int(match[1]) for name in names if (match := _NUMBER.fullmatch(name))), default=-1)


def _parts(folder: Path) -> Iterator[Path]:
    """The files of a folder of parts, and of those inside of it, in order."""
    for path in sorted(folder.iterdir()):
        if path.name[0] in "._":
            continue
        if path.is_dir():
            yield from _parts(path)
        elif _NUMBER.fullmatch(path.name):
            yield path


def with_added(meta: Path, added: int | None, new: dict[str, list[str]] | None = None) -> dict[str, Any]:
    """The numbers of a file to which records were added: those that were there come from what was written about it.
    `new` are the files of sources that they were read from, unless those are the same."""
    try:
        known = json.loads(meta.read_text(encoding="utf-8"))
        names = dict.fromkeys([*known["sources"], *(new or {})])
        sources = {name: [*known["sources"].get(name, []), *(new or {}).get(name, [])] for name in names}
        return {"records": known["records"] + added, "sources": sources, "added": added}
    except (OSError, ValueError, TypeError, KeyError):
        return {"records": None, "added": added}
