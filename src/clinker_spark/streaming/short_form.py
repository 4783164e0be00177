"""The short form of a stream join: sources, a join, a target; as Python values or as TOML. It becomes a pipeline.

```toml
name = "orders-payments-join"

[[sources]]
name = "orders"
query = "orders/*.jsonl"
connection = { type = "json", options = { format = "ndjson" } }
schema = { order_id = "nullable(string)", _event_ts = "date_time", amount = "float" }

[[sources]]
name = "payments"
query = "payments/*.csv"
connection = { type = "csv" }
schema = { order_id = "nullable(string)", _event_ts = "date_time", paid = "float" }

[transform.join]
kind = "stream_stream_join"
left_source = "orders"
right_source = "payments"
left_keys = ["order_id"]
right_keys = ["order_id"]
time_window_ms = 300000
event_time_column = "_event_ts"
late_data = "drop"

[target]
type = "json"
path = "out/"

[state_store]
path = "state/"

[watermark]
lateness_ms = 10000
source_idleness_ms = 60000
```

What `query` means says the connection: a pattern of files, or a topic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.errors import InputError

KINDS = {
    "stream_stream_join": "inner",
    "inner": "inner",
    **{name: side for side in ("left", "right", "full") for name in (side, f"{side}_outer")},
}
TOP = ("name", "sources", "transform", "target", "state_store", "watermark", "error_handling", "stream")
SOURCE = ("name", "query", "connection", "schema")
STATE_STORE = ("path", "kind", "url")
STORES = ("rocksdb", "postgres")
IDLE = ("source_idleness_ms", "source_idle_ms")
"""Two names of the same: after how long a source that is silent no longer holds back the others."""
WATERMARK = ("lateness_ms", *IDLE)
JOIN = (
    "kind",
    "left_source",
    "right_source",
    "left_keys",
    "right_keys",
    "time_window_ms",
    "min_delta_ms",
    "max_delta_ms",
    "event_time_column",
    "late_data",
    "allowed_lateness_ms",
    "output_left_columns",
    "output_right_columns",
    "left_column_prefix",
    "right_column_prefix",
)
RENAMED = {
    "output_left_columns": "left_columns",
    "output_right_columns": "right_columns",
    "left_column_prefix": "left_prefix",
    "right_column_prefix": "right_prefix",
    "left_keys": "left_keys",
    "right_keys": "right_keys",
    "late_data": "late_data",
}
EVENT_TIME = "_event_ts"


def pipeline_text(form: Mapping[str, Any], where: str = "the stream") -> str:
    """The pipeline of a short form, as text (JSON is YAML). Raises `InputError` with everything that is wrong."""
    problems = list(_problems(form))
    if problems:
        raise InputError([Diagnostic("E511", f"{where}: {message}", help=help_text) for message, help_text in problems])
    join = form["transform"]["join"]
    marks = form.get("watermark", {})
    nodes: list[dict[str, Any]] = [_source(source, join, marks) for source in form["sources"]]
    nodes.append(
        {
            "type": "stream_join",
            "name": "joined",
            "input": {"left": join["left_source"], "right": join["right_source"]},
            "config": _join(join),
        }
    )
    nodes.append({"type": "output", "name": "target", "input": "joined", "config": dict(form["target"])})
    pipeline: dict[str, Any] = {"pipeline": {"name": form["name"]}, "nodes": nodes}
    if "error_handling" in form:
        pipeline["error_handling"] = form["error_handling"]
    stream = dict(form.get("stream", {}))
    if "path" in form.get("state_store", {}):
        stream["checkpoint"] = form["state_store"]["path"]
    if stream:
        pipeline["stream"] = stream
    return json.dumps(pipeline, indent=1, default=str)


def form_warnings(form: Mapping[str, Any], where: str = "the stream") -> list[Diagnostic]:
    """What a form says that has no effect here. Raises nothing: the form is right."""
    store = form.get("state_store", {})
    given = [key for key in ("kind", "url") if key in store and store[key] != "rocksdb"]
    if not given:
        return []
    names = " and ".join(f"'state_store.{key}'" for key in given)
    verb = "has" if len(given) == 1 else "have"
    message = f"{where}: {names} {verb} no effect here: state is kept in RocksDB, in the folder of the checkpoint"
    help_text = "write path = 'state/' instead: what was read, what waits and what was written go on from there"
    return [Diagnostic("W027", message, help=help_text)]


def _source(source: Mapping[str, Any], join: Mapping[str, Any], marks: Mapping[str, Any]) -> dict[str, Any]:
    connection = dict(source["connection"])
    place = "topic" if connection["type"] == "kafka" else "glob"
    mark: dict[str, Any] = {"column": join.get("event_time_column", EVENT_TIME)}
    mark["delay"] = f"{marks.get('lateness_ms', 0)}ms"
    for key in IDLE:
        if key in marks:
            mark["idle_timeout"] = f"{marks[key]}ms"
    config = {**connection, place: source["query"], "schema": dict(source["schema"]), "watermark": mark}
    return {"type": "source", "name": source["name"], "config": config}


def _join(join: Mapping[str, Any]) -> dict[str, Any]:
    found = {new: join[old] for old, new in RENAMED.items() if old in join}
    found["kind"] = KINDS[join.get("kind", "inner")]
    if "min_delta_ms" in join:
        found["time_window"] = {"min": f"{join['min_delta_ms']}ms", "max": f"{join['max_delta_ms']}ms"}
    else:
        found["time_window"] = f"{join['time_window_ms']}ms"
    if "allowed_lateness_ms" in join:
        found["allowed_lateness"] = f"{join['allowed_lateness_ms']}ms"
    return found


_OF_SOURCE = "a source has a name, a query, a connection and a schema"
_MISSING = {"schema": "a stream does not look into records to find their types: name the columns, as { id = 'string' }"}
_TABLES = ("transform", "target", "state_store", "watermark", "error_handling", "stream")


def _shapes(form: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is not even a table where there must be one."""
    for key in _TABLES:
        if key in form and not isinstance(form[key], Mapping):
            yield f"'{key}' must be a table", f"write [{key}] and its keys below"
    sources = form.get("sources", [])
    if not isinstance(sources, list | tuple) or not all(isinstance(source, Mapping) for source in sources):
        yield "'sources' must be a list of tables", "write [[sources]] above the keys of each"
        return
    for i, source in enumerate(sources):
        for key in ("connection", "schema"):
            if source.get(key) is not None and not isinstance(source[key], Mapping):
                yield f"'sources.{i}.{key}' must be a table", f"write {key} = {{ ... }}"
    join = form["transform"].get("join") if isinstance(form.get("transform"), Mapping) else None
    if join is not None and not isinstance(join, Mapping):
        yield "'transform.join' must be a table", "write [transform.join] and its keys below"
        return
    for key, value in (join or {}).items():
        if key.endswith("_ms") and (not isinstance(value, int) or isinstance(value, bool)):
            yield f"'transform.join.{key}' must be a whole number", "say how many milliseconds"
    for key, value in form["watermark"].items() if isinstance(form.get("watermark"), Mapping) else ():
        if key.endswith("_ms") and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            yield f"'watermark.{key}' must be a whole number, 0 or more", "say how many milliseconds"


