"""Makes `debug()` speak: a program whose debug calls report the values that pass through them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from clinker_spark.cli.cxl.jsontext import dump
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.table import Overload

Report = Callable[[str], None]
Node = TypeVar("Node", bound=ir.TExpr | ir.TStatement)


def with_debug(node: Node, report: Report) -> Node:
    """The statement or expression with every debug call inside it reporting, as `debug[label]: value`."""
    heard: Any = node.with_children(lambda part: with_debug(part, report))
    if isinstance(heard, ir.Call) and heard.builtin.name == "debug":
        heard = replace(heard, overload=_reporting(heard.overload, report))
    elif isinstance(heard, ir.DynamicCall) and heard.builtin.name == "debug":
        heard = replace(heard, overloads=tuple(_reporting(overload, report) for overload in heard.overloads))
    return heard


def _reporting(overload: Overload, report: Report) -> Overload:
    def run(value: Any, label: str | None = None) -> Any:
        report(f"debug{f'[{label}]' if label else ''}: {dump(value)}")
        return overload.run(value, label)

    return replace(overload, run=run)
