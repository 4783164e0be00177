"""Memory over time as a drawing: the processes of the run on top of each other, and the limit as a line."""

from __future__ import annotations

from collections.abc import Sequence

from clinker_spark.report.page.html import Html, element, seconds
from clinker_spark.report.summary import size
from clinker_spark.runtime.measure.processes import Sample

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 760, 220, 64, 24, 12
PARTS = (("driver", "driver"), ("jvm", "JVM"), ("workers", "Python workers"))


def memory_chart(samples: Sequence[Sample], limit: int | None) -> Html:
    """The drawing, with a legend below."""
    end = max(samples[-1].at, 0.001)
    highest = max([sample.total for sample in samples] + ([limit] if limit else [])) * 1.08
    across, up = (WIDTH - LEFT - 8) / end, (HEIGHT - BOTTOM - TOP) / highest

    def point(at: float, count: float) -> str:
        return f"{LEFT + at * across:.1f},{HEIGHT - BOTTOM - count * up:.1f}"

    drawn: list[Html] = []
    below = [0] * len(samples)
    for name, _ in PARTS:
        above = [low + getattr(sample, name) for low, sample in zip(below, samples, strict=True)]
        edge = [point(sample.at, count) for sample, count in zip(samples, above, strict=True)]
        back = [point(sample.at, count) for sample, count in zip(samples, below, strict=True)]
        drawn.append(element("polygon", points=" ".join([*edge, *reversed(back)]), class_=f"area {name}"))
        below = above
    for share in (0.25, 0.5, 0.75, 1.0):
        y = HEIGHT - BOTTOM - highest * share * up
        drawn.append(element("line", x1=LEFT, x2=WIDTH - 8, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid"))
        drawn.append(element("text", size(int(highest * share)), x=LEFT - 6, y=f"{y + 4:.1f}", class_="tick end"))
    for share in (0.0, 0.5, 1.0):
        x = LEFT + end * share * across
        side = "end" if share == 1.0 else "start" if share == 0.0 else "middle"
        drawn.append(element("text", seconds(end * share), x=f"{x:.1f}", y=HEIGHT - 6, class_=f"tick {side}"))
    if limit:
        y = HEIGHT - BOTTOM - limit * up
        drawn.append(element("line", x1=LEFT, x2=WIDTH - 8, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="limit"))
        drawn.append(element("text", f"limit {size(limit)}", x=WIDTH - 12, y=f"{y - 5:.1f}", class_="tick end"))
    legend = [element("span", element("i", class_=f"key {name}"), text, class_="entry") for name, text in PARTS]
    picture = element("svg", *drawn, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", class_="chart")
    return element("figure", element("div", picture, class_="wide"), element("figcaption", *legend))
