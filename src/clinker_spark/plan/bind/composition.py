"""Compositions: the body of a reusable part takes the place of its call, sealed but for its ports and parameters."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from clinker_spark.config.errors import ConfigError
from clinker_spark.config.load import CompositionFile, LoadedFile, load_composition
from clinker_spark.config.model.composition import CompositionNode
from clinker_spark.config.model.documents.variable import read_value
from clinker_spark.config.model.source import JsonSource
from clinker_spark.config.schemas import DeclaredSchema
from clinker_spark.config.workspace import find_workspace
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import Type, parse_type, unify
from clinker_spark.plan.bind.node import Binding, Bound, Declared, NodeBinder, Streams
from clinker_spark.plan.nodes.base import StreamRef
from clinker_spark.plan.nodes.source import SourcePlan

MAX_DEPTH = 16
"""How deep compositions may use each other."""


def bind_composition(around: NodeBinder, node: CompositionNode) -> Streams | None:
    """Put the body of a composition in the place of its call."""
    binder, file, declared = around.binder, around.file, around.scope.declares
    path = (file.folder / node.use).absolute()
    at = file.path_of(node.name, "use")
    if path in binder.using:
        binder.found.append(
            file.diagnostic("E107", f"composition '{node.use}' uses itself", at, "let it end somewhere")
        )
        return None
    if len(binder.using) >= MAX_DEPTH:
        message = f"compositions are nested more than {MAX_DEPTH} deep"
        binder.found.append(file.diagnostic("E112", message, at, "put the nodes of some of them in one file"))
        return None
    try:
        body = load_composition(path)
    except ConfigError as error:
        if any(d.source is None for d in error.diagnostics):
            reason = error.diagnostics[0].message
            binder.found.append(file.diagnostic("E103", reason, at, error.diagnostics[0].help))
        else:
            binder.found += error.diagnostics
        return None
    ports = _ports(around, node, body, around.inputs)
    config = _parameters(binder, file, node, body)
    asked = _scoped_variables(binder, file, node, body, declared)
    resources = _resources(binder, file, node, body)
    if ports is None or config is None or asked is None or resources is None:
        return None
    binder.using.append(path)
    streams = binder.body(binder, body, ports, f"{around.name}/", config, asked, declared, resources)
    binder.using.pop()
    result: Streams = {}
    for port, target in body.interface.outputs.items():
        name, _, branch = target.partition(".")
        made = streams.get(name)
        if made is None:
            return None
        found = made.get(branch or None) or (next(iter(made.values())) if len(made) == 1 else None)
        if found is None:
            at = ("_compose", "outputs", port)
            binder.found.append(
                body.diagnostic("E102", f"'{name}' has no port '{branch}'", at, "name one of its ports")
            )
            return None
        result[port] = found
    return result


def _ports(
    around: NodeBinder, node: CompositionNode, body: CompositionFile, inputs: Sequence[Bound]
) -> dict[str, Bound] | None:
    """By port of the body: what feeds it. None when something is wrong, which is noted."""
    declared = body.interface.inputs
    names = list(node.inputs) if node.inputs else list(declared)[:1]
    bound = dict(zip(names, inputs, strict=False))
    found = [*_unknown_ports(around, node, body, names), *_unfed_ports(around, node, body, names, len(inputs))]
    for name, stream in bound.items():
        found += _unlike(around, node, body, name, stream)
    around.binder.found += found
    unfed = [name for name in declared if name not in names]
    return None if found else bound | {name: _empty(around, body, name) for name in unfed}


def _unknown_ports(
    around: NodeBinder, node: CompositionNode, body: CompositionFile, names: Sequence[str]
) -> Iterator[Diagnostic]:
    declared = body.interface.inputs
    for name in names:
        if name not in declared:
            at = around.file.path_of(node.name, "inputs", name)
            help_text = did_you_mean(name, declared) or f"the ports are {', '.join(declared)}"
            message = f"the composition has no input port '{name}'"
            yield around.file.diagnostic("E103", message, at, help_text, key=True)


def _unfed_ports(
    around: NodeBinder, node: CompositionNode, body: CompositionFile, names: Sequence[str], inputs: int
) -> Iterator[Diagnostic]:
    """The ports that nothing feeds and that must be fed; without a schema nobody knows what they are empty of."""
    declared = body.interface.inputs
    unfed = [name for name in declared if name not in names]
    missing = [name for name in unfed if declared[name].required]
    for name in unfed:
        if name not in missing and _port_schema(body, name) is None:
            message = f"nothing feeds the input port '{name}', and nobody knows its columns"
            at = around.file.path_of(node.name, "use")
            help_text = f"feed it, or give the port a schema in '{node.use}'"
            yield around.file.diagnostic("E104", message, at, help_text)
    if missing or (not node.inputs and len(declared) - len(unfed) != inputs):
        lacking = missing or list(declared)
        at = around.file.path_of(node.name, "inputs" if node.inputs else "use")
        help_text = "write inputs: { " + ", ".join(f"{name}: node" for name in declared) + " }"
        yield around.file.diagnostic("E104", f"nothing feeds the input port '{lacking[0]}'", at, help_text)


def _unlike(
    around: NodeBinder, node: CompositionNode, body: CompositionFile, name: str, stream: Bound
) -> Iterator[Diagnostic]:
    """The columns of a port that what feeds it has not, or has with other types."""
    schema = _port_schema(body, name)
    for column in schema.columns if schema else ():
        have = stream.schema.get(column.name)
        if have is None or unify(column.data_type, have) is None:
            what = "has no column" if have is None else f"has {have} in column"
            message = f"input port '{name}' {what} '{column.name}', and the composition wants {column.data_type}"
            at = around.file.path_of(node.name, *(("inputs", name) if node.inputs else ("input",)))
            help_text = did_you_mean(column.name, stream.schema) or f"it has {', '.join(stream.schema)}"
            yield around.file.diagnostic("E104", message, at, help_text)


def _port_schema(body: CompositionFile, port: str) -> DeclaredSchema | None:
    return body.schemas.get(("_compose", "inputs", port, "schema"))


def _empty(around: NodeBinder, body: CompositionFile, port: str) -> Bound:
    """The stream of a port that nothing feeds: a source whose pattern no file matches."""
    declared = _port_schema(body, port)
    assert declared is not None
    nothing = {"type": "json", "glob": ".clinker-nothing", "files": {"on_no_match": "skip"}, "schema": declared.columns}
    schema = declared.types()
    empty = SourcePlan(
        name=f"{around.name}/{port}",
        inputs=(),
        schema=schema,
        emitted=tuple(schema),
        file=around.file,
        path=around.path,
        config=JsonSource.model_validate(nothing),
        columns=declared.columns,
        source_name=port,
        index=len(around.binder.sources),
        unfed=True,
    )
    around.binder.sources[empty.name] = empty
    around.binder.known.sizes[empty.name] = None
    around.binder.add(empty)
    return Bound(StreamRef(empty.name), schema, empty.emitted, documents=False)


def _scoped_variables(
    binder: Binding, file: LoadedFile, node: CompositionNode, body: CompositionFile, declared: Declared
) -> Declared | None:
    """The variables of the caller that the body asks for; None when the caller does not have them, which is noted."""
    wanted = body.interface.scoped_vars
    asked: dict[str, dict[str, Type]] = {}
    found: list[Diagnostic] = []
    for scope, variables in (("pipeline", wanted.pipeline), ("source", wanted.source), ("record", wanted.record)):
        asked[scope] = {}
        for name, spec in variables.items():
            have, want = declared.get(scope, {}).get(name), parse_type(spec.type)
            assert want is not None
            at = file.path_of(node.name, "use")
            if have is None:
                message = f"the composition reads ${scope}.{name}, and no transform of this file declares it"
                close = did_you_mean(name, declared.get(scope, {}))
                help_text = close or f"add declares: [{{ name: {name}, scope: {scope}, type: {spec.type} }}] to one"
                found.append(file.diagnostic("E174", message, at, help_text))
            elif have.unwrap() != want.unwrap():
                message = f"the composition reads ${scope}.{name} as {want.unwrap()}, and it is {have.unwrap()} here"
                found.append(file.diagnostic("E174", message, at, "declare both with the same type"))
            else:
                asked[scope][name] = have
    binder.found += found
    return None if found else asked


def _resources(
    binder: Binding, file: LoadedFile, node: CompositionNode, body: CompositionFile
) -> dict[str, str | None] | None:
    """The file of each slot, as a path from the folder of the pipeline; None for an open one."""
    slots = body.interface.resources_schema
    paths: dict[str, str | None] = dict.fromkeys(slots)
    found: list[Diagnostic] = []
    workspace = find_workspace(file.path) if node.resources else None
    known = {} if workspace is None else workspace.config.catalog.resources
    for slot, name in node.resources.items():
        at = file.path_of(node.name, "resources", slot)
        resource = known.get(name)
        if slot not in slots:
            help_text = did_you_mean(slot, slots) or f"its slots are {', '.join(slots) or 'none'}"
            message = f"the composition has no resource '{slot}'"
            found.append(file.diagnostic("E343", message, at, help_text, key=True))
        elif resource is None or workspace is None:
            help_text = did_you_mean(name, known) or f'add [catalog.resources.{name}] with kind = "file" and path'
            found.append(file.diagnostic("E343", f"clinker.toml has no resource '{name}'", at, help_text))
        elif resource.access == "write":
            message = f"the resource '{name}' may only be written"
            found.append(file.diagnostic("E343", message, at, 'write access = "read" in clinker.toml'))
        else:
            paths[slot] = os.path.relpath(workspace.root / resource.path, binder.folder.absolute())
    for slot, spec in slots.items():
        if spec.required and slot not in node.resources:
            help_text = f"write resources: {{ {slot}: name }}, with the name of a file in clinker.toml"
            message = f"nothing fills the resource '{slot}' of the composition"
            found.append(file.diagnostic("E343", message, file.path_of(node.name, "use"), help_text))
    binder.found += found
    return None if found else paths


def _parameters(
    binder: Binding, file: LoadedFile, node: CompositionNode, body: CompositionFile
) -> dict[str, Any] | None:
    declared = body.interface.config_schema
    values: dict[str, Any] = {name: parameter.value for name, parameter in declared.items()}
    found: list[Diagnostic] = []
    for name, given in node.config.items():
        at = file.path_of(node.name, "config", name)
        parameter = declared.get(name)
        if parameter is None:
            help_text = did_you_mean(name, declared) or f"the parameters are {', '.join(declared) or 'none'}"
            found.append(file.diagnostic("E103", f"the composition has no parameter '{name}'", at, help_text, key=True))
            continue
        try:
            values[name] = read_value(parameter.type, given)
        except ValueError as error:
            found.append(file.diagnostic("E104", f"parameter '{name}' is no {parameter.type}", at, str(error)))
            continue
        reason = parameter.refuses(values[name])
        if reason is not None:
            found.append(file.diagnostic("E104", f"parameter '{name}' {reason}", at, "choose one that is allowed"))
    for name, parameter in declared.items():
        if parameter.is_required and values[name] is None and name not in node.config:
            at = file.path_of(node.name, "use")
            help_text = f"write config: {{ {name}: ... }}"
            found.append(file.diagnostic("E104", f"the composition needs the parameter '{name}'", at, help_text))
    binder.found += found
    return None if found else values
