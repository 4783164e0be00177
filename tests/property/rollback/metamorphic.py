"""What must stay the same when the input is changed in a way that does not matter. The model is only asked whether it
should; what comes out of the two runs is compared with one another."""

from __future__ import annotations

import copy
import csv
from collections import Counter
from pathlib import Path
from typing import Any

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.reject.letter_files import read_letters as letters_in
from clinker_spark.runtime.reject.replay import replay_plan
from clinker_spark.runtime.reject.replay_files import replay_files
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from tests.property.rollback.check import read_letters
from tests.property.rollback.graph import Graph
from tests.property.rollback.model import Letter, Model
from tests.property.rollback.records import Origin, is_strict, streams_of

NEW: dict[str, Any] = {"nullable(string)": "N", "nullable(int)": 77, "nullable(float)": 7.5}


def without(graph: Graph, rows: set[Origin]) -> Graph:
    other = copy.deepcopy(graph)
    for source in other.sources:
        source.rows = [row for number, row in enumerate(source.rows, 1) if (source.name, number) not in rows]
    return other


def can_do_without_letters(graph: Graph, letters: Counter[Letter]) -> bool:
    """Are the outputs those of the input without its letters?

    Not where a row that is withheld still counts elsewhere: in a window, a `distinct`, a reshape or a cull, for what
    looks it up, in a relaxed total with `retraction_scope: record`, in a total of merged sources of which one is
    spared, in the turns of an interleaved merge; and not where a row is written at one output and is missing in another
    (policies, and what fails on one branch in sources without keys).
    """
    plan = streams_of(graph)
    policies = {node.options.get("policy", "any") for node in graph.outputs}
    policies.add(graph.handling.get("correlation_fanout_policy", "any"))
    kinds = Counter(node.kind for node in graph.nodes)
    steps = {step[0] for node in graph.nodes if node.kind == "transform" for step in node.options["steps"]}
    relaxed = any(
        node.kind == "aggregate" and plan[node.reads[0]].lineage and not is_strict(node, plan[node.reads[0]])
        for node in graph.nodes
    )
    interleaved = any(node.kind == "merge" and node.options["mode"] == "interleave" for node in graph.nodes)
    builds = {source for node in graph.nodes if node.kind == "combine" for source in plan[node.reads[1]].sources}
    keyed = {source.name for source in graph.sources if source.key}
    return (
        policies == {"any"}
        and not steps & {"window", "distinct"}
        and not kinds["reshape"] + kinds["cull"]
        and not builds & keyed
        and (not relaxed or graph.handling.get("retraction_scope") == "group")
        and (not kinds["merge"] or not (kinds["combine"] or kinds["aggregate"] or interleaved))
        and "include_retracted" not in graph.handling
        and all(plan[node.reads[0]].lineage for node in graph.nodes if node.kind == "aggregate")
        and keyed.issuperset(letter[0] for letter in letters if letter[1])
    )


def with_clean_group(graph: Graph) -> Graph | None:
    """One more record of the first source, that has nothing to do with any other; None where it must have."""
    for node in graph.nodes:
        if node.kind == "aggregate" and not node.options["group_by"]:
            return None
        if node.kind in ("reshape", "cull") and not node.options["by"]:
            return None
        for step in node.options.get("steps", ()):
            if step[0] in ("distinct", "rewrite") or (step[0] == "window" and not step[2]):
                return None
        if node.kind == "combine" and node.options["on_miss"] == "error":
            return None
        if node.kind == "merge" and node.options["mode"] == "interleave":
            return None  # the turns of others change
    before = Model(graph).run()
    for number in range(1, 13):
        other = copy.deepcopy(graph)
        source = other.sources[0]
        source.rows.append({"k": NEW[source.types["k"]], "h": "N", "g": "N", "v": number})
        after = Model(other).run()
        if after.letters == before.letters:
            return other
    return None


def is_new(columns: list[str], line: str) -> bool:
    cells = dict(zip(columns, line.split(","), strict=True))
    return any(cells.get(name) in ("N", "77", "7.5") for name in ("k", "h", "g"))


def everything_of(folder: Path, graph: Graph) -> dict[str, Any]:
    """The bytes of all outputs, and the letters without what differs from run to run."""
    found: dict[str, Any] = {node.name: (folder / f"{node.name}.csv").read_bytes() for node in graph.outputs}
    dead = folder / "dead.csv"
    if dead.exists():
        with open(dead, newline="") as file:
            rows = list(csv.DictReader(file))
        changing = ("_cxl_dlq_id", "_cxl_dlq_timestamp")
        found["dead"] = [{name: text for name, text in row.items() if name not in changing} for row in rows]
    return found


def replayed(folder: Path, spark: Any) -> Counter[Letter] | str:
    """The letters of a replay of unedited letters, or the code of its refusal."""
    original = prepare(folder / "pipeline.yaml")
    fed = folder / "fed"
    fed.mkdir()
    try:
        feed = replay_files(original, letters_in(folder / "dead.csv"), fed, frozenset())
        run(replay_plan(original, feed.files), spark, Options(files=feed.files, replay="beside", feed=feed))
    except ClinkerError as error:
        return " ".join(sorted({diagnostic.code for diagnostic in error.diagnostics}))
    return read_letters(folder / "dead-replay.csv")[0]


def may_refuse(graph: Graph) -> bool:
    """Is a source looked up in whose records go to outputs themselves? A replay could not feed both."""
    plan = streams_of(graph)
    driven: dict[str, frozenset[str]] = {source.name: frozenset({source.name}) for source in graph.sources}
    for node in graph.nodes:
        reads = [driven[ref.split(".")[0]] for ref in node.reads]
        driven[node.name] = reads[0] if node.kind == "combine" else frozenset().union(*reads)
    ends = frozenset().union(*(driven[node.name] for node in graph.outputs))
    return any(ends & plan[node.reads[1]].sources for node in graph.nodes if node.kind == "combine")


def can_replay(graph: Graph, letters: Counter[Letter]) -> bool:
    """Do the letters alone fail in the same way? Asked of the model: totals and windows see only what is fed."""
    plan = streams_of(graph)
    builds = {s for node in graph.nodes if node.kind == "combine" for s in plan[node.reads[1]].sources}
    fed = {letter[:2] for letter in letters}
    kept = {s.name: [n for n in range(1, len(s.rows) + 1) if (s.name, n) in fed] for s in graph.sources}
    for name in builds - {graph.sources[0].name, "b"}:
        kept[name] = list(range(1, len(next(s for s in graph.sources if s.name == name).rows) + 1))
    rows = {(s.name, n) for s in graph.sources for n in range(1, len(s.rows) + 1) if n not in kept[s.name]}
    again = Model(without(graph, rows)).run()
    renamed: Counter[Letter] = Counter()
    for (name, number, trigger, category), times in again.letters.items():
        renamed[name, kept[name][number - 1] if number else 0, trigger, category] += times
    return renamed == letters
