"""A generated pipeline is run, and what came out is compared with the model."""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from tests.property.rollback.graph import Graph
from tests.property.rollback.model import Letter, Model, Readings, Result


@dataclass
class Run:
    """What a run gave."""

    outputs: dict[str, list[str]]
    letters: Counter[Letter]
    exit: str
    seconds: float = 0.0
    jobs: int = 0
    stages: dict[Letter, str] = field(default_factory=dict)


def execute(graph: Graph, folder: Path, spark: Any) -> Run:
    """In an empty folder."""
    graph.write(folder)
    group = f"rollback-{folder.name}-{time.monotonic_ns()}"
    spark.sparkContext.setJobGroup(group, "generated")
    before = _jobs(spark)
    began = time.monotonic()
    try:
        report = run(prepare(folder / "pipeline.yaml"), spark, Options())
    except ClinkerError as error:
        codes = sorted({diagnostic.code for diagnostic in error.diagnostics})
        return Run({}, Counter(), " ".join(codes), time.monotonic() - began, _jobs(spark) - before)
    seconds = time.monotonic() - began
    outputs = {node.name: (folder / f"{node.name}.csv").read_text().splitlines() for node in graph.outputs}
    letters, stages = read_letters(folder / "dead.csv", graph.offsets())
    return Run(outputs, letters, str(report.exit_code), seconds, _jobs(spark) - before, stages)


def _jobs(spark: Any) -> int:
    """How many jobs the whole Spark context has started."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().nextJobId())


def read_letters(
    path: Path, offsets: Mapping[tuple[str, str], int] = MappingProxyType({})
) -> tuple[Counter[Letter], dict[Letter, str]]:
    """Rows are counted over all files of a source; `offsets` are those before each file."""
    found: Counter[Letter] = Counter()
    stages: dict[Letter, str] = {}
    if path.exists():
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                number = int(row["_cxl_dlq_source_row"] or 0)
                number += offsets.get((row["_cxl_dlq_source_name"], Path(row["_cxl_dlq_source_file"]).name), 0)
                trigger, category = row["_cxl_dlq_trigger"] == "true", row["_cxl_dlq_error_category"]
                letter = (row["_cxl_dlq_source_name"], number, trigger, category)
                found[letter] += 1
                stages[letter] = row["_cxl_dlq_stage"]
    return found, stages


def differences(result: Result, found: Run) -> list[str]:
    """What is not as the model has it, in words; the first word is the kind."""
    if result.exit != found.exit:
        return [f"exit {found.exit} instead of {result.exit}"]
    said = []
    for name, lines in result.outputs.items():
        if found.outputs.get(name) != lines and (len(lines) > 1 or found.outputs.get(name) not in ([], lines)):
            same = Counter(found.outputs.get(name, [])) == Counter(lines)
            said.append(f"{'order of' if same else 'lines of'} {name}")
    for letter in sorted(result.letters - found.letters):
        said.append(f"missing letter {letter}")
    for letter in sorted(found.letters - result.letters):
        said.append(f"unexpected letter {letter} of {found.stages.get(letter)}")
    return said


@dataclass
class Compared:
    graph: Graph
    result: Result
    found: Run
    said: list[str]

    @property
    def kind(self) -> str:
        """The kinds of differences, without names and numbers."""
        return ", ".join(sorted({_kind(text) for text in self.said}))


def _kind(text: str) -> str:
    words = text.split()
    if words[0] in ("missing", "unexpected"):
        total = "total" if "<merged>" in text else "row"
        sort = "trigger" if "True" in text else "collateral"
        return f"{words[0]} {total}-{sort}"
    return text if words[0] == "exit" else " ".join(words[:2])


def compare(graph: Graph, folder: Path, spark: Any, readings: Readings = Readings()) -> Compared:  # noqa: B008
    result = Model(graph, readings).run()
    found = execute(graph, folder, spark)
    return Compared(graph, result, found, differences(result, found))


def explained(compared: Compared) -> list[str]:
    """Which other readings would have given what was found?"""
    names = []
    for choice in fields(Readings):
        other = replace(Readings(), **{choice.name: not getattr(Readings(), choice.name)})
        if not differences(Model(compared.graph, other).run(), compared.found):
            names.append(choice.name)
    return names


def report(compared: Compared) -> str:
    """Everything that is needed to understand a difference."""
    graph, result, found = compared.graph, compared.result, compared.found
    parts = [graph.yaml()]
    for source in graph.sources:
        parts.append(f"{source.name} (key {source.key}, {source.format}, files of {source.parts}):")
        parts += [f"  {n:3} {_row(row)}" for n, row in enumerate(source.rows, 1)]
    parts += ["model:", *(f"  {line}" for line in result.reasons)]
    for node in graph.outputs:
        expected, there = result.outputs.get(node.name), found.outputs.get(node.name)
        parts.append(f"{node.name}: {'same ' if expected == there else ''}model {expected}")
        if expected != there:
            parts.append(f"{node.name}:    run {there}")
    parts.append(f"letters, model: {sorted(result.letters.elements())}")
    parts.append(f"letters, run:   {sorted(found.letters.elements())}")
    parts += ["differences:", *(f"  {text}" for text in compared.said)]
    others = explained(compared)
    if others:
        parts.append(f"as with other readings: {', '.join(others)}")
    if result.doubtful:
        parts.append(f"doubtful: {', '.join(sorted(set(result.doubtful)))}")
    return "\n".join(parts)


def _row(row: dict[str, Any]) -> str:
    return ",".join("" if row[name] is None else str(row[name]) for name in ("k", "h", "g", "v")) + (
        ",more,and more" if row.get("more") else ""
    )
