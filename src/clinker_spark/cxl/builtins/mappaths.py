"""Paths into nested maps for `set` and `unset`: `a.b[0].c`.

>>> parse_path("items[1].name")
('items', 1, 'name')
>>> parse_path("a[") is None
True
"""

from __future__ import annotations

import re
from typing import Any

_STEP = re.compile(r"([^.\[\]]*)((?:\[[0-9]+\])*)")


def parse_path(path: str) -> tuple[str | int, ...] | None:
    """The steps of a path, or None when it is malformed."""
    steps: list[str | int] = []
    for part in path.split("."):
        match = _STEP.fullmatch(part)
        if match is None or not match.group(1):
            return None
        steps.append(match.group(1))
        steps.extend(int(i) for i in re.findall(r"[0-9]+", match.group(2)))
    return tuple(steps)


_CONFLICT = object()


def set_path(target: dict[str, Any], path: str, value: Any) -> dict[str, Any] | None:
    """A copy of `target` with `value` at `path`; missing maps are made; None when the path does not fit."""
    steps = parse_path(path)
    result: Any = _CONFLICT if steps is None else _set(target, steps, value)
    return None if result is _CONFLICT else result


def _set(node: Any, steps: tuple[str | int, ...], value: Any) -> Any:
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        if not isinstance(node, list) or step >= len(node):
            return _CONFLICT
        inner = _set(node[step], rest, value)
        return _CONFLICT if inner is _CONFLICT else [*node[:step], inner, *node[step + 1 :]]
    if node is None:
        node = {}
    if not isinstance(node, dict):
        return _CONFLICT
    inner = _set(node.get(step), rest, value)
    return _CONFLICT if inner is _CONFLICT else {**node, step: inner}


def unset_path(target: dict[str, Any], path: str) -> dict[str, Any]:
    """A copy of `target` without what stands at `path`; unchanged when nothing does."""
    steps = parse_path(path)
    result: Any = None if steps is None else _unset(target, steps)
    return target if result is None else result


def _unset(node: Any, steps: tuple[str | int, ...]) -> Any:
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        if not isinstance(node, list) or step >= len(node):
            return None
        if not rest:
            return node[:step] + node[step + 1 :]
        inner = _unset(node[step], rest)
        return None if inner is None else [*node[:step], inner, *node[step + 1 :]]
    if not isinstance(node, dict) or step not in node:
        return None
    if not rest:
        return {k: v for k, v in node.items() if k != step}
    inner = _unset(node[step], rest)
    return None if inner is None else {**node, step: inner}
