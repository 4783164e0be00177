"""Replays: the records of a dead-letter file go through the pipeline again, and nothing else does.

The records become files of their own (`replay_files`), one for each input file they came from, which their sources
read in place of what they name. A source that is looked up in, the build side of a combine, is read from its own
files, so that the records find their matches. Outputs get names of their own (`out-replay.csv`), or, with `append`,
their lines are added to what is there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from clinker_spark.config.model.source import JsonSource
from clinker_spark.config.paths.templates import PER_FILE, Token, parse_template
from clinker_spark.core.errors import InputError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.source import TYPED, SourcePlan
from clinker_spark.plan.passes.all import with_facts

APPENDABLE = ("csv", "json", "fixed_width")
_OF_THE_RUN = {"timestamp", "execution_id", "batch_id", "n"}
AS_BYTES = ("csv", "json", "fixed_width")
"""The formats whose letters have the bytes of their records."""


def replay_plan(plan: Plan, fed: Collection[str] | None = None) -> Plan:
    """The plan with sources that read replayed records: those that are `fed`, or all."""
    nodes: list[PlanNode] = [
        _source(plan.source(node.name)) if not node.inputs and (fed is None or node.name in fed) else node
        for node in plan.nodes
    ]
    return with_facts(replace(plan, nodes=tuple(nodes)))


def _source(node: SourcePlan) -> SourcePlan:
    """The source with its own options, and files that are not compressed. A JSON document becomes lines; of formats
    whose letters have no bytes, the cells are read."""
    if node.config.type in AS_BYTES:
        changed: dict[str, Any] = {"compression": "none"}
        if node.kinds is not None:  # letters are records: there is no line with names, and no trailer counts them
            if node.config.type == "csv":
                changed["options"] = node.config.options.model_copy(update={"has_header": False})
            node = replace(node, kinds=replace(node.kinds, whole=False))
        elif node.config.type == "json":
            changed["options"] = node.config.options.model_copy(update={"format": "ndjson", "record_path": None})
            changed["split_to_rows"] = ()  # each letter is one of the records
        return replace(node, config=node.config.model_copy(update=changed))
    columns = tuple(column.model_copy(update={"source_name": None}) for column in node.columns)
    keys = node.config.correlation_key
    common: dict[str, Any] = {} if keys is None else {"correlation_key": list(keys)}
    common |= {"paths": ("replay",), "schema": list(columns), "name": node.config.name}
    config = JsonSource.model_validate({**common, "type": "json", "options": {"format": "ndjson"}})
    kept = {name: getattr(node.config, name) for name in ("watermark", "trim", "null_values", "dlq_granularity")}
    config = config.model_copy(update=kept)
    if not node.several_files:
        config = config.model_copy(update={"path": "replay", "paths": None})
    return replace(node, config=config, columns=columns)


def as_json(node: SourcePlan) -> bool:
    """Are the records of a source fed as JSON? XML and typed formats have nulls and arrays, which CSV does not have."""
    return node.config.type in ("json", "xml", *TYPED)


def check_parts(plan: Plan) -> None:
    """Raises `InputError` when the records of one source cannot be fed without those of another."""
    problems = []
    for name, sides in plan.facts.flow.sides.items():
        if sides.probe and sides.build:
            node = plan[name]
            message = f"dead letters cannot be replayed: the records of '{name}' are also looked up by others"
            help_text = "correct the input files, and run the pipeline again"
            problems.append(node.diagnostic("E458", message, help=help_text))
    if problems:
        raise InputError(problems)


def replay_path(path: Path, number: int = 1) -> Path:
    """`out/clean.csv` -> `out/clean-replay.csv`; in later rounds `out/clean-replay-2.csv`."""
    stem, dot, ext = path.name.partition(".")
    return path.with_name(f"{stem}-replay{'' if number == 1 else f'-{number}'}{dot}{ext}")


def appendable(plan: Plan, node: PlanNode) -> str | None:
    """Why the records of a replay cannot be added to an output, or None."""
    config: Any = node.config  # type: ignore[attr-defined]
    if config.type not in APPENDABLE or (config.type == "json" and config.options.format != "ndjson"):
        return f"{config.type} files cannot be added to"
    if any(n.totals for n in plan.upstream(node.name)):
        return "its records are totals: adding others to them is no correction"
    if config.sort_order or config.split is not None or config.path.endswith("/"):
        return "it is sorted, split or a folder"
    tokens = {token.name for token in parse_template(config.path) if isinstance(token, Token)}
    if tokens & set(PER_FILE):
        return "it has a file for each input file"
    if tokens & _OF_THE_RUN or config.if_exists == "unique_suffix":
        return "it is another file in every run"
    return None
