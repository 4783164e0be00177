"""Requests to readers, in few words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from clinker_spark.config.model.schema import Column
from clinker_spark.spark.scan.request import Conventions, CsvExtras, Readers, ReadRequest, SourceFile


def read_request(
    files: SourceFile | Sequence[SourceFile], columns: tuple[Column, ...], options: Any, **more: Any
) -> ReadRequest:
    """A request; what belongs to one of its parts is given by its own name."""
    parts: dict[str, Any] = {
        name: kind(**{f.name: more.pop(f.name) for f in fields(kind) if f.name in more})
        for name, kind in (("conventions", Conventions), ("csv", CsvExtras), ("readers", Readers))
    }
    return ReadRequest(
        "s", (files,) if isinstance(files, SourceFile) else tuple(files), columns, options, **parts, **more
    )
