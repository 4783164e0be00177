"""The `clinker` command: help without weight, explain, and every way to end."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

import clinker_spark
from clinker_spark.cli import app
from clinker_spark.cli.clinker.main import COMMANDS, clinker
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.registry import codes, entries
from clinker_spark.core.errors import ClinkerError, InputError


def run(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "clinker_spark", *args]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env}, check=False)


def ends(command: click.Command, *args: str) -> int:
    with pytest.raises(SystemExit) as caught:
        app.run(command, "clinker", args)
    assert isinstance(caught.value.code, int)
    return caught.value.code


def failing(error: BaseException) -> click.Command:
    @click.command()
    def command() -> None:
        raise error

    return command


# ------------------------------------------------------------ help and version


def test_help_lists_the_commands() -> None:
    done = run("--help")
    assert done.returncode == 0
    for name, row in COMMANDS.items():
        assert f"{name}  " in done.stdout
        assert row.summary in done.stdout


def test_help_loads_neither_commands_nor_heavy_packages() -> None:
    code = (
        "import sys\nfrom clinker_spark.cli.clinker.main import main\nsys.argv = ['clinker', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *(m for m in sys.modules if m.startswith('clinker_spark.cli.')"
        " or m in ('pyspark', 'rich', 'pydantic', 'yaml')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.partition("LOADED ")[2].split()
    assert set(loaded) == {"clinker_spark.cli.clinker", "clinker_spark.cli.clinker.main", "clinker_spark.cli.app"}


@pytest.mark.parametrize("name", COMMANDS)
def test_summaries_are_those_of_the_commands(name: str) -> None:
    command = importlib.import_module(COMMANDS[name].module).command
    assert command.get_short_help_str(200) == COMMANDS[name].summary


def test_version() -> None:
    assert run("--version").stdout == f"clinker {clinker_spark.__version__}\n"


def test_unknown_command_suggests_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert ends(clinker, "explian") == 2
    assert "did you mean 'explain'?" in capsys.readouterr().err


# ------------------------------------------------------------ explain


@pytest.mark.parametrize("args", [("--code", "E200"), ("--code", "e200"), ("E200",), ("e200",)])
def test_explain_prints_the_page(args: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert ends(clinker, "explain", *args) == 0
    assert capsys.readouterr().out == next(entry.page for entry in entries() if entry.code == "E200")


def test_explain_prints_the_plan_of_a_pipeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(
        "pipeline: { name: demo }\nnodes:\n"
        "  - { type: source, name: s, config: { type: csv, path: a.csv, schema: { id: int } } }\n"
        "  - { type: output, name: o, input: s, config: { type: json, path: o.json, include_header: false } }\n"
    )
    assert ends(clinker, "explain", str(path)) == 0
    plan = capsys.readouterr()
    assert "=== Execution Plan ===" in plan.out and "warning[W027]" in plan.err
    assert ends(clinker, "run", str(path), "--explain") == 0
    assert capsys.readouterr() == plan
    assert ends(clinker, "explain", str(tmp_path / "other.yaml")) != 0
    assert "cannot read" in capsys.readouterr().err


def test_explain_knows_the_kinds_of_record_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert ends(clinker, "explain", "division_by_zero") == 0
    by_kind = capsys.readouterr().out
    assert ends(clinker, "explain", "--code", "X002") == 0
    assert by_kind == capsys.readouterr().out
    assert by_kind.startswith("# X002")


def test_explain_list_has_every_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert ends(clinker, "explain", "--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["CODE", "SEVERITY", "KIND", "TITLE"]
    assert [line.split()[0] for line in lines[1:]] == list(codes())


@pytest.mark.parametrize("option", [("--code",), ()])
def test_explain_unknown_code(option: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert ends(clinker, "explain", *option, "E20O") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "no diagnostic has the code 'E20O'; did you mean E200?\n"
    assert ends(clinker, "explain", *option, "divide_by_zero") == 1
    assert "did you mean division_by_zero?" in capsys.readouterr().err
    assert ends(clinker, "explain", *option, "completely_different") == 1
    assert "--list" in capsys.readouterr().err


@pytest.mark.parametrize(
    "args", [(), ("--list", "--code", "E200"), ("--list", "E200"), ("E200", "--code", "E200"), ("--nope",)]
)
def test_explain_wrong_options(args: tuple[str, ...]) -> None:
    assert ends(clinker, "explain", *args) == 2


def test_explain_renders_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert ends(clinker, "explain", "--code", "E200") == 0
    out = capsys.readouterr().out
    assert "What it means" in out and "## What it means" not in out
    assert ends(clinker, "explain", "--list") == 0
    assert "division by zero" in capsys.readouterr().out


# ------------------------------------------------------------ the guard


def test_diagnostics_become_text_and_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    found = [Diagnostic("E224", "cannot read 'x.cxl'")]
    assert ends(failing(InputError(found))) == 2
    assert "error[E224]: cannot read 'x.cxl'" in capsys.readouterr().err
    assert ends(failing(ClinkerError(found))) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_interrupt_is_one_line(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        assert ends(failing(error)) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    out, err = capsys.readouterr()
    assert out == "" and err.endswith(": interrupted\n") and err.count("\n") == 1


def test_unexpected_errors_have_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CLINKER_DEBUG", raising=False)
    assert ends(failing(ValueError("boom\nsecond line"))) == 1
    err = capsys.readouterr().err
    assert "internal error" in err and "ValueError: boom" in err and "CLINKER_DEBUG=1" in err
    assert "Traceback" not in err and "second line" not in err


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLINKER_DEBUG", "1")
    with pytest.raises(ValueError, match="boom"):
        app.run(failing(ValueError("boom")), "clinker", [])


def test_a_closed_pipe_is_no_error() -> None:
    command = f"set -o pipefail; {sys.executable} -m clinker_spark explain --list | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
