r"""Column names with dots as the nested objects or elements they stand for; `\.` is a dot that is part of a name.

>>> path_of("a.b"), path_of(r"a\.b"), path_of("a..b")
(('a', 'b'), ('a.b',), ('a..b',))
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from clinker_spark.core.types import Kind
from clinker_spark.spark.render.contract import OutColumn, refuse

_DOT = re.compile(r"(?<!\\)\.")


@dataclass
class Branch:
    """A name that holds other names."""

    children: dict[str, Branch | OutColumn] = field(default_factory=dict)
    text: OutColumn | None = None
    """What stands between the tags of an element, beside attributes."""


def path_of(name: str) -> tuple[str, ...]:
    """The names from the outermost to the innermost. A name with nothing between two dots is a plain name."""
    parts = _DOT.split(name)
    return tuple(part.replace("\\.", ".") for part in parts) if all(parts) else (name,)


def nested(columns: tuple[OutColumn, ...], is_attribute: Callable[[str], bool] = lambda name: False) -> Branch:
    """The columns as a tree; those that share a parent come together at the place of the first. A column whose name
    holds attributes alone is the text beside them."""
    root = Branch()
    for column in columns:
        *parents, last = path_of(column.name)
        branch = root
        for i, name in enumerate(parents):
            below = branch.children.setdefault(name, Branch())
            if isinstance(below, OutColumn):
                if i + 1 < len(parents) or not is_attribute(last) or not _is_text(below):
                    raise _collision(below.name, column.name)
                below = branch.children[name] = Branch(text=below)
            elif below.text is not None and (i + 1 < len(parents) or not is_attribute(last)):
                raise _collision(below.text.name, column.name)
            branch = below
        there = branch.children.get(last)
        if there is None:
            branch.children[last] = column
        elif isinstance(there, Branch) and all(map(is_attribute, there.children)) and _is_text(column):
            there.text = column
        else:
            raise _collision(column.name, _some_column(there).name)
    return root


def _is_text(column: OutColumn) -> bool:
    """Is it one value, that can stand between tags?"""
    return not column.type.is_dynamic and column.type.kind not in (Kind.ARRAY, Kind.MAP)


def _some_column(item: Branch | OutColumn) -> OutColumn:
    while isinstance(item, Branch):
        item = item.text or next(iter(item.children.values()))
    return item


def _collision(one: str, other: str) -> Exception:
    return refuse(
        "E238",
        f"columns '{one}' and '{other}' cannot both be written: a dot in a name makes one hold the other",
        "rename one of them with 'mapping', or write the dot as '\\.'",
    )
