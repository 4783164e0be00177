"""The graph of a pipeline as a drawing, with the numbers of a run in its nodes."""

from __future__ import annotations

from collections.abc import Mapping

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.report.page.html import Html, element, join

WIDTH, HEIGHT, GAP_X, GAP_Y, EDGE = 176, 58, 56, 18, 8
LEGIBLE = 860
"""Pixels below which a wide graph is not shrunk: it scrolls then."""
_LONG = 22


def graph(plan: Plan, lines: Mapping[str, str], failed: Mapping[str, int]) -> Html:
    """Nodes from left to right. `lines` has a second line for nodes, `failed` the dead letters that come from them."""
    places = _places(plan)
    width = max(x for x, _ in places.values()) + WIDTH + EDGE
    height = max(y for _, y in places.values()) + HEIGHT + EDGE
    drawn = [_edge(places, ref.node, node, ref.port) for node in plan.nodes for ref in node.inputs]
    drawn += [_box(node, places[node.name], lines.get(node.name, ""), failed.get(node.name, 0)) for node in plan.nodes]
    # As wide as the screen, but never so small that nobody can read it, nor larger than drawn.
    style = f"min-width:{min(width, LEGIBLE)}px;max-width:{width}px"
    picture = element("svg", *drawn, viewBox=f"0 0 {width} {height}", role="img", class_="graph", style=style)
    return element("div", picture, class_="wide")


def _places(plan: Plan) -> dict[str, tuple[int, int]]:
    """Each node right of all its inputs, and about as high as they are."""
    column: dict[str, int] = {}
    row: dict[str, float] = {}
    taken: dict[int, float] = {}
    for node in plan.nodes:
        column[node.name] = 1 + max((column[ref.node] for ref in node.inputs), default=-1)
        wished = [row[ref.node] for ref in node.inputs]
        mean = sum(wished) / len(wished) if wished else 0.0
        row[node.name] = max(mean, taken.get(column[node.name], 0.0))
        taken[column[node.name]] = row[node.name] + 1
    step_x, step_y = WIDTH + GAP_X, HEIGHT + GAP_Y
    return {name: (EDGE + column[name] * step_x, EDGE + int(row[name] * step_y)) for name in column}


def _edge(places: dict[str, tuple[int, int]], start: str, node: PlanNode, port: str | None) -> Html:
    x1, y1 = places[start][0] + WIDTH, places[start][1] + HEIGHT // 2
    x2, y2 = places[node.name][0], places[node.name][1] + HEIGHT // 2
    middle = (x1 + x2) // 2
    line = element("path", d=f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}", class_="edge")
    if port is None:
        return line
    return join([line, element("text", port, x=x1 + 4, y=y1 - 5, class_="port")])


def _box(node: PlanNode, place: tuple[int, int], line: str, failed: int) -> Html:
    x, y = place
    name = node.name if len(node.name) <= _LONG else f"{node.name[: _LONG - 1]}…"
    parts = [
        element("title", f"{node.kind} {node.name}"),
        element("rect", x=x, y=y, width=WIDTH, height=HEIGHT, rx=7, class_=f"box {node.kind}"),
        element("text", node.kind, x=x + 10, y=y + 16, class_="kind"),
        element("text", name, x=x + 10, y=y + 33, class_="name"),
        element("text", line, x=x + 10, y=y + 49, class_="rows"),
    ]
    if failed:
        parts.append(element("text", f"{failed:,} ✕", x=x + WIDTH - 10, y=y + 16, class_="failed"))
    return element("g", *parts)
