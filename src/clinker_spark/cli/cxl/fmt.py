"""`cxl fmt`: the canonical form of programs, printed, compared or written back."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from clinker_spark.cli.cxl.sources import STDIN, read_source
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.render import render_all, use_color
from clinker_spark.core.errors import ClinkerError, InputError
from clinker_spark.core.span import Source
from clinker_spark.cxl.errors import CxlError
from clinker_spark.cxl.format.formatter import format_source
from clinker_spark.cxl.limits import MAX_SOURCE_BYTES
from clinker_spark.cxl.syntax.parser import parse

Action = Callable[[str, Source, str], int]
"""File, what is in it, its canonical text -> exit code."""


@click.command("fmt")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--check", is_flag=True, help="Change nothing; name the files that are not canonical, and exit with 1.")
@click.option("--diff", is_flag=True, help="Like --check, and show what would change.")
@click.option("--write", is_flag=True, help="Rewrite the files that are not canonical.")
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...], check: bool, diff: bool, write: bool) -> int:
    """Print programs in their canonical form, comments kept.

    FILE may be - for standard input. A file that does not parse is reported and left alone.

    \b
    cxl fmt order.cxl
    cxl fmt --check --diff rules/*.cxl
    cxl fmt --write order.cxl
    """
    if write and (check or diff):
        raise click.UsageError("--write cannot go with --check or --diff", ctx)
    if write and STDIN in files:
        raise click.UsageError("standard input cannot be written back", ctx)
    action: Action = _write if write else _diff if diff else _list if check else _print
    return max(_apply(action, file) for file in files)


def _apply(action: Action, file: str) -> int:
    try:
        source = read_source(file)
        return action(file, source, canonical(source))
    except ClinkerError as error:  # the other files still get their turn
        click.echo(render_all(error.diagnostics, use_color(sys.stderr)), err=True)
        return error.exit_code


def canonical(source: Source) -> str:
    """The formatted text. Raises `CxlError` when it does not parse: a formatter must not guess."""
    large = len(source.text) * 4 > MAX_SOURCE_BYTES  # only a module may be; the formatter asks the same way
    _, found = parse(source, kind="module" if large else "program")
    if found:
        raise CxlError("parse", found)
    return format_source(source)


def _print(file: str, source: Source, text: str) -> int:
    click.echo(text.encode("utf-8"), nl=False)  # programs are UTF-8, whatever the terminal is
    return 0


def _list(file: str, source: Source, text: str) -> int:
    if text == source.text:
        return 0
    click.echo(os.fsencode(source.name))
    return 1


def _diff(file: str, source: Source, text: str) -> int:
    if text == source.text:
        return 0
    import difflib

    lines = difflib.unified_diff(
        source.text.splitlines(keepends=True), text.splitlines(keepends=True), source.name, f"{source.name} (canonical)"
    )
    for line in lines:
        end = "" if line.endswith("\n") else "\n\\ No newline at end of file\n"
        click.echo((line + end).encode("utf-8", "surrogateescape"), nl=False)
    return 1


def _write(file: str, source: Source, text: str) -> int:
    if text == source.text:
        return 0
    from clinker_spark.runtime.commit.small_files import replace_file

    try:
        replace_file(Path(file), text.encode("utf-8"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError([Diagnostic("E224", f"cannot write '{file}': {reason}")]) from None
    click.echo(f"formatted {file}", err=True)
    return 0
