"""How Spark is started for a pipeline: the command line, then clinker.toml, then the memory limit."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from clinker_spark.cli.clinker.spark_settings import spark_settings
from clinker_spark.config.workspace import find_workspace
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.memory import SessionMemory, session_memory

_PLAIN = """
pipeline: { name: plain }
nodes:
  - { type: source, name: in, config: { type: csv, path: in.csv, schema: { a: string } } }
  - { type: output, name: out, input: in, config: { type: csv, path: out.csv } }
"""
"""A pipeline without settings of its own: its session is what most pipelines get."""


def remote_of(pipeline: str, options: dict[str, Any]) -> str | None:
    """The Spark Connect server, if that is where the work is done."""
    spark = find_workspace(pipeline).config.spark
    found: str | None = options["remote"] or (None if options["master"] else spark.remote)
    return found


def wanted_conf(pipeline: str, options: dict[str, Any]) -> dict[str, str]:
    """The settings of Spark that somebody asks for."""
    return {**find_workspace(pipeline).config.spark.conf, **spark_settings(options["conf"], ClinkerError)}


def wanted_session(plan: Plan, pipeline: str, options: dict[str, Any]) -> SessionMemory:
    """The session of a pipeline, where that is no Spark Connect server. Raises `ClinkerError` for settings that cannot
    be used."""
    conf = wanted_conf(pipeline, options)
    memory = session_memory(plan, options["master"] or find_workspace(pipeline).config.spark.master, conf)
    return replace(memory, conf={**memory.conf, **conf})


def plain_session(folder: str, options: dict[str, Any]) -> SessionMemory:
    """The session of pipelines in a folder that have no settings of their own."""
    with tempfile.TemporaryDirectory(prefix="clinker-plain-") as place:
        plain = Path(place) / "plain.yaml"
        plain.write_text(_PLAIN)
        return wanted_session(prepare(plain, memory_limit=options.get("memory_limit")), folder, options)
