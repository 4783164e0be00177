"""The numbers of each run as a file of its own in a folder, and these files collected into one.

A run that failed has a file as well. What nobody counted is null, not zero.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinker_spark.core.diagnostics import Diagnostic, Severity
from clinker_spark.core.errors import ClinkerError, InputError
from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.commit.small_files import replace_file
from clinker_spark.runtime.errors import IoError, PathError
from clinker_spark.runtime.measure.used import Used
from clinker_spark.runtime.run.options import spool_folder
from clinker_spark.runtime.run.report import RunIdentity, RunReport

if TYPE_CHECKING:
    from clinker_spark.runtime.run.options import Options

VERSION = 3
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def run_record(plan: Plan | None, options: Options, report: RunReport | None, exit_code: int, error: str | None) -> Any:
    """What is kept of one run; without a `report` it failed."""
    finished = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    record: dict[str, Any] = {
        "execution_id": options.execution_id,
        "schema_version": VERSION,
        "pipeline_name": None if plan is None else plan.file.settings.name,
        "config_path": None if plan is None else str(plan.file.path),
        "hostname": socket.gethostname(),
        "started_at": options.now.strftime(_TIME),
        "finished_at": finished.strftime(_TIME),
        "duration_ms": int((finished - options.now).total_seconds() * 1000),
        "exit_code": exit_code,
        "error": error,
    }
    return record | _counts(report or RunReport(RunIdentity("", "", "", "")))


def _used(used: Used) -> dict[str, Any]:
    """Without the samples of memory, of which only the peak is kept."""
    nodes = {name: found.as_dict() for name, found in used.nodes.items()}
    return {"nodes": nodes, "arbitration": used.arbitration, "seconds_sampling": round(used.memory.seconds, 3)}


def _counts(report: RunReport) -> dict[str, Any]:
    read = [source.records for source in report.sources]
    balanced = {name for balance in report.balances for name in balance.sources}
    whole = bool(report.sources) and balanced == {source.name for source in report.sources}
    return {
        "records_total": None if not read or None in read else sum(n for n in read if n is not None),
        "records_ok": sum(balance.written for balance in report.balances) if whole else None,
        "records_written": sum(output.records for output in report.outputs),
        "records_dlq": report.dead_letters,
        "records_null_dropped": sum(output.dropped for output in report.outputs),
        "execution_mode": "TwoPass" if report.dead_letters else "Streaming",
        "input_files": [name for source in report.sources for name in source.paths],
        "output_files": [path for output in report.outputs for path in output.paths],
        "dlq_path": report.letter_paths[0] if report.letter_paths else None,
        "retraction": report.rollback.counters,
        "per_source_record_counts": {source.name: source.records for source in report.sources},
        "per_source_dlq_counts": {source.name: source.dead_letters for source in report.sources},
        "nodes": [node.as_dict() for node in report.nodes],
        **_cost(report),
    }


def _cost(report: RunReport) -> dict[str, Any]:
    used = report.cost.used
    return {
        "peak_rss_bytes": None if used is None or used.memory.peak is None else used.memory.peak.total,
        "thread_count": report.cost.tasks,
        "stage_seconds": dict(report.cost.stage_seconds),
        "used": None if used is None else _used(used),
    }


@contextmanager
def spooled(plan: Plan, options: Options) -> Iterator[Callable[[RunReport], None]]:
    """Around a run, which gives the report that it writes to the function: afterwards the file is there. Of a run that
    failed it has what was used, and no counts: nothing was published. A file that cannot be written is a warning."""
    folder = spool_folder(plan, options)
    begun: list[RunReport] = []
    try:
        yield begun.append
    except ClinkerError as error:
        if folder is not None:
            first = error.diagnostics[0]
            failed = run_record(plan, options, None, error.exit_code, f"{first.code}: {first.message}")
            for report in begun:
                failed |= _cost(report)
            keep(folder, failed)
        raise
    if folder is not None:
        for report in begun:
            report.warnings += keep(folder, run_record(plan, options, report, report.exit_code, None))


def keep(folder: Path, record: dict[str, Any]) -> list[Diagnostic]:
    """Write the file of a run; gives a warning when that cannot be done."""
    place = folder / f"{record['execution_id']}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(place, (json.dumps(record, ensure_ascii=False) + "\n").encode())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        help_text = "the run itself is not concerned; check --metrics-spool-dir or metrics.spool_dir"
        return [Diagnostic("W440", f"cannot write '{place}': {reason}", help=help_text, severity=Severity.WARNING)]
    return []


@dataclass
class Collected:
    """What `collect` found in a folder."""

    runs: list[str] = field(default_factory=list)
    """Those that were added."""
    known: list[str] = field(default_factory=list)
    """Those that the file had already."""
    skipped: list[str] = field(default_factory=list)
    """Files that are no runs, or runs of another version."""


def collect(folder: Path, output: Path, *, delete: bool, dry_run: bool) -> Collected:
    """Append the runs of a folder to a file, a line each, in the order of their identifiers. A run that is in the file
    is not added again, so a collection that was interrupted can be repeated."""
    if not folder.is_dir():
        raise InputError([Diagnostic("E224", f"'{folder}' is no folder", help="name the spool folder of the runs")])
    if output.is_dir():
        raise IoError([Diagnostic("E401", f"'{output}' is a folder", help="name a file in it")])
    if output.suffix == ".json" and os.path.realpath(output.parent) == os.path.realpath(folder):
        message = f"'{output}' would be one of the files that are collected, and removed with them"
        raise PathError([Diagnostic("E430", message, help="write it to another folder, or give it another ending")])
    there = set(_known(output))
    found = Collected()
    lines: list[bytes] = []
    done: list[Path] = []
    for path in sorted(folder.glob("*.json")):
        record = _read(path)
        if record is None:
            found.skipped.append(path.name)
            continue
        done.append(path)
        (found.known if record["execution_id"] in there else found.runs).append(record["execution_id"])
        if record["execution_id"] not in there:
            lines.append(json.dumps(record, ensure_ascii=False).encode() + b"\n")
    if dry_run:
        return found
    _append(output, lines)
    for path in done if delete else ():
        path.unlink(missing_ok=True)
    return found


def _append(output: Path, lines: list[bytes]) -> None:
    if not lines:
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        is_file = output.is_file() or not output.exists()
        with open(output, "a+b") if is_file else open(output, "wb", buffering=0) as file:
            if is_file and file.tell() and not _ends_with_line(file):
                file.write(b"\n")  # what a crash left of a line
            file.writelines(lines)
            file.flush()
            if is_file:
                os.fsync(file.fileno())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise IoError([Diagnostic("E401", f"cannot write '{output}': {reason}", help="check the path")]) from None


def _ends_with_line(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")


def _known(output: Path) -> Iterator[str]:
    if not output.is_file():  # a device may have no end
        return
    with open(output, "rb") as file:
        for line in file:
            record = _parsed(line)
            if record is not None:
                yield record["execution_id"]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        record = _parsed(path.read_bytes())
    except OSError:
        return None
    return record if record is not None and record.get("schema_version") == VERSION else None


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(text)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("execution_id"), str) else None
