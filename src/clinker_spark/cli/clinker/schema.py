"""`clinker schema`: the JSON Schema of pipeline files, so that editors complete and check them."""

from __future__ import annotations

import click


@click.command("schema")
@click.option(
    "--for",
    "document",
    type=click.Choice(["pipeline", "composition"]),
    default="pipeline",
    show_default=True,
    help="The kind of file.",
)
def command(document: str) -> int:
    """Print the JSON Schema of pipeline files, for editors.

    \b
    clinker schema > pipeline.schema.json

    With a YAML language server, the first line of a pipeline can then name it:

    \b
    # yaml-language-server: $schema=pipeline.schema.json
    """
    from clinker_spark.config.reference.json_schema import json_schema_text  # pydantic: only this command needs it

    click.echo(json_schema_text(document), nl=False)
    return 0
