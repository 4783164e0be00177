"""The table at the end of a run."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from clinker_spark.plan.nodes.aggregate import FILES_WORDS
from clinker_spark.runtime.run.report import RunReport

if TYPE_CHECKING:
    from rich.console import Console


def print_summary(report: RunReport, console: Console, seconds: float) -> None:
    """What was read, written and diverted, `seconds` after the command was started.

    Names and paths are shown as they are: brackets in them are no markup, and no part of them is left out or broken in
    a way that somebody who copies them would notice too late."""
    from rich.table import Table  # rich is for terminals; a run without one starts without it
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=True, header_style="bold")
    for name, side in (
        ("", "left"),
        ("node", "left"),
        ("records", "right"),
        ("dead letters", "right"),
        ("size", "right"),
        ("files", "left"),
    ):
        table.add_column(name, justify=side, overflow="fold")  # type: ignore[arg-type]
    for source in report.sources:
        records = "" if source.records is None else f"{source.records:,}"
        dead = f"{source.dead_letters:,}" if source.dead_letters else ""
        before = f" new, {source.earlier} read before" if source.earlier else ""
        table.add_row("read", Text(source.name), records, dead, size(source.bytes), f"{source.files}{before}")
    for output in report.outputs:
        shown = output.paths[0] if output.paths else ""
        more = f" (+{len(output.paths) - 1})" if len(output.paths) > 1 else ""
        table.add_row("wrote", Text(output.name), f"{output.records:,}", "", size(output.bytes), Text(f"{shown}{more}"))
    console.print(table)

    def line(text: str, style: str | None = None) -> None:
        console.print(text, style=style, markup=False, soft_wrap=True)

    for staged in _staged(report):
        line(f"  staged {staged}")
    for balance in report.balances:
        line(f"  {', '.join(balance.sources)}: {balance}")
    if sum(source.files for source in report.sources) > 1:
        for node in report.nodes:
            if node.documents is not None:
                line(f"  totals of '{node.name}': {FILES_WORDS[node.documents]} (documents: {node.documents})")
    for letter in report.letters:
        line(f"  {letter.count:,} x {letter.category} at {letter.stage} (source {letter.source})", "yellow")
    for path in report.letter_paths:
        line(f"  dead letters: {path}   (clinker dlq inspect {shlex.quote(path)})", "yellow")
    for path in report.removed:
        line(f"  removed: {path}   (an earlier run wrote it, this one does not)")
    verdict = "done with dead letters" if report.dead_letters else "done" if report.outputs else "nothing new, done"
    line(
        f"{report.identity.pipeline}: {verdict} in {seconds:.1f} s",
        "bold yellow" if report.dead_letters else "bold green",
    )


def _staged(report: RunReport) -> list[str]:
    """`orders: 2 files copied (1.2 MB), 1 file reused (5 KB)`."""
    lines = []
    for source in dict.fromkeys(item.source for item in report.staging):
        parts = []
        for action in ("copied", "reused"):
            chosen = [item.bytes for item in report.staging if (item.source, item.action) == (source, action)]
            if chosen:
                parts.append(f"{len(chosen)} file{'s'[: len(chosen) != 1]} {action} ({size(sum(chosen))})")
        lines.append(f"{source}: {', '.join(parts)}")
    return lines


def size(count: int) -> str:
    """Bytes for people.

    >>> size(0), size(1536), size(5_000_000)
    ('0 B', '1.5 KB', '4.8 MB')
    """
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1024 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError
