"""Topics of Kafka as sources and outputs of streams."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.spark.connectors.kafka.client import Cluster
from clinker_spark.spark.connectors.kafka.messages import Envelope
from clinker_spark.spark.connectors.kafka.positions import Position, Topic
from clinker_spark.spark.connectors.kafka.sink import TopicSink
from clinker_spark.spark.connectors.kafka.source import Feed, open_topic, read_topic
from clinker_spark.spark.streaming.batches import Staged
from clinker_spark.streaming.connectors.places import of_node, placed, resolved
from clinker_spark.streaming.ends import SourceOptions

if TYPE_CHECKING:
    from clinker_spark.spark.scan.files import SourceFile
    from clinker_spark.spark.scan.request import ReadRequest, Scan
    from clinker_spark.spark.session.sessions import SparkSession
    from clinker_spark.spark.streaming.query import DataFrame


class TopicSource:
    """See `ends.StreamSource`."""

    def __init__(self, node: SourcePlan, options: SourceOptions) -> None:
        config = node.config
        cluster = Cluster(config.brokers, resolved(of_node(node), "client", config.client))
        with placed(of_node(node), "topic"):
            Topic(cluster, config.topic).lows()
        self.feed = Feed(
            source=node.name,
            cluster=cluster,
            topic=config.topic,
            start=config.start,
            first=str(options.folder / "first.json"),
            envelope=Envelope(
                config.format, config.metadata.columns, config.options.delimiter, config.options.quote_char
            ),
            max_messages=config.max_messages,
            beats=options.beats,
            tasks=options.tasks,
        )

    def open(self, spark: SparkSession, request: ReadRequest) -> Scan:
        return open_topic(spark, self.feed, _constant(request))

    def again(
        self, spark: SparkSession, request: ReadRequest, start: Position | None, end: Position
    ) -> tuple[Scan, tuple[SourceFile, ...]]:
        return read_topic(spark, self.feed, _constant(request), start, end)


def _constant(request: ReadRequest) -> ReadRequest:
    """Messages have no order over partitions."""
    return replace(request, arrival=False)


class TopicOutput:
    """See `ends.StreamSink`."""

    def __init__(self, node: OutputPlan, base: Path) -> None:
        self.node = node
        self.cluster = Cluster(node.config.brokers, resolved(of_node(node), "client", node.config.client))

    def _sink(self, pipeline_id: str) -> TopicSink:
        config = self.node.config
        forgotten = config.on_forgotten == "write"
        return TopicSink(self.cluster, config.topic, pipeline_id, self.node.name, forgotten)

    def check(self, pipeline_id: str) -> None:
        with placed(of_node(self.node), "topic"):
            self._sink(pipeline_id).prepare()

    def stage(self, batch: DataFrame, batch_id: int, pipeline_id: str) -> Staged:
        """Messages are sent by the task that has them: the transaction is all there is."""

        def publish() -> None:
            with placed(of_node(self.node), "topic"):
                self._sink(pipeline_id).write(batch, batch_id)

        return Staged(publish, computed=False)

    def close(self) -> None:
        """Each batch has closed what it opened."""
