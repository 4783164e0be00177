"""Replays: the records of a dead-letter file go through the pipeline again, and nothing else does.

The records become files of their own, one for each input file they came from, in place of what the sources name.
Outputs get names of their own (`out-replay.csv`), or, with `append`, their lines are added to what is there.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from clinker_spark.config.model.source import CsvSource, JsonSource
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.core.types import Kind
from clinker_spark.plan.nodes import AggregatePlan, Plan, PlanNode, SourcePlan
from clinker_spark.runtime.letter_files import Letter
from clinker_spark.spark.sources.source_files import SourceFile

NESTED = (Kind.ARRAY, Kind.MAP, Kind.ANY)
APPENDABLE = ("csv", "json", "fixed_width")


def replay_plan(plan: Plan) -> Plan:
    """The plan with sources that read replayed records."""
    nodes: list[PlanNode] = [_source(node) if isinstance(node, SourcePlan) else node for node in plan.nodes]
    return replace(plan, nodes=tuple(nodes))


def _source(node: SourcePlan) -> SourcePlan:
    columns = tuple(column.model_copy(update={"source_name": None}) for column in node.columns)
    keys = node.config.correlation_key
    common: dict[str, Any] = {} if keys is None else {"correlation_key": list(keys)}
    common |= {"paths": ("replay",), "schema": list(columns), "name": node.config.name}
    config: Any
    if _as_json(node):
        config = JsonSource.model_validate({**common, "type": "json", "options": {"format": "ndjson"}})
    else:
        config = CsvSource.model_validate({**common, "type": "csv"})
    config = config.model_copy(update={"watermark": node.config.watermark})
    if not node.several_files:
        config = config.model_copy(update={"path": "replay", "paths": None})
    return replace(node, config=config, columns=columns)


def _as_json(node: SourcePlan) -> bool:
    return node.config.type == "json"


def replay_files(plan: Plan, letters: Iterable[Letter], folder: Path) -> dict[str, tuple[SourceFile, ...]]:
    """The records of the letters as files for the sources of the replay plan."""
    by_name = {node.source_name: node for node in plan.sources}
    writers: dict[tuple[str, str], _Writer] = {}
    replayed = 0
    for letter in letters:
        node = by_name.get(letter.engine["source_name"])
        if node is None:
            continue  # a group: it comes again from its records
        if not letter.record:
            message = "the dead letters do not have the records themselves"
            help_text = "they can only be replayed when the run wrote them with dlq.include_source_row: true"
            raise InputError([Diagnostic("E019", message, help=help_text)])
        key = (node.name, letter.engine["source_file"])
        if key not in writers:
            writers[key] = _Writer(node, folder / f"{len(writers)}{'.ndjson' if _as_json(node) else '.csv'}")
        writers[key].add(letter.record)
        replayed += 1
    for writer in writers.values():
        writer.close()
    if not replayed:
        help_text = f"the sources are {', '.join(by_name)}"
        raise InputError([Diagnostic("E019", "no dead letter belongs to a source of this pipeline", help=help_text)])
    files: dict[str, tuple[SourceFile, ...]] = {}
    for node in plan.sources:
        mine = [(file, w) for (name, file), w in writers.items() if name == node.name]
        if not mine:
            empty = _Writer(node, folder / f"empty-{node.index}.csv")
            empty.close()
            mine = [(node.source_name, empty)]
        files[node.name] = tuple(SourceFile(str(w.path), file, w.path.stat().st_size) for file, w in mine)
    return files


class _Writer:
    """Writes the records of one input file."""

    def __init__(self, node: SourcePlan, path: Path) -> None:
        self.path = path
        self.columns = node.columns
        self.json = _as_json(node)
        self._file: IO[str] = open(path, "w", encoding="utf-8", newline="")  # noqa: SIM115 - closed by close()
        self._csv = csv.writer(self._file, lineterminator="\n")
        if not self.json:
            self._csv.writerow([column.name for column in self.columns])

    def add(self, record: dict[str, str]) -> None:
        if not self.json:
            self._csv.writerow([record.get(column.name, "") for column in self.columns])
            return
        cells = []
        for column in self.columns:
            text = record.get(column.name, "")
            if text != "":
                cells.append(f"{json.dumps(column.name)}:{_json_cell(text, column.data_type.kind)}")
        self._file.write("{" + ",".join(cells) + "}\n")

    def close(self) -> None:
        self._file.close()


def _json_cell(text: str, kind: Kind) -> str:
    """A cell as JSON: as it is where it is JSON of the right kind, else as a text."""
    if kind is not Kind.STRING:
        try:
            json.loads(text)
        except ValueError:
            pass
        else:
            return text
    return json.dumps(text, ensure_ascii=False)


def replay_path(path: Path) -> Path:
    """`out/clean.csv` -> `out/clean-replay.csv`."""
    stem, dot, ext = path.name.partition(".")
    return path.with_name(f"{stem}-replay{dot}{ext}")


def appendable(plan: Plan, node: PlanNode) -> str | None:
    """Why the records of a replay cannot be added to an output, or None."""
    config: Any = node.config  # type: ignore[attr-defined]
    if config.type not in APPENDABLE or (config.type == "json" and config.options.format != "ndjson"):
        return f"{config.type} files cannot be added to"
    if any(isinstance(n, AggregatePlan) for n in plan.upstream(node.name)):
        return "its records are totals: adding others to them is no correction"
    if config.sort_order or config.split is not None or config.path.endswith("/"):
        return "it is sorted, split or a folder"
    return None
