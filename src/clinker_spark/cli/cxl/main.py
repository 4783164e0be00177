"""The `cxl` command: single programs, without Spark. Each subcommand is a row here and a file beside this one."""

from __future__ import annotations

import gc

import click

from clinker_spark import __version__
from clinker_spark.cli.app import Lazy, LazyGroup, run

COMMANDS = {
    "check": Lazy("clinker_spark.cli.cxl.check", "Report every mistake in CXL programs."),
    "eval": Lazy("clinker_spark.cli.cxl.eval", "Run a program on a record and print the result as JSON."),
    "fmt": Lazy("clinker_spark.cli.cxl.fmt", "Print programs in their canonical form, comments kept."),
    "repl": Lazy("clinker_spark.cli.cxl.repl", "Try expressions one by one and see their types."),
}


@click.group(
    cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, "-V", "--version", message="cxl %(version)s")
def cxl() -> None:
    """Check, run and format CXL programs: the typed expression language of clinker.

    Nothing here starts Java. Exit codes: 0 all is well, 1 the program or a record is wrong, 2 a file or option
    cannot be used.

    \b
    cxl eval -e '"ada".upper()'
    cxl check order.cxl --schema 'price: float, quantity: int'
    """


def main() -> None:
    gc.disable()  # a check is over before a collection would pay; the commands that stay longer enable it again
    run(cxl, "cxl")


if __name__ == "__main__":
    main()
