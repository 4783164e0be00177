"""From a pipeline file to a plan that is ready to be explained or run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from clinker_spark.config.load import load_pipeline, parse_pipeline
from clinker_spark.config.variables import parse_overrides, variable_values
from clinker_spark.config.workspace import Workspace, find_workspace
from clinker_spark.core.span import Source
from clinker_spark.plan.bind.pipeline import bind
from clinker_spark.plan.errors import PlanError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.passes.all import with_facts
from clinker_spark.plan.run_statistics import recall


def prepare(
    path: str | Path,
    *,
    overrides: Mapping[str, Any] | tuple[str, ...] = (),
    rules_path: str | None = None,
    workspace: Workspace | None = None,
    memory_limit: int | None = None,
    text: Source | None = None,
) -> Plan:
    """The plan of a pipeline file, or of a `text` that is to be read as if it stood there. Raises `ClinkerError` with
    everything that is wrong with it. `memory_limit` wins over that of the file."""
    file = load_pipeline(path) if text is None else parse_pipeline(text, Path(path))
    declared = file.settings.vars
    given = dict(overrides) if isinstance(overrides, Mapping) else parse_overrides(declared, overrides)
    place = workspace or find_workspace(path)
    modules = place.rules_folder(rules_path, file.settings.rules_path, file.folder)
    known = recall(Path(path))
    limit = file.settings.memory.declared_limit if memory_limit is None else memory_limit
    plan = bind(file, variable_values(declared, given), modules, known.rows, limit)
    plan = with_facts(replace(plan, statistics=known))
    _check_engine(plan)
    return replace(plan, warnings=(*plan.warnings, *plan.facts.warnings))


def _check_engine(plan: Plan) -> None:
    """`engine: vector` is a demand. Raises `PlanError` when nothing of the pipeline meets it."""
    flow = plan.facts.flow
    if plan.file.settings.engine != "vector" or flow.fragments or flow.totals:
        return
    reasons = "; ".join(f"'{node}': {why}" for node, why in dict.fromkeys(flow.unfit.values()))
    message = f"no output can be written by the workers that read the files ({reasons})"
    help_text = "write 'engine: auto', which gives such records to Spark"
    raise PlanError([plan.file.diagnostic("E340", message, ("pipeline", "engine"), help_text)])
