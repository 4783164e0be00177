"""What a pipeline's settings mean for the Spark that is started for it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

import clinker_spark
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan import budget
from clinker_spark.plan.budget import DAEMON, DRIVER, HEAP, JVM, MIB, SLACK, WORKER, divided, floor
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.memory import SessionMemory, check_limit, options_of_jvm, session_memory
from clinker_spark.spark.session.class_archive import SETTING


def plan(folder: Path, settings: str, memory_limit: int | None = None) -> Plan:
    (folder / "p.yaml").write_text(
        f"""
pipeline: {{ name: test {settings} }}
nodes:
  - {{ type: source, name: s, config: {{ type: csv, path: a.csv, schema: {{ id: int }} }} }}
  - {{ type: output, name: o, input: s, config: {{ type: csv, path: o.csv }} }}
"""
    )
    return prepare(folder / "p.yaml", memory_limit=memory_limit)


def heap(conf: dict[str, str]) -> int:
    return int(conf["spark.driver.memory"].removesuffix("m")) * MIB


def heap_of(limit: int, tasks: int) -> int:
    return limit - limit // SLACK - DRIVER - JVM - DAEMON - tasks * WORKER


@pytest.mark.parametrize("limit", [floor(), 1 << 30, 2 << 30, 16 << 30])
@pytest.mark.parametrize("most", [1, 2, 8])
def test_the_parts_are_the_limit(limit: int, most: int) -> None:
    found = divided(limit, most)
    assert found is not None and 1 <= found.tasks <= most
    assert found.workers == DAEMON + found.tasks * WORKER
    assert -MIB < found.heap + found.jvm + DRIVER + found.workers - (limit - limit // SLACK) <= 0
    assert found.heap >= HEAP
    assert floor(found.tasks) <= limit and (found.tasks == most or limit < floor(found.tasks + 1))


def test_the_session_is_sized_by_the_limit(tmp_path: Path) -> None:
    limited = plan(tmp_path, ", memory: { limit: 2G }")
    found = session_memory(limited, "local[2]", {})
    assert found.master == "local[2]" and heap(found.conf) == heap_of(2 << 30, 2)
    assert "UseSerialGC" in found.java_options
    own = {"spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
    assert "GC" not in session_memory(limited, "local[2]", own).java_options  # two collectors stop the JVM
    assert session_memory(limited, "local[2]", {"spark.driver.memory": "1g"}).conf == {}
    assert session_memory(plan(tmp_path, ", memory: { limit: 8G }"), None, {}).java_options == ""


@pytest.mark.parametrize(("settings", "makes"), [("1G", False), ("3G", False), ("4G", True), (None, True)])
@pytest.mark.parametrize("conf", [{}, {"spark.driver.memory": "1g"}])
def test_no_archive_of_classes_is_made_below_its_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str | None, makes: bool, conf: dict[str, str]
) -> None:
    """It takes a gigabyte when the session ends. A process that keeps a session asks the same place."""
    monkeypatch.setenv(SETTING, str(tmp_path / "classes"))
    limit = "" if settings is None else f", memory: {{ limit: {settings} }}"
    found = session_memory(plan(tmp_path, limit), "local[1]", conf)
    sent = SessionMemory(**json.loads(json.dumps(asdict(found))))  # as a process that keeps the session gets it
    assert sent == found
    assert ("ArchiveClassesAtExit" in options_of_jvm(sent)) is makes
    own = replace(found, conf={**found.conf, "spark.driver.extraJavaOptions": "-XX:SharedArchiveFile=mine.jsa"})
    assert "Archive" not in options_of_jvm(own)


def test_sessions_are_started_with_the_options_of_one_place() -> None:
    """Nobody else decides about an archive."""
    package = Path(clinker_spark.__file__).parent
    asking = {path.stem for path in package.rglob("*.py") if "archive_options(" in path.read_text()}
    assert asking == {"class_archive", "memory"}


def test_few_tasks_run_at_once_where_there_is_little(tmp_path: Path) -> None:
    assert session_memory(plan(tmp_path, "", floor()), "local[8]", {}).master == "local[1]"
    assert session_memory(plan(tmp_path, ", concurrency: { threads: 3 }", 4 << 30), None, {}).master == "local[3]"


def test_the_command_line_wins(tmp_path: Path) -> None:
    found = session_memory(plan(tmp_path, ", memory: { limit: 8G }", 2 << 30), "local[1]", {})
    assert heap(found.conf) == heap_of(2 << 30, 1)


def test_without_a_limit_it_is_a_share_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "_GROUPS", str(tmp_path))
    monkeypatch.setattr(budget, "_OWN_GROUPS", str(tmp_path / "own"))
    assert budget.machine_memory() == psutil.virtual_memory().total  # no groups
    (tmp_path / "memory.max").write_text("max\n")
    unlimited = budget.machine_memory()
    (tmp_path / "memory.max").write_text(f"{5 << 30}\n")
    assert budget.machine_memory() == min(unlimited, 5 << 30)
    inner = tmp_path / "memory" / "batch.slice" / "night"
    inner.mkdir(parents=True)
    (inner.parent / "memory.limit_in_bytes").write_text(f"{3 << 30}\n")
    assert budget.machine_memory() == min(unlimited, 5 << 30)  # that of others
    (tmp_path / "own").write_text("9:cpu,cpuacct:/night\n4:memory:/batch.slice/night\n0::/gone\n")
    assert budget.machine_memory() == min(unlimited, 3 << 30)
    monkeypatch.setattr(budget, "machine_memory", lambda: 10 << 30)
    expected = divided(6 << 30, 1)
    assert expected is not None
    assert heap(session_memory(plan(tmp_path, ""), "local[1]", {}).conf) == expected.heap
    monkeypatch.setattr(budget, "machine_memory", lambda: 1 << 30)  # it must run, somehow
    assert session_memory(plan(tmp_path, ""), "local[4]", {}).master == "local[1]"


def test_on_a_cluster_it_is_that_of_each_executor(tmp_path: Path) -> None:
    found = session_memory(plan(tmp_path, ", memory: { limit: 2000M }"), "spark://host:7077", {})
    assert found.conf == {"spark.executor.memory": "1200m", "spark.executor.memoryOverhead": "800m"}
    assert session_memory(plan(tmp_path, ""), "spark://host:7077", {}).conf == {}


def test_a_limit_that_spark_cannot_start_with(tmp_path: Path) -> None:
    least = f"{floor() // MIB}M"
    limited = plan(tmp_path, ", memory: { limit: 511M }")
    for check in (check_limit, lambda plan: session_memory(plan, None, {})):
        with pytest.raises(ClinkerError) as caught:
            check(limited)
        [found] = caught.value.diagnostics
        assert (caught.value.exit_code, found.code) == (1, "E312") and found.span and least in (found.help or "")
    with pytest.raises(ClinkerError) as caught:
        check_limit(plan(tmp_path, ", memory: { limit: 4G }", 100 * MIB))
    [found] = caught.value.diagnostics
    assert found.span is None and f"--memory-limit {least}" in (found.help or "")
    check_limit(plan(tmp_path, ""))
