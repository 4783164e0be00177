"""The engine of a query on the command line: Spark starts when the first rows are needed."""

from __future__ import annotations

import logging
from typing import Any

from clinker_spark.cli.clinker.spark_settings import spark_settings
from clinker_spark.core.errors import InputError
from clinker_spark.query.check.programs import Checked
from clinker_spark.query.prepare import prepare
from clinker_spark.runtime.query.engine import QueryEngine


def open_engine(program: Checked, options: dict[str, Any]) -> tuple[QueryEngine, Checked]:
    """An engine, and the program checked against its files."""
    conf = spark_settings(options["conf"], InputError)

    def spark() -> Any:
        from clinker_spark.spark.session.sessions import session  # explaining a query does not need pyspark

        if not options["verbose"]:
            logging.disable(logging.CRITICAL)  # what Py4J says about a lost JVM is said in one diagnostic
        master = options["master"] or "local[*]"
        return session(
            master, app_name="clinker query", conf=conf, verbose=options["verbose"], remote=options["remote"]
        )

    engine = QueryEngine(spark)
    return engine, prepare(program, engine)
