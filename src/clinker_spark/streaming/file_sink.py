"""Files, one for each batch, as an output of streams.

A batch is written beside its place and then renamed to it, so that its file is there whole or not at all. If it is
there already, the batch was finished before a crash: nothing is written again. `out.json` becomes `out-000012.json`,
`out/` becomes `out/<name>-000012.json`; a Parquet file is a folder of parts.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.runtime.errors import IoError

if TYPE_CHECKING:
    from clinker_spark.spark.streaming.query import DataFrame

SUFFIXES = {"csv": ".csv", "json": ".json", "xml": ".xml", "fixed_width": ".txt", "parquet": ".parquet"}
DIGITS = 6


class FileSink:
    """See `ends.StreamSink`."""

    def __init__(self, node: OutputPlan, base: Path) -> None:
        self.node = node
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
            if self.mark.exists():
                owner = json.loads(self.mark.read_text())["pipeline_id"]
                if owner != pipeline_id and any(self.folder.glob(f"{self.stem}-[0-9]*{self.suffix}")):
                    message = f"'{self.place(0)}' and others were written by a stream with another checkpoint"
                    help_text = "go on with that checkpoint, write to another place, or remove these files"
                    raise IoError([self.node.diagnostic("E508", message, "config", "path", help=help_text)])
            elif self.place(0).exists():
                message = f"'{self.place(0)}' is there, and this stream did not write it"
                help_text = "write to another place, or remove the file"
                raise IoError([self.node.diagnostic("E508", message, "config", "path", help=help_text)])
            self.mark.write_text(json.dumps({"pipeline_id": pipeline_id}) + "\n")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise IoError(
                [Diagnostic("E401", f"cannot write '{self.folder}': {reason}", help="check the path")]
            ) from None

    def write(self, batch: DataFrame, batch_id: int, pipeline_id: str) -> None:
        from clinker_spark.runtime.run.assemble import one_file, part_files
        from clinker_spark.spark.operators.output import Prepared, plain_rendering, write_parts

        place = self.place(batch_id)
        if place.exists():
            return
        attempt = self.folder / f".{place.name}.{pipeline_id[:8]}"
        shutil.rmtree(attempt, ignore_errors=True)
        rendering = plain_rendering(self.node)
        write_parts(Prepared(self.node, batch, rendering, False), str(attempt / "parts"))
        parts = part_files(attempt / "parts")
        if parts:
            if rendering is None:
                for path in (attempt / "parts").iterdir():
                    if path not in parts:
                        path.unlink()
                made = attempt / "parts"
            else:
                made = one_file(parts, rendering, attempt / "whole").path
            _sync(made)
            os.rename(made, place)
            _sync(self.folder)
        shutil.rmtree(attempt, ignore_errors=True)

    def close(self) -> None:
        for left in self.folder.glob(f".{self.stem}-[0-9]*{self.suffix}.*"):
            shutil.rmtree(left, ignore_errors=True)


def _sync(path: Path) -> None:
    """What is renamed next must be on the disk, and so must the rename."""
    paths = [*path.iterdir(), path] if path.is_dir() and path.name == "parts" else [path]
    for each in paths:
        with contextlib.suppress(OSError):
            handle = os.open(each, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
