"""What is nested too deeply is the same finding wherever a program is looked at, and nowhere a crash."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from clinker_spark.cli import app
from clinker_spark.cli.clinker.main import clinker
from clinker_spark.cli.cxl.main import cxl

DEEP = {
    "brackets": "(" * 1000 + "v" + ")" * 1000,
    "right operands": "(v + " * 1000 + "v" + ")" * 1000,
    "literals": "[" * 1000 + "]" * 1000,
    "size": "v" + " " * 70_000,
}


def ends(command: click.Command, *args: str) -> int:
    with pytest.raises(SystemExit) as caught:
        app.run(command, "t", list(args))
    assert isinstance(caught.value.code, int)
    return caught.value.code


@pytest.mark.parametrize("name", DEEP)
def test_one_limit_everywhere(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "p.cxl"
    program.write_text(f"emit w = {DEEP[name]}")
    pipeline = tmp_path / "p.yaml"
    pipeline.write_text(
        "pipeline: { name: p }\nnodes:\n"
        "  - { type: source, name: s, config: { type: csv, path: in.csv, schema: { v: int } } }\n"
        f"  - {{ type: transform, name: t, input: s, config: {{ cxl: 'emit w = {DEEP[name]}' }} }}\n"
        "  - { type: output, name: o, input: t, config: { type: csv, path: out.csv } }\n"
    )
    said = []
    for command, *args in (
        (cxl, "check", str(program)),
        (cxl, "eval", str(program), "--field", "v=1"),
        (clinker, "run", str(pipeline), "--dry-run"),
        (clinker, "run", str(pipeline), "--explain"),
        (clinker, "run", str(pipeline)),
    ):
        assert ends(command, *args) == 1
        _, err = capsys.readouterr()
        said.append(err.splitlines()[0])
    assert said[0].startswith("error[E202]: ") and len(set(said)) == 1
