"""`clinker query`: a query program from a file or the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click


@click.command("query")
@click.argument("file", required=False, type=click.Path())
@click.option("-e", "text", metavar="TEXT", help="The program itself, instead of a file.")
@click.option("--explain", is_flag=True, help="Print the plan and the Spark SQL of the result, and stop.")
@click.option("-o", "--output", type=click.Path(), help="Write the result to a file; its ending says how.")
@click.option("--force", is_flag=True, help="Replace what is at --output even if it is loaded, or a folder of others.")
@click.option("--master", help="Where Spark runs: local[*] (default), local[2], spark://host:7077, yarn, ...")
@click.option("--remote", help="A Spark Connect server: sc://host:15002.")
@click.option("--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
@click.option("-v", "--verbose", is_flag=True, help="Show Spark's own log.")
def command(file: str | None, text: str | None, **options: Any) -> int:
    """Query files, tables and lists.

    \b
    clinker query -e 'from p in load "people.csv" where p.age >= 18 select p.name'
    clinker query report.mochi
    clinker query report.mochi --output report.csv

    On a terminal the result is a table; in a pipe it is one JSON document. A program over literals starts no Java.
    """
    from clinker_spark.query.program import compile_query, has_result, located, reads_files, run

    if (file is None) == (text is None):
        raise click.UsageError("give a file or -e TEXT")
    name, program_text = ("query", text) if text is not None else (str(file), _read(str(file)))
    assert program_text is not None
    engine: Any = None
    program = compile_query(program_text, name)
    if reads_files(program) or options["output"] or _saves(program):
        from clinker_spark.cli.clinker.query_session import open_engine

        engine, program = open_engine(program, options)
    if options["explain"]:
        from clinker_spark.report.query import explain

        click.echo(explain(program, engine), nl=False)
        return 0
    # A result in a pipe is one JSON document: what the program prints besides goes to standard error.
    aside = has_result(program) and not sys.stdout.isatty()
    value = run(program, engine, sys.stderr if aside else sys.stdout)
    with located(program.source):
        if options["output"]:
            engine.write(value, options["output"], force=options["force"])
        elif has_result(program):
            _show(value, engine)
    return 0


def _saves(program: Any) -> bool:
    from clinker_spark.query.names import walk
    from clinker_spark.query.syntax.ast import Save

    return any(isinstance(n, Save) for s in program.statements for n in walk(s))


def _read(path: str) -> str:
    from clinker_spark.core.diagnostics import Diagnostic
    from clinker_spark.core.errors import InputError

    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError([Diagnostic("E707", f"cannot read '{path}': {reason}")]) from None


def _show(value: Any, engine: Any) -> None:
    from clinker_spark.query.values import Dataset
    from clinker_spark.report.tables import json_document, table

    if sys.stdout.isatty():
        rows = engine.preview(value) if isinstance(value, Dataset) else value
        click.echo(table(rows))
        return
    rows = engine.stream(value) if isinstance(value, Dataset) else value
    for piece in json_document(rows):
        click.echo(piece, nl=False)
