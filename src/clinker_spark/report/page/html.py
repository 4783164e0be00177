"""Elements of the page as text. What comes from users is escaped here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from clinker_spark.report.summary import size


class Html(str):
    """Text that is HTML already."""


def element(tag: str, *content: Any, **attributes: Any) -> Html:
    """An element. Names of attributes end with `_` where Python has the word; `_` inside becomes `-`.

    >>> element("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    >>> element("b", element("i", 5), data_path="outputs.0.records")
    '<b data-path="outputs.0.records"><i>5</i></b>'
    """
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items() if value is not None}
    given = "".join(f' {name}="{escape(str(value))}"' for name, value in names.items())
    return Html(f"<{tag}{given}>{join(content)}</{tag}>")


def join(parts: Iterable[Any]) -> Html:
    return Html("".join(part if isinstance(part, Html) else escape(str(part)) for part in parts))


def number(value: int | float | None, path: str, kind: str = "count") -> Html:
    """A number of the run report, shown for people. `path` says which: a test holds the two together."""
    if value is None:
        return element("span", "not counted", class_="soft")
    shown = {"count": lambda: f"{value:,}", "bytes": lambda: size(int(value)), "seconds": lambda: seconds(value)}
    return element("span", shown[kind](), data_path=path, data_value=value)


def seconds(value: float) -> str:
    """
    >>> seconds(0.25), seconds(75.2), seconds(4000)
    ('0.25 s', '1 min 15 s', '1 h 6 min')
    """
    if value < 60:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    minutes, rest = divmod(int(value), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def table(head: Sequence[Any], rows: Iterable[Sequence[Any]], right: Iterable[int] = ()) -> Html:
    """A table that scrolls sideways on narrow screens; `right` are the columns of numbers."""
    aligned = set(right)

    def row(tag: str, cells: Sequence[Any]) -> Html:
        return element("tr", *[element(tag, c, class_="n" if i in aligned else None) for i, c in enumerate(cells)])

    body = element("tbody", *[row("td", cells) for cells in rows])
    return element("div", element("table", element("thead", row("th", head)), body), class_="wide")


def section(title: str, *content: Any) -> Html:
    return element("section", element("h2", title), *content)
