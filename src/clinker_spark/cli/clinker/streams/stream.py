"""`clinker stream`: a pipeline over sources that never end. This file is the options."""

from __future__ import annotations

from typing import Any

import click

from clinker_spark.cli.clinker.size_option import SizeType


@click.command("stream")
@click.argument("pipeline", type=click.Path())
@click.option("--once", is_flag=True, help="Read what is there now, then stop; a later call goes on from there.")
@click.option(
    "--flush-at-end",
    is_flag=True,
    help="With --once: close all windows in the end, so that records of outer joins that wait for others come out.",
)
@click.option("--explain", is_flag=True, help="Print the plan and stop. Starts no Java, reads no data.")
@click.option("--checkpoint", type=click.Path(), help="The folder of the checkpoint.  [default: as the pipeline says]")
@click.option("--set", "settings", multiple=True, metavar="vars.NAME=VALUE", help="Set a variable of the pipeline.")
@click.option("--rules-path", type=click.Path(), help="The folder of the CXL modules.")
@click.option("--base-dir", type=click.Path(), help="What relative paths start from.  [default: the pipeline's folder]")
@click.option("--master", help="Where Spark runs: local[*] (default), local[2], spark://host:7077, yarn, ...")
@click.option("--memory-limit", type=SizeType(), metavar="SIZE", help="The memory of the run, all processes together.")
@click.option("--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
@click.option("--machine", type=click.Choice(["ndjson-v1"]), help="Print events for programs on standard output.")
@click.option("--report", type=click.Path(), help="Write a page about the stream: rates, state and lateness over time.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
@click.option("-v", "--verbose", is_flag=True, help="Show Spark's own log.")
def command(pipeline: str, **options: Any) -> int:
    """Run a pipeline over sources that never end.

    \b
    clinker stream pipeline.yaml
    clinker stream pipeline.yaml --once --flush-at-end
    clinker stream pipeline.yaml --explain

    Ctrl-C and SIGTERM end it after the batch that is running; the next call goes on from there.
    """
    if options["flush_at_end"] and not options["once"]:
        raise click.UsageError("--flush-at-end goes with --once: a stream that goes on has no end")
    from clinker_spark.cli.clinker.actions.stream_session import (
        stream,  # planning: half a second, which --help does not need
    )

    return stream(pipeline, options)
