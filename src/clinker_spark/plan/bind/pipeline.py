"""From a checked file to plan nodes: schemas are bound along the graph and programs are compiled against them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from clinker_spark.config.load import LoadedFile, PipelineFile
from clinker_spark.config.node_types import node_type, resolve
from clinker_spark.core.diagnostics import Severity
from clinker_spark.plan.bind.envelope import check_reader
from clinker_spark.plan.bind.increments import check_increments, warn_of_increments
from clinker_spark.plan.bind.node import Binding, Bound, Declared, NodeBinder, Scope, Streams
from clinker_spark.plan.bind.output_paths import check_paths
from clinker_spark.plan.bind.source_policies import check_policies
from clinker_spark.plan.bind.transforms.record_logs import check_events
from clinker_spark.plan.bind.transforms.scopes import check_scopes
from clinker_spark.plan.errors import PlanError
from clinker_spark.plan.graph import Plan


def bind(
    file: PipelineFile,
    variables: Mapping[str, Any],
    modules: Path | None = None,
    measured: Mapping[str, int] | None = None,
    memory_limit: int | None = None,
) -> Plan:
    """The nodes of a pipeline, without facts. Raises `PlanError` with everything that is wrong.

    `measured` are the records that each source had in the last run."""
    binding = Binding(variables, modules, measured or {}, bind_body, memory_limit, file.folder)
    bind_body(binding, file, {})
    if any(d.severity is Severity.ERROR for d in binding.found):
        raise PlanError(binding.found)
    warnings = (*file.warnings, *binding.found)
    plan = Plan(
        file,
        tuple(binding.nodes),
        warnings,
        variables,
        estimates=binding.known.sizes,
        file_sizes=binding.known.file_sizes,
        rules=modules,
        memory_limit=memory_limit,
    )
    checks = (check_scopes(plan), check_events(plan.nodes), check_paths(plan), check_policies(plan))
    if found := [finding for check in (*checks, check_increments(plan)) for finding in check]:
        raise PlanError(found)
    return replace(plan, warnings=(*warnings, *warn_of_increments(plan)))


def bind_body(
    binding: Binding,
    file: LoadedFile,
    ports: Mapping[str, Bound],
    prefix: str = "",
    config: Mapping[str, Any] | None = None,
    asked: Declared | None = None,
    outer: Declared | None = None,
    resources: Mapping[str, str | None] | None = None,
) -> dict[str, Streams | None]:
    """Bind the nodes of a file in the order of their graph; gives the streams of each. None stands for a node that
    could not be bound. `asked` are the variables of its caller, out of all of them (`outer`), that the file may
    read, `resources` the files that it chose."""
    declares = {name: {**(asked or {}).get(name, {}), **own} for name, own in file.declared_variables().items()}
    declares["doc"] = file.envelope_types()
    variables = binding.variables if config is None else {}
    scope = Scope(variables, config, declares, binding.modules, resources, outer or {})
    streams: dict[str, Streams | None] = {name: {None: bound} for name, bound in ports.items()}
    for name in file.graph.order():
        inputs = _inputs(binding, file, name, streams)
        streams[name] = None
        if inputs is not None:
            before = len(binding.found)
            made = _bind_node(NodeBinder(binding, file, file.node(name), inputs, prefix, scope))
            if not any(d.severity is Severity.ERROR for d in binding.found[before:]):
                streams[name] = made
    return streams


def _bind_node(binder: NodeBinder) -> Streams | None:
    known = node_type(binder.node.kind)
    assert known is not None  # or the file would not have been loaded
    check_reader(binder)
    made: Streams | None = resolve(known.bind)(binder, binder.node)
    return made


def _inputs(binding: Binding, file: LoadedFile, name: str, streams: Mapping[str, Streams | None]) -> list[Bound] | None:
    """What a node reads; None when that could not be bound, or is a port that is not there."""
    inputs: list[Bound] = []
    for edge in file.graph.inputs(name):
        producer = streams.get(edge.producer)
        if producer is None:
            return None
        port = edge.port if edge.port in producer else None
        if edge.port is None and None not in producer and len(producer) == 1:
            port = next(iter(producer))
        if port not in producer:
            known = ", ".join(f"{edge.producer}.{p}" for p in producer)
            message, help_text = f"'{edge.producer}' has no such port", f"write one of {known}"
            binding.found.append(file.diagnostic("E102", message, edge.path, help_text))
            return None
        inputs.append(producer[port])
    return inputs
