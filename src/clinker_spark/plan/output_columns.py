"""Which columns an output writes, in which order, and where each comes from."""

from __future__ import annotations

from typing import Any

from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.plan.nodes.base import Schema

Problem = tuple[str, str, tuple[str | int, ...], str | None]
"""Code, message, the place inside `config:`, help."""


def written_columns(
    config: Any, schema: Schema, emitted: tuple[str, ...]
) -> tuple[tuple[tuple[str, str], ...], list[Problem]]:
    """(name in the file, column) pairs, and what is wrong with the lists that choose them.

    First what is there: all columns, or only those that the node before emits. Then `exclude`, by incoming name.
    Then `mapping`: the listed columns first and under their new names; the others follow only with all columns.
    """
    problems: list[Problem] = []
    for i, name in enumerate(config.exclude):
        if name not in schema:
            help_text = did_you_mean(name, schema) or f"the columns are {', '.join(schema)}"
            problems.append(("W366", f"'{name}' is excluded but never there", ("exclude", i), help_text))
    present = [name for name in schema if config.include_unmapped or name in emitted]
    present = [name for name in present if name not in config.exclude]
    if config.mapping is None:
        return tuple((name, name) for name in present), problems
    pairs: list[tuple[str, str]] = []
    for i, item in enumerate(config.mapping):
        if item.source not in schema:
            help_text = did_you_mean(item.source, schema) or f"the columns are {', '.join(schema)}"
            problems.append(("E365", f"there is no column '{item.source}' to write", ("mapping", i), help_text))
        pairs.append((item.output, item.source))
    if config.include_unmapped:
        used = {source for _, source in pairs}
        taken = {output: i for i, (output, _) in enumerate(pairs)}
        for name in present:
            if name in used:
                continue
            if name in taken:
                message = f"column '{name}' would be written twice: by 'mapping' and as itself"
                help_text = f"exclude '{name}', or write include_unmapped: false"
                problems.append(("E364", message, ("mapping", taken[name]), help_text))
            pairs.append((name, name))
    return tuple(pairs), problems
