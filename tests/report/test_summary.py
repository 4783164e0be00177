"""What people see of a run: names and paths as they are, whatever is in them."""

from __future__ import annotations

import io
import json
import shlex

import pytest
import rich.console
from rich.console import Console

from clinker_spark.report import progress
from clinker_spark.report.summary import print_summary
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.report import LetterReport, OutputReport, RunIdentity, RunReport, SourceReport

ODD = "/data/[red]a[/b] c/" + "deep/" * 30 + "[d].csv"


def report() -> RunReport:
    found = RunReport(RunIdentity("p[/x]", "1", "1", "now"))
    found.sources = [SourceReport("s[bold]", 1, 10)]
    found.outputs = [OutputReport("o[/]", [ODD], 3, 10)]
    found.letters = [LetterReport("s[bold]", "transform:[t]", "structural_validation", 1)]
    found.letter_paths, found.removed = [ODD], [ODD]
    return found


def test_brackets_are_no_markup_and_paths_are_whole() -> None:
    shown = io.StringIO()
    print_summary(report(), Console(file=shown, width=80, force_terminal=False), 1.0)
    text = shown.getvalue()
    assert f"dead letters: {ODD}   (clinker dlq inspect {shlex.quote(ODD)})\n" in text
    assert f"removed: {ODD} " in text
    assert "1 x structural_validation at transform:[t] (source s[bold])\n" in text
    assert "p[/x]: done" in text and "…" not in text
    in_the_table = "".join(line[line.rindex("  ") :].strip() for line in text.splitlines()[:10] if "  " in line)
    assert ODD.replace(" ", "") in in_the_table.replace(" ", "")


def test_names_of_nodes_on_the_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, where the line is drawn."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(rich.console, "Console", lambda **kwargs: console)
    with progress._terminal() as listener:
        listener("output_started", {"output": "a[/bold]b"})
        listener("output_written", {"output": "a[/bold]b", "records": 1})
        listener("waiting", {"holder": "'p[/x]' (process 1)"})
        listener("log", {"level": "info", "name": "n[/]", "message": "m[/]"})


class Broken(io.StringIO):
    """Nobody reads it any more, or the disk is full."""

    def __init__(self, after: int, error: OSError) -> None:
        super().__init__()
        self.after, self.error = after, error

    def write(self, text: str) -> int:
        self.after -= 1
        if self.after < 0:
            raise self.error
        return super().write(text)


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), OSError(28, "No space left on device")])
def test_a_run_goes_on_when_nobody_listens(monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    """Whoever listens, to events or to the summary, may go, or lose the place they are written to."""
    out = Broken(2, error)
    monkeypatch.setattr("sys.stdout", out)
    with progress.reporter("p.yaml", Options(), machine="ndjson-v1", quiet=False) as listener:
        listener("planned", {"nodes": 1, "outputs": [], "warnings": []})
        listener("finished", {"report": report()})
    assert out.getvalue().count("\n") == 1
    monkeypatch.setattr("sys.stderr", Broken(0, error))
    with progress.reporter("p.yaml", Options(), machine=None, quiet=False) as listener:
        listener("log", {"level": "info", "name": "n", "message": "m"})
        listener("finished", {"report": report()})


def test_events_have_names_in_every_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    with progress.reporter("\u00fc\udcff.yaml", Options(), machine="ndjson-v1", quiet=False):
        pass
    assert json.loads(raw.getvalue())["pipeline"] == "\u00fc\udcff.yaml"
