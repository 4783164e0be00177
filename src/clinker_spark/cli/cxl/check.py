"""`cxl check`: parse, resolve and typecheck programs; nothing is run."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import click

from clinker_spark.cli.cxl.options import rules_folder, rules_option, schema_option
from clinker_spark.cli.cxl.sources import read_source
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError
from clinker_spark.core.span import NO_SPAN, Source
from clinker_spark.core.types import Type
from clinker_spark.cxl.errors import CxlError
from clinker_spark.cxl.program import Program, compile

_FUNCTION = re.compile(r"^[ \t]*fn\b", re.MULTILINE)


@click.command("check")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@schema_option
@rules_option
@click.option("--types", "--verbose", "-v", "types", is_flag=True, help="Print the emitted columns and their types.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as a JSON list on standard output.")
@click.pass_context
def command(
    ctx: click.Context, files: tuple[str, ...], schema: str | None, rules: str | None, types: bool, as_json: bool
) -> int:
    """Report every mistake in CXL programs.

    FILE may be - for standard input. Without --schema every bare name is taken to be a column of any type.

    \b
    cxl check order.cxl
    cxl check order.cxl --schema orders.yaml
    cxl check order.cxl --schema 'price: float, quantity: int' --types
    """
    if types and as_json:
        raise click.UsageError("give either --types or --json", ctx)
    try:
        columns = _read_schema(schema)
        folder = rules_folder(rules)
    except ClinkerError as error:  # said once, not once per file
        return _report_input(error, as_json)
    findings: list[Diagnostic] = []
    worst = 0
    for file in files:
        found, program, code = _check(file, columns, folder)
        worst = max(worst, code)
        findings += found
        if not as_json:
            _report(file, found, program, types)
    if as_json:
        _print_json(findings)
    return worst


def _read_schema(given: str | None) -> dict[str, Type] | None:
    if given is None:
        return None
    from clinker_spark.cli.cxl.schemas import load_schema  # most checks have no schema and need no YAML

    return load_schema(given)


def _check(file: str, schema: dict[str, Type] | None, rules: str) -> tuple[Sequence[Diagnostic], Program | None, int]:
    """The findings in one file, the program if it is one, and the exit code that this file asks for."""
    try:
        source = read_source(file)
        program = compile(source, schema, modules=rules)
        if _FUNCTION.search(source.text) and _check_module(source, rules):
            return (), program, 0
    except ClinkerError as error:
        return error.diagnostics, None, error.exit_code
    return program.warnings, program, 0


def _check_module(source: Source, rules: str) -> bool:
    """Is this a module? Then every name in its functions must be known, and that it emits nothing is no wonder."""
    from pathlib import Path

    from clinker_spark.cxl.check.environment import Environment
    from clinker_spark.cxl.check.modules import ModuleError, ModuleTable, directory_loader
    from clinker_spark.cxl.check.resolve import resolve
    from clinker_spark.cxl.syntax import ast
    from clinker_spark.cxl.syntax.parser import parse

    statements = parse(source)[0].statements
    if not all(isinstance(s, ast.Use | ast.Let | ast.FunctionDef) for s in statements):
        return False
    others = directory_loader(Path(rules))
    itself = ast.Use(NO_SPAN, ("",), "module")
    try:
        modules = ModuleTable(lambda path: others(path) if path != itself.path else source).imports((itself,), source)
    except ModuleError as error:
        raise CxlError("resolve", error.diagnostics) from None
    found = resolve(ast.ProgramSyntax(()), Environment(source, {}, modules=modules))
    if found:
        raise CxlError("resolve", found)
    return True


def _report_input(error: ClinkerError, as_json: bool) -> int:
    if as_json:
        _print_json(error.diagnostics)
        return error.exit_code
    raise error


def _print_json(found: Sequence[Diagnostic]) -> None:
    from clinker_spark.core.diagnostics.render import render_json

    click.echo(render_json(found))


def _report(file: str, found: Sequence[Diagnostic], program: Program | None, types: bool) -> None:
    if found:
        from clinker_spark.core.diagnostics.render import (  # a program without findings needs no renderer
            render_all,
            use_color,
        )

        click.echo(render_all(found, use_color(sys.stderr)), err=True)
    if program is None:
        return
    click.echo(f"ok: {'<stdin>' if file == '-' else file} is valid", err=True)
    if types:
        _print_types(program)


def _print_types(program: Program) -> None:
    width = max(map(len, program.output), default=0)
    for name, t in program.output.items():
        click.echo(f"{name.ljust(width)}  {t}")
