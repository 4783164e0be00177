"""The `clinker` command. Each subcommand is a row here and a file beside this one."""

from __future__ import annotations

import click

from clinker_spark import __version__
from clinker_spark.cli.app import Lazy, LazyGroup, run

COMMANDS = {
    "run": Lazy("clinker_spark.cli.clinker.run", "Run a pipeline."),
    "stream": Lazy("clinker_spark.cli.clinker.streams.stream", "Run a pipeline over sources that never end."),
    "state": Lazy("clinker_spark.cli.clinker.streams.state", "Look at the state of a stream."),
    "query": Lazy("clinker_spark.cli.clinker.query", "Query files, tables and lists."),
    "dlq": Lazy("clinker_spark.cli.clinker.dlq", "Look at dead letters, and run them again."),
    "dataset": Lazy("clinker_spark.cli.clinker.dataset", "Import recordings, and query their state over time."),
    "guess": Lazy("clinker_spark.cli.clinker.feeds.guess", "Guess how files are to be read."),
    "drift": Lazy("clinker_spark.cli.clinker.feeds.drift", "Compare declared schemas with what files hold now."),
    "runs": Lazy("clinker_spark.cli.clinker.feeds.runs", "List the runs of a pipeline, the newest last."),
    "serve": Lazy("clinker_spark.cli.clinker.serve", "Keep a Spark session, so that commands start at once."),
    "recover": Lazy("clinker_spark.cli.clinker.recover", "Finish what a crash left half published."),
    "metrics": Lazy("clinker_spark.cli.clinker.metrics", "Collect the numbers of runs."),
    "explain": Lazy("clinker_spark.cli.clinker.explain", "Explain a diagnostic code, or the plan of a pipeline."),
    "schema": Lazy("clinker_spark.cli.clinker.schema", "Print the JSON Schema of pipeline files, for editors."),
}


@click.group(
    cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, "-V", "--version", message="clinker %(version)s")
def clinker() -> None:
    """Declarative data pipelines on Apache Spark, with a typed expression language (CXL).

    Every error has a code; `clinker explain CODE` says what it means and what to do.
    Work with single CXL programs through the `cxl` command.
    """


def main() -> None:
    run(clinker, "clinker")
