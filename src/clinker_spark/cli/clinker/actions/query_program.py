"""What `clinker query` does: compile a program, explain it, or run it and show its result."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.query.names import walk
from clinker_spark.query.program import compile_query, has_result, located, reads_files, run
from clinker_spark.query.syntax.ast import Save
from clinker_spark.query.values import Dataset
from clinker_spark.report.query import explain
from clinker_spark.report.tables import json_document, table


def run_query(file: str | None, text: str | None, options: dict[str, Any]) -> int:
    """Run the program in a file, or in a text."""
    name, program_text = ("query", text) if text is not None else (str(file), _read(str(file)))
    assert program_text is not None
    engine: Any = None
    program = compile_query(program_text, name)
    if reads_files(program) or options["output"] or _saves(program):
        from clinker_spark.cli.clinker.actions.query_session import (
            open_engine,  # a program over literals needs no pyspark
        )
        from clinker_spark.cli.clinker.actions.session_settings import plain_session
        from clinker_spark.cli.warm.start import handed_over  # only where a session may be warm

        here = os.getcwd()
        code = None if options["explain"] else handed_over(here, lambda: plain_session(here, options))
        if code is not None:
            return code
        engine, program = open_engine(program, options)
    if options["explain"]:
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
    return any(isinstance(n, Save) for s in program.statements for n in walk(s))


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError([Diagnostic("E707", f"cannot read '{path}': {reason}")]) from None


def _show(value: Any, engine: Any) -> None:
    if sys.stdout.isatty():
        rows = engine.preview(value) if isinstance(value, Dataset) else value
        click.echo(table(rows))
        return
    rows = engine.stream(value) if isinstance(value, Dataset) else value
    for piece in json_document(rows):
        click.echo(piece, nl=False)