def _settings(store: Mapping[str, Any], marks: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from _unknown(store, STATE_STORE, "state_store.")
    yield from _unknown(marks, WATERMARK, "watermark.")
    if store.get("kind", "rocksdb") not in STORES:
        message = f"there is no state store of kind '{store['kind']}'"
        yield message, "remove the key: state is kept in RocksDB, in the folder that 'path' names"
    if len({marks[key] for key in IDLE if key in marks}) > 1:
        yield f"'watermark' has {' and '.join(IDLE)}, which are two names of the same", "keep one of them"


def _problems(form: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from _unknown(form, TOP, "")
    if shapes := list(_shapes(form)):
        yield from shapes
        return
    for key in ("name", "sources", "transform", "target"):
        if not form.get(key):
            yield f"'{key}' is missing", "see docs/streams.md for the whole form"
            return
    yield from _settings(form.get("state_store", {}), form.get("watermark", {}))
    yield from _unknown(form["transform"], ("join", "window"), "transform.")
    if "window" in form["transform"]:
        message = "'transform.window' and 'transform.join' exclude each other"
        yield message, "write a pipeline with an aggregate after the stream_join"
    names = []
    for i, source in enumerate(form["sources"]):
        yield from _unknown(source, SOURCE, f"sources.{i}.")
        missing = [key for key in SOURCE if not source.get(key)]
        if missing:
            yield f"'sources.{i}.{missing[0]}' is missing", _MISSING.get(missing[0], _OF_SOURCE)
        elif "type" not in source["connection"]:
            yield f"'sources.{i}.connection' has no 'type'", "write type = 'json', 'csv', 'parquet' or 'kafka'"
        names.append(source.get("name"))
    join = form["transform"].get("join")
    if not join:
        yield "'transform.join' is missing", "name both sources, their keys and the window"
        return
    yield from _unknown(join, JOIN, "transform.join.")
    yield from _join_problems(join, names)


def _join_problems(join: Mapping[str, Any], names: list[Any]) -> Iterator[tuple[str, str]]:
    for side in ("left_source", "right_source"):
        if join.get(side) not in names:
            known = did_you_mean(str(join.get(side)), [str(name) for name in names])
            yield f"'{side}' names no source", known or f"the sources are {', '.join(map(str, names))}"
    if join.get("left_source") == join.get("right_source"):
        yield "a source cannot be joined with itself", "name two different sources"
    for side in ("left_keys", "right_keys"):
        if not join.get(side):
            yield f"'{side}' is missing", "name at least one column"
    if join.get("kind", "inner") not in KINDS:
        yield f"there is no join of kind '{join['kind']}'", f"write one of {', '.join(KINDS)}"
    deltas = [key for key in ("min_delta_ms", "max_delta_ms") if key in join]
    if len(deltas) == 1:
        yield f"'{deltas[0]}' stands alone", "write both min_delta_ms and max_delta_ms, or time_window_ms"
    elif not deltas and int(join.get("time_window_ms", 0)) <= 0:
        yield "'time_window_ms' must be above 0", "say how many milliseconds records may lie apart"


def _unknown(given: Mapping[str, Any], known: tuple[str, ...], before: str) -> Iterator[tuple[str, str]]:
    for key in given:
        if key not in known:
            yield f"there is no key '{before}{key}'", did_you_mean(key, known) or f"the keys are {', '.join(known)}"
