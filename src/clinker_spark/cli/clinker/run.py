"""`clinker run`: plan a pipeline, then explain it, preview it or run it. This file is the options."""

from __future__ import annotations

from typing import Any

import click

from clinker_spark.cli.clinker.size_option import SizeType

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
@click.option(
    "--full",
    is_flag=True,
    help="Start over: read all files, also those that `only_new` leaves out, and replace what runs were added to.",
)
@click.option("--master", help="Where Spark runs: local[*] (default), local[2], spark://host:7077, yarn, ...")
@click.option("--remote", help="A Spark Connect server: sc://host:15002.")
@click.option(
    "--memory-limit",
    type=SizeType(),
    metavar="SIZE",
    help="The memory of the run, all processes together: 2G, 800M. Wins over memory.limit of the pipeline.",
)
@click.option("--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
@click.option("--machine", type=click.Choice(["ndjson-v1"]), help="Print events for programs on standard output.")
@click.option("--report", type=click.Path(), help="Write a page about the run: graph, numbers, memory, dead letters.")
@click.option(
    "--metrics-spool-dir",
    type=click.Path(),
    envvar="CLINKER_METRICS_SPOOL_DIR",
    help="A folder that gets a file with the numbers of the run.  [default: metrics.spool_dir of the pipeline]",
)
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
    if options["machine"] and (options["explain"] or options["dry_run"]):
        raise click.UsageError("--machine is for real runs: leave out --explain and --dry-run")
    from clinker_spark.cli.clinker.actions.run_plan import run  # planning: half a second, which --help does not need

    return run(pipeline, options)
