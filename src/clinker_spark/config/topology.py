"""The graph of a pipeline: who reads whom, whether that makes sense, and in what order nodes can run.

Works on the file itself, not on the models: a node with a wrong setting still has a name and inputs, and what is
wrong with the graph is shown together with what is wrong with the nodes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from clinker_spark.config.model.node import text_of
from clinker_spark.config.node_types import node_type
from clinker_spark.config.tree.yaml import Document, Items, KeyPath, Mapping, Scalar
from clinker_spark.core.diagnostics import Diagnostic, Label, Severity
from clinker_spark.core.diagnostics.suggest import nearest

_GUESSED = {"envelope": ("body", "header", "trailer")}
"""Where nodes of later versions name their inputs: a typo in them is told all the same."""
MAIN_PORT = "out"
"""Another spelling of a node that has only one stream: `clean.out` is `clean`."""


@dataclass(frozen=True, slots=True)
class Ref:
    """One input of a node, as it is written. The path of an input of a combine or composition ends with its name."""

    text: str
    path: KeyPath


@dataclass(frozen=True, slots=True)
class Vertex:
    """A node of the graph. `ports` is None when they are not known here: those of a composition stand in its file."""

    index: int
    name: str
    kind: str
    refs: tuple[Ref, ...]
    ports: tuple[str, ...] | None = ()
    sides: tuple[str, ...] = ()
    """Ports beside the stream that has the name of the node."""
    terminal: bool = False
    """Feeds nobody, and is meant to: an output, or a transform of the init phase."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A stream from a node (or a port of it) into one input of another."""

    producer: str
    port: str | None
    consumer: str
    path: KeyPath


