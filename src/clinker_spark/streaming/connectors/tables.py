"""Tables of PostgreSQL as outputs of streams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.runtime.errors import IoError
from clinker_spark.spark.connectors.postgres.database import Database, password_of
from clinker_spark.spark.connectors.postgres.sink import Table, TableSink
from clinker_spark.spark.connectors.postgres.tables import Name
from clinker_spark.spark.streaming.batches import Staged
from clinker_spark.streaming.connectors.places import of_node, placed, resolved

if TYPE_CHECKING:
    from clinker_spark.spark.streaming.query import DataFrame


class TableOutput:
    """See `ends.StreamSink`."""

    def __init__(self, node: OutputPlan, base: Path) -> None:
        self.node = node
        config = node.config
        settings = resolved(of_node(node), "settings", config.settings)
        if config.password is not None:
            settings |= resolved(of_node(node), "password", {"password": config.password})
        elif (password := password_of()) is not None:
            settings["password"] = password
        columns = {name: node.schema[source] for name, source in node.columns}
        keys = tuple(config.keys or ()) if config.mode == "upsert" else ()
        latest_by = config.latest_by if keys else None
        self.table = Table(Database(config.url, settings), Name.of(config.table), columns, keys, latest_by)

    def _sink(self, pipeline_id: str) -> TableSink:
        return TableSink(self.table, pipeline_id, self.node.name)

    def check(self, pipeline_id: str) -> None:
        with placed(of_node(self.node), "url"):
            found = self._sink(pipeline_id).prepare(self.node.config.if_missing == "create")
        if found:
            raise IoError([self.node.diagnostic("E531", p.message, "config", "table", help=p.help) for p in found])

    def stage(self, batch: DataFrame, batch_id: int, pipeline_id: str) -> Staged | None:
        with placed(of_node(self.node), "table"):
            copied = self._sink(pipeline_id).stage(batch, batch_id)
        if copied is None:
            return None

        def publish() -> None:
            with placed(of_node(self.node), "table"):
                copied.move()

        return Staged(publish, copied.drop)

    def close(self) -> None:
        """Each batch has closed what it opened."""
