"""Pipelines made for tests."""

from __future__ import annotations


def chain(nodes: int) -> str:
    """A source, transforms one after the other, and an output."""
    parts = [
        "pipeline: { name: big }\nnodes:\n  - type: source\n    name: s\n    config:\n      type: csv\n"
        "      path: a.csv\n      schema:\n",
        *(f"        - {{ name: c{i}, type: int }}\n" for i in range(20)),
    ]
    before = "s"
    for k in range(nodes - 2):
        emits = "".join(f"        emit x{j} = c{j} + {k}\n" for j in range(8))
        parts.append(f"  - type: transform\n    name: t{k}\n    input: {before}\n    config:\n      cxl: |\n{emits}")
        before = f"t{k}"
    parts.append(f"  - type: output\n    name: o\n    input: {before}\n    config: {{ type: csv, path: out.csv }}\n")
    return "".join(parts)
