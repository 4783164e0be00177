"""What `make demo` shows, from the first line to the last: it is the first thing that people see of the project."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "01-first-look"


def test_the_demo_runs_to_its_end(quick: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = Path(shutil.copytree(EXAMPLE, tmp_path / "demo", ignore=shutil.ignore_patterns("out")))
    spec = importlib.util.spec_from_file_location("demo", copy / "run.py")
    assert spec is not None and spec.loader is not None
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    demo.main()
    shown = capsys.readouterr().out
    titles = (
        "The pipeline",
        "What will run",
        "The input",
        "What became of the records",
        "The run as a page",
        "What to",
    )
    places = [shown.find(f"\n{title}") for title in titles]
    assert places == sorted(places) and places[0] >= 0
    assert "many" in shown.partition("\nDead letters")[2]
    assert "<svg" in (copy / "out" / "run.html").read_text(encoding="utf-8")
    for name in ("large.csv", "revenue.csv"):
        assert (copy / "out" / name).read_text() == (EXAMPLE / "expected" / name).read_text()
