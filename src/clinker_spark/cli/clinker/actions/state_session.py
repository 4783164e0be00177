"""The state of a stream, as the command line shows it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clinker_spark.cli.clinker.actions.planning import plan_of, short_form
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.plan.streams import queries
from clinker_spark.streaming.checkpoint import Checkpoint, checkpoint_folder
from clinker_spark.streaming.shape import check_shape, shapes

if TYPE_CHECKING:
    from clinker_spark.spark.session.sessions import SparkSession
    from clinker_spark.streaming.watch.hot_keys import Waiting


def check_state(pipeline: str, checkpoint: str | None, base_dir: str | None) -> int:
    """Compare a pipeline with its checkpoint."""
    plan = plan_of(pipeline, {"settings": (), "rules_path": None, "memory_limit": None}, short_form(pipeline))
    found = queries(plan)
    base = plan.file.folder if base_dir is None else Path(base_dir)
    place = Checkpoint(checkpoint_folder(plan, base, checkpoint))
    about = place.load()
    if about is None:
        click.echo(f"{place.folder}: no checkpoint yet; the stream begins with the first file")
        return 0
    check_shape(plan, found, place, about)
    last = {query.name: place.committed(query) for query in found}
    known = ", ".join(f"{name} after batch {batch}" for name, batch in last.items() if batch >= 0)
    click.echo(f"{place.folder}: fits; " + (f"goes on with {known}" if known else "no batch was finished yet"))
    return 0


def show_state(folder: str, top: int, *, as_json: bool) -> int:
    """What waits in a checkpoint."""
    from clinker_spark.streaming.watch.hot_keys import key_text  # pyspark: check does without it

    place = Checkpoint(Path(folder))
    about = place.load()
    if about is None:
        message = f"'{folder}' is no checkpoint of a stream"
        raise InputError([Diagnostic("E224", message, help="name the folder in stream.checkpoint of the pipeline")])
    shown = _queries(place, about, top)
    if as_json:
        click.echo(json.dumps({"id": about["id"], "partitions": about["partitions"], "queries": shown}, indent=2))
        return 0
    click.echo(f"{folder}: {about['partitions']} partition(s)")
    for query in shown:
        click.echo(f"\n{query['name']}: {query['batches']} batches finished, {query['bytes']:,} bytes on disk")
        for node, size in query["nodes"].items():
            click.echo(f"  {node}: {size:,} bytes on disk")
        for side in query["sides"]:
            what = "totals of open windows" if side["side"] is None else "records wait"
            of = f"{side['side']} of {side['node']}" if side["side"] else side["node"]
            click.echo(f"  {of}: {side['records']:,} {what}")
            for key, count in side["top"]:
                click.echo(f"    {count:>10,}  {key_text(key)}")
    return 0


def _queries(place: Checkpoint, about: dict[str, Any], top: int) -> list[dict[str, Any]]:
    from clinker_spark.spark.session.sessions import session  # other commands start without it
    from clinker_spark.spark.streaming.state import stream_session

    spark = stream_session(session("local[*]", app_name="clinker state"), about["partitions"], 100)
    found = []
    for name, shape in shapes(about).items():
        sides = [
            {
                "node": side.node,
                "side": side.side,
                "records": side.records,
                "top": [[list(key), count] for key, count in side.top],
            }
            for side in _sides(spark, place, shape, name, top)
        ]
        sizes = node_bytes(place.spark_of(name) / "state", shape.get("operators") or [])
        total = sum(sizes.values())
        batches = place.committed_of(name) + 1
        found.append({"name": name, "batches": batches, "bytes": total, "nodes": sizes, "sides": sides})
    return found


def _sides(spark: SparkSession, place: Checkpoint, shape: dict[str, Any], name: str, top: int) -> list[Waiting]:
    """What a query holds. The stream may go on meanwhile, and remove what is being read."""
    from clinker_spark.runtime.run.engine_failures import spark_explained  # pyspark: check does without it
    from clinker_spark.streaming.watch.hot_keys import waiting

    with spark_explained():
        return list(waiting(spark, place, shape, name, top))


def node_bytes(state: Path, nodes: Sequence[str]) -> dict[str, int]:
    """By node: what its state takes on disk. Spark keeps both sides of a join in the same files. A stream that runs
    adds and removes files meanwhile."""
    from clinker_spark.spark.measure.steering import bytes_below  # pyspark: check does without it

    found: dict[str, int] = {}
    for folder in sorted(state.glob("[0-9]*"), key=lambda path: int(path.name) if path.name.isdigit() else -1):
        number = int(folder.name) if folder.name.isdigit() else -1
        node = nodes[number] if 0 <= number < len(nodes) else f"operator {folder.name}"
        found[node] = found.get(node, 0) + bytes_below([str(folder)])
    return found
