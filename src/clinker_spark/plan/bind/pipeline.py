"""From a checked file to plan nodes: schemas are bound along the graph and programs are compiled against them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clinker_spark.config.load import LoadedFile, PipelineFile
from clinker_spark.config.model.aggregate import AggregateNode
from clinker_spark.config.model.combine import CombineNode
from clinker_spark.config.model.composition import CompositionNode
from clinker_spark.config.model.merge import MergeNode
from clinker_spark.config.model.nodes import Node
from clinker_spark.config.model.output import OutputNode
from clinker_spark.config.model.query import QueryNode
from clinker_spark.config.model.route import RouteNode
from clinker_spark.config.model.source import SourceNode
from clinker_spark.config.model.transform import TransformNode
from clinker_spark.core.diagnostics import Diagnostic, Severity
from clinker_spark.core.suggest import did_you_mean
from clinker_spark.core.types import unify
from clinker_spark.cxl.conditions import Condition, as_program, compile_condition, first_true
from clinker_spark.cxl.errors import CxlError
from clinker_spark.cxl.program import Program, compile
from clinker_spark.plan.bind.aggregate import bind_aggregate
from clinker_spark.plan.bind.combine import bind_combine
from clinker_spark.plan.bind.composition import Bound, Declared, Streams, expand
from clinker_spark.plan.bind.output_paths import check_paths
from clinker_spark.plan.bind.record_logs import bind_logs, check_events
from clinker_spark.plan.bind.scopes import check_scopes
from clinker_spark.plan.bind.validations import bind_checks
from clinker_spark.plan.bind.windows import bind_window
from clinker_spark.plan.columns import written_columns
from clinker_spark.plan.errors import PlanError
from clinker_spark.plan.nodes import (
    MergePlan,
    OutputPlan,
    Plan,
    PlanNode,
    RoutePlan,
    Schema,
    SourcePlan,
    StreamRef,
    TransformPlan,
)
from clinker_spark.plan.passes.correlation import correlation
from clinker_spark.plan.passes.effects import without_effects
from clinker_spark.plan.passes.estimates import Estimate, source_estimate
from clinker_spark.plan.query.node import bind_query

_VARIABLE = re.compile(r"\$(pipeline|source|record)\.([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)


@dataclass
class Scope:
    """What programs of one file may name besides columns."""

    vars: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] | None = None
    declares: Declared | None = None
    modules: Path | None = None
    outer: Declared = field(default_factory=dict)
    """The variables of the file that uses this one: only those it asks for can be read."""


def bind(
    file: PipelineFile,
    variables: Mapping[str, Any],
    modules: Path | None = None,
    measured: Mapping[str, int] | None = None,
) -> Plan:
    """The plan of a pipeline. Raises `PlanError` with everything that is wrong.

    `measured` are the records that each source had in the last run."""
    binder = Binder(variables, modules, measured or {})
    binder.body(file, {})
    if any(d.severity is Severity.ERROR for d in binder.found):
        raise PlanError(binder.found)
    plan = Plan(
        file,
        tuple(binder.nodes),
        (*file.warnings, *binder.found),
        variables,
        estimates=binder.estimates,
        keys=correlation(binder.nodes),
    )
    if found := [*check_scopes(plan), *check_events(plan.nodes), *check_paths(plan)]:
        raise PlanError(found)
    return replace(plan, warnings=(*plan.warnings, *without_effects(plan)))


class Binder:
    """Walks files in the order of their graphs; collects nodes and findings."""

    def __init__(self, variables: Mapping[str, Any], modules: Path | None, measured: Mapping[str, int]) -> None:
        self.variables = variables
        self.modules = modules
        self.nodes: list[PlanNode] = []
        self.estimates: dict[str, Estimate | None] = {}
        self.measured = measured
        self.found: list[Diagnostic] = []
        self.using: list[Path] = []

    def body(
        self,
        file: LoadedFile,
        ports: Mapping[str, Bound],
        prefix: str = "",
        config: Mapping[str, Any] | None = None,
        asked: Declared | None = None,
        outer: Declared | None = None,
    ) -> dict[str, Streams | None]:
        """Bind the nodes of a file; gives the streams of each. None stands for a node that could not be bound. `asked`
        are the variables of its caller, out of all of them (`outer`), that the file may read."""
        declares = {name: {**(asked or {}).get(name, {}), **own} for name, own in file.declared_variables().items()}
        variables = self.variables if config is None else {}
        scope = Scope(variables, config, declares, self.modules, outer or {})
        streams: dict[str, Streams | None] = {name: {None: bound} for name, bound in ports.items()}
        for name in file.graph.order():
            node = file.node(name)
            inputs: list[Bound] = []
            for edge in file.graph.inputs(name):
                producer = streams.get(edge.producer)
                port = edge.port if producer is None or edge.port in producer else None
                if producer is None:
                    break
                if edge.port is None and None not in producer and len(producer) == 1:
                    port = next(iter(producer))
                if port not in producer:
                    known = ", ".join(f"{edge.producer}.{p}" for p in producer)
                    self.found.append(
                        file.diagnostic(
                            "E102", f"'{edge.producer}' has no such port", edge.path, f"write one of {known}"
                        )
                    )
                    break
                inputs.append(producer[port])
            else:
                before = len(self.found)
                streams[name] = _NodeBinder(self, file, node, inputs, prefix, scope).bind()
                if any(d.severity is Severity.ERROR for d in self.found[before:]):
                    streams[name] = None
                continue
            streams[name] = None
        return streams


class _NodeBinder:
    """Binds one node: what it reads is known."""

    def __init__(
        self, binder: Binder, file: LoadedFile, node: Node, inputs: list[Bound], prefix: str, scope: Scope
    ) -> None:
        self.binder = binder
        self.file = file
        self.node = node
        self.inputs = inputs
        self.scope = scope
        self.name = prefix + node.name
        self.path = file.path_of(node.name)

    def bind(self) -> Streams | None:
        methods: dict[type, Callable[[Any], Streams | None]] = {
            SourceNode: self.source,
            TransformNode: self.transform,
            RouteNode: self.route,
            MergeNode: self.merge,
            AggregateNode: lambda node: bind_aggregate(self, node),
            CombineNode: lambda node: bind_combine(self, node),
            QueryNode: self.query,
            CompositionNode: lambda node: expand(
                self.binder, self.file, node, self.inputs, self.name.removesuffix(node.name), self.scope.declares or {}
            ),
            OutputNode: self.output,
        }
        return methods[type(self.node)](self.node)

    # ------------------------------------------------------------ helpers

    def problem(self, code: str, message: str, *inside: str | int, help: str | None = None, key: bool = False) -> None:
        self.binder.found.append(self.file.diagnostic(code, message, (*self.path, *inside), help, key=key))

    def common(self, schema: Schema, emitted: tuple[str, ...]) -> dict[str, Any]:
        refs = tuple(bound.ref for bound in self.inputs)
        return {
            "name": self.name,
            "inputs": refs,
            "schema": schema,
            "emitted": emitted,
            "file": self.file,
            "path": self.path,
        }

    def made(self, node: PlanNode, documents: bool | None = None) -> Streams:
        self.binder.nodes.append(node)
        several = any(bound.documents for bound in self.inputs) if documents is None else documents
        ports: tuple[str | None, ...] = node.ports if isinstance(node, RoutePlan) else (None,)
        return {port: Bound(StreamRef(node.name, port), node.schema, node.emitted, several) for port in ports}

    def compile(
        self,
        *inside: str | int,
        schema: Schema,
        condition: bool = False,
        codes: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Any:
        """The program at a key of the node; None when it is wrong, which is noted then. `codes` replaces the codes of
        findings by those that the node has for them."""
        text = self.file.text_of((*self.path, *inside))
        run: Callable[..., Any] = compile_condition if condition else compile
        try:
            result = run(
                text.text,
                dict(schema),
                name=self.name,
                vars=self.scope.vars,
                config=self.scope.config,
                declares=self.scope.declares,
                modules=self.scope.modules,
                **options,
            )
        except CxlError as error:
            named = [replace(d, code=(codes or {}).get(d.code, d.code)) for d in error.diagnostics]
            self.binder.found += [
                text.relocate(self._asked_for(d, text.text)) if d.source is None or d.source.name == self.name else d
                for d in named
            ]
            return None
        program = result.program if isinstance(result, Condition) else result
        self.binder.found += [text.relocate(w) for w in program.warnings if w.code != "W200"]
        return result

    def _asked_for(self, found: Diagnostic, text: str) -> Diagnostic:
        """An unknown variable that the file around a composition knows: the composition must ask for it."""
        read = _VARIABLE.fullmatch(text, *(found.span.start, found.span.end) if found.span else ())
        if found.code != "E203" or read is None or read[2] not in self.scope.outer.get(read[1], {}):
            return found
        kind = str(self.scope.outer[read[1]][read[2]].unwrap()).lower().replace("datetime", "date_time")
        help_text = f"add scoped_vars: {{ {read[1]}: {{ {read[2]}: {{ type: {kind} }} }} }} to '_compose'"
        return replace(
            found, code="E173", message=f"the composition does not ask for ${read[1]}.{read[2]}", help=help_text
        )

    # ------------------------------------------------------------ node types

    def source(self, node: SourceNode) -> Streams | None:
        declared = self.file.schema_of(node.name)
        assert declared is not None
        schema = declared.types()
        index = sum(isinstance(n, SourcePlan) for n in self.binder.nodes)
        plan = SourcePlan(
            **self.common(schema, tuple(schema)),
            config=node.config,
            columns=declared.columns,
            source_name=node.source_name,
            index=index,
        )
        self.binder.estimates[plan.name] = source_estimate(plan, self.file.folder, self.binder.measured)
        return self.made(plan, documents=plan.several_files)

    def transform(self, node: TransformNode) -> Streams | None:
        schema = self.inputs[0].schema
        config = node.config
        spec = config.analytic_window
        other = self.inputs[1].schema if len(self.inputs) > 1 else None
        program: Program | None = self.compile(
            "config", "cxl", schema=schema, max_expansion=config.max_expansion, window_schema=other
        )
        if program is None:
            return None
        window = None
        if spec is not None:
            window = bind_window(self, spec, schema, other, program)
            if window is None:
                return None
        elif any(p.startswith("window") for p in _namespaces(program)):
            self.problem(
                "E200",
                "$window needs an 'analytic_window'",
                "config",
                "cxl",
                help="add analytic_window: { group_by: [..] }",
            )
            return None
        logs = bind_logs(self, node, schema)
        if logs is None:
            return None
        after = {**schema, **program.output}
        checks = bind_checks(self, node, after)
        if checks is None:
            return None
        emitted = tuple(name for name in after if name in program.output)
        plan = TransformPlan(
            **self.common(after, emitted),
            program=program,
            window=window,
            checks=checks,
            declares=config.declares,
            phase=config.phase,
            log=config.log,
            record_logs=logs,
        )
        return self.made(plan, documents=self.inputs[0].documents)

    def route(self, node: RouteNode) -> Streams | None:
        schema = self.inputs[0].schema
        config = node.config
        conditions = [
            self.compile("config", "conditions", name, schema=schema, condition=True) for name in config.conditions
        ]
        if any(c is None for c in conditions):
            return None
        if config.mode == "exclusive":
            columns = [("$port", first_true(conditions, len(conditions)))]
        else:
            columns = [(f"$port.{i}", c.value) for i, c in enumerate(conditions)]
        plan = RoutePlan(
            **self.common(schema, self.inputs[0].emitted),
            program=as_program(schema, columns),
            conditions=tuple(config.conditions),
            default=config.default,
            inclusive=config.mode == "inclusive",
        )
        return self.made(plan)

    def merge(self, node: MergeNode) -> Streams | None:
        first = self.inputs[0]
        schema = dict(first.schema)
        for i, other in enumerate(self.inputs[1:], 1):
            for name in schema.keys() - other.schema.keys() | other.schema.keys() - schema.keys():
                owner, without = (
                    (node.inputs[0], node.inputs[i]) if name in schema else (node.inputs[i], node.inputs[0])
                )
                message = f"'{owner}' has a column '{name}', and '{without}' has not"
                help_text = "emit it in a transform before the merge: the inputs of a merge have the same columns"
                self.problem("E016", message, "inputs", i, help=help_text)
                return None
            for name, t in schema.items():
                merged = unify(t, other.schema[name])
                if merged is None:
                    message = (
                        f"column '{name}' is {t} in '{node.inputs[0]}' and {other.schema[name]} in '{node.inputs[i]}'"
                    )
                    self.problem(
                        "E016", message, "inputs", i, help="convert one of them in a transform before the merge"
                    )
                    return None
                schema[name] = merged
        if not self._agree(node):
            return None
        config = node.config
        plan = MergePlan(
            **self.common(schema, tuple(schema)), interleave=config.mode == "interleave", seed=config.interleave_seed
        )
        return self.made(plan)

    def _agree(self, node: MergeNode) -> bool:
        """Do all sources behind a merge treat undeclared columns and groups alike? Notes it if not."""
        known = {n.name: n for n in self.binder.nodes}
        first: SourcePlan | None = None
        for i, bound in enumerate(self.inputs):
            for source in _whole_records(known, bound.ref.node):
                first = first or source
                key = "on_unmapped" if source.config.on_unmapped.mode != first.config.on_unmapped.mode else None
                if set(source.config.correlation_key or ()) != set(first.config.correlation_key or ()):
                    key = key or "correlation_key"
                if key is not None:
                    said = [f"'{n.name}' has {_policy(n, key)}" for n in (first, source)]
                    message = f"the inputs of merge '{node.name}' disagree: {said[0]}, and {said[1]}"
                    help_text = f"give all sources of a merge the same '{key}'"
                    self.problem("E315", message, "inputs", i, help=help_text)
                    return False
        return True

    def query(self, node: QueryNode) -> Streams | None:
        plan = bind_query(self, node)
        return self.made(plan) if plan is not None else None

    def output(self, node: OutputNode) -> Streams | None:
        stream = self.inputs[0]
        declared = self.file.schema_of(node.name)
        schema, emitted = stream.schema, stream.emitted
        if node.config.include_correlation_keys:
            keys = correlation(self.binder.nodes)[stream.ref.node]
            schema = {name: {**schema, **keys.columns}[name] for name in keys.order}
            emitted = (*emitted, *keys.columns)
        columns, problems = written_columns(node.config, schema, emitted)
        sources = [n for n in self.binder.nodes if isinstance(n, SourcePlan)]
        if any(n.config.on_unmapped.mode == "auto_widen" for n in sources):
            problems = [p for p in problems if p[0] != "W366"]  # it may be a column that no schema names
        for code, message, at, help_text in problems:
            self.problem(code, message, "config", *at, help=help_text)
        fields = [item.field for item in node.config.sort_order]
        known = self.known(stream.schema, fields, "config", "sort_order")
        split = node.config.split
        if split is not None and split.group_key is not None:
            known &= self.known(stream.schema, [split.group_key], "config", "split", "group_key")
        if not known or any(code.startswith("E") for code, *_ in problems):
            return None
        plan = OutputPlan(
            **self.common(schema, emitted),
            config=node.config,
            columns=columns,
            declared=declared.columns if declared else None,
            output_name=node.output_name,
        )
        self.binder.nodes.append(plan)
        return {}

    def known(self, schema: Schema, names: Any, *inside: str | int) -> bool:
        """Are all of these columns there?"""
        fine = True
        for i, name in enumerate(names):
            if name not in schema:
                at = inside if inside[-1] == "group_key" else (*inside, i)
                if inside[-1] in ("sort_order", "sort_by"):  # the column, where more is said about it
                    at = (*at, "field")
                help_text = did_you_mean(name, schema) or f"the columns are {', '.join(schema)}"
                self.problem("E203", f"there is no column '{name}'", *at, help=help_text)
                fine = False
        return fine


def _whole_records(nodes: Mapping[str, PlanNode], start: str) -> list[SourcePlan]:
    """The sources whose records reach a node as they were read, with their undeclared columns and their groups: joins,
    aggregates and queries make records of their own."""
    found: dict[str, SourcePlan] = {}
    seen: set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop(0)
        node = nodes[name]
        if name in seen:
            continue
        seen.add(name)
        if isinstance(node, SourcePlan):
            found[name] = node
        elif isinstance(node, TransformPlan):
            todo.append(node.inputs[0].node)
        elif isinstance(node, RoutePlan | MergePlan):
            todo += [ref.node for ref in node.inputs]
    return list(found.values())


def _policy(source: SourcePlan, key: str) -> str:
    if key == "on_unmapped":
        return f"on_unmapped {source.config.on_unmapped.mode}"
    names = source.config.correlation_key
    return f"correlation_key {', '.join(names)}" if names else "no correlation_key"


def _namespaces(program: Program) -> set[str]:
    from clinker_spark.cxl import ir

    nodes = (node for e in program.typed.expressions() for node in e.walk())
    return {"window" for node in nodes if isinstance(node, ir.WindowRef)}
