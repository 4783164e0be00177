"""What a generated pipeline is made of, as YAML and as input files.

Every stream of records has the columns `k` and `h` (which may be keys), `g` (a few values) and `v` (a number), so that
almost any node can follow any other; totals call their sum `v`, too. Nodes are plain data: the model reads them, and so
does what makes them smaller.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Value = Any
Row = dict[str, Value]

CATEGORY = "type_coercion_failure"
COLUMNS = ("k", "h", "g", "v")


@dataclass
class Node:
    """One node; `reads` are the names of nodes, or `node.port`."""

    kind: str
    name: str
    reads: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Source:
    """Its files, and how they are read. A row may have a value that is no number in `v`, or, in CSV, more values than
    columns."""

    name: str
    key: tuple[str, ...]
    types: dict[str, str]
    rows: list[Row]
    format: str = "csv"
    parts: tuple[int, ...] = ()
    """The rows of each file, if there are several."""

    def broken(self, row: Row) -> str | None:
        """The category of a row that cannot be read."""
        if row.get("more"):
            return "structural_validation"
        if row["v"] == "":
            return "missing_required_field"
        return CATEGORY if isinstance(row["v"], str) else None

    @property
    def files(self) -> dict[str, list[Row]]:
        """The rows of each file, by its name."""
        if not self.parts:
            return {f"{self.name}.{self.format}": self.rows}
        ends = [0, *accumulate(self.parts)]
        return {f"{self.name}-{i}.{self.format}": self.rows[ends[i] : ends[i + 1]] for i in range(len(self.parts))}

    def file_of(self, number: int) -> int:
        """In which file a row is, which is counted over all of them."""
        return next((i for i, end in enumerate(accumulate(self.parts)) if number <= end), 0)


@dataclass
class Graph:
    sources: list[Source]
    nodes: list[Node]
    handling: dict[str, Any] = field(default_factory=dict)
    shapes: set[str] = field(default_factory=set)

    @property
    def outputs(self) -> list[Node]:
        return [node for node in self.nodes if node.kind == "output"]

    def yaml(self) -> str:
        lines = ["pipeline: { name: generated }", "nodes:"]
        lines += [f"  - {_flow(_source(source))}" for source in self.sources]
        lines += [f"  - {_flow(_node(node))}" for node in self.nodes]
        handling = {"strategy": "continue", **self.handling}
        dlq = {"path": "dead.csv"}
        if "include_retracted" in handling:
            dlq["include_retracted"] = handling.pop("include_retracted")
        return "\n".join([*lines, f"error_handling: {_flow({**handling, 'dlq': dlq})}", ""])

    def write(self, folder: Path) -> None:
        (folder / "pipeline.yaml").write_text(self.yaml())
        for source in self.sources:
            for name, rows in source.files.items():
                _WRITERS[source.format](folder / name, rows, source.types)

    def offsets(self) -> dict[tuple[str, str], int]:
        """The rows before each file, by source and name of the file."""
        found = {}
        for source in self.sources:
            before = 0
            for name, rows in source.files.items():
                found[source.name, name] = before
                before += len(rows)
        return found


def text_of(rows: Iterable[Row]) -> str:
    lines = [",".join(COLUMNS)]
    for row in rows:
        cells = [cell(row[name]) for name in COLUMNS]
        lines.append(",".join(cells + ["more", "and more"] * bool(row.get("more"))))
    return "\n".join(lines) + "\n"


def cell(value: Value) -> str:
    """A value as CSV has it."""
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    return str(value)


def written(value: Value) -> str:
    """A value as an output has it: no `.0` at the end."""
    text = cell(value)
    return text.removesuffix(".0") if isinstance(value, float) else text


def _write_csv(path: Path, rows: Sequence[Row], types: dict[str, str]) -> None:
    path.write_text(text_of(rows))


def _write_json(path: Path, rows: Sequence[Row], types: dict[str, str]) -> None:
    """One record a line; what is missing is null."""
    lines = [{name: None if row[name] == "" else row[name] for name in COLUMNS} for row in rows]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def _write_parquet(path: Path, rows: Sequence[Row], types: dict[str, str]) -> None:
    kinds = {"string": pa.string(), "int": pa.int64(), "float": pa.float64()}
    schema = pa.schema([(name, kinds[types[name].removeprefix("nullable(").rstrip(")")]) for name in COLUMNS])
    values = [{name: None if row[name] == "" else row[name] for name in COLUMNS} for row in rows]
    pq.write_table(pa.Table.from_pylist(values, schema), path)


_WRITERS = {"csv": _write_csv, "json": _write_json, "parquet": _write_parquet}


# ---------------------------------------------------------------- YAML


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name}: {_flow(inner)}" for name, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(inner) for inner in value) + "]"
    return json.dumps(value)


def _source(source: Source) -> dict[str, Any]:
    names = list(source.files)
    place = {"paths": names} if source.parts else {"path": names[0]}
    config: dict[str, Any] = {"type": source.format, **place, "schema": source.types}
    if source.key:
        config["correlation_key"] = list(source.key)
    return {"type": "source", "name": source.name, "config": config}


def _node(node: Node) -> dict[str, Any]:
    head: dict[str, Any] = {"type": node.kind, "name": node.name}
    options = node.options
    match node.kind:
        case "merge":
            config = {"mode": options["mode"]}
            return {**head, "inputs": node.reads, "config": config}
        case "combine":
            return {**head, "input": dict(zip("dbc", node.reads, strict=False)), "config": _combine(options)}
        case "transform":
            config = _transform(options)
        case "aggregate":
            emits = ["emit v = sum(v)", *(f"emit {name} = {_AGGREGATES[name]}" for name in options["also"])]
            if "finalize" in options:
                emits.append(f"emit z = 60 / (count(*) - {options['finalize']})")
            config = {"group_by": options["group_by"], "cxl": "\n".join(emits)}
            if "documents" in options:
                config["documents"] = options["documents"]
        case "route":
            config = {"mode": options["mode"], "default": "rest"}
            config["conditions"] = {name: condition(*test) for name, test in options["conditions"].items()}
        case "reshape":
            config = {"partition_by": options["by"], "order_by": options["sort_by"], "rules": _rules(options)}
        case "cull":
            config = {"partition_by": options["by"], "removed_to": "removed"}
            config["rules"] = [{"name": "many", "drop_group_when": _GROUPS[options["test"]].format(options["limit"])}]
        case "output":
            config = {"type": "csv", "path": f"{node.name}.csv"}
            config |= {"mapping": options["columns"], "include_unmapped": False}
            if "policy" in options:
                config["correlation_fanout_policy"] = options["policy"]
        case _:
            raise ValueError(node.kind)
    return {**head, "input": node.reads[0], "config": config}


_AGGREGATES = {"n": "count(*)", "lo": "min(v)", "hi": "max(v)", "all": 'collect(v.to_string()).join(";")'}


_GROUPS = {"sum": "sum(v) > {}", "count": "count(*) > {}", "divides": "60 / (count(*) - {}) > 20"}


def _rules(options: dict[str, Any]) -> list[dict[str, Any]]:
    """Two rules that give `g` a value of their own, the second one with a new record."""
    low, high = options["low"], options["high"]
    return [
        {"name": "low", "when": f"v < {low}", "mutate": {"set": {"g": '"r"'}}},
        {
            "name": "high",
            "when": f"v > {high}",
            "mutate": {"set": {"g": '"s"'}},
            "synthesize": {"overrides": {"v": "v + 20"}},
        },
    ]


def condition(kind: str, column: str, number: int) -> str:
    if kind == "divides":
        return f"60 / ({column} - {number}) > 0"
    return f"{column} {kind} {number}"


def _transform(options: dict[str, Any]) -> dict[str, Any]:
    lines: list[str] = []
    config: dict[str, Any] = {}
    for step in options["steps"]:
        match step:
            case ["divide", out, column, number]:
                lines.append(f"emit {out} = 60 / ({column} - {number})")
            case ["above", out, column, number]:
                lines.append(f'emit {out} = if {column} > {number} then "bad".to_int() else 1')
            case ["below", out, column, number]:
                lines.append(f'emit {out} = if {column} < {number} then "bad".to_int() else 1')
            case ["filter", column, modulus, rest]:
                lines.append(f"filter {column} % {modulus} != {rest}")
            case ["distinct", column]:
                lines.append(f"distinct by {column}")
            case ["rewrite", column, value]:
                lines.append(f"emit {column} = {json.dumps(value)}")
            case ["length", out, column]:
                lines.append(f"emit {out} = {column}.length()")
            case ["valid", column, number]:
                config["validations"] = [{"name": "small", "check": f"{column} <= {number}"}]
                lines.append(f"emit ok = {column}")
            case ["window", out, group_by, sort_by, function]:
                config["analytic_window"] = {"group_by": group_by, "sort_by": sort_by}
                lines.append(f"emit {out} = $window.{WINDOWS[function]}")
            case ["each", out, number]:
                lines.append(f"emit each e in [v, v - {number}] {{\n  emit {out} = 60 / e\n}}")
            case ["same"]:
                lines.append("emit same = 1")
    return {**config, "cxl": "\n".join(lines)}


WINDOWS = {
    "row_number": "row_number()",
    "lag": "lag(1).v",
    "sum": "sum(v)",
    "cumulative_sum": "cumulative_sum(v)",
    "count": "count()",
    "first": "first().v",
}


def _combine(options: dict[str, Any]) -> dict[str, Any]:
    propagate = options["propagate"]
    config: dict[str, Any] = {
        "where": " and ".join(
            f"d.{one} == {side}.{other}"
            for side, on in (("b", options["on"]), ("c", options.get("then", ())))
            for one, other in on
        ),
        "match": options["match"],
        "on_miss": options["on_miss"],
        "propagate_ck": propagate if isinstance(propagate, str) else {"named": propagate},
    }
    if options["match"] == "collect":
        return {**config, "cxl": ""}
    lines = [f"emit {name} = d.{name}" for name in options["keeps"]]
    lines.append(f"emit {options['out']} = b.v")
    if "then" in options:
        config["drive"] = "d"
        lines.append(f"emit {options['out']}c = c.v")
    if "divide" in options:
        lines.append(f"emit {options['divide']} = 60 / (d.v - b.v)")
    return {**config, "cxl": "\n".join(lines)}
