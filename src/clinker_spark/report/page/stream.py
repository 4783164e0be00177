"""The page of a stream: what came in, what waits, how far it is and how long batches took, over time."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.report.page.graph import graph
from clinker_spark.report.page.html import Html, element, section, table
from clinker_spark.report.summary import size
from clinker_spark.runtime.commit.small_files import replace_file
from clinker_spark.runtime.errors import IoError
from clinker_spark.streaming.watch.hot_keys import Waiting, key_text
from clinker_spark.streaming.watch.progress import Batch, StreamReport

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 760, 120, 64, 18, 8
SHOWN = 500
"""So many of the last batches are listed."""


def write_stream_page(place: Path, plan: Plan, report: StreamReport) -> None:
    """Write the page of a stream that has ended. Raises `IoError`."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        replace_file(place, page(plan, report).encode())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        help_text = "the stream itself has ended well, and goes on from there"
        raise IoError([Diagnostic("E401", f"cannot write '{place}': {reason}", help=help_text)]) from None


def page(plan: Plan, report: StreamReport) -> str:
    """The whole page, with all numbers in it as JSON."""
    name = plan.file.settings.name
    head = element(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<link rel="icon" href="data:,">'),
        element("title", f"{name}: stream report"),
        element("style", Html(files(__package__).joinpath("style.css").read_text(encoding="utf-8"))),
    )
    cards = [
        ("batches", f"{report.finished:,}"),
        ("records read", f"{sum(report.records.values()):,}"),
        ("dead letters", f"{report.letters:,}"),
        ("dropped as late", f"{report.late:,}"),
    ]
    shown = [element("div", element("small", label), element("b", value), class_="card") for label, value in cards]
    data = json.dumps([asdict(batch) for batch in report.batches], ensure_ascii=False).replace("<", "\\u003c")
    lines = {source: f"{count:,}" for source, count in report.records.items()}
    body = element(
        "body",
        element("header", element("h1", name), element("div", *shown, class_="cards")),
        section("Pipeline", graph(plan, lines, {})),
        *(_charts(query, [b for b in report.batches if b.query == query]) for query in _names(report)),
        *([section("What waits", _waiting(report.waiting))] if report.waiting else []),
        section("Batches", _batches(report.batches[-SHOWN:])),
        Html(f'<script type="application/json" id="batches">{data}</script>'),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _names(report: StreamReport) -> list[str]:
    return list(dict.fromkeys(batch.query for batch in report.batches))


def _charts(query: str, batches: Sequence[Batch]) -> Html:
    parts: list[tuple[str, Callable[[Batch], float], Callable[[float], str]]] = [
        ("records read", lambda b: sum(b.records.values()), lambda v: f"{v:,.0f}"),
        ("milliseconds", lambda b: b.milliseconds, lambda v: f"{v:,.0f}"),
        ("records that wait", lambda b: b.waiting, lambda v: f"{v:,.0f}"),
        ("memory of the state", lambda b: sum(side.bytes for side in b.state), lambda v: size(int(v))),
        ("dropped as late", lambda b: b.late, lambda v: f"{v:,.0f}"),
    ]
    for source in dict.fromkeys(name for batch in batches for name in batch.records):
        parts.append((f"records per second of {source}", lambda b, s=source: _rate(b, s), lambda v: f"{v:,.1f}"))  # type: ignore[misc]
    numbers = [batch.number for batch in batches]
    ends = (_clock(batches[0].at), _clock(batches[-1].at)) if len(batches) > 1 else ("", "")
    drawn = [
        element("figure", element("figcaption", title), line_chart([value(b) for b in batches], text, numbers, ends))
        for title, value, text in parts
    ]
    marks = [(batch.number, mark) for batch in batches if (mark := _seconds(batch.watermark)) is not None]
    if marks:
        lowest = min(mark for _, mark in marks)
        chart = line_chart([m for _, m in marks], _moment, [n for n, _ in marks], ends, lowest=lowest)
        drawn.append(element("figure", element("figcaption", "watermark, as it was before the batch"), chart))
    return section(f"Query {query}", *drawn)


def _rate(batch: Batch, source: str) -> float:
    return 1000 * batch.records.get(source, 0) / max(1, batch.milliseconds)


def _seconds(watermark: str | None) -> float | None:
    """A watermark as seconds since 1970; none where no record has moved it yet."""
    seconds = 0.0 if watermark is None else dt.datetime.fromisoformat(watermark).timestamp()
    return seconds or None


def _moment(seconds: float) -> str:
    return (dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)).strftime("%m-%d %H:%M:%S")


def _clock(at: str) -> str:
    """`2026-01-05T09:00:00.123Z` as day and time."""
    return at[:19].replace("T", " ")


def line_chart(
    values: Sequence[float],
    text: Callable[[float], str],
    numbers: Sequence[int],
    ends: tuple[str, str],
    lowest: float = 0.0,
) -> Html:
    """Values over the batches of these numbers, from left to right; of those long ago only some are known. The line at
    the bottom is `lowest`."""
    values = [value - lowest for value in values]
    highest = max([*values, 2.0]) * 1.08
    first = numbers[0] if numbers else 0
    across = (WIDTH - LEFT - 8) / max(numbers[-1] - first if numbers else 0, 1)
    up = (HEIGHT - BOTTOM - TOP) / highest
    points = " ".join(
        f"{LEFT + (number - first) * across:.1f},{HEIGHT - BOTTOM - value * up:.1f}"
        for number, value in zip(numbers, values, strict=True)
    )
    drawn = [
        element("text", ends[0], x=LEFT, y=HEIGHT - 4, class_="tick"),
        element("text", ends[1], x=WIDTH - 8, y=HEIGHT - 4, class_="tick end"),
    ]
    for share in (0.5, 1.0):
        y = HEIGHT - BOTTOM - highest * share * up
        drawn.append(element("line", x1=LEFT, x2=WIDTH - 8, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid"))
        drawn.append(element("text", text(lowest + highest * share), x=LEFT - 6, y=f"{y + 4:.1f}", class_="tick end"))
    drawn.append(element("polyline", points=points, fill="none", stroke="currentColor", stroke_width="1.5"))
    return element("svg", *drawn, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", class_="chart")


def _waiting(sides: Sequence[Waiting]) -> Html:
    rows = [
        (
            each.node,
            each.side or "open windows",
            f"{each.records:,}",
            "; ".join(f"{key_text(key)}: {count:,}" for key, count in each.top),
        )
        for each in sides
    ]
    return table(("node", "side", "records", "keys with most of them"), rows, right=(2,))


def _batches(batches: Sequence[Batch]) -> Html:
    head = ("query", "batch", "began", "ms", "records", "per second", "watermark", "wait", "evicted", "late")
    rows = [
        (
            batch.query,
            batch.number,
            batch.at,
            f"{batch.milliseconds:,}",
            f"{sum(batch.records.values()):,}",
            f"{batch.rate:,.1f}",
            batch.watermark or "",
            f"{batch.waiting:,}",
            f"{sum(side.removed for side in batch.state):,}",
            f"{batch.late:,}",
        )
        for batch in batches
    ]
    return table(head, rows, right=(1, 3, 4, 5, 7, 8, 9))
