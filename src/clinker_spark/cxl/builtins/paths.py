"""File paths as text, with `/` between the parts. Nothing is looked up on disk."""

from __future__ import annotations

import re
from collections.abc import Callable

from clinker_spark.core.types import STRING
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.builtins.table import Builtin, Overload


def _parts(path: str) -> tuple[bool, list[str]]:
    """Is it absolute, and its components: empty ones and inner dots do not count."""
    absolute = path.startswith("/")
    parts = [p for p in path.split("/") if p]
    first_dot = not absolute and parts[:1] == ["."]
    kept = [p for p in parts if p != "."]
    return absolute, ["."] * first_dot + kept


def _file_name(path: str) -> str | None:
    _, parts = _parts(path)
    return parts[-1] if parts and parts[-1] not in (".", "..") else None


def _file_stem(path: str) -> str | None:
    name = _file_name(path)
    if name is None:
        return None
    stem, dot, _ = name.rpartition(".")
    return stem if dot and stem else name


def _extension(path: str) -> str | None:
    name = _file_name(path)
    stem, dot, extension = (name or "").rpartition(".")
    return extension if dot and stem else None


_LAST = re.compile(r"(?:^|/)(?:[^/]+)(?:/+\.?)*/*$")


def _parent(path: str) -> str | None:
    absolute, parts = _parts(path)
    if not parts:
        return None
    # The text up to the last component, as it was written.
    cut = _ends(path)
    while cut and path[:cut].endswith("/") or path[:cut].endswith("/."):
        cut -= 1
    head = path[:cut]
    return head if head or not absolute else "/"


def _ends(path: str) -> int:
    """Where the last component starts."""
    end = len(path)
    while True:
        trimmed = path[:end].rstrip("/")
        if trimmed.endswith("/.") or (trimmed == "." and False):
            end = len(trimmed) - 1
            continue
        end = len(trimmed)
        break
    return path[:end].rfind("/") + 1


def _parent_name(path: str) -> str | None:
    parent = _parent(path)
    return None if parent is None else _file_name(parent)


# One normal form makes the patterns short: single slashes, no inner or trailing `/.`, no trailing slash.
_NORMAL = (
    "regexp_replace(regexp_replace(regexp_replace({0}, '/+', '/'), '(/[.])+(?=/|$)', ''), '(?<=.)/$', '')"
)
_NAME = "nullif(nullif(nullif(substring_index({n}, '/', -1), ''), '.'), '..')"


def _name_sql() -> str:
    return _NAME.replace("{n}", _NORMAL)


_STEM_PATTERN = sql_string("^(.+)[.][^.]*$")
_EXTENSION_PATTERN = sql_string("^.+[.]([^.]*)$")


def _row(name: str, doc: str, run: Callable[[str], str | None], sql: str | None, *examples: tuple[str, str]) -> Builtin:
    reason = "" if sql else "the text up to the last component is kept as written"
    return Builtin(
        name, "path", doc, (Overload((STRING,), STRING.as_nullable(), run, sql, python_reason=reason),), examples=examples
    )


BUILTINS: tuple[Builtin, ...] = (
    _row("file_name", "The last part.", _file_name, None, ('"/data/sales.csv".file_name()', '"sales.csv"')),
    _row("file_stem", "The last part without its extension.", _file_stem, None, ('"a/b.tar.gz".file_stem()', '"b.tar"')),
    _row("extension", "What follows the last dot of the last part.", _extension, None, ('"a/b.csv".extension()', '"csv"')),
    _row("parent", "Everything before the last part.", _parent, None, ('"data/batch/o.csv".parent()', '"data/batch"')),
    _row("parent_name", "The last part of the parent.", _parent_name, None, ('"data/batch/o.csv".parent_name()', '"batch"')),
)
