"""`clinker run`: plan a pipeline, then explain it, preview it or run it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

_FORMATS = ("text", "json", "dot")


class _RunCommand(click.Command):
    """`--explain` may stand before the pipeline: the word after it is its value only when it is one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for i, text in enumerate(args):
            if text == "--explain" and (i + 1 == len(args) or args[i + 1] not in _FORMATS):
                args[i] = "--explain=text"
        return super().parse_args(ctx, args)


@click.command("run", cls=_RunCommand)
@click.argument("pipeline", type=click.Path())
@click.option(
    "--explain",
    is_flag=False,
    flag_value="text",
    default=None,
    type=click.Choice(_FORMATS),
    help="Print the plan and stop: text (default), json or dot. Starts no Java, reads no data.",
)
@click.option("--dry-run", is_flag=True, help="Check everything that can be checked without data, and stop.")
@click.option(
    "-n", "preview", type=click.IntRange(min=1), help="With --dry-run: show what N records per source become."
)
@click.option("--dry-run-output", type=click.Path(), help="With -n: write the preview to this file.")
@click.option("--set", "settings", multiple=True, metavar="vars.NAME=VALUE", help="Set a variable of the pipeline.")
@click.option("--batch-id", default="", help="A name for this run in paths, programs and events.")
@click.option("--rules-path", type=click.Path(), help="The folder of the CXL modules.")
@click.option("--base-dir", type=click.Path(), help="What relative paths start from.  [default: the pipeline's folder]")
@click.option(
    "--force",
    is_flag=True,
    help="Replace also what has `if_exists: error`, and folders and files that clinker did not write.",
)
@click.option("--master", help="Where Spark runs: local[*] (default), local[2], spark://host:7077, yarn, ...")
@click.option("--remote", help="A Spark Connect server: sc://host:15002.")
@click.option("--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
@click.option("--machine", type=click.Choice(["ndjson-v1"]), help="Print events for programs on standard output.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
@click.option("-v", "--verbose", is_flag=True, help="Show Spark's own log.")
def command(pipeline: str, **options: Any) -> int:
    """Run a pipeline.

    \b
    clinker run pipeline.yaml
    clinker run pipeline.yaml --explain
    clinker run pipeline.yaml --dry-run -n 10

    Exit codes: 0 done, 1 the pipeline is wrong, 2 done with dead letters, 3 records failed and nothing was
    written, 4 a file or Spark failed, 130 interrupted.
    """
    from clinker_spark.plan.prepare import prepare

    if options["machine"] and (options["explain"] or options["dry_run"]):
        raise click.UsageError("--machine is for real runs: leave out --explain and --dry-run")
    if options["machine"]:
        return _run(pipeline, None, options)
    plan = prepare(pipeline, overrides=tuple(options["settings"]), rules_path=options["rules_path"])
    show_warnings(plan.warnings)
    if options["explain"] is not None:
        from clinker_spark.report.explain import explain

        click.echo(explain(plan, options["explain"]), nl=False)
        return 0
    if options["dry_run"]:
        show_warnings(_checked_paths(plan, options))
    if options["dry_run"] and options["preview"] is None:
        click.echo(f"{pipeline}: {len(plan.nodes)} nodes, no errors")
        for node in plan.outputs:
            click.echo(f"  {node.name} -> {node.config.path}")
        return 0
    return _run(pipeline, plan, options)


def _checked_paths(plan: Any, options: dict[str, Any]) -> Any:
    """What is to be said about the files that a run would read and write. It lists files, and reads none."""
    from clinker_spark.runtime.paths.checks import check_paths, listed_files

    run_options = _run_options(options)
    base = run_options.base or plan.file.folder
    files, warnings = listed_files(plan, run_options, base)
    return (*warnings, *check_paths(plan, run_options, files))


def _run_options(options: dict[str, Any]) -> Any:
    from clinker_spark.runtime.run.options import Options

    base = Path(options["base_dir"]) if options["base_dir"] else None
    return Options(batch_id=options["batch_id"], force=options["force"], base=base)


def _run(pipeline: str, plan: Any, options: dict[str, Any]) -> int:
    from clinker_spark.cli.clinker.run_session import open_session, stop_on_sigterm
    from clinker_spark.plan.prepare import prepare
    from clinker_spark.report.progress import reporter
    from clinker_spark.runtime.run.pipeline import run

    stop_on_sigterm()
    run_options = _run_options(options)
    with reporter(pipeline, run_options, machine=options["machine"], quiet=options["quiet"]) as listener:
        if plan is None:
            plan = prepare(pipeline, overrides=tuple(options["settings"]), rules_path=options["rules_path"])
            show_warnings(plan.warnings)
            warnings = [{"code": found.code, "message": found.message} for found in plan.warnings]
            outputs = [node.name for node in plan.outputs]
            listener("planned", {"nodes": len(plan.nodes), "outputs": outputs, "warnings": warnings})
        spark = open_session(plan, pipeline, options)
        if options["dry_run"]:
            from clinker_spark.runtime.run.preview import preview

            text = preview(plan, spark, run_options, options["preview"])
            _put(text, options["dry_run_output"])
            return 0
        report = run(plan, spark, run_options, listener)
        listener("finished", {"report": report})
    show_warnings(report.warnings)
    return report.exit_code


def show_warnings(warnings: Any) -> None:
    if warnings:
        from clinker_spark.core.diagnostics.render import render_all, use_color

        click.echo(render_all(warnings, use_color(sys.stderr)), err=True)


def _put(text: str, path: str | None) -> None:
    if path is None:
        click.echo(text, nl=False)
    else:
        from clinker_spark.core.diagnostics import Diagnostic
        from clinker_spark.core.errors import InputError
        from clinker_spark.runtime.commit.small_files import replace_file

        try:
            replace_file(Path(path), text.encode())
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError([Diagnostic("E401", f"cannot write '{path}': {reason}", help="check the path")]) from None
