"""`clinker explain`: the page behind a diagnostic code."""

from __future__ import annotations

import sys

import click

from clinker_spark.core.registry import ENTRIES, lookup, page, suggest


@click.command("explain")
@click.option("--code", metavar="CODE", help="A code such as E200, or the kind of a record error.")
@click.option("--list", "list_all", is_flag=True, help="List every code.")
@click.pass_context
def command(ctx: click.Context, code: str | None, list_all: bool) -> int:
    """Explain a diagnostic code, or list them all.

    \b
    clinker explain --code E200
    clinker explain --code division_by_zero
    clinker explain --list
    """
    if list_all == (code is not None):
        raise click.UsageError("give either --code CODE or --list", ctx)
    if code is None:
        _print_list()
        return 0
    entry = lookup(code)
    if entry is None:
        close = suggest(code)
        hint = f"did you mean {close}?" if close else "`clinker explain --list` lists all codes."
        click.echo(f"no diagnostic has the code '{code}'; {hint}", err=True)
        return 1
    _print_page(page(entry))
    return 0


def _print_page(text: str) -> None:
    if not sys.stdout.isatty():
        click.echo(text, nl=not text.endswith("\n"))
        return
    from rich.console import Console  # about 100 ms, and only a terminal has use for it
    from rich.markdown import Markdown

    console = Console()
    console.print(Markdown(text), width=min(console.width, 100))


def _print_list() -> None:
    rows = [(entry.code, entry.severity.value, entry.kind or "", entry.title) for entry in ENTRIES]
    head = ("CODE", "SEVERITY", "KIND", "TITLE")
    if not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for row in (head, *rows):
            click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*(name.capitalize() for name in head), box=None, header_style="bold")
    for code, severity, *rest in rows:
        table.add_row(f"[bold]{code}[/]", f"[{'yellow' if severity == 'warning' else 'red'}]{severity}[/]", *rest)
    Console().print(table)
