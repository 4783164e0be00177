"""From a file to a checked pipeline: `load_pipeline` and `load_composition`.

Everything that is wrong is found in one go: the settings, each node by itself, the graph, what stands between nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clinker_spark.config.checks import check_pipeline
from clinker_spark.config.errors import ConfigError
from clinker_spark.config.files import read_source
from clinker_spark.config.findings.translate import finding_at, key_name, owner, validate, value_span
from clinker_spark.config.model.base import Model
from clinker_spark.config.model.composition import Interface
from clinker_spark.config.model.documents.files import LATER_NODES, CompositionDocument, PipelineDocument
from clinker_spark.config.model.documents.pipeline import ErrorHandling, Settings
from clinker_spark.config.model.documents.stream import StreamSettings
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.model.output import OutputNode
from clinker_spark.config.model.source import SourceNode
from clinker_spark.config.model.transform import TransformNode
from clinker_spark.config.node_types import NODE_TYPES, node_type
from clinker_spark.config.schemas import DeclaredSchema, declared_schema, with_places
from clinker_spark.config.topology import Graph, Ref, build_graph, vertices
from clinker_spark.config.tree.scalar_text import ScalarText
from clinker_spark.config.tree.yaml import Document, Items, KeyPath, Mapping, parse_yaml
from clinker_spark.config.values import shown
from clinker_spark.config.variables import variable_types
from clinker_spark.core.diagnostics import Diagnostic, Severity
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.span import Source, Span
from clinker_spark.core.types import Type
from clinker_spark.cxl.system import SCOPES

# What other tools call our nodes. Edit distance would not find these.
_FOREIGN = {
    **dict.fromkeys(("input", "read", "reader", "extract", "file"), "source"),
    **dict.fromkeys(("map", "filter", "select", "compute", "derive", "cxl"), "transform"),
    **dict.fromkeys(("group", "group_by", "reduce", "rollup", "summarize"), "aggregate"),
    **dict.fromkeys(("branch", "switch", "split"), "route"),
    **dict.fromkeys(("union", "concat", "append"), "merge"),
    **dict.fromkeys(("join", "lookup"), "combine"),
    **dict.fromkeys(("write", "writer", "target", "destination"), "output"),
}

_OPTIONAL = ("error_handling", "stream")
"""Sections that a file may leave out."""


def _words() -> list[str]:
    return [word for row in NODE_TYPES.values() for word in (row.word, *row.aliases)]


@dataclass(frozen=True, eq=False)
class LoadedFile:
    """What pipelines and compositions share: nodes, their graph, and the way back into the file."""

    path: Path
    document: Document
    nodes: tuple[NodeModel, ...]
    graph: Graph
    schemas: dict[KeyPath, DeclaredSchema]
    """Every declared schema, by the path of its `schema:` key."""
    warnings: tuple[Diagnostic, ...] = field(default=())

    @property
    def source(self) -> Source:
        return self.document.source

    @property
    def folder(self) -> Path:
        """What relative paths in the file start from."""
        return self.path.parent

    def node(self, name: str) -> NodeModel:
        return next(node for node in self.nodes if node.name == name)

    def index(self, name: str) -> int:
        """The position of a node in `nodes:`."""
        return next(i for i, node in enumerate(self.nodes) if node.name == name)

    def path_of(self, name: str, *inside: str | int) -> KeyPath:
        """The path of a node, or of something in it: `path_of("orders", "config", "cxl")`."""
        return ("nodes", self.index(name), *inside)

    def schema_of(self, name: str) -> DeclaredSchema | None:
        """The declared schema of a source or output."""
        return self.schemas.get(self.path_of(name, "config", "schema"))

    def declared_variables(self) -> dict[str, dict[str, Type]]:
        """The variables that transforms declare: scope -> name -> type; nullable when there is no default."""
        scopes: dict[str, dict[str, Type]] = {scope: {} for scope in SCOPES}
        for node in self.nodes:
            for declared in node.config.declares if isinstance(node, TransformNode) else ():
                scopes[declared.scope] |= variable_types({declared.name: declared})
        return scopes

    def envelope_types(self) -> dict[str, Type]:
        """What the envelopes of sources declare, by `section.field`."""
        found: dict[str, Type] = {}
        for node in self.nodes:
            if isinstance(node, SourceNode) and node.config.envelope is not None:
                found |= node.config.envelope.types
        return found

    def span_of(self, path: Iterable[str | int]) -> Span:
        """The span of a value; of the nearest one around it when it is not in the file."""
        return self.document.span_of(tuple(path))

    def text_of(self, path: Iterable[str | int]) -> ScalarText:
        """A text, such as a program, with the way from its characters to those of the file."""
        found = self.document.text_at(tuple(path))
        if found is None:
            raise KeyError(tuple(path))
        return found

    def diagnostic(
        self, code: str, message: str, path: Iterable[str | int], help_text: str | None = None, *, key: bool = False
    ) -> Diagnostic:
        """A finding about a place in this file."""
        at = tuple(path)
        span = self.document.head_span(at) if key else value_span(self.document, at)
        severity = Severity.WARNING if code.startswith("W") else Severity.ERROR
        return Diagnostic(code, message, self.source, span, help_text, severity=severity)


@dataclass(frozen=True, eq=False, kw_only=True)
class PipelineFile(LoadedFile):
    """A pipeline that passed every check that needs no data and no other pipeline."""

    settings: Settings
    error_handling: ErrorHandling
    stream: StreamSettings = field(default_factory=StreamSettings)


@dataclass(frozen=True, eq=False, kw_only=True)
class CompositionFile(LoadedFile):
    """A composition that passed the same checks."""

    interface: Interface


def load_pipeline(path: str | Path) -> PipelineFile:
    """Read and check a pipeline file. Raises `ConfigError` with everything that is wrong."""
    return parse_pipeline(read_source(path), Path(path))


def load_composition(path: str | Path) -> CompositionFile:
    """Read and check a composition file. Raises `ConfigError` with everything that is wrong."""
    return parse_composition(read_source(path), Path(path))


def parse_pipeline(source: Source, path: Path) -> PipelineFile:
    """A pipeline from its text; relative paths in it start from the folder of `path`."""
    loader = _Loader(source, path)
    loader.top(_PipelineTop, PipelineDocument, "pipeline")
    settings = loader.section(Settings, "pipeline")
    handling = loader.section(ErrorHandling, "error_handling")
    stream = loader.section(StreamSettings, "stream")
    nodes = loader.nodes()
    graph, problems = build_graph(loader.document)
    loader.found += problems
    sources = [vertex.name for vertex in vertices(loader.document) if vertex.kind == "source"]
    loader.found += (finding_at(f, loader.document, ()) for f in check_pipeline(nodes, handling, sources))
    warnings = loader.finish()
    assert settings is not None and handling is not None and stream is not None
    found = tuple(node for _, node in nodes)
    return PipelineFile(
        path,
        loader.document,
        found,
        graph,
        loader.schemas,
        warnings,
        settings=settings,
        error_handling=handling,
        stream=stream,
    )


def parse_composition(source: Source, path: Path) -> CompositionFile:
    """A composition from its text; relative paths in it start from the folder of `path`."""
    loader = _Loader(source, path)
    loader.top(_CompositionTop, CompositionDocument, "composition")
    interface = loader.section(Interface, "_compose")
    nodes = loader.nodes()
    roots, outputs = loader.ports()
    graph, problems = build_graph(loader.document, roots, outputs)
    loader.found += problems
    loader.found += (finding_at(f, loader.document, ()) for f in check_pipeline(nodes, None))
    if interface is not None:
        for name, port in interface.inputs.items():
            if port.schema_ is not None:
                loader.schema(port.schema_, port, ("_compose", "inputs", name, "schema"))
    warnings = loader.finish()
    assert interface is not None
    found = tuple(node for _, node in nodes)
    return CompositionFile(path, loader.document, found, graph, loader.schemas, warnings, interface=interface)


class _PipelineTop(Model):
    """The top of a file, before its parts are looked at one by one."""

    pipeline: Any
    nodes: Any
    error_handling: Any = None
    stream: Any = None
    notes: Any = PipelineDocument.model_fields["notes"]


class _CompositionTop(Model):
    compose: Any = CompositionDocument.model_fields["compose"]
    nodes: Any
    notes: Any = CompositionDocument.model_fields["notes"]


class _Loader:
    """Reads one file part by part and keeps all that is wrong with it."""

    def __init__(self, source: Source, path: Path) -> None:
        self.document = parse_yaml(source)
        self.folder = path.parent
        self.found: list[Diagnostic] = []
        self.schemas: dict[KeyPath, DeclaredSchema] = {}

    def problem(self, code: str, message: str, path: KeyPath, help_text: str, *, key: bool = False) -> None:
        span = self.document.head_span(path) if key else value_span(self.document, path)
        self.found.append(Diagnostic(code, message, self.document.source, span, help_text))

    def top(self, model: type[Model], shape: type[Model], what: str) -> None:
        """The keys at the top of the file."""
        root = self.document.root
        if root is None or (not isinstance(root, Mapping) and root.data() is None):
            self.problem(
                "E006", "the file is empty", (), f"a {what} starts with '{'_compose' if what[0] == 'c' else what}:'"
            )
        elif not isinstance(root, Mapping):
            self.problem("E007", f"a {what} is a mapping, not {shown(root.data())}", (), "write 'key: value' lines")
        elif what == "pipeline" and "_compose" in root.entries:
            self.problem("E101", "this file is a composition", ("_compose",), "run a pipeline that uses it", key=True)
        elif what == "composition" and "_compose" not in root.entries:
            help_text = "add '_compose:' with its name, inputs and outputs"
            self.problem("E101", "this file is not a composition: '_compose' is missing", (), help_text)
        else:
            validate(model, self.document, (), self.found, shape=shape)
            return
        raise ConfigError(self.found)

    def section(self, model: type[Any], key: str) -> Any:
        node = self.document.node((key,))
        if node is None or (node.data() is None and key in _OPTIONAL):
            return model() if key in _OPTIONAL else None
        if not isinstance(node, Mapping):
            help_text = f"write the settings below '{key}:', indented"
            self.problem("E007", f"'{key}' must be a mapping, not {shown(node.data())}", (key,), help_text)
            return None
        return validate(model, self.document, (key,), self.found)

    def nodes(self) -> list[tuple[int, NodeModel]]:
        node = self.document.node(("nodes",))
        if node is None:
            return []
        if not isinstance(node, Items) or not node.items:
            reason = "must not be empty" if node.data() in (None, []) else f"must be a list, not {shown(node.data())}"
            help_text = "start each node with '- type:' below 'nodes:'"
            body = self.document.node(("_compose",)) is not None
            self.problem("E111" if body else "E007", f"'nodes' {reason}", ("nodes",), help_text, key=True)
            return []
        found = []
        for i in range(len(node.items)):
            model = self._node(i)
            if model is not None:
                found.append((i, model))
        return found

    def _node(self, index: int) -> NodeModel | None:
        path: KeyPath = ("nodes", index)
        item = self.document.node(path)
        if not isinstance(item, Mapping):
            given = shown(None if item is None else item.data())
            self.problem("E007", f"{key_name(path)} must be a mapping, not {given}", path, "write '- type: source'")
            return None
        kind = item.data().get("type")
        if kind is None:
            help_text = f"add 'type:' with one of {', '.join(NODE_TYPES)}"
            message = f"'type' is missing{owner(path, self.document)}"
            self.problem("E006", message, path, help_text, key=True)
            return None
        if not isinstance(kind, str):
            self.problem("E007", f"'type' must be a text, not {shown(kind)}", (*path, "type"), "write 'type: source'")
            return None
        known = node_type(kind)
        if known is None:
            self._unknown_type(kind, (*path, "type"))
            return None
        node: Any = validate(known.model, self.document, path, self.found)
        if isinstance(node, SourceNode):
            config = with_places(node.config, self.document, (*path, "config"), self.folder, self.found)
            node = None if config is None else node.model_copy(update={"config": config})
        if isinstance(node, SourceNode | OutputNode) and node.config.schema_ is not None:
            self.schema(node.config.schema_, node.config, (*path, "config", "schema"))
        return node  # type: ignore[no-any-return]

    def _unknown_type(self, kind: str, path: KeyPath) -> None:
        if kind in LATER_NODES:
            self.problem(
                "E009", f"nodes of type '{kind}' are not supported yet", path, f"the types are {', '.join(NODE_TYPES)}"
            )
            return
        close = _FOREIGN.get(kind)
        help_text = f"did you mean '{close}'?" if close else did_you_mean(kind, _words())
        help_text = help_text or f"the types are {', '.join(NODE_TYPES)}"
        self.problem("E008", f"there is no node type {shown(kind)}", path, help_text)

    def schema(self, spec: Any, owned_by: Any, path: KeyPath) -> None:
        schema = declared_schema(spec, owned_by, self.document, path, self.folder, self.found)
        if schema is not None:
            adjust = None if schema.kinds is not None else getattr(owned_by, "adjusted", None)
            self.schemas[path] = schema if adjust is None else replace(schema, columns=adjust(schema.columns))

    def ports(self) -> tuple[list[str], list[Ref]]:
        """The input ports of a composition, and what its outputs read; as they stand, right or wrong."""
        inputs, outputs = self.document.node(("_compose", "inputs")), self.document.node(("_compose", "outputs"))
        roots = list(inputs.entries) if isinstance(inputs, Mapping) else []
        given = outputs.data() if isinstance(outputs, Mapping) else {}
        refs = [Ref(text, ("_compose", "outputs", port)) for port, text in given.items() if isinstance(text, str)]
        return roots, refs

    def finish(self) -> tuple[Diagnostic, ...]:
        """The warnings of a file without errors. Raises `ConfigError` otherwise."""
        found = sorted(self.found, key=lambda d: (d.source is not self.document.source, d.span.start if d.span else 0))
        if any(d.severity is Severity.ERROR for d in found):
            # That nothing reads a node may well be the fault of an error elsewhere.
            raise ConfigError([d for d in found if d.code not in ("W003", "W004")])
        return tuple(found)
