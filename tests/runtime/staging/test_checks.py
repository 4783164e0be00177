"""Before a run: can the staging folder be used? And what explain, `--dry-run` and `recover` say. No Java."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from clinker_spark.cli.clinker.main import clinker
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.paths.checks import listed_files
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.staging import checks
from clinker_spark.runtime.staging.entry import places
from tests.crash.staged import aged, stage

PIPELINE = """
pipeline: { name: staged }
nodes:
  - { type: source, name: orders, config: { type: csv, %s, schema: { id: int } } }
  - { type: output, name: out, input: orders, config: { type: csv, path: out/o.csv } }
"""


def workspace(root: Path, folder: Path | str, find: str = "path: in/a.csv", **more: Any) -> Path:
    (root / "in").mkdir(exist_ok=True)
    for name in ("a.csv", "b.csv"):
        (root / "in" / name).write_text("id\n1\n")
    settings = {"enabled": True, "dir": str(folder), "patterns": ["*.csv"], **more}
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    (root / "clinker.toml").write_text("[storage.staging]\n" + "\n".join(lines) + "\n")
    (root / "pipeline.yaml").write_text(PIPELINE % find)
    return root / "pipeline.yaml"


def findings(pipeline: Path) -> list[tuple[str, str]]:
    """Code and marked text."""
    plan = prepare(pipeline)
    files, _ = listed_files(plan, Options(), plan.file.folder)
    try:
        checks.check_staging(plan, files, plan.file.folder)
    except ClinkerError as error:
        found = error.diagnostics
        assert all(d.help and d.source is not None and d.span is not None for d in found)
        assert error.exit_code == (4 if any(d.code == "E426" for d in found) else 1)
        return [(d.code, d.source.text[d.span.start : d.span.end]) for d in found if d.source and d.span]
    return []


def command(*args: object) -> Result:
    return CliRunner().invoke(clinker, [str(arg) for arg in args])


def test_a_folder_on_another_disk_is_fine_and_nothing_is_made(tmp_path: Path, elsewhere: Path) -> None:
    assert findings(workspace(tmp_path, elsewhere)) == []
    assert findings(workspace(tmp_path, elsewhere / "new")) == []
    assert os.listdir(elsewhere) == []


def test_the_disk_of_an_input_that_matches(tmp_path: Path) -> None:
    assert findings(workspace(tmp_path, tmp_path / "stage")) == [("E333", f'"{tmp_path}/stage"')]
    assert findings(workspace(tmp_path, "stage", patterns=["other/*"])) == []
    assert findings(workspace(tmp_path, "stage", patterns=["in/a.csv"], find="path: in/b.csv")) == []
    for pattern in ("a.csv", "in/a.csv", f"{tmp_path}/in/*", "**/a.*"):
        assert [code for code, _ in findings(workspace(tmp_path, "stage", patterns=[pattern]))] == ["E333"], pattern


def test_no_folder(tmp_path: Path, elsewhere: Path) -> None:
    (elsewhere / "file").touch()
    (elsewhere / "nowhere").symlink_to(elsewhere / "missing" / "folder")
    for folder in ("file", "missing/folder", "file/folder", "nowhere"):
        assert [code for code, _ in findings(workspace(tmp_path, elsewhere / folder))] == ["E426"], folder
    (elsewhere / "real").mkdir()
    (elsewhere / "link").symlink_to(elsewhere / "real")
    assert findings(workspace(tmp_path, elsewhere / "link")) == []


def test_a_folder_that_may_not_be_written_to(tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may be allowed everything: so the answer of the system is made."""
    monkeypatch.setattr(checks.os, "access", lambda path, mode: False)
    for folder in (elsewhere, elsewhere / "new"):
        assert [code for code, _ in findings(workspace(tmp_path, folder))] == ["E426"]


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
def test_a_network_file_system(tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(checks, "mounts", lambda: [("/", "ext4"), (str(elsewhere), kind)])
    assert [code for code, _ in findings(workspace(tmp_path, elsewhere / "new"))] == ["E332"]
    monkeypatch.setattr(checks, "mounts", lambda: [("/", kind), (str(elsewhere), "fuseblk")])
    assert findings(workspace(tmp_path, elsewhere / "new")) == []


def test_a_folder_in_which_inputs_are_looked_for(tmp_path: Path, elsewhere: Path) -> None:
    patterns = ["none"]
    inside = elsewhere / "deep" / "stage"
    (elsewhere / "deep").mkdir()
    (elsewhere / "a.csv").write_text("id\n1\n")
    for find, found in (
        (f"glob: '{elsewhere}/**/*'", True),
        (f"glob: '{elsewhere}/**/*.csv'", False),
        (f"glob: '{elsewhere}/*'", False),
        (f"glob: '{elsewhere}/**/*', exclude: ['*.staged', '*.json', '*.lock', '*.partial']", False),
        (f"regex: '{elsewhere}/.*[.]staged', files: {{ on_no_match: skip, recursive: true }}", True),
    ):
        codes = [code for code, _ in findings(workspace(tmp_path, inside, find, patterns=patterns))]
        assert codes == (["E426"] if found else []), find


def test_dry_run_says_it(tmp_path: Path) -> None:
    error = command("run", workspace(tmp_path, tmp_path / "stage"), "--dry-run").exception
    assert isinstance(error, ClinkerError) and [d.code for d in error.diagnostics] == ["E333"]


def test_explain_says_what_is_staged_and_where(tmp_path: Path, elsewhere: Path) -> None:
    find = f"paths: [in/a.csv, in/b.csv, '{elsewhere}/c.csv']"
    (elsewhere / "c.csv").write_text("id\n1\n")
    more = {"patterns": ["in/*.csv"], "on_existing": "reuse", "disk_cap_bytes": "1GB"}
    pipeline = workspace(tmp_path, elsewhere, find, **more)
    stage(elsewhere, tmp_path / "in" / "b.csv", cleanup="never")
    text = command("run", pipeline, "--explain").output
    a, b = (places(elsewhere, f"{tmp_path}/in/{name}.csv").copy for name in "ab")
    assert text.endswith(
        f"""
=== Staging Plan ===
folder: {elsewhere}
  [on_existing=reuse, verify=blake3, cleanup=on_success, disk cap: 1,000,000,000 bytes]
source.orders:
  {tmp_path}/in/a.csv
    staged: yes, path: {a}, reuse: miss
  {tmp_path}/in/b.csv
    staged: yes, path: {b}, reuse: hit
  {elsewhere}/c.csv
    staged: no (no pattern matches)
"""
    )
    [source] = json.loads(command("run", pipeline, "--explain=json").output)["storage_summary"]["staging"]["sources"]
    assert source["name"] == "orders" and source["stagable"]
    assert source["files"][0] == {
        "source_path": f"{tmp_path}/in/a.csv", "staged": True, "staged_path": str(a), "reuse": "miss"
    }  # fmt: skip
    assert source["files"][2]["staged"] is False
    (tmp_path / "in" / "a.csv").unlink()
    assert "files are not known: cannot read 'in/a.csv'" in command("run", pipeline, "--explain").output


def test_explain_is_silent_without_staging(tmp_path: Path) -> None:
    pipeline = workspace(tmp_path, "stage", enabled=False)
    assert "Staging" not in command("run", pipeline, "--explain").output
    found = json.loads(command("run", pipeline, "--explain=json").output)["storage_summary"]
    assert found["staging"] == {"enabled": False, "sources": []}


def test_recover_removes_what_is_left_of_copies(tmp_path: Path, elsewhere: Path) -> None:
    pipeline = workspace(tmp_path, elsewhere)
    assert "nothing to recover" in command("recover", pipeline).output
    at = places(elsewhere, f"{tmp_path}/in/a.csv")
    at.partial("dead").write_bytes(b"half")
    assert "left 1 file(s)" in command("recover", pipeline).output and at.partial("dead").exists()
    aged(elsewhere)
    result = command("recover", pipeline)
    assert "removed 1 file(s) of interrupted copies" in result.output and result.exit_code == 0
    assert os.listdir(elsewhere) == []
