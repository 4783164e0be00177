"""Makes `debug()` speak: a program whose debug calls report the values that pass through them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

from clinker_spark.cli.cxl.jsontext import dump
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.table import Overload

Report = Callable[[str], None]
Node = TypeVar("Node", bound=ir.TExpr | ir.TStatement)


def with_debug(node: Node, report: Report) -> Node:
    """The statement or expression with every debug call inside it reporting, as `debug[label]: value`."""
    changes: dict[str, Any] = {}
    for f in fields(node):
        value = getattr(node, f.name)
        changed = _inside(value, report)
        if changed is not value:
            changes[f.name] = changed
    if isinstance(node, ir.Call) and node.builtin.name == "debug":
        changes["overload"] = _reporting(node.overload, report)
    if isinstance(node, ir.DynamicCall) and node.builtin.name == "debug":
        changes["overloads"] = tuple(_reporting(overload, report) for overload in node.overloads)
    return replace(node, **changes) if changes else node


def _inside(value: Any, report: Report) -> Any:
    if isinstance(value, ir.TExpr | ir.TStatement):
        return with_debug(value, report)
    if isinstance(value, tuple):
        items = tuple(_inside(item, report) for item in value)
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return value


def _reporting(overload: Overload, report: Report) -> Overload:
    def run(value: Any, label: str | None = None) -> Any:
        report(f"debug{f'[{label}]' if label else ''}: {dump(value)}")
        return overload.run(value, label)

    return replace(overload, run=run)
