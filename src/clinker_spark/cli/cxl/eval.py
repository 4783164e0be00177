"""`cxl eval`: a program over one record, or over a stream of them, with the interpreter."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from clinker_spark.cli.cxl.debug_calls import with_debug
from clinker_spark.cli.cxl.failures import eval_diagnostic
from clinker_spark.cli.cxl.jsontext import dump
from clinker_spark.cli.cxl.options import rules_folder, rules_option, schema_option
from clinker_spark.cli.cxl.records import Records, fit_record, infer_schema, read_field, read_records
from clinker_spark.cli.cxl.sources import STDIN, given_text, read_source
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.render import render_all, render_text, use_color
from clinker_spark.core.span import Source
from clinker_spark.core.types import Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.errors import EvalError
from clinker_spark.cxl.interpret.statements import Execution, Outcome
from clinker_spark.cxl.program import Program, compile
from clinker_spark.cxl.system import Context, default_context

SKIPPED = {"filtered": "filtered out", "duplicate": "a duplicate"}
VALUE = ""
"""The column that holds the value of a bare expression; no program can emit one of this name."""


@click.command("eval")
@click.argument("file", required=False)
@click.option("-e", "texts", metavar="SRC", multiple=True, help="The program itself; several are joined, line by line.")
@click.option("--record", metavar="JSON|@FILE|-", help="The record: a JSON object, a file of them, or standard input.")
@click.option("--field", "fields", metavar="NAME=VALUE", multiple=True, help="One field of the record; repeatable.")
@schema_option
@click.option("--vars", "variables", metavar="NAME=VALUE", multiple=True, help="A variable for $vars; repeatable.")
@rules_option
@click.pass_context
def command(
    ctx: click.Context,
    file: str | None,
    texts: tuple[str, ...],
    record: str | None,
    fields: tuple[str, ...],
    schema: str | None,
    variables: tuple[str, ...],
    rules: str | None,
) -> int:
    """Run a program on a record and print the result as JSON.

    A program that ends in an expression and emits nothing prints that expression's value. From standard input
    (or a file of several records) each output row is one line of JSON. Without --schema the types are those of
    the record's values.

    \b
    cxl eval -e '1 + 2'
    cxl eval -e 'emit net = price * qty' --field price=9.5 --field qty=2
    cxl eval order.cxl --record '{"price": 9.5, "qty": 2}'
    cxl eval order.cxl --record - < orders.ndjson
    """
    gc.enable()
    if (file is None) == (not texts):
        raise click.UsageError("give a FILE or a text with -e" if file is None else "give either FILE or -e", ctx)
    if file == STDIN and record == STDIN:
        raise click.UsageError("program and record cannot both come from standard input", ctx)
    records = read_records(record, fields)
    columns = _schema(schema, records)
    vars = {name: value.value for name, value in (read_field(text, "--vars") for text in variables)}
    program = compile(_source(file, texts), columns, vars=vars, modules=rules_folder(rules))
    rows = [fit_record(row, columns or {}, i if records.stream else None) for i, row in enumerate(records.rows, 1)]
    context = replace(default_context(program.typed.source.name), vars=vars)
    return _Evaluation(program, context).run(Records(rows, records.stream))


def _source(file: str | None, texts: Sequence[str]) -> Source:
    if file is not None:
        return read_source(file)
    return Source("<inline>", given_text("\n".join(texts), "-e"))


def _schema(given: str | None, records: Records) -> dict[str, Type] | None:
    if given is None:
        return infer_schema(records.rows) if records.rows else None  # no record: no name can be called unknown
    from clinker_spark.cli.cxl.schemas import load_schema

    return load_schema(given)


class _Evaluation:
    """One run over all records: it prints results as they come and counts what has none."""

    def __init__(self, program: Program, context: Context) -> None:
        self.program = program
        self.context = context
        self.value = bare_value(program.typed)
        typed = self.value or program.typed
        typed = replace(typed, statements=tuple(with_debug(s, _note) for s in typed.statements))
        self.execution = Execution(typed, context, _trace)
        self.dropped: dict[str, int] = {}
        self.scoped: dict[str, Any] = {}
        self.failed = 0

    def run(self, records: Records) -> int:
        if self.program.warnings and self.value is None:
            click.echo(render_all(self.program.warnings, use_color(sys.stderr)), err=True)
        for number, record in enumerate(records.rows, 1):
            # Execution is one for all records (distinct remembers); only the row number moves on.
            self.execution.context = replace(self.context, source={**self.context.source, "row": number})
            try:
                outcome = self.execution.run(record)
            except EvalError as error:
                self.failed += 1
                _print_error(eval_diagnostic(error, self.program.typed.source, number), records.stream)
                continue
            self._keep(outcome)
            if records.stream:
                for row in outcome.rows:
                    click.echo(dump(row[VALUE] if self.value else row))
            else:
                click.echo(self._pretty(outcome))
        self._notes(len(records.rows) if records.stream else None)
        return 1 if self.failed else 0

    def _keep(self, outcome: Outcome) -> None:
        if outcome.skipped:
            self.dropped[outcome.skipped] = self.dropped.get(outcome.skipped, 0) + 1
        for scope, variables in outcome.scoped.items():
            self.scoped.update((f"${scope}.{name}", value) for name, value in variables.items())

    def _pretty(self, outcome: Outcome) -> str:
        if outcome.skipped:
            return "{}"
        if self.value is not None:
            return dump(outcome.rows[0][VALUE], pretty=True)
        return dump(outcome.rows if outcome.fanned_out else outcome.rows[0], pretty=True)

    def _notes(self, total: int | None) -> None:
        """What is not a result goes to standard error."""
        for reason, count in self.dropped.items():
            what = "the record is" if total is None else f"{count} of {total} records {'is' if count == 1 else 'are'}"
            word = SKIPPED[reason] if count == 1 else SKIPPED[reason].removeprefix("a ") + "s" * (reason == "duplicate")
            _note(f"note: {what} {word}")
        if self.failed and total is not None:
            _note(f"note: {self.failed} of {total} records failed")
        for name, value in self.scoped.items():
            _note(f"note: {name} = {dump(value)}")


def bare_value(typed: ir.TypedProgram) -> ir.TypedProgram | None:
    """A program that emits nothing and ends in an expression, changed to emit that expression; None for others."""
    last = typed.statements[-1] if typed.statements else None
    if not isinstance(last, ir.TBare) or ir.has_statement(typed.statements, (ir.TEmit,)):
        return None
    emit = ir.TEmit(last.span, None, VALUE, VALUE, last.value)
    return replace(typed, statements=(*typed.statements[:-1], emit))


def _trace(level: str, text: str) -> None:
    _note(f"trace[{level}]: {text}")


def _note(text: str) -> None:
    click.echo(text, err=True)


def _print_error(found: Diagnostic, stream: bool) -> None:
    color = use_color(sys.stderr)
    click.echo(render_text(found, color=color) + "\n" if stream else render_all([found], color), err=True)
