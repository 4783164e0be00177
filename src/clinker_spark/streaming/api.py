"""Streams from Python: a pipeline file, or sources, a join and a target.

```python
from clinker_spark.streaming.api import Join, Source, run_streaming_pipeline

run_streaming_pipeline(
    name="orders-payments-join",
    sources=[
        Source(name="orders", connection={"type": "json", "options": {"format": "ndjson"}}, query="orders/*.jsonl",
               schema={"order_id": "nullable(string)", "_event_ts": "date_time", "amount": "float"}),
        Source(name="payments", connection={"type": "csv"}, query="payments/*.csv",
               schema={"order_id": "nullable(string)", "_event_ts": "date_time", "paid": "float"}),
    ],
    join=Join(left_source="orders", right_source="payments", left_keys=["order_id"], right_keys=["order_id"],
              time_window_ms=300_000, event_time_column="_event_ts"),
    target={"type": "json", "path": "out/"},
    once=True,
)
```
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from clinker_spark.core.span import Source as Text
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.api import Pipeline
from clinker_spark.spark.session.sessions import SparkSession
from clinker_spark.spark.streaming.state import FLAT
from clinker_spark.streaming.run import StreamOptions, StreamRun
from clinker_spark.streaming.short_form import EVENT_TIME, form_warnings, pipeline_text
from clinker_spark.streaming.watch.progress import StreamReport


@dataclass(frozen=True)
class Source:
    """Where records come from: `query` is a pattern of files or a topic, as the type of the connection has it."""

    name: str
    connection: Mapping[str, Any]
    query: str
    schema: Mapping[str, str] | None = None
    """The columns and their types. A stream does not look into records to find them: without a schema it is refused
    (E511)."""


@dataclass(frozen=True)
class StateStore:
    """Where what waits is kept: in RocksDB, in a folder. Another `kind` than `rocksdb`, and its `url`, have no effect,
    which is a warning (W027)."""

    kind: str = "rocksdb"
    url: str | None = field(default=None, repr=False)
    path: str | Path | None = None
    """The folder; by default it has the name of the stream."""


@dataclass(frozen=True)
class Join:
    """What joins the records of two sources."""

    left_source: str
    right_source: str
    left_keys: Sequence[str]
    right_keys: Sequence[str]
    time_window_ms: int = 0
    kind: Literal["inner", "left_outer", "right_outer", "full_outer"] = "inner"
    min_delta_ms: int | None = None
    max_delta_ms: int | None = None
    event_time_column: str = EVENT_TIME
    late_data: Literal["drop", "reopen"] = "drop"
    allowed_lateness_ms: int | None = None
    output_left_columns: Sequence[str] | None = None
    output_right_columns: Sequence[str] | None = None
    left_column_prefix: str = "left_"
    right_column_prefix: str = "right_"


@dataclass
class Streaming:
    """A stream that runs in the background."""

    run: StreamRun
    report: StreamReport | None = None
    error: BaseException | None = None
    _thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._go, daemon=True)
        self._thread.start()

    def _go(self) -> None:
        try:
            self.report = self.run.run()
        except BaseException as error:
            self.error = error

    @property
    def queries(self) -> list[Any]:
        """The plain `StreamingQuery` objects of Spark, as far as they are started."""
        return [running.query for running in self.run.running]

    def stop(self) -> StreamReport:
        """End it after the batch that is running."""
        self.run.report.interrupted = True
        return self.wait()

    def wait(self, timeout: float | None = None) -> StreamReport:
        """Until it ends. Raises what went wrong."""
        self._thread.join(timeout)
        if self.error is not None:
            raise self.error
        return self.report or self.run.report


def start_stream(
    path: str | Path, spark: SparkSession | None = None, *, once: bool = False, flush_at_end: bool = False
) -> Streaming:
    """Start a pipeline file as a stream; it runs in the background."""
    pipeline = Pipeline(prepare(path))
    return Streaming(_run(pipeline, spark, StreamOptions(once, flush_at_end)))


def run_streaming_pipeline(
    *,
    name: str,
    sources: Sequence[Source],
    join: Join,
    target: Mapping[str, Any],
    state_store: StateStore | Mapping[str, Any] | None = None,
    watermark: Mapping[str, int] | None = None,
    error_handling: Mapping[str, Any] | None = None,
    stream: Mapping[str, Any] | None = None,
    once: bool = False,
    flush_at_end: bool = False,
    wait: bool = True,
    spark: SparkSession | None = None,
    base: str | Path = ".",
) -> StreamReport | Streaming:
    """Join two streams. `state_store` is `{"path": folder}`, `watermark` has `lateness_ms` and `source_idleness_ms`.
    `error_handling` and `stream` are those of a pipeline: `{"strategy": "continue", "dlq": {"path": "dead.csv"}}` and
    `{"trigger": "5s"}`. With `wait=False` it goes on in the background, and `queries` of the result are Spark's own.
    Raises `ClinkerError`."""
    store = asdict(state_store) if isinstance(state_store, StateStore) else dict(state_store or {})
    store = {key: str(value) for key, value in store.items() if value is not None}
    form: dict[str, Any] = {
        "name": name,
        "sources": [asdict(source) for source in sources],
        "transform": {"join": {key: value for key, value in asdict(join).items() if value is not None}},
        "target": dict(target),
        "state_store": {"path": f"{name}.checkpoint", **store},
        "watermark": dict(watermark or {}),
        **({} if error_handling is None else {"error_handling": dict(error_handling)}),
        **({} if stream is None else {"stream": dict(stream)}),
    }
    path = Path(base) / f"{name}.yaml"
    where = f"the stream '{name}'"
    plan = prepare(path, text=Text(str(path), pipeline_text(form, where)))
    made = _run(Pipeline(plan), spark, StreamOptions(once, flush_at_end))
    made.report.warnings += form_warnings(form, where)
    running = Streaming(made)
    return running.wait() if wait else running


def _run(pipeline: Pipeline, spark: SparkSession | None, options: StreamOptions) -> StreamRun:
    return StreamRun(pipeline.plan, spark or pipeline.session(FLAT), options, lambda event, details: None)
