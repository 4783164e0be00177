"""`clinker explain`: the page behind a diagnostic code, or the plan of a pipeline."""

from __future__ import annotations

import os
import sys

import click

from clinker_spark.core.diagnostics.registry import entries, lookup, suggest


@click.command("explain")
@click.argument("what", metavar="[CODE|PIPELINE]", required=False)
@click.option("--code", metavar="CODE", help="The same as CODE alone.")
@click.option("--list", "list_all", is_flag=True, help="List every code.")
@click.pass_context
def command(ctx: click.Context, what: str | None, code: str | None, list_all: bool) -> int:
    """Explain a diagnostic code, or the plan of a pipeline.

    A code is one such as E200, or the kind of a record error.

    \b
    clinker explain E200
    clinker explain division_by_zero
    clinker explain pipeline.yaml
    clinker explain --list
    """
    if [what is not None, code is not None, list_all].count(True) != 1:
        raise click.UsageError("give a code such as E200, a pipeline, or --list", ctx)
    if list_all:
        _print_list()
        return 0
    asked = code or what or ""
    entry = lookup(asked)
    if entry is not None:
        _print_page(entry.page)
        return 0
    if what is not None and _is_path(what):
        from clinker_spark.cli.clinker.actions.planning import show_plan  # half a second, which a page does not need

        show_plan(what)
        return 0
    close = suggest(asked)
    hint = f"did you mean {close}?" if close else "`clinker explain --list` lists all codes."
    click.echo(f"no diagnostic has the code '{asked}'; {hint}", err=True)
    return 1


def _is_path(text: str) -> bool:
    """Is it meant as a file? Codes and kinds have no dots and slashes, and a file of such a name is there."""
    return "." in text or "/" in text or os.path.exists(text)


def _print_page(text: str) -> None:
    if not sys.stdout.isatty():
        click.echo(text, nl=not text.endswith("\n"))
        return
    from rich.console import Console  # about 100 ms, and only a terminal has use for it
    from rich.markdown import Markdown

    console = Console()
    console.print(Markdown(text), width=min(console.width, 100))


def _print_list() -> None:
    rows = [(entry.code, entry.severity.value, entry.kind or "", entry.title) for entry in entries()]
    head = ("CODE", "SEVERITY", "KIND", "TITLE")
    if not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for row in (head, *rows):
            click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich.console import Console  # as above
    from rich.table import Table

    table = Table(*(name.capitalize() for name in head), box=None, header_style="bold")
    for code, severity, *rest in rows:
        table.add_row(f"[bold]{code}[/]", f"[{'yellow' if severity == 'warning' else 'red'}]{severity}[/]", *rest)
    Console().print(table)
