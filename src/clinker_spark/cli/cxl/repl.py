"""`cxl repl`: expressions one by one. The session is in `repl_session.py`, the terminal in `repl_terminal.py`."""

from __future__ import annotations

import gc
import sys

import click

from clinker_spark.cli.cxl.options import rules_folder, rules_option, schema_option
from clinker_spark.cli.cxl.records import fit_record, infer_schema, read_field, read_record
from clinker_spark.cli.cxl.sources import STDIN
from clinker_spark.cli.repl.session import Field, Session
from clinker_spark.cli.repl.terminal import converse
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.render import use_color
from clinker_spark.core.errors import InputError


@click.command("repl")
@schema_option
@click.option("--record", metavar="JSON|@FILE", help="A record whose fields the expressions can use.")
@click.option("--vars", "variables", metavar="NAME=VALUE", multiple=True, help="A variable for $vars; repeatable.")
@rules_option
@click.pass_context
def command(
    ctx: click.Context, schema: str | None, record: str | None, variables: tuple[str, ...], rules: str | None
) -> int:
    """Try expressions one by one and see their types.

    :help inside it lists its commands. History and completion come with the `repl` extra.

    \b
    cxl repl
    cxl repl --record '{"price": 9.5, "tags": ["new", "blue"]}'
    """
    gc.enable()
    if record == STDIN:
        raise click.UsageError("the record cannot come from standard input here; use --record @FILE", ctx)
    vars = {name: value.value for name, value in (read_field(text, "--vars") for text in variables)}
    session = Session(fields(schema, record), rules=rules_folder(rules), vars=vars, color=use_color(sys.stdout))
    converse(session)
    return 0


def fields(schema: str | None, record: str | None) -> dict[str, Field]:
    """The session's record: the columns of the schema, the fields of the record, or both."""
    rows = [{}] if record is None else read_record(record).rows
    if len(rows) != 1:
        raise InputError([Diagnostic("E225", f"there are {len(rows)} records", help="give one record")])
    types = infer_schema(rows)
    if schema is not None:
        from clinker_spark.cli.cxl.schemas import load_schema

        types = load_schema(schema)
    values = fit_record(rows[0], types)
    return {name: Field(t, values[name], declared=schema is not None) for name, t in types.items()}
