"""Does a session suit the work? It does when Spark would be started in the same way for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from clinker_spark.cli.clinker.actions.session_settings import remote_of, wanted_session
from clinker_spark.cli.clinker.main import clinker
from clinker_spark.cli.clinker.spark_settings import spark_settings
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.memory import SessionMemory


def fits(args: Sequence[str], settings: SessionMemory) -> bool:
    """Does the session suit a command? One that is wrong in itself suits, too: it will be said without Spark."""
    try:
        params = _params(clinker, list(args))
        if args[0] == "query":
            conf = spark_settings(params["conf"], ClinkerError)
            return params["master"] in (None, settings.master) and conf.items() <= settings.conf.items()
        return wanted(params) == settings
    except (ClinkerError, click.exceptions.Exit, click.ClickException):
        return True


def wanted(options: dict[str, Any]) -> SessionMemory | None:
    """The session that a pipeline asks for; None for a Spark Connect server. Raises `ClinkerError` for a pipeline that
    is wrong."""
    pipeline = options["pipeline"]
    if remote_of(pipeline, options) is not None:
        return None
    plan = prepare(
        pipeline,
        overrides=tuple(options["settings"]),
        rules_path=options["rules_path"],
        memory_limit=options.get("memory_limit"),
    )
    return wanted_session(plan, pipeline, options)


def _params(group: click.Group, args: list[str]) -> dict[str, Any]:
    """The options of a command, as click reads them."""
    with group.make_context("clinker", args) as context:
        name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        if isinstance(command, click.Group):
            return _params(command, rest)
        with command.make_context(name, rest) as inner:
            return dict(inner.params)
