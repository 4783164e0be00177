"""`clinker drift`: what the files of a pipeline hold now, compared with what it declares."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from clinker_spark.runtime.profile.drift import ColumnDrift, SourceDrift

_POLICIES = {
    "auto_widen": "they are carried along to the outputs",
    "drop": "they are left out",
    "reject": "a run stops at them",
}


@click.command("drift")
@click.argument("pipeline", type=click.Path())
@click.option("--base-dir", type=click.Path(), help="What relative paths start from.  [default: the pipeline's folder]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per source.")
def command(pipeline: str, base_dir: str | None, as_json: bool) -> int:
    """Compare declared schemas with what files hold now.

    \b
    clinker drift pipeline.yaml

    Columns that no schema declares, declared ones that files lack, and values of another type, in the first 10,000
    records of each file. Nothing is written. Exit codes: 0 all fits, 2 something does not.
    """
    found = _found(pipeline, base_dir)
    for source in found:
        if as_json:
            click.echo(json.dumps(asdict(source), ensure_ascii=False))
        else:
            click.echo("\n".join(_lines(source)))
    return 2 if any(source.any for source in found) else 0


def show_coverage(pipeline: str, base_dir: str | None) -> int:
    """`clinker guess --check`: each declared column with the share of the values that it covers."""
    found = _found(pipeline, base_dir)
    for source in found:
        click.echo("\n".join(_lines(source)))
        for name, (fine, seen) in source.covered.items():
            click.echo(f"    {name}: {100 * fine / seen:.4g} % of {seen:,} values")
    return 2 if any(source.any for source in found) else 0


def _found(pipeline: str, base_dir: str | None) -> list[SourceDrift]:
    from clinker_spark.plan.prepare import prepare  # half a second, which --help does not need
    from clinker_spark.runtime.profile.drift import drift_of

    plan = prepare(pipeline)
    return drift_of(plan, Path(base_dir) if base_dir else plan.file.folder)


def _lines(source: SourceDrift) -> list[str]:
    files = f"{source.files:,} file{'s'[: source.files != 1]}"
    if not source.any:
        return [f"{source.name}: {files}, as declared"]
    lines = [f"{source.name}: {files}"]
    lines += [f"  ? {problem}" for problem in source.problems]
    lines += [f"  {_line(source, column)}" for column in source.columns]
    if any(column.what == "undeclared" for column in source.columns):
        lines.append(f"  on_unmapped is {source.policy}: undeclared columns, {_POLICIES[source.policy]}")
    return lines


def _line(source: SourceDrift, column: ColumnDrift) -> str:
    where = f"in {len(column.files):,} of {source.files:,} files, first in '{column.files[0]}'"
    if source.files == 1:
        where = f"in '{column.files[0]}'"
    match column.what:
        case "undeclared":
            return f"+ {column.name} is not declared, and is {where}; it looks like {column.looks_like}"
        case "missing":
            return f"- {column.name} ({column.declared}) is missing {where}"
        case "tag":
            return f"+ {column.bad:,} line{'s'[: column.bad != 1]} of a kind with the tag '{column.name}' {where}"
        case "lines":
            return f"! {column.bad:,} of {column.seen:,} lines of kind '{column.name}' do not have its columns {where}"
    if not column.seen:
        return f"! {column.name} is declared as {column.declared}, and is {column.looks_like} {where}"
    of = f"{column.bad:,} of {column.seen:,} values are not {column.declared}"
    return f"! {column.name}: {of} {where}: {column.example}; they look like {column.looks_like}"
