"""[storage.spill]: what Spark is told, what is refused before it starts, and what killed runs left. No Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clinker_spark.cli.clinker.main import clinker
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain_spill import spill_storage_lines
from clinker_spark.runtime.arbitrate import spill_settings
from clinker_spark.runtime.arbitrate.spill_folder import PREFIX, own_folder, purge
from clinker_spark.runtime.arbitrate.spill_settings import check_spill, spill_warnings
from clinker_spark.runtime.run.memory import session_memory, with_spill_folder

PIPELINE = """
pipeline: { name: spills }
nodes:
  - { type: source, name: orders, config: { type: csv, path: orders.csv, schema: { city: string, n: int } } }
  - { type: aggregate, name: cities, input: orders, config: { group_by: [city], cxl: "emit total = sum(n)" } }
  - { type: output, name: out, input: cities, config: { type: csv, path: out.csv } }
"""


def workspace(root: Path, staging: Path | None = None, **spill: Any) -> Plan:
    (root / "orders.csv").write_text("city,n\n" + "Bern,1\n" * 1000)
    lines = ["[storage.spill]", *(f"{key} = {json.dumps(value)}" for key, value in spill.items())]
    if staging is not None:
        lines += ["[storage.staging]", "enabled = true", f'dir = "{staging}"', 'patterns = ["*.csv"]']
    (root / "clinker.toml").write_text("\n".join(lines) + "\n")
    (root / "p.yaml").write_text(PIPELINE)
    return prepare(root / "p.yaml")


def codes(plan: Plan) -> list[str]:
    try:
        check_spill(plan)
    except ClinkerError as error:
        assert all(d.help and d.span is not None for d in error.diagnostics)
        assert error.exit_code == (4 if any(d.code == "E426" for d in error.diagnostics) else 1)
        return [d.code for d in error.diagnostics]
    return []


def test_spark_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    (tmp_path / "spill").mkdir()
    wanted = session_memory(workspace(tmp_path, dir="spill", compress="off"), "local[1]", {}).conf
    assert "spark.local.dir" not in wanted and not list((tmp_path / "spill").iterdir())  # it may not be started at all
    conf = with_spill_folder(wanted)
    folder = Path(conf["spark.local.dir"])
    assert folder.parent == tmp_path / "spill" and folder.name.startswith(PREFIX)
    assert conf["spark.shuffle.compress"] == conf["spark.shuffle.spill.compress"] == "false"
    on = session_memory(workspace(tmp_path, compress="on"), "local[1]", {}).conf
    assert on["spark.shuffle.compress"] == "true" and with_spill_folder(on) == on
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # Java does not know it
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert with_spill_folder(on) == {**on, "spark.local.dir": str(tmp_path)}
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/own")
    assert with_spill_folder(on) == on
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    own = {"spark.local.dir": "/x"}
    found = session_memory(workspace(tmp_path, dir="spill"), "local[1]", own).conf
    assert with_spill_folder({**found, **own})["spark.local.dir"] == "/x" and "spark.shuffle.compress" not in found


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    assert codes(workspace(tmp_path, dir="gone")) == ["E426"]
    (tmp_path / "file").touch()
    assert codes(workspace(tmp_path, dir="file")) == ["E426"]
    (tmp_path / "stage" / "spill").mkdir(parents=True)
    for folder, staging in (("stage", "stage"), ("stage/spill", "stage"), ("stage", "stage/spill")):
        assert codes(workspace(tmp_path, tmp_path / staging, dir=folder)) == ["E334"]
    (tmp_path / "spill").mkdir()
    assert codes(workspace(tmp_path, tmp_path / "stage", dir="spill")) == []


@pytest.mark.parametrize(("kind", "code"), [("tmpfs", "E330"), ("ramfs", "E330"), ("nfs4", "E331"), ("ext4", None)])
def test_file_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, code: str | None) -> None:
    monkeypatch.setattr(spill_settings, "mounts", lambda: [("/", "ext4"), (str(tmp_path), kind)])
    assert codes(workspace(tmp_path, dir=".")) == ([code] if code else [])


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="this machine has no folder in memory")
def test_a_folder_in_memory_before_java_starts(tmp_path: Path) -> None:
    workspace(tmp_path, dir="/dev/shm")
    found = CliRunner().invoke(clinker, ["run", str(tmp_path / "p.yaml"), "--dry-run"])
    assert isinstance(found.exception, ClinkerError) and found.exception.exit_code == 1
    assert [d.code for d in found.exception.diagnostics] == ["E330"]


def test_what_is_likely_to_go_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(spill_warnings(workspace(tmp_path, dir=".", disk_cap_bytes="1MB"))) == []
    [near] = spill_warnings(workspace(tmp_path, disk_cap_bytes="16KB"))  # two nodes hold 7,007 bytes each
    assert near.code == "W331" and near.span is not None
    monkeypatch.setattr(spill_settings.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 5000}))
    [short] = spill_warnings(workspace(tmp_path, dir="."))
    assert short.code == "W330" and "4.9K free, and up to 13.7K" in short.message
    [short] = spill_warnings(workspace(tmp_path))  # and where the system has its temporary files
    assert short.code == "W330" and short.span is None and f"'{tempfile.gettempdir()}' has 4.9K free" in short.message
    monkeypatch.undo()
    monkeypatch.setattr(spill_settings, "mounts", lambda: [("/", "tmpfs")])
    assert list(spill_warnings(workspace(tmp_path))) == []
    monkeypatch.setattr(spill_settings, "default_limit", lambda: 100_000)
    [memory] = spill_warnings(workspace(tmp_path))
    assert memory.code == "W330" and "is kept in memory (tmpfs), and up to 13.7K" in memory.message


def test_explain_shows_it(tmp_path: Path) -> None:
    workspace(tmp_path, disk_cap_bytes="16KB", compress="on")
    text = CliRunner().invoke(clinker, ["run", str(tmp_path / "p.yaml"), "--explain"]).output
    assert "=== Spill Storage ===" in text and "Spill disk cap: 16000 bytes [storage.spill.disk_cap_bytes]" in text
    assert "Cap headroom: 1986 bytes (13.7K estimated, 87.6 % of the cap) WARNING" in text
    document = json.loads(CliRunner().invoke(clinker, ["run", str(tmp_path / "p.yaml"), "--explain", "json"]).output)
    summary = document["storage_summary"]
    assert summary["spill_disk_cap_bytes"] == 16000 and summary["cap_headroom"]["over_threshold"]
    assert summary["spill_root"] == {"path": tempfile.gettempdir(), "source": "default"}


def test_explain_says_where_it_would_spill_to_without_any_setting(tmp_path: Path) -> None:
    plan = workspace(tmp_path)
    root = f"Spill root: {tempfile.gettempdir()} [folder for temporary files (default)]"
    assert spill_storage_lines(plan) == [root, "Spill disk cap: unlimited (default)", "Spill compression: auto"]
    named = workspace(tmp_path, dir="spill")
    assert spill_storage_lines(named)[0] == f"Spill root: {tmp_path / 'spill'} [storage.spill.dir]"


def test_what_a_killed_run_left_is_removed_and_what_a_living_one_has_is_not(tmp_path: Path) -> None:
    script = "import sys, os; from pathlib import Path\n"
    script += "from clinker_spark.runtime.arbitrate.spill_folder import own_folder\n"
    script += "print(own_folder(Path(sys.argv[1])).name, flush=True); os.kill(os.getpid(), 9)"
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True)
    dead = tmp_path / done.stdout.strip()
    (dead / "blockmgr").mkdir()
    living = own_folder(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    assert purge(tmp_path) == []  # it is too young to be sure
    assert purge(tmp_path, grace=0.0) == [dead.name]
    assert not dead.exists() and living.is_dir() and other.is_dir()


def test_a_folder_goes_with_its_process(tmp_path: Path) -> None:
    script = "import sys; from pathlib import Path\n"
    script += "from clinker_spark.runtime.arbitrate.spill_folder import own_folder\nown_folder(Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    assert list(tmp_path.iterdir()) == []
