"""Generated graphs over dirty files of every format, and beside each node what it does in plain Python.

All streams have the columns `id`, `a`, `c` and `n` (which may be null), so that any node can follow any other. The
model keeps the records that are still good, and writes down for each node what it took, left out, failed and passed.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq

FORMATS = ("csv", "json", "xml", "fixed_width", "parquet")
WIDTHS = {"id": 12, "a": 8, "c": 12, "n": 8}
TYPES = {"id": "string", "a": "int", "c": "string", "n": "nullable(int)"}
SCHEMA = "{ id: string, a: int, c: string, n: nullable(int) }"
BAD: dict[str, tuple[str, ...]] = {
    "csv": ("no number", "empty", "short", "long", "bytes"),
    "json": ("no number", "missing", "null", "broken"),
    "xml": ("no number", "missing"),
    "fixed_width": ("no number", "empty", "short"),
    "parquet": ("null",),
}

Record = dict[str, Any]


@dataclass
class Numbers:
    """What the model expects of a node."""

    took: int
    passed: int
    dropped: dict[str, int] = field(default_factory=dict)
    failed: int = 0


@dataclass
class Stream:
    """The good records that a node, or a port of one, gives."""

    ref: str
    records: list[Record]


Model = Callable[[list[Record]], tuple[list[Record], Numbers]]

# ---------------------------------------------------------------- files


def _layout(widths: dict[str, int]) -> str:
    found, start = [], 0
    for name, width in widths.items():
        found.append(f"{{ name: {name}, type: {TYPES[name]}, start: {start}, width: {width} }}")
        start += width
    return f"[{', '.join(found)}]"


BAD_FILES: dict[str, bytes] = {
    "csv": b"other,columns\n1,2\n",
    "json": b'[{"id": "lost", "a": 1}, {"id":',
    "xml": b"<all><one><id>lost</id></one>",
    "fixed_width": b"no gzip at all",
    "parquet": b"no table",
}
"""Files that cannot be read, whatever is in them."""


def source_config(kind: str, path: str) -> str:
    schema = _layout(WIDTHS) if kind == "fixed_width" else SCHEMA
    options = ", options: { record_path: all/one }" if kind == "xml" else ""
    return f"{{ type: {kind}, path: {path}, schema: {schema}{options} }}"


def output_config(kind: str, path: str, more: str = "") -> str:
    schema = ""
    if kind == "fixed_width":
        columns = [f"{{ name: {n}, type: {TYPES[n]}, width: {w} }}" for n, w in WIDTHS.items()]
        schema = f", schema: [{', '.join(columns)}]"
    return f"{{ type: {kind}, path: {path}{schema}{more} }}"


def write_file(path: Path, kind: str, records: list[tuple[Record, str | None]]) -> None:
    """Records, each with what is wrong with it."""
    match kind:
        case "csv":
            path.write_bytes(b"id,a,c,n\n" + b"".join(_csv_line(r, bad) for r, bad in records))
        case "json":
            path.write_text("".join(_json_line(r, bad) + "\n" for r, bad in records))
        case "xml":
            path.write_text(f"<all>{''.join(_xml_text(r, bad) for r, bad in records)}</all>")
        case "fixed_width":
            path.write_text("".join(_fixed_line(r, bad) + "\n" for r, bad in records))
        case "parquet":
            rows = [{**r, "a": None if bad else r["a"]} for r, bad in records]
            types = {"id": pa.string(), "a": pa.int64(), "c": pa.string(), "n": pa.int64()}
            table = pa.Table.from_pylist(rows, pa.schema(list(types.items())))
            pq.write_table(table, path, row_group_size=7)


def _texts(r: Record, bad: str | None) -> list[str]:
    a = {"no number": "x7", "empty": ""}.get(bad or "", str(r["a"]))
    return [r["id"], a, r["c"], "" if r["n"] is None else str(r["n"])]


def _csv_line(r: Record, bad: str | None) -> bytes:
    cells = _texts(r, bad)
    cells = cells[:2] if bad == "short" else [*cells, "more", "and more"] if bad == "long" else cells
    line = ",".join(cells).encode()
    return (line.replace(r["c"].encode(), b"\xff\xfe", 1) if bad == "bytes" else line) + b"\n"


def _json_line(r: Record, bad: str | None) -> str:
    if bad == "broken":
        return json.dumps(r)[:-1]
    made = dict(r)
    if bad == "missing":
        del made["a"]
    elif bad is not None:
        made["a"] = None if bad == "null" else "x7"
    return json.dumps(made)


def _xml_text(r: Record, bad: str | None) -> str:
    texts = dict(zip(WIDTHS, _texts(r, bad), strict=True))
    if bad == "missing":
        del texts["a"]
    if r["n"] is None:
        del texts["n"]
    return f"<one>{''.join(f'<{name}>{text}</{name}>' for name, text in texts.items())}</one>"


def _fixed_line(r: Record, bad: str | None) -> str:
    line = ""
    for text, (name, width) in zip(_texts(r, bad), WIDTHS.items(), strict=True):
        line += text.rjust(width) if "int" in TYPES[name] else text.ljust(width)
    return line[:15] if bad == "short" else line


def count_file(path: Path, kind: str) -> int:
    """How many records an output file has."""
    match kind:
        case "parquet":
            return int(pq.read_metadata(path).num_rows)
        case "json":
            return len(json.loads(path.read_text() or "[]"))
        case "xml":
            return len(ElementTree.fromstring(path.read_text()))
        case "csv":
            return max(len(path.read_text().splitlines()) - 1, 0)
    return len(path.read_text().splitlines())


# ---------------------------------------------------------------- graphs


class Graph:
    """A pipeline that grows node by node, with its model."""

    def __init__(self, rng: random.Random, folder: Path) -> None:
        self.rng = rng
        self.folder = folder
        self.nodes: list[str] = []
        self.expected: dict[str, Numbers] = {}
        self.open: list[Stream] = []
        self.written: dict[str, tuple[Path, str]] = {}
        self.read = 0
        self.bad_files = 0

    @property
    def text(self) -> str:
        end = "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"
        return "pipeline: { name: generated }\nnodes:\n" + "\n".join(self.nodes) + "\n" + end

    def _node(self, text: str) -> None:
        self.nodes.append(f"  - {{ {text} }}")

    def source(self, kind: str, rows: int, *, dirty: float = 0.12, bad_file: bool = False) -> Stream:
        name = f"s{len(self.nodes)}"
        records: list[tuple[Record, str | None]] = []
        bads = list(BAD[kind])
        for i in range(rows):
            c = self.rng.choice(["7", "12", "345", "n/a", "x y"])
            n = None if self.rng.random() < 0.2 else self.rng.randint(0, 9)
            record = {"id": f"{name}-{i}", "a": self.rng.randint(0, 12), "c": c, "n": n}
            bad = None
            if self.rng.random() < dirty:
                bad = bads.pop(0) if bads else self.rng.choice(BAD[kind])  # each kind at least once
            records.append((record, bad))
        path = self.folder / f"{name}.in"
        write_file(path, kind, records)
        config = source_config(kind, path.name)
        if bad_file:
            bad_path = self.folder / f"{name}.bad{'.gz' if kind == 'fixed_width' else ''}"
            bad_path.write_bytes(BAD_FILES[kind])
            several = f"paths: [{bad_path.name}, {path.name}], files: {{ on_bad_file: skip }}"
            config = config.replace(f"path: {path.name}", several)
            self.bad_files += 1
        self._node(f"type: source, name: {name}, config: {config}")
        good = [record for record, bad in records if bad is None]
        self.expected[name] = Numbers(rows, len(good), failed=rows - len(good))
        self.read += rows
        return Stream(name, good)

    def transform(
        self, stream: Stream, cxl: str, model: Callable[[list[Record]], tuple[list[Record], Numbers]]
    ) -> Stream:
        name = f"t{len(self.nodes)}"
        lines = json.dumps(cxl)
        self._node(f"type: transform, name: {name}, input: {stream.ref}, config: {{ cxl: {lines} }}")
        records, self.expected[name] = model(stream.records)
        return Stream(name, records)

    # -- nodes that can be put after any stream

    def filtered(self, stream: Stream) -> Stream:
        m = self.rng.randint(2, 5)

        def model(rows: list[Record]) -> tuple[list[Record], Numbers]:
            kept = [r for r in rows if r["a"] % m != 1 and r["a"] < 11]
            return kept, _numbers(len(rows), len(kept), filter=len(rows) - len(kept))

        return self.transform(stream, f"filter a % {m} != 1\nlet unused = 3\nfilter a < 11", model)

    def fallible(self, stream: Stream) -> Stream:
        k = self.rng.randint(0, 6)

        def model(rows: list[Record]) -> tuple[list[Record], Numbers]:
            good = [r for r in rows if r["a"] != k and r["c"] != "n/a"]
            kept = [r for r in good if r["a"] != 9]
            failed = len(rows) - len(good)
            return kept, _numbers(len(rows), len(kept), failed, filter=len(good) - len(kept))

        # A record that fails is not left out, although it stands before the filter.
        cxl = f'let z = 100 / (a - {k})\nlet y = if c == "n/a" then c.to_int() else 1\nfilter a != 9'
        return self.transform(stream, cxl, model)

    def unique(self, stream: Stream) -> Stream:
        def model(rows: list[Record]) -> tuple[list[Record], Numbers]:
            kept = list({r["a"]: r for r in rows}.values())
            return kept, _numbers(len(rows), len(kept), distinct=len(rows) - len(kept))

        # Only the numbers are compared: later nodes must not depend on which of the equals was first.
        cxl = 'emit id = "d"\nemit c = "5"\nemit n = 1\ndistinct by a'
        return self.transform(stream, cxl, _with(model, id="d", c="5", n=1))

    def fanned(self, stream: Stream) -> Stream:
        def model(rows: list[Record]) -> tuple[list[Record], Numbers]:
            good = [r for r in rows if r["a"] != 3]
            made = [r for r in good for _ in range(max(r["a"] % 4 - 1, 0))]
            empty = sum(r["a"] % 4 < 2 for r in good)
            return made, _numbers(len(rows), len(made), len(rows) - len(good), **{"emit each of nothing": empty})

        listed = "if a % 4 < 2 then [] else (if a % 4 == 2 then [1] else [1, 2])"
        return self.transform(
            stream, f'let z = 1 / (a - 3)\nemit each x in {listed} {{ emit c = "8" }}', _with(model, c="8")
        )

    def reshaped(self, stream: Stream) -> Stream:
        """Groups by `a`: some records are changed, some added, and one group is thrown out by a conflict."""
        name, k = f"h{len(self.nodes)}", self.rng.randint(0, 12)
        rules = [
            {"name": "one", "when": f"a == {k} and n > 4", "mutate": {"set": {"c": '"6"'}}},
            {
                "name": "two",
                "when": "a % 3 == 0 and n > 2",
                "mutate": {"set": {"c": '"9"'}},
                "synthesize": {"overrides": {"id": 'id + "+"'}},
            },
        ]
        config = json.dumps({"partition_by": ["a"], "order_by": ["n"], "rules": rules})
        self._node(f"type: reshape, name: {name}, input: {stream.ref}, config: {config}")

        def above(r: Record, limit: int) -> bool:
            return r["n"] is not None and r["n"] > limit

        rows = stream.records
        lost = {r["a"] for r in rows if r["a"] == k and k % 3 == 0 and above(r, 4)}
        good = [r for r in rows if r["a"] not in lost]
        made = [
            {**r, "c": "6" if r["a"] == k and above(r, 4) else "9" if r["a"] % 3 == 0 and above(r, 2) else r["c"]}
            for r in good
        ]
        made += [{**r, "id": r["id"] + "+"} for r in good if r["a"] % 3 == 0 and above(r, 2)]
        self.expected[name] = Numbers(len(rows), len(made), failed=len(rows) - len(good))
        return Stream(name, made)

    def culled(self, stream: Stream) -> list[Stream]:
        """Groups by `a`: large ones leave, by a port that is read, by one that is not, or by none."""
        name, way = f"k{len(self.nodes)}", self.rng.choice(["read", "unread", "none"])
        rules = [
            {"name": "many", "drop_group_when": "count(*) > 6"},
            {"name": "divides", "drop_group_when": "10 / (count(*) - 2) > 5"},
        ]
        config: dict[str, Any] = {"partition_by": ["a"], "rules": rules}
        if way != "none":
            config["removed_to"] = "removed"
        self._node(f"type: cull, name: {name}, input: {stream.ref}, config: {json.dumps(config)}")
        sizes = Counter(r["a"] for r in stream.records)
        good = [r for r in stream.records if sizes[r["a"]] != 2]
        many = [r for r in good if sizes[r["a"]] > 6]
        divides = [r for r in good if sizes[r["a"]] == 3]
        kept = [r for r in good if sizes[r["a"]] <= 6 and sizes[r["a"]] != 3]
        taken, failed = len(stream.records), len(stream.records) - len(good)
        if way == "read":
            self.expected[name] = _numbers(taken, len(good), failed)
            return [Stream(name, kept), Stream(f"{name}.removed", [*many, *divides])]
        gone = {"cull many": len(many), "cull divides": len(divides)}
        self.expected[name] = _numbers(taken, len(kept), failed, **gone)
        return [Stream(name, kept)]

    def routed(self, stream: Stream) -> list[Stream]:
        name, inclusive = f"r{len(self.nodes)}", self.rng.random() < 0.4
        mode = "mode: inclusive, " if inclusive else ""
        conditions = "conditions: { low: a < 4, even: a % 2 == 0 }, default: rest"
        self._node(f"type: route, name: {name}, input: {stream.ref}, config: {{ {mode}{conditions} }}")
        low = [r for r in stream.records if r["a"] < 4]
        even = [r for r in stream.records if r["a"] % 2 == 0 and (inclusive or r["a"] >= 4)]
        rest = [r for r in stream.records if r["a"] >= 4 and r["a"] % 2]
        self.expected[name] = Numbers(len(stream.records), len(low) + len(even) + len(rest))
        ports = {"low": low, "even": even, "rest": rest}
        return [Stream(f"{name}.{port}", records) for port, records in ports.items()]

    def merged(self, one: Stream, two: Stream) -> Stream:
        name = f"m{len(self.nodes)}"
        self._node(f"type: merge, name: {name}, inputs: [{one.ref}, {two.ref}]")
        records = [*one.records, *two.records]
        self.expected[name] = Numbers(len(records), len(records))
        return Stream(name, records)

    def grouped(self, stream: Stream) -> Stream:
        name = f"g{len(self.nodes)}"
        cxl = json.dumps('filter a != 8\nemit id = "g"\nemit c = (100 / (count(*) - 2)).to_string()\nemit n = min(n)')
        self._node(f"type: aggregate, name: {name}, input: {stream.ref}, config: {{ group_by: [a], cxl: {cxl} }}")
        kept = [r for r in stream.records if r["a"] != 8]
        groups: dict[int, list[Record]] = {}
        for r in kept:
            groups.setdefault(r["a"], []).append(r)
        made = []
        for a, rows in groups.items():
            if len(rows) != 2:
                numbers = [r["n"] for r in rows if r["n"] is not None]
                made.append({"id": "g", "a": a, "c": "?", "n": min(numbers, default=None)})
        self.expected[name] = _numbers(
            len(stream.records), len(made), len(groups) - len(made), filter=len(stream.records) - len(kept)
        )
        return Stream(name, made)

    def looked_up(self, stream: Stream, other: Stream) -> Stream:
        """Each with the records of another stream that have its number; keys that cannot be computed fail."""
        name = f"c{len(self.nodes)}"
        match, miss = self.rng.choice(["first", "all"]), self.rng.choice(["skip", "null_fields"])
        cxl = json.dumps("emit id = d.id\nemit a = d.a\nemit c = d.c\nemit n = d.n")
        config = f'where: "100 / (d.a - 5) * 0 + d.a == b.a", match: {match}, on_miss: {miss}, propagate_ck: driver'
        inputs = f"{{ d: {stream.ref}, b: {other.ref} }}"
        self._node(f"type: combine, name: {name}, input: {inputs}, config: {{ {config}, cxl: {cxl} }}")
        good = [r for r in stream.records if r["a"] != 5]
        there = Counter(r["a"] for r in other.records)
        made = []
        for r in good:
            found = there[r["a"]] if match == "all" else min(there[r["a"]], 1)
            made += [r] * (found or (miss == "null_fields"))
        numbers = _numbers(len(stream.records), len(made), len(stream.records) - len(good))
        missed = sum(not there[r["a"]] for r in good)
        if miss == "skip" and match == "first" and missed:
            numbers.dropped["on_miss: skip"] = missed
        self.expected[name] = numbers
        return Stream(name, made)

    def queried(self, stream: Stream) -> Stream:
        name = f"q{len(self.nodes)}"
        source = stream.ref.split(".")[-1]
        query = f"from r in {source} where 10 / (r.a - 4) < 3 select {{ id: r.id, a: r.a, c: r.c, n: r.n }}"
        self._node(f"type: query, name: {name}, inputs: [{stream.ref}], config: {{ query: {json.dumps(query)} }}")
        good = [r for r in stream.records if r["a"] != 4]
        kept = [r for r in good if 10 / (r["a"] - 4) < 3]
        self.expected[name] = Numbers(len(stream.records), len(kept), failed=len(stream.records) - len(good))
        return Stream(name, kept)

    def output(self, stream: Stream, kind: str) -> None:
        name = f"o{len(self.nodes)}"
        path = self.folder / f"{name}.out"
        sort, kept = "", stream.records
        if self.rng.random() < 0.4:
            sort = ", sort_order: [{ field: n, null_order: drop }]"
            kept = [r for r in kept if r["n"] is not None]
        self._node(f"type: output, name: {name}, input: {stream.ref}, config: {output_config(kind, path.name, sort)}")
        dropped = len(stream.records) - len(kept)
        self.expected[name] = _numbers(len(stream.records), len(kept), **{"null_order: drop": dropped})
        self.written[name] = (path, kind)


def _numbers(took: int, passed: int, failed: int = 0, **dropped: int) -> Numbers:
    return Numbers(took, passed, {reason: count for reason, count in dropped.items() if count}, failed)


def _with(model: Model, **values: Any) -> Model:
    """The same, with other values in what is given."""

    def changed(rows: list[Record]) -> tuple[list[Record], Numbers]:
        kept, numbers = model(rows)
        return [{**r, **values} for r in kept], numbers

    return changed


def generated(seed: int, folder: Path) -> Graph:
    """Two sources and one to look up, about eight nodes, three to six outputs; over all seeds every format reads and
    writes, and meets every other."""
    rng = random.Random(20261116 + seed)
    graph = Graph(rng, folder)
    first, second = FORMATS[seed % 5], FORMATS[(seed // 5 + seed) % 5]
    graph.open = [graph.source(first, rng.randint(30, 60)), graph.source(second, rng.randint(30, 60))]
    lookup = graph.source(rng.choice(FORMATS), 15)
    steps: list[Callable[[Stream], Any]] = [
        graph.filtered,
        graph.fallible,
        graph.unique,
        graph.fanned,
        graph.grouped,
        graph.queried,
        graph.reshaped,
        lambda stream: graph.looked_up(stream, lookup),
    ]
    rng.shuffle(steps)
    # Every kind of node once, each after some stream; then a branch in two and a merge.
    for step in steps:
        at = rng.randrange(len(graph.open))
        graph.open[at] = step(graph.open[at])
    culled, *removed = graph.culled(graph.open.pop(0))
    graph.open = [culled, *graph.open]
    split = graph.open.pop(rng.randrange(len(graph.open)))
    low, even, rest = graph.routed(split)
    graph.open.append(graph.merged(low, graph.open.pop()))
    if rng.random() < 0.5:
        graph.open.append(rest)  # read twice
    for i, stream in enumerate((*graph.open, even, rest, *removed)):
        graph.output(stream, FORMATS[(seed + i) % 5])
    if rng.random() < 0.5:
        graph.output(Stream(lookup.ref, lookup.records), first)
    return graph
