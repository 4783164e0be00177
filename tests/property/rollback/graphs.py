"""Pipelines from seeds: small inputs with few groups, and limits that are near what is there, so that much fails."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from tests.property.rollback.graph import Graph, Node, Row, Source
from tests.property.rollback.operators import Evaluation
from tests.property.rollback.records import Record, is_strict, streams_of

KEYS: dict[str, list[Any]] = {
    "string": ["A", "B", "C", "D", None],
    "int": [1, 2, 3, 4, None],
    "float": [0.0, -0.0, 1.5, 2.0, None],
}
REWRITTEN = {"string": "Z", "int": 9, "float": 9.5}


@dataclass(frozen=True)
class Open:
    """A stream that something can read."""

    ref: str
    columns: tuple[str, ...] = ("k", "h", "g", "v")
    numbers: tuple[str, ...] = ("v",)
    """The columns that a limit can be set for."""
    totals: bool = False
    window: bool = False
    """May a window read it? Not one directly after a source or merge."""


WIDE = range(320, 700)
"""The graphs of these seeds have more of what is rare in others."""


class Generator:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed * 7919 + 13)
        self.wide = seed in WIDE
        self.graph = Graph([], [])
        self.count = 0
        self.type = self.rng.choice(["string", "string", "int", "float"])
        self.extra = random.Random(seed * 104_729 + 7)
        """Decides about reshapes and culls, so that all else stays as it is without them."""

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # ---------------------------------------------------------------- sources

    def source(self, name: str, key: tuple[str, ...], rows: int, dirty: float) -> Open:
        types = {"k": f"nullable({self.type})", "h": "nullable(string)", "g": "string", "v": "int"}
        made = [self._row(dirty) for _ in range(rows)]
        self.graph.sources.append(Source(name, key, types, made))
        return Open(name)

    def _row(self, dirty: float) -> Row:
        rng = self.rng
        row: Row = {
            "k": rng.choice(KEYS[self.type] if self.chance(0.3) else KEYS[self.type][:3]),
            "h": None if self.chance(0.2) else rng.choice("xy"),
            "g": rng.choice("mno"),
            "v": rng.randint(1, 12),
        }
        if self.chance(dirty):
            what = rng.choice(["x7", "x7", "", "more"])
            if what == "more":
                row["more"] = True
            else:
                row["v"] = what
        return row

    # ---------------------------------------------------------------- nodes

    def node(self, kind: str, reads: list[str], **options: Any) -> str:
        self.count += 1
        name = f"{kind[0]}{self.count}"
        self.graph.nodes.append(Node(kind, name, reads, options))
        return name

    def sample(self, ref: str) -> list[Record]:
        plan = streams_of(self.graph)
        return Evaluation(self.graph, plan, frozenset(), frozenset(), lambda _: False).run().streams[ref]

    def limit(self, stream: Open, column: str) -> tuple[str, int]:
        """A test that a few records do not pass, or would not without those that fail."""
        values = sorted(int(r.values[column]) for r in self.sample(stream.ref) if r.values[column] is not None)
        if not values:
            return "above", 100
        if self.chance(0.7):
            at = values[-min(len(values), self.rng.randint(1, 3))]
            return "above", at - self.rng.choice([0, 0, 1])
        at = values[min(len(values) - 1, self.rng.randint(0, 2))]
        return "below", at + self.rng.choice([0, 0, 1])

    def transform(self, stream: Open, steps: list[list[Any]], more: tuple[str, ...] = ()) -> Open:
        ref = self.node("transform", [stream.ref], steps=steps)
        return replace(stream, ref=ref, columns=stream.columns + more, window=True)

    def checked(self, stream: Open) -> Open:
        """A transform that fails for some records."""
        column = self.rng.choice(stream.numbers)
        kind, number = self.limit(stream, column)
        way = self.rng.random()
        out = f"x{self.count}"
        if way < 0.3 and column in ("v",):
            return self.transform(stream, [["divide", out, column, number]], (out,))
        if way < 0.45 and kind == "above":
            self.graph.shapes.add("validation")
            return self.transform(stream, [["valid", column, number]])
        steps: list[list[Any]] = [[kind, out, column, number]]
        if self.chance(0.2):
            steps.append(["filter", "v", 5, self.rng.randint(0, 4)])
        return self.transform(stream, steps)

    def filtered(self, stream: Open) -> Open:
        self.graph.shapes.add("filter")
        modulus = self.rng.choice([3, 4, 5])
        return self.transform(stream, [["filter", "v", modulus, self.rng.randrange(modulus)]])

    def distinct(self, stream: Open) -> Open:
        self.graph.shapes.add("distinct")
        return self.transform(stream, [["distinct", "v"]])

    def windowed(self, stream: Open) -> Open:
        self.graph.shapes.add("window after totals" if stream.totals else "window")
        if not stream.window:
            stream = self.transform(stream, [["same"]])
        functions = ["row_number", "lag", "sum", "cumulative_sum", "count", "first"]
        out = f"w{self.count}"
        by = [name for name in stream.columns if name in ("g", "k")]
        group_by = [self.rng.choice(by)] if by and self.chance(0.7) else []
        sort_by = ["v"] if self.chance(0.5) else []
        made = self.transform(stream, [["window", out, group_by, sort_by, self.rng.choice(functions)]], (out,))
        return replace(made, numbers=(*made.numbers, out))

    def rewritten(self, stream: Open) -> Open:
        self.graph.shapes.add("rewritten key")
        return self.transform(stream, [["rewrite", "k", REWRITTEN[self.type]]])

    def reshaped(self, stream: Open) -> Open:
        rng = self.extra
        self.graph.shapes.add("reshape")
        values = sorted(r.values["v"] for r in self.sample(stream.ref) if r.values["v"] is not None) or [5]
        high = values[-min(len(values), rng.randint(1, 4))] - 1
        low = high + 2 if rng.random() < 0.5 else values[len(values) // 3]
        by = rng.choice([["k"], ["h"], ["h", "k"], []])  # rules give `g` other values
        sort_by = rng.choice([[], ["v"]])
        ref = self.node("reshape", [stream.ref], by=by, sort_by=sort_by, low=low, high=high)
        return replace(stream, ref=ref, window=True)

    def culled(self, stream: Open) -> list[Open]:
        rng = self.extra
        self.graph.shapes.add("cull")
        test, limit = rng.choice([("sum", 20), ("count", 3), ("divides", 2), ("divides", 3)])
        ref = self.node("cull", [stream.ref], by=rng.choice([["k"], ["g"], ["g", "k"], []]), test=test, limit=limit)
        return [replace(stream, ref=ref, window=True), replace(stream, ref=f"{ref}.removed", window=True)]

    def routed(self, stream: Open) -> list[Open]:
        inclusive = self.chance(0.5)
        self.graph.shapes.add("inclusive route" if inclusive else "exclusive route")
        limit = self.rng.randint(3, 8)
        first: list[Any] = ["divides", "v", self.rng.randint(1, 12)] if self.chance(0.35) else ["<", "v", limit]
        conditions = {"one": first, "two": [">", "v", limit - 2 * inclusive]}
        name = self.node("route", [stream.ref], mode="inclusive" if inclusive else "exclusive", conditions=conditions)
        return [replace(stream, ref=f"{name}.{port}", window=False) for port in ("one", "two", "rest")]

    def merged(self, streams: list[Open]) -> Open:
        mode = "interleave" if self.chance(0.25) else "concat"
        self.graph.shapes.add(f"merge {mode}")
        ref = self.node("merge", [s.ref for s in streams], mode=mode)
        return replace(streams[0], ref=ref, window=False)

    def together_again(self, stream: Open) -> Open:
        """Branches of one stream that are merged: records may come twice."""
        self.graph.shapes.add("merged branches")
        if self.chance(0.5):
            return self.merged([self.filtered(stream), self.filtered(stream)])
        one, two, _ = self.routed(stream)
        kind, number = self.limit(one, "v")
        out = f"c{self.count}"
        return self.merged(
            [
                self.transform(one, [[kind, out, "v", number]], (out,)),
                self.transform(two, [["above", out, "v", 100]], (out,)),
            ]
        )

    def joined_totals(self, stream: Open, total: Open, name: str) -> Open:
        """Two totals of one stream, side by side."""
        other = self.filtered(stream) if self.chance(0.5) else self.checked(stream)
        other = self.aggregated(other, [name])
        made = self.combined(total, other, "joined totals", [(name, name)])
        return self.checked(made) if self.chance(0.6) else made

    def combined(self, driver: Open, build: Open, shape: str, on: list[tuple[str, str]] | None = None) -> Open:
        rng = self.rng
        self.graph.shapes.add(shape)
        match = rng.choice(["first", "first", "all", "collect"])
        if build.totals and match == "collect":
            match = "all"
        propagate: str | list[str] = rng.choice(["driver", "all", "named"])
        plan = streams_of(self.graph)
        if propagate == "named":
            keys = [*plan[driver.ref].keys, *plan[build.ref].keys]
            propagate = sorted({rng.choice(keys) for _ in range(rng.randint(1, 2))}) if keys else "all"
            self.graph.shapes.add("named")
        if driver.totals:
            propagate = "driver"
        options: dict[str, Any] = {
            "on": on or [rng.choice([("g", "g"), ("k", "k")])],
            "match": match,
            "on_miss": "error" if self.chance(0.08) else rng.choice(["null_fields", "skip"]),
            "propagate": propagate,
            "keeps": list(driver.columns),
            "out": f"j{self.count}",
        }
        made = replace(driver, numbers=(*driver.numbers, options["out"]), window=True)
        if match == "collect":
            self.graph.shapes.add("collect")
            ref = self.node("combine", [driver.ref, build.ref], **options)
            return self.transform(replace(driver, ref=ref), [["length", options["out"], "b"]], (options["out"],))
        more = (options["out"],)
        if self.chance(0.35):
            options["divide"] = f"y{self.count}"
            more += (options["divide"],)
        ref = self.node("combine", [driver.ref, build.ref], **options)
        return replace(made, ref=ref, columns=driver.columns + more)

    def aggregated(self, stream: Open, group_by: list[str]) -> Open:
        also = [name for name in ("n", "lo", "hi", "all") if self.chance(0.35)]
        options: dict[str, Any] = {"group_by": group_by, "also": also}
        if self.chance(0.15):
            options["finalize"] = self.rng.randint(1, 3)
        reads = streams_of(self.graph)[stream.ref]
        ref = self.node("aggregate", [stream.ref], **options)
        shape = "plain" if not reads.lineage else "strict" if is_strict(self.graph.nodes[-1], reads) else "relaxed"
        self.graph.shapes.add(f"{shape} total" if not stream.totals else f"total of {shape} totals")
        return Open(ref, (*group_by, "v", *also), ("v",), totals=True, window=True)

    def output(self, stream: Open) -> None:
        options: dict[str, Any] = {"columns": list(stream.columns)}
        if self.chance(0.2):
            options["policy"] = self.rng.choice(["any", "all", "primary"])
            self.graph.shapes.add(f"output {options['policy']}")
        self.node("output", [stream.ref], **options)

    # ---------------------------------------------------------------- the whole

    def run(self) -> Graph:
        rng = self.rng
        key: tuple[str, ...] = rng.choice([("k",), ("k",), ("k",), ("k", "h"), ("k", "h"), ()])
        dirty = rng.choice([0.0, 0.06, 0.15])
        stream = self.source("a", key, rng.randint(5, 16), dirty)
        if self.chance(0.35):
            other = self.source("b", key, rng.randint(5, 10), dirty)
            if self.chance(0.3):
                kind, number = self.limit(stream, "v")
                stream = self.transform(stream, [[kind, "c", "v", number]])
                other = self.transform(other, [["above", "c", "v", 100]])
            stream = self.merged([stream, other])
        lookup = None
        if self.chance(0.8 if self.wide else 0.5):
            lookup = self.source("p", rng.choice([(), ("g",), key]), rng.randint(3, 6), rng.choice([0.0, 0.2]))
        ends = self._rows(stream, lookup)
        if self.chance(0.3):
            self.graph.shapes.add("side branch")
            self.output(self.checked(stream) if self.chance(0.6) else stream)
        if lookup is not None and self.chance(0.3):
            self.graph.shapes.add("build rows written")
            self.output(lookup)
        for end in ends[:3]:
            self._end(end, ends[0], lookup)
        for end in ends[3:]:
            self.output(end)
        self._handling()
        return self.graph

    def _rows(self, stream: Open, lookup: Open | None) -> list[Open]:
        """What happens to records; the streams that are open afterwards."""
        rng = self.rng
        steps = [self.checked, self.checked, self.filtered, self.distinct, self.windowed, self.rewritten]
        weights = [3, 3, 2, 1, 2, 0.5]
        for step in rng.choices(steps, weights, k=rng.randint(0, 2)):
            stream = step(stream)
        if self.extra.random() < 0.2:
            stream = self.reshaped(stream)
        if self.extra.random() < 0.2:
            stream, removed = self.culled(stream)
            self.output(removed)
        if lookup is not None:
            if self.chance(0.3):
                lookup = self.checked(lookup)
            stream = self.combined(stream, lookup, "combine")
            if self.chance(0.5):
                stream = self.checked(stream)
        if (lookup is None or self.wide) and self.chance(0.25):
            other = self.filtered(stream) if self.chance(0.5) else stream
            stream = self.combined(stream, other, "self-join")
            if self.chance(0.5):
                stream = self.checked(stream)
        if self.wide and self.chance(0.3):
            stream = self.together_again(stream)
        if self.chance(0.3):
            return self.routed(stream)
        if self.chance(0.35):
            return [stream, self.checked(stream)]
        return [stream]

    def _end(self, stream: Open, whole: Open, lookup: Open | None) -> None:
        rng = self.rng
        plan = streams_of(self.graph)
        what = rng.choice(["rows", "strict", "relaxed", "relaxed", "totals", "diamond", "diamond"])
        keys = [name for name in plan[stream.ref].keys if name in stream.columns]
        if what == "rows" or (what == "strict" and not keys):
            self.output(stream)
            return
        if self.chance(0.4):
            self.output(stream)
        group_by = keys if what == "strict" else rng.choice([["g"], ["g"], ["k"], [], ["h"]])
        if self.wide and what == "totals" and keys and self.chance(0.4):
            group_by = keys
        total = self.aggregated(stream, list(group_by))
        if self.chance(0.6):
            total = self.checked(total)
        if what == "totals":
            if total.columns[0] in ("g", "k") and self.chance(0.3):
                total = self.windowed(total)
            self.output(total)
            total = self.aggregated(total, [rng.choice(group_by)] if group_by and self.chance(0.3) else [])
            if self.chance(0.5):
                total = self.checked(total)
        elif what == "diamond" and group_by:
            joined = self.combined(stream, total, "diamond", [(name, name) for name in group_by])
            if self.chance(0.7):
                joined = self.checked(joined)
            self.output(joined)
            if self.chance(0.3):
                return
        elif self.wide and what == "relaxed" and group_by and self.chance(0.5):
            total = self.joined_totals(stream, total, group_by[0])
        elif lookup is not None and total.columns[0] in ("g", "k") and self.chance(0.4):
            name = total.columns[0]
            total = self.combined(total, lookup, "joined total", [(name, name)])
            if self.chance(0.5):
                total = self.checked(total)
        if self.chance(0.15) and total.columns[0] in ("g", "k"):
            total = self.windowed(total)
        self.output(total)

    def _handling(self) -> None:
        rng, handling = self.rng, self.graph.handling
        if self.chance(0.55 if self.wide else 0.35):
            handling["retraction_scope"] = "group"
            self.graph.shapes.add("group scope")
        if self.chance(0.3):
            handling["correlation_fanout_policy"] = rng.choice(["any", "all", "primary"])
            self.graph.shapes.add(f"policy {handling['correlation_fanout_policy']}")
        if self.chance(0.15):
            handling["max_group_buffer"] = rng.randint(2, 6)
            self.graph.shapes.add("max_group_buffer")
        if self.chance(0.1) and "retraction_scope" not in handling:
            handling["include_retracted"] = False


MORE = range(2000, 2400)
"""The graphs of these seeds also have what sources and nodes can do besides."""


class Various(Generator):
    """Sources in other formats and of several files, `emit each`, and combines of three inputs."""

    def source(self, name: str, key: tuple[str, ...], rows: int, dirty: float) -> Open:
        made = super().source(name, key, rows, dirty)
        source = self.graph.sources[-1]
        source.format = self.extra.choice(["csv", "csv", "json", "parquet"])
        self.graph.shapes.add(source.format)
        for row in source.rows if source.format != "csv" else ():
            if row.pop("more", False):
                row["v"] = "x7"
            if source.format == "parquet" and isinstance(row["v"], str):
                row["v"] = ""
        if self.extra.random() < 0.5:
            first = self.extra.randint(1, rows - 1)
            second = self.extra.randint(0, rows - first)
            source.parts = tuple(part for part in (first, second, rows - first - second) if part)
            self.graph.shapes.add("several files")
        return made

    def checked(self, stream: Open) -> Open:
        if stream.totals or self.extra.random() > 0.25:
            return super().checked(stream)
        self.graph.shapes.add("emit each")
        out = f"e{self.count}"
        return self.transform(stream, [["each", out, self.limit(stream, "v")[1]]], (out,))

    def combined(self, driver: Open, build: Open, shape: str, on: list[tuple[str, str]] | None = None) -> Open:
        if shape != "combine" or self.extra.random() > 0.5:
            return super().combined(driver, build, shape, on)
        self.graph.shapes.add("three inputs")
        fields = streams_of(self.graph)[build.ref].keys
        also = self.source("q", self.extra.choice([(), ("g",)]) if "g" not in fields else (), 4, 0.1)
        keys = [name for ref in (driver.ref, build.ref, also.ref) for name in streams_of(self.graph)[ref].keys]
        out = f"j{self.count}"
        ref = self.node(
            "combine",
            [driver.ref, build.ref, also.ref],
            on=[("g", "g")],
            then=[self.extra.choice([("k", "k"), ("g", "g")])],
            match="first",
            on_miss=self.extra.choice(["null_fields", "null_fields", "skip"]),
            propagate=self.extra.choice(["driver", "all", [self.extra.choice(keys)] if keys else "all"]),
            keeps=list(driver.columns),
            out=out,
        )
        more = (out, f"{out}c")
        return replace(driver, ref=ref, columns=driver.columns + more, numbers=(*driver.numbers, out), window=True)

    def aggregated(self, stream: Open, group_by: list[str]) -> Open:
        made = super().aggregated(stream, group_by)
        node = self.graph.nodes[-1]
        sources = [s for s in self.graph.sources if s.name in streams_of(self.graph)[stream.ref].sources]
        if any(source.parts for source in sources):
            apart = len(sources) == 1 and group_by and not stream.totals and self.extra.random() < 0.5
            node.options["documents"] = "separate" if apart else "together"
            self.graph.shapes.add(f"documents {node.options['documents']}")
        return made


def generated(seed: int) -> Graph:
    return (Various if seed in MORE else Generator)(seed).run()
