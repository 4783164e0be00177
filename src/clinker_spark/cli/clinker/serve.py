"""`clinker serve`: a process with a Spark session, to which other commands hand their work."""

from __future__ import annotations

import os
import signal
from typing import Any

import click

from clinker_spark.cli.clinker.size_option import SizeType


@click.command("serve")
@click.argument("pipeline", required=False, type=click.Path())
@click.option(
    "--idle", default="10m", show_default=True, metavar="TIME", help="End when there was no work for so long."
)
@click.option("--stop", is_flag=True, help="End all sessions of this user.")
@click.option("--master", help="Where Spark runs: local[*] (default), local[2], spark://host:7077, yarn, ...")
@click.option("--memory-limit", type=SizeType(), metavar="SIZE", help="The memory of all processes together.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
def command(pipeline: str | None, idle: str, stop: bool, **options: Any) -> int:
    """Keep a Spark session, so that commands start at once.

    \b
    clinker serve &                 # for pipelines without settings of their own
    clinker serve pipeline.yaml &   # with the memory and the settings of this one
    clinker run pipeline.yaml       # uses it

    `clinker run`, `query`, `dlq replay` and `--dry-run -n` hand their work to it when they find one for their user,
    environment and settings that has nothing else to do; else they start Spark themselves. CLINKER_WARM=off leaves
    it alone. With `warm = "10m"` in `[session]` of clinker.toml, the first command starts one by itself.
    """
    signal.signal(signal.SIGTERM, _end)
    from clinker_spark.cli.clinker.actions.serve_session import serve, stop_all  # pyspark: a second, not for --help

    return stop_all() if stop else serve(pipeline, idle, options)


def _end(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if os.name != "posix":
    command.hidden = True
