"""What binding one node has at hand: its inputs, what its file may name, and what was bound before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clinker_spark.config.load import LoadedFile
from clinker_spark.config.model.node import NodeModel
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import Type
from clinker_spark.cxl.conditions import Condition, compile_condition, compile_value
from clinker_spark.cxl.errors import CxlError
from clinker_spark.cxl.program import compile
from clinker_spark.plan.facts import Estimate, Keys, Sorting
from clinker_spark.plan.nodes.base import PlanNode, Schema, StreamRef
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.plan.passes.correlation import keys_of
from clinker_spark.plan.passes.estimates import estimate_of
from clinker_spark.plan.passes.sorting import sorting_of

_VARIABLE = re.compile(r"\$(pipeline|source|record)\.([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)


@dataclass(frozen=True)
class Bound:
    """A stream whose columns are known."""

    ref: StreamRef
    schema: Schema
    emitted: tuple[str, ...]
    documents: bool = False
    """Does it carry records of several files, each a document of its own?"""


Streams = dict[str | None, Bound]
"""The streams of a node, by port."""
Declared = Mapping[str, Mapping[str, Type]]
"""Declared variables: scope -> name -> type."""


@dataclass(frozen=True)
class Scope:
    """What programs of one file may name besides columns."""

    vars: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] | None = None
    declares: Declared = field(default_factory=dict)
    modules: Path | None = None
    resources: Mapping[str, str | None] | None = None
    """In a composition: the file of each slot; None for one that the call leaves open."""
    outer: Declared = field(default_factory=dict)
    """The variables of the file that uses this one: only those it asks for can be read."""


@dataclass(frozen=True)
class Known:
    """What is known of the nodes that are bound, by node. It is what the passes find out, one node after the other."""

    keys: dict[str, Keys] = field(default_factory=dict)
    sorting: dict[str, Sorting] = field(default_factory=dict)
    estimates: dict[str, Estimate | None] = field(default_factory=dict)
    events: dict[str, str | None] = field(default_factory=dict)
    """The column with the time of its records."""
    sizes: dict[str, Estimate | None] = field(default_factory=dict)
    """About how many records each source has."""
    file_sizes: dict[str, int] = field(default_factory=dict)
    """By source of one file that is there: its bytes on disk."""

    def add(self, node: PlanNode) -> None:
        self.keys[node.name] = keys_of(node, self.keys)
        self.sorting[node.name] = sorting_of(node, self.sorting)
        self.estimates[node.name] = estimate_of(node, self.estimates, self.sizes)
        self.events[node.name] = node.event_column([self.events[ref.node] for ref in node.inputs])


class Binding:
    """The nodes and findings of a whole pipeline, its compositions included. Some nodes are bound by what is `known`
    of those before them."""

    def __init__(
        self,
        variables: Mapping[str, Any],
        modules: Path | None,
        measured: Mapping[str, int],
        body: Callable[..., dict[str, Streams | None]],
        memory_limit: int | None = None,
        folder: Path = Path(),
    ) -> None:
        self.variables = variables
        self.modules = modules
        self.measured = measured
        """The records that each source had in the last run."""
        self.body = body
        """Binds the nodes of a file: compositions are files of their own."""
        self.folder = folder
        """What relative paths of files start from."""
        self.memory_limit = memory_limit
        """What a run may use, if somebody said so."""
        self.nodes: list[PlanNode] = []
        self.by_name: dict[str, PlanNode] = {}
        self.sources: dict[str, SourcePlan] = {}
        self.found: list[Diagnostic] = []
        self.using: list[Path] = []
        """The compositions around the file that is bound."""
        self.known = Known()

    def add(self, node: PlanNode) -> None:
        self.nodes.append(node)
        self.by_name[node.name] = node
        self.known.add(node)


class NodeBinder:
    """Binds one node: what it reads is known."""

    def __init__(
        self, binder: Binding, file: LoadedFile, node: NodeModel, inputs: Sequence[Bound], prefix: str, scope: Scope
    ) -> None:
        self.binder = binder
        self.file = file
        self.node = node
        self.inputs = inputs
        self.prefix = prefix
        self.scope = scope
        self.name = prefix + node.name
        self.path = file.path_of(node.name)

    def problem(self, code: str, message: str, *inside: str | int, help: str | None = None, key: bool = False) -> None:
        """Note what is wrong, or worth a warning, with a key of the node."""
        self.binder.found.append(self.file.diagnostic(code, message, (*self.path, *inside), help, key=key))

    def common(self, schema: Schema, emitted: tuple[str, ...]) -> dict[str, Any]:
        """What every plan node has."""
        refs = tuple(bound.ref for bound in self.inputs)
        return {
            "name": self.name,
            "inputs": refs,
            "schema": schema,
            "emitted": emitted,
            "file": self.file,
            "path": self.path,
        }

    def made(self, node: PlanNode) -> Streams:
        """The streams of a node that is bound."""
        self.binder.add(node)
        several = node.several_documents([bound.documents for bound in self.inputs])
        return {port: Bound(StreamRef(node.name, port), node.schema, node.emitted, several) for port in node.streams}

    def carries_undeclared(self, name: str) -> bool:
        """Can the records of a node have columns that no schema names?"""
        seen, todo = {name}, [name]
        while todo:
            node = self.binder.by_name[todo.pop()]
            if node.widens:
                return True
            before = {ref.node for ref in node.carried_from} - seen
            seen |= before
            todo += before
        return False

    def made_of_several(self, name: str) -> PlanNode | None:
        """The node before which the records of a node still belonged to files; None if they still do."""
        todo = [name]
        while todo:
            node = self.binder.by_name[todo.pop()]
            if node.mixes_files and node.inputs:
                return node
            todo += [ref.node for ref in node.carried_from]
        return None

    def sources_of(self, name: str) -> set[str]:
        """The sources that the records of a node were read from, or made of."""
        found, seen, todo = set(), {name}, [name]
        while todo:
            node = self.binder.by_name[todo.pop()]
            found |= {node.name} if not node.inputs else set()
            before = {ref.node for ref in node.made_of} - seen
            seen |= before
            todo += before
        return found

    def known(self, schema: Mapping[str, object], names: Any, *inside: str | int) -> bool:
        """Are all of these columns there? Notes it if not."""
        fine = True
        for i, name in enumerate(names):
            if name not in schema:
                at = inside if inside[-1] == "group_key" else (*inside, i)
                if inside[-1] in ("sort_order", "sort_by", "order_by"):  # the column, where more is said about it
                    at = (*at, "field")
                help_text = did_you_mean(name, schema) or f"the columns are {', '.join(schema)}"
                self.problem("E203", f"there is no column '{name}'", *at, help=help_text)
                fine = False
        return fine

    def compile(
        self,
        *inside: str | int,
        schema: Schema,
        condition: bool = False,
        value: bool = False,
        codes: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Any:
        """The program, `condition` or `value` at a key of the node; None when it is wrong, which is noted then.
        `codes` replaces the codes of findings by those that the node has for them."""
        text = self.file.text_of((*self.path, *inside))
        run: Callable[..., Any] = compile_condition if condition else compile_value if value else compile
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
