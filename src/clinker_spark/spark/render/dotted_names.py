r"""Column names with dots as the nested objects or elements they stand for; `\.` is a dot that is part of a name.

>>> path_of("a.b"), path_of(r"a\.b"), path_of("a..b")
(('a', 'b'), ('a.b',), ('a..b',))
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from clinker_spark.spark.render.contract import OutColumn, refuse

_DOT = re.compile(r"(?<!\\)\.")


@dataclass
class Branch:
    """A name that holds other names."""

    children: dict[str, Branch | OutColumn] = field(default_factory=dict)


def path_of(name: str) -> tuple[str, ...]:
    """The names from the outermost to the innermost. A name with nothing between two dots is a plain name."""
    parts = _DOT.split(name)
    return tuple(part.replace("\\.", ".") for part in parts) if all(parts) else (name,)


def nested(columns: tuple[OutColumn, ...]) -> Branch:
    """The columns as a tree; those that share a parent come together at the place of the first."""
    root = Branch()
    for column in columns:
        *parents, last = path_of(column.name)
        branch = root
        for name in parents:
            below = branch.children.setdefault(name, Branch())
            if isinstance(below, OutColumn):
                raise _collision(below.name, column.name)
            branch = below
        if last in branch.children:
            raise _collision(column.name, _some_column(branch.children[last]).name)
        branch.children[last] = column
    return root


def _some_column(item: Branch | OutColumn) -> OutColumn:
    while isinstance(item, Branch):
        item = next(iter(item.children.values()))
    return item


def _collision(one: str, other: str) -> Exception:
    return refuse(
        "E238",
        f"columns '{one}' and '{other}' cannot both be written: a dot in a name makes one hold the other",
        "rename one of them with 'mapping', or write the dot as '\\.'",
    )
