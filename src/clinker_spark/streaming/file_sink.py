"""Files, one for each batch, as an output of streams.

A batch is written beside its place and then renamed to it, so that its file is there whole or not at all. If it is
there already, the batch was finished before a crash: nothing is written again. `out.json` becomes `out-000012.json`,
`out/` becomes `out/<name>-000012.json`; a Parquet file is a folder of parts.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.runtime.commit.seam import SYSTEM, Files
from clinker_spark.runtime.commit.small_files import replace_file
from clinker_spark.runtime.errors import IoError

if TYPE_CHECKING:
    from clinker_spark.spark.streaming.query import DataFrame

SUFFIXES = {"csv": ".csv", "json": ".json", "xml": ".xml", "fixed_width": ".txt", "parquet": ".parquet"}
DIGITS = 6


class FileSink:
    """See `ends.StreamSink`."""

    def __init__(self, node: OutputPlan, base: Path, files: Files = SYSTEM) -> None:
        self.node = node
        self.files = files
        path = str(node.config.path)
        place = base / path
        suffix = SUFFIXES[node.config.type]
        if path.endswith("/"):
            place = place / (node.output_name + suffix)
        self.folder = place.parent
        self.stem, self.suffix = place.stem, place.suffix or suffix
        self.mark = self.folder / f".{self.stem}.stream.json"

    def place(self, batch_id: int) -> Path:
        return self.folder / f"{self.stem}-{batch_id:0{DIGITS}}{self.suffix}"

    def check(self, pipeline_id: str) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            others = [path for path in self.folder.glob(f"{self.stem}-*{self.suffix}") if self._is_batch(path)]
            owner = json.loads(self.mark.read_text())["pipeline_id"] if self.mark.exists() else None
            if others and owner != pipeline_id:
                by = "a stream with another checkpoint wrote it" if owner else "this stream did not write it"
                message = f"'{min(others)}' is there, and {by}"
                help_text = "go on with the checkpoint it belongs to, write to another place, or remove such files"
                raise IoError([self.node.diagnostic("E508", message, "config", "path", help=help_text)])
            replace_file(self.mark, json.dumps({"pipeline_id": pipeline_id}).encode() + b"\n")
            self._clean()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            message = f"cannot write '{self.folder}': {reason}"
            raise IoError([Diagnostic("E401", message, help="check the path")]) from None

    def _is_batch(self, path: Path) -> bool:
        number = path.name.removeprefix(f"{self.stem}-").removesuffix(self.suffix)
        return number.isdigit() and len(number) >= DIGITS

    def write(self, batch: DataFrame, batch_id: int, pipeline_id: str) -> None:
        # What needs Spark is loaded when there is a batch: a plan is checked, and a state shown, without it.
        from clinker_spark.runtime.run.files.assemble import one_file, part_files
        from clinker_spark.spark.operators.output import Prepared, plain_rendering, write_parts

        place = self.place(batch_id)
        if self.files.stat(place) is not None:
            return
        attempt = self.folder / f".{place.name}.{pipeline_id[:8]}"
        shutil.rmtree(attempt, ignore_errors=True)
        rendering = plain_rendering(self.node)
        write_parts(Prepared(self.node, batch, rendering, False), str(attempt / "parts"))
        parts = part_files(attempt / "parts")
        if parts:
            made = attempt / "parts"
            if rendering is None:
                for path in made.iterdir():
                    if path in parts:
                        self.files.sync(path)
                    else:
                        path.unlink()
            else:
                made = one_file(parts, rendering, attempt / "whole").path
            self.files.sync(made)
            self.files.rename(made, place)
            self.files.sync(self.folder)
        shutil.rmtree(attempt, ignore_errors=True)

    def close(self) -> None:
        self._clean()

    def _clean(self) -> None:
        """Attempts that nobody finished."""
        for left in self.folder.glob(f".{self.stem}-[0-9]*{self.suffix}.*"):
            shutil.rmtree(left, ignore_errors=True)
