"""Records that are made up, and the screen, for streams that are tried."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.spark.connectors.made_up import Rate, open_made_up, read_made_up
from clinker_spark.spark.connectors.screen import first_rows
from clinker_spark.spark.streaming.batches import Staged
from clinker_spark.streaming.ends import SourceOptions

if TYPE_CHECKING:
    from clinker_spark.spark.scan.files import SourceFile
    from clinker_spark.spark.scan.request import ReadRequest, Scan
    from clinker_spark.spark.session.sessions import SparkSession
    from clinker_spark.spark.streaming.query import DataFrame

WIDTH = 32
"""So many characters of a value stand in a table."""


class MadeUp:
    """See `ends.StreamSource`."""

    def __init__(self, node: SourcePlan, options: SourceOptions) -> None:
        config = node.config
        self.rate = Rate(
            source=node.name,
            rows_per_second=config.rows_per_second,
            rows=config.rows,
            keys=config.keys,
            most=config.max_rows,
            first=str(options.folder / "began.json"),
            beats=options.beats,
            tasks=options.tasks,
        )

    def open(self, spark: SparkSession, request: ReadRequest) -> Scan:
        return open_made_up(spark, self.rate, request)

    def again(
        self, spark: SparkSession, request: ReadRequest, start: int | None, end: int
    ) -> tuple[Scan, tuple[SourceFile, ...]]:
        return read_made_up(spark, self.rate, request, start or 0, end)


class Console:
    """See `ends.StreamSink`. A batch that comes again after a crash is shown again."""

    def __init__(self, node: OutputPlan, base: Path) -> None:
        self.node = node

    def check(self, pipeline_id: str) -> None:
        """There is always a screen."""

    def stage(self, batch: DataFrame, batch_id: int, pipeline_id: str) -> Staged:
        rows, more = first_rows(batch, self.node.config.rows)
        return Staged(lambda: self._show(rows, more, batch_id))

    def _show(self, rows: list[dict[str, Any]], more: int, batch_id: int) -> None:
        if not rows:
            return
        if self.node.config.format == "json":
            for row in rows:
                record = {"event": "record", "output": self.node.name, "batch": batch_id, "record": row}
                print(json.dumps(record, ensure_ascii=False, default=str))
        else:
            print("\n".join([f"{self.node.name}, batch {batch_id}:", *_table(rows)]))
            if more:
                print(f"... and {more:,} more")
        sys.stdout.flush()

    def close(self) -> None:
        """It stays open."""


def _table(rows: list[dict[str, Any]]) -> list[str]:
    names = list(rows[0])
    cells = [names, *([_cell(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _cell(value: Any) -> str:
    text = "" if value is None else str(value).replace("\n", "\\n")
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
