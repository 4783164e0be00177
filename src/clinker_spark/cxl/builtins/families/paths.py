"""Methods that take a file path apart, by the rules of Rust's `std::path` for paths with `/`.

A path is a list of components: `//` is one separator, and a `.` counts only at the very start. The patterns
below read a path from its end: the last component, then separators and dots that do not count.
"""

from __future__ import annotations

from clinker_spark.core.types import STRING
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.builtins.table import Builtin, Overload


def _components(path: str) -> list[tuple[int, int]]:
    """Where each component starts and ends, the root not included."""
    found, start = [], 0
    for part in path.split("/"):
        if part and (part != "." or start == 0):
            found.append((start, start + len(part)))
        start += len(part) + 1
    return found


def _name(path: str, index: int) -> str | None:
    parts = _components(path)
    if len(parts) < -index:
        return None
    name = path[slice(*parts[index])]
    return None if name in (".", "..") else name


def _file_name(path: str) -> str | None:
    return _name(path, -1)


def _file_stem(path: str) -> str | None:
    name = _name(path, -1)
    return name and (name.rpartition(".")[0] or name)


def _extension(path: str) -> str | None:
    stem, dot, extension = (_name(path, -1) or "").rpartition(".")
    return extension if dot and stem else None


def _parent(path: str) -> str | None:
    parts = _components(path)
    if not parts:
        return None
    if len(parts) == 1:
        return "/" if path.startswith("/") else ""
    return path[: parts[-2][1]]


def _parent_name(path: str) -> str | None:
    return _name(path, -2)


# Repeated groups are possessive (`*+`): Java runs those in a loop and the others by recursion, which a path of
# some thousand slashes would exhaust.
_BEGIN = r"(?:\A|/)"
_NAME_FOLLOWS = r"(?!\.\.?(?:/|\z))"
_SEPARATOR = r"/(?:\.?/)*+"
_END = r"(?:/\.?)*+\z"


def _extract(pattern: str) -> str:
    return f"nullif(regexp_extract({{0}}, {sql_string(pattern)}, 1), '')"


_FILE_NAME = _extract(f"{_BEGIN}{_NAME_FOLLOWS}([^/]+){_END}")
_FILE_STEM = _extract(rf"{_BEGIN}{_NAME_FOLLOWS}([^/]+?)(?:\.[^/.]*)?{_END}")
# With its dot, because an extension may be empty ("a.") and is then not missing.
_EXTENSION = "substring(" + _extract(rf"{_BEGIN}{_NAME_FOLLOWS}[^/]+(\.[^/.]*){_END}") + ", 2)"
_PARENT_NAME = _extract(rf"{_BEGIN}{_NAME_FOLLOWS}([^/]+){_SEPARATOR}(?!\.\z)[^/]+{_END}")
_NO_COMPONENT = sql_string(rf"\A{_END}")
# The last component and what separates it from its parent; of an absolute path the first slash stays.
_LAST = sql_string(rf"(?:\A(?:(/)(?:\.?/)*+)?|{_SEPARATOR})[^/]+{_END}")
_PARENT = f"CASE WHEN NOT rlike({{0}}, {_NO_COMPONENT}) THEN regexp_replace({{0}}, {_LAST}, '$1') END"

_MISSING = STRING.as_nullable()

BUILTINS: tuple[Builtin, ...] = (
    Builtin(
        "file_name",
        "path",
        "The last component of a path; null when there is none or it is '..'.",
        (Overload((STRING,), _MISSING, _file_name, _FILE_NAME),),
        examples=(('"/data/sales.csv".file_name()', '"sales.csv"'), ('"/data/..".file_name()', "null")),
    ),
    Builtin(
        "file_stem",
        "path",
        "The file name without its extension.",
        (Overload((STRING,), _MISSING, _file_stem, _FILE_STEM),),
        examples=(('"/data/a.tar.gz".file_stem()', '"a.tar"'), ('".bashrc".file_stem()', '".bashrc"')),
    ),
    Builtin(
        "extension",
        "path",
        "What follows the last dot of the file name; null without one.",
        (Overload((STRING,), _MISSING, _extension, _EXTENSION),),
        examples=(('"/data/a.tar.gz".extension()', '"gz"'), ('"README".extension()', "null")),
    ),
    Builtin(
        "parent",
        "path",
        "The path without its last component; empty for a bare name, null for the root.",
        (Overload((STRING,), _MISSING, _parent, _PARENT),),
        examples=(('"/data/in/a.csv".parent()', '"/data/in"'), ('"a.csv".parent()', '""'), ('"/".parent()', "null")),
    ),
    Builtin(
        "parent_name",
        "path",
        "The last component of the parent; null when there is none.",
        (Overload((STRING,), _MISSING, _parent_name, _PARENT_NAME),),
        examples=(('"/data/in/a.csv".parent_name()', '"in"'), ('"a.csv".parent_name()', "null")),
    ),
)
