"""Pipelines in a temporary folder, run in one session."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.runtime.run.report import RunReport


class Workbench:
    """Files and pipelines of one test."""

    def __init__(self, folder: Path, spark: Any) -> None:
        self.folder = folder
        self.spark = spark

    def file(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def run(self, pipeline: str, **options: Any) -> RunReport:
        self.file("pipeline.yaml", pipeline)
        return run(prepare(self.folder / "pipeline.yaml"), self.spark, Options(**options))

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def letters(self, name: str = "dead.csv") -> list[dict[str, str]]:
        with open(self.folder / name, newline="") as file:
            return list(csv.DictReader(file))

    def left_over(self) -> list[str]:
        """Attempts and locks that should be gone. Manifests stay."""
        return [str(p) for p in self.folder.rglob(".clinker-*") if not p.name.startswith(".clinker-manifest-")]
