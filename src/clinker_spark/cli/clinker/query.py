"""`clinker query`: a query program from a file or the command line. This file is the options."""

from __future__ import annotations

from typing import Any

import click


@click.command("query")
@click.argument("file", required=False, type=click.Path())
@click.option("-e", "text", metavar="TEXT", help="The program itself, instead of a file.")
@click.option("--explain", is_flag=True, help="Print the plan and the Spark SQL of the result, and stop.")
@click.option("-o", "--output", type=click.Path(), help="Write the result to a file; its ending says how.")
@click.option("--force", is_flag=True, help="Replace what is at --output even if it is loaded, or a folder of others.")
@click.option("--master", help="Where Spark runs: local[*] (default), local[2], spark://host:7077, yarn, ...")
@click.option("--remote", help="A Spark Connect server: sc://host:15002.")
@click.option("--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
@click.option("-v", "--verbose", is_flag=True, help="Show Spark's own log.")
def command(file: str | None, text: str | None, **options: Any) -> int:
    """Query files, tables and lists.

    \b
    clinker query -e 'from p in load "people.csv" where p.age >= 18 select p.name'
    clinker query report.mochi
    clinker query report.mochi --output report.csv

    On a terminal the result is a table; in a pipe it is one JSON document. A program over literals starts no Java.
    """
    if (file is None) == (text is None):
        raise click.UsageError("give a file or -e TEXT")
    from clinker_spark.cli.clinker.actions.query_program import run_query  # the language of queries: not for --help

    return run_query(file, text, options)
