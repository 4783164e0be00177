"""The example with a dataset: the commands of its page, against the expected table and the picture."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

from click.testing import CliRunner

from clinker_spark.cli.clinker.main import clinker

EXAMPLES = Path(__file__).parents[2] / "examples"
HERE = EXAMPLES / "40-robot-recording"


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    page = (HERE / "README.md").read_text(encoding="utf-8")
    [block] = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    commands = [shlex.split(line) for line in block.replace("\\\n", " ").removeprefix("$ ").split("\n$ ")]
    assert [command[0] for command in commands] == ["clinker", "clinker", "clinker", "python"]
    for _, *args in commands[:3]:
        moved = [arg.replace("examples/40-robot-recording/out", str(tmp_path)) for arg in args]
        moved = [str(EXAMPLES.parent / arg) if arg.startswith("examples/") else arg for arg in moved]
        assert CliRunner().invoke(clinker, moved, catch_exceptions=False).exit_code == 0
    table = tmp_path / "table.csv"
    assert table.read_text() == (HERE / "expected" / "table.csv").read_text()
    assert runpy.run_path(str(HERE / "plot.py"))["plot"](table) == (HERE / "plot.svg").read_text(encoding="utf-8")