@dataclass(frozen=True)
class Graph:
    """The nodes in the order of the file, and the edges in the order of the inputs."""

    names: tuple[str, ...]
    edges: tuple[Edge, ...]
    roots: tuple[str, ...] = ()
    """The input ports of a composition: streams that no node makes."""
    _inputs: dict[str, tuple[Edge, ...]] = field(default_factory=dict, repr=False)
    _readers: dict[str, tuple[Edge, ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for name in (*self.names, *self.roots):
            self._inputs[name] = tuple(edge for edge in self.edges if edge.consumer == name)
            self._readers[name] = tuple(edge for edge in self.edges if edge.producer == name)

    def inputs(self, name: str) -> tuple[Edge, ...]:
        """What a node reads, in the order of its inputs."""
        return self._inputs[name]

    def readers(self, name: str) -> tuple[Edge, ...]:
        """Who reads a node, in the order of the file."""
        return self._readers[name]

    def order(self) -> tuple[str, ...]:
        """The nodes so that each comes after what it reads; otherwise as they stand in the file."""
        position = {name: i for i, name in enumerate(self.names)}
        waiting = {name: {e.producer for e in self.inputs(name)} & position.keys() for name in self.names}
        ready = [position[name] for name in self.names if not waiting[name]]
        heapq.heapify(ready)
        done: list[str] = []
        while ready:
            name = self.names[heapq.heappop(ready)]
            done.append(name)
            for edge in self.readers(name):
                left = waiting.get(edge.consumer)
                if left is not None and name in left:
                    left.discard(name)
                    if not left:
                        heapq.heappush(ready, position[edge.consumer])
        return tuple(done)


def build_graph(
    document: Document, roots: Sequence[str] = (), outputs: Sequence[Ref] = ()
) -> tuple[Graph, list[Diagnostic]]:
    """The graph of `nodes:` and everything that is wrong with it.

    `roots` and `outputs` are the ports of a composition: streams that come from outside, and nodes that are read there.
    """
    return _Builder(document, tuple(roots), tuple(outputs)).build()


# ---------------------------------------------------------------- reading the file


def vertices(document: Document) -> list[Vertex]:
    """The nodes with a name, however wrong the rest of them is."""
    nodes = document.node(("nodes",))
    found = []
    for i, item in enumerate(nodes.items if isinstance(nodes, Items) else []):
        name, kind = text_of(item, "name"), text_of(item, "type") or ""
        if isinstance(item, Mapping) and name:
            known = node_type(kind)
            if known is None:  # something else is said about it
                found.append(Vertex(i, name, kind, tuple(_refs(item, _GUESSED.get(kind, ("input",)), i)), None))
                continue
            model = known.model
            refs = [*_refs(item, model.inputs_in(item), i)]
            refs += [Ref(text, ("nodes", i, *at)) for text, at in model.further_inputs_in(item)]
            ports, sides = model.ports_in(item), model.side_ports_in(item)
            found.append(Vertex(i, name, known.word, tuple(refs), ports, sides, model.ends_in(item)))
    return found


def _refs(node: Mapping, keys: Sequence[str], index: int) -> Iterator[Ref]:
    base: KeyPath = ("nodes", index)
    for key in keys:
        value = node.get(key)
        if isinstance(value, Scalar) and value.text:
            yield Ref(value.text, (*base, key))
        elif isinstance(value, Items):
            for i, item in enumerate(value.items):
                if isinstance(item, Scalar) and item.text:
                    yield Ref(item.text, (*base, key, i))
        elif isinstance(value, Mapping):
            for name, entry in value.entries.items():
                if isinstance(entry.value, Scalar) and entry.value.text:
                    yield Ref(entry.value.text, (*base, key, name))


# ---------------------------------------------------------------- checks


class _Builder:
    def __init__(self, document: Document, roots: tuple[str, ...], outputs: tuple[Ref, ...]) -> None:
        self.document = document
        self.roots = roots
        self.outputs = outputs
        self.all = vertices(document)
        self.known: dict[str, Vertex] = {}
        self.found: list[Diagnostic] = []
        self.edges: list[Edge] = []

    def build(self) -> tuple[Graph, list[Diagnostic]]:
        self._names()
        for vertex in self.known.values():
            for ref in vertex.refs:
                self._edge(vertex, ref)
        outside = [self._target(ref) for ref in self.outputs]
        self._init_phase()
        self._cycles()
        if not any(d.severity is Severity.ERROR for d in self.found):  # or a typo would be told as two
            self._unread({target for target in outside if target is not None})
        return Graph(tuple(self.known), tuple(self.edges), self.roots), self.found

    def _names(self) -> None:
        folded: dict[str, Vertex] = {}
        for vertex in self.all:
            path: KeyPath = ("nodes", vertex.index, "name")
            if vertex.name in self.known:
                first = self.known[vertex.name]
                self._problem("E001", f"two nodes are named '{vertex.name}'", path, "rename one of them", first)
                continue
            if vertex.name in self.roots:
                message = f"node '{vertex.name}' has the name of an input port"
                self._problem("E101", message, path, "rename the node: other nodes could mean either")
                continue
            if "." in vertex.name:
                plain = vertex.name.replace(".", "_")
                message = f"the name '{vertex.name}' has a dot in it"
                self._problem("E010", message, path, f"write '{plain}': a dot separates a node from its port")
            other = folded.get(vertex.name.casefold())
            if other is not None:
                message = f"'{vertex.name}' and '{other.name}' differ only in capital letters"
                self._problem("W002", message, path, "rename one of them", other)
            folded.setdefault(vertex.name.casefold(), vertex)
            self.known[vertex.name] = vertex

    def _edge(self, vertex: Vertex, ref: Ref) -> None:
        target = self._target(ref, vertex)
        if target is not None:
            producer, port = target
            self.edges.append(Edge(producer, port, vertex.name, ref.path))

    def _target(self, ref: Ref, reader: Vertex | None = None) -> tuple[str, str | None] | None:
        """The node and port that an input means, or None with a diagnostic."""
        name, dot, port = ref.text.partition(".")
        if ref.text in self.known or ref.text in self.roots:
            name, dot, port = ref.text, "", ""
        if name in self.roots and (not dot or port == MAIN_PORT):
            return name, None
        vertex = self.known.get(name)
        if reader is not None and vertex is reader:
            message = f"node '{name}' reads itself"
            self._problem("E002", message, ref.path, "write the name of the node whose records it should read")
            return None
        if vertex is None:
            where = "the composition has no node or port" if self.roots or self.outputs else "there is no node"
            code = "E102" if reader is None else "E307" if reader.kind == "combine" else "E004"
            self._problem(code, f"{where} named '{name}'", ref.path, self._meant(ref.text, reader))
            return None
        if vertex.kind == "output":
            self._problem("E004", f"'{name}' is an output: it has no records to read", ref.path, self._beside(vertex))
            return None
        return self._port(vertex, dot, port, ref, "E004" if reader is not None else "E102")

    def _port(self, vertex: Vertex, dot: str, port: str, ref: Ref, code: str) -> tuple[str, str | None] | None:
        name, ports = vertex.name, vertex.ports
        if ports is None:
            return name, port or None
        if ports and port not in ports:
            close = nearest(port, ports)
            listed = ", ".join(f"{name}.{p}" for p in ports)
            help_text = f"did you mean '{name}.{close}'?" if close else f"write one of {listed}"
            message = (
                f"route '{name}' has no branch '{port}'" if dot else f"'{name}' is a route: name one of its branches"
            )
            self._problem(code, message, ref.path, help_text)
            return None
        if port in vertex.sides:
            return name, port
        if not ports and dot and port != MAIN_PORT:
            meant = " or ".join(f"'{meant}'" for meant in (name, *(f"{name}.{side}" for side in vertex.sides)))
            self._problem(code, f"{vertex.kind} '{name}' has no port '{port}'", ref.path, f"write {meant}")
            return None
        return name, port if ports else None

    def _meant(self, text: str, reader: Vertex | None) -> str:
        names = [
            v.name for v in self.known.values() if v.kind != "output" and v is not reader and v.ports in ((), None)
        ]
        ports = [f"{v.name}.{port}" for v in self.known.values() for port in (*(v.ports or ()), *v.sides)]
        candidates = [*names, *ports, *self.roots]
        # A branch alone, or the name of a node with a wrong port: both are near misses that a distance may not see.
        branch = next((c for c in ports if c.partition(".")[2] == text), None)
        close = branch or nearest(text, candidates) or nearest(text.partition(".")[0], candidates)
        if close:
            return f"did you mean '{close}'?"
        shown = ", ".join(candidates[:12]) + (", ..." if len(candidates) > 12 else "")
        return f"the nodes that can be read are {shown}" if candidates else "add a node of that name"

    def _beside(self, vertex: Vertex) -> str:
        return f"read what '{vertex.name}' reads: '{vertex.refs[0].text}'" if vertex.refs else "read another node"

    def _init_phase(self) -> None:
        """What an init transform reads is run before everything else; nobody can read it then."""
        first = {name for name, vertex in self.known.items() if vertex.kind == "transform" and vertex.terminal}
        for edge in self.edges:
            if edge.producer in first and edge.consumer not in first:
                message = f"'{edge.producer}' has 'phase: init': no other node can read its records"
                self._problem("E164", message, edge.path, self._beside(self.known[edge.producer]))
        for ref in self.outputs:
            name = ref.text.partition(".")[0]
            if name in first:
                message = f"'{name}' has 'phase: init': it cannot be an output of the composition"
                self._problem("E164", message, ref.path, self._beside(self.known[name]))

    # ------------------------------------------------------------ cycles

    def _cycles(self) -> None:
        reads: dict[str, list[Edge]] = {name: [] for name in self.known}
        for edge in self.edges:
            if edge.producer in reads:
                reads[edge.consumer].append(edge)
        state: dict[str, int] = {}
        for start in self.known:
            if start not in state:
                self._search(start, reads, state)

    def _search(self, start: str, reads: dict[str, list[Edge]], state: dict[str, int]) -> None:
        """Depth first without recursion: 1 on the way, 2 done. A cycle is reported once, where it closes."""
        way: list[Edge] = []
        stack: list[tuple[str, Iterator[Edge]]] = [(start, iter(reads[start]))]
        state[start] = 1
        while stack:
            name, edges = stack[-1]
            edge = next(edges, None)
            if edge is None:
                state[name] = 2
                stack.pop()
                if way:
                    way.pop()
            elif edge.producer not in state:
                state[edge.producer] = 1
                way.append(edge)
                stack.append((edge.producer, iter(reads[edge.producer])))
            elif state[edge.producer] == 1:
                names = [name for name, _ in stack]
                self._cycle([*way[names.index(edge.producer) :], edge])

    def _cycle(self, edges: list[Edge]) -> None:
        flow = [edge.producer for edge in reversed(edges)]
        first = min(range(len(flow)), key=lambda i: self.known[flow[i]].index)
        names = [*flow[first:], *flow[:first]]
        message = f"nodes read each other in a circle: {' -> '.join([*names, names[0]])}"
        closing = next(edge for edge in edges if edge.consumer == names[0])
        labels = tuple(
            Label(self.document.span_of(edge.path), f"'{edge.consumer}' reads '{edge.producer}'")
            for edge in edges
            if edge is not closing
        )
        span = self.document.span_of(closing.path)
        help_text = "let one of them read a node outside the circle"
        self.found.append(Diagnostic("E003", message, self.document.source, span, help_text, labels=labels[:4]))

    # ------------------------------------------------------------ warnings

    def _unread(self, outside: set[tuple[str, str | None]]) -> None:
        read = {(edge.producer, edge.port) for edge in self.edges} | outside
        names = {name for name, _ in read}
        for vertex in self.known.values():
            at: KeyPath = ("nodes", vertex.index, "name")
            if vertex.terminal:
                continue
            if vertex.name not in names:
                message = f"nothing reads {vertex.kind} '{vertex.name}'"
                self._problem("W003", message, at, "its records go nowhere: add an output, or remove the node")
                continue
            if vertex.sides and (vertex.name, None) not in read:
                message = f"nothing reads what {vertex.kind} '{vertex.name}' keeps"
                self._problem("W003", message, at, f"its records go nowhere: read '{vertex.name}'")
            for port in (*(vertex.ports or ()), *vertex.sides):
                if (vertex.name, port) not in read:
                    message = f"nothing reads branch '{port}' of {vertex.kind} '{vertex.name}'"
                    self._problem("W003", message, at, f"its records go nowhere: read '{vertex.name}.{port}'")
        if not self.outputs and self.known and not any(vertex.kind == "output" for vertex in self.known.values()):
            span = self.document.head_span(("nodes",))
            help_text = "add a node of 'type: output'"
            message = "the pipeline has no output"
            self.found.append(
                Diagnostic("W004", message, self.document.source, span, help_text, severity=Severity.WARNING)
            )

    def _problem(self, code: str, message: str, path: KeyPath, help_text: str, first: Vertex | None = None) -> None:
        severity = Severity.WARNING if code.startswith("W") else Severity.ERROR
        labels: tuple[Label, ...] = ()
        if first is not None:
            labels = (Label(self.document.span_of(("nodes", first.index, "name")), "first used here"),)
        span = self.document.span_of(path)
        self.found.append(
            Diagnostic(code, message, self.document.source, span, help_text, severity=severity, labels=labels)
        )
