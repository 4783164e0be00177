"""The plan of a pipeline on the command line, and its warnings."""

from __future__ import annotations

import contextlib
import sys
import tomllib
from collections.abc import Sequence
from typing import Any

import click

from clinker_spark.config.files import read_source
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.render import render_all, use_color
from clinker_spark.core.errors import InputError
from clinker_spark.core.span import Source
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain import explain
from clinker_spark.report.explain_staging import staging_plan


def plan_of(pipeline: str, options: dict[str, Any], text: Source | None = None) -> Plan:
    """The plan with the variables and modules that were asked for; its warnings are shown. A `text` is read instead of
    the file."""
    plan = prepare(
        pipeline,
        overrides=tuple(options["settings"]),
        rules_path=options["rules_path"],
        memory_limit=options["memory_limit"],
        text=text,
    )
    show_warnings(plan.warnings)
    return plan


def short_form(pipeline: str) -> Source | None:
    """A stream in the short form, which is TOML, as the pipeline that it stands for."""
    if not pipeline.endswith(".toml"):
        return None
    from clinker_spark.streaming.short_form import form_warnings, pipeline_text  # other commands start without it

    try:
        form = tomllib.loads(read_source(pipeline).text)
    except tomllib.TOMLDecodeError as error:
        raise InputError([Diagnostic("E511", f"'{pipeline}' is no TOML: {error}", help="correct the file")]) from None
    text = pipeline_text(form, pipeline)
    show_warnings(form_warnings(form, pipeline))
    return Source(pipeline, text)


def show_plan(pipeline: str) -> None:
    """`clinker explain PIPELINE`."""
    plan = prepare(pipeline)
    show_warnings(plan.warnings)
    click.echo(explain(plan, "text", staging_plan(plan, plan.file.folder)), nl=False)


def show_warnings(warnings: Sequence[Diagnostic]) -> None:
    """On standard error, if that can be written: a warning is no reason to end otherwise."""
    if warnings:
        with contextlib.suppress(OSError):
            click.echo(render_all(warnings, use_color(sys.stderr)), err=True)
