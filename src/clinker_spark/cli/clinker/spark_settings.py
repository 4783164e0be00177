"""`--conf KEY=VALUE`: settings of Spark on the command line."""

from __future__ import annotations

from collections.abc import Iterable

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError


def spark_settings(given: Iterable[str], error: type[ClinkerError]) -> dict[str, str]:
    """The settings by name. One that is no setting is an `error`, whose exit code depends on the command.

    >>> spark_settings(["spark.sql.shuffle.partitions = 8"], ClinkerError)
    {'spark.sql.shuffle.partitions': ' 8'}
    """
    settings = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            help_text = "write --conf spark.sql.shuffle.partitions=8"
            raise error([Diagnostic("E018", f"'{text}' is not of the form key=value", help=help_text)])
        settings[key.strip()] = value
    return settings
