"""Files, one for each batch, as an output of streams.

A batch is written beside its place and then renamed to it, so that its file is there whole or not at all. If it is
there already, the batch was finished before a crash: nothing is written again. `out.json` becomes `out-000012.json`,
`out/` becomes `out/<name>-000012.json`; a Parquet file is a folder of parts.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.runtime.commit.seam import SYSTEM, Files
from clinker_spark.streaming.batch_files import BatchFiles

if TYPE_CHECKING:
    from clinker_spark.spark.streaming.batches import Staged
    from clinker_spark.spark.streaming.query import DataFrame

SUFFIXES = {"csv": ".csv", "json": ".json", "xml": ".xml", "fixed_width": ".txt", "parquet": ".parquet"}


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
        self.batches = BatchFiles(place.parent, place.stem, place.suffix or suffix, self._diagnostic, files=files)

    def place(self, batch_id: int) -> Path:
        return self.batches.place(batch_id)

    def check(self, pipeline_id: str) -> None:
        self.batches.claim(pipeline_id)

    def _diagnostic(self, code: str, message: str, help: str) -> Diagnostic:
        return self.node.diagnostic(code, message, "config", "path", help=help)

    def stage(self, batch: DataFrame, batch_id: int, pipeline_id: str) -> Staged | None:
        # What needs Spark is loaded when there is a batch: a plan is checked, and a state shown, without it.
        from clinker_spark.runtime.run.files.assemble import one_file, part_files
        from clinker_spark.spark.operators.output import Prepared, plain_rendering
        from clinker_spark.spark.operators.output_jobs import write_parts
        from clinker_spark.spark.streaming.batches import Staged

        place = self.place(batch_id)
        if self.batches.has(place, pipeline_id):
            return None
        attempt = self.batches.attempt(batch_id, pipeline_id)
        shutil.rmtree(attempt, ignore_errors=True)
        rendering = plain_rendering(self.node)
        write_parts(Prepared(self.node, batch, rendering, False), str(attempt / "parts"))
        made = attempt / "parts"
        if parts := part_files(made):
            if rendering is None:
                for path in made.iterdir():
                    if path in parts:
                        self.files.sync(path)
                    else:
                        path.unlink()
            else:
                made = one_file(parts, rendering, attempt / "whole").path
            self.files.sync(made)

        def discard() -> None:
            shutil.rmtree(attempt, ignore_errors=True)

        def publish() -> None:
            if parts:
                self.files.rename(made, place)
                self.files.sync(place.parent)
            discard()

        return Staged(publish, discard)

    def close(self) -> None:
        self.batches.release()
