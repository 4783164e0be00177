"""A stream in words: the plan, its queries, and what they hold."""

from __future__ import annotations

from collections.abc import Iterator

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.stream_join import shown
from clinker_spark.plan.streams import StreamQuery, queries


def explain_stream(plan: Plan) -> str:
    """What `clinker stream --explain` prints."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    settings = plan.file.stream
    yield f"Stream '{plan.file.settings.name}'"
    checkpoint = settings.checkpoint or plan.file.path.stem + ".checkpoint"
    yield f"  checkpoint: {checkpoint}"
    yield f"  trigger: {shown(settings.trigger)}, at most {settings.max_files} file(s) of each source in a batch"
    for query in queries(plan):
        yield ""
        yield from _query(plan, query)
    joins = [lines for node in plan.nodes if node.stateful for _, lines in node.sections({})]
    for lines in joins:
        yield ""
        yield from lines


def _query(plan: Plan, query: StreamQuery) -> Iterator[str]:
    yield f"Query '{query.name}':"
    held = {node.name for node in query.stateful}
    for node in [*plan.upstream(query.name), query.root]:
        if node in query.sources:
            mark = next(source.config.watermark for source in query.sources if source is node)
            if mark is None or not query.stateful:
                yield f"  read    {node.name} ({node.tag}), no watermark"
                continue
            delay = query.lag + mark.delay if mark.delay is not None else query.lag
            idle = "" if mark.idle_timeout is None else f", silent after {shown(mark.idle_timeout)}"
            yield f"  read    {node.name} ({node.tag}), watermark '{mark.column}' less {shown(delay)}{idle}"
        else:
            yield f"  {'hold' if node.name in held else 'do':<7} {node.name} ({node.tag})"
    after = {name for output in query.outputs for name in (n.name for n in plan.upstream(output.name))}
    before = {node.name for node in plan.upstream(query.name)} | {query.name}
    for node in plan.nodes:
        if node.name in after - before:
            yield f"  batch   {node.name} ({node.tag})"
    for output in query.outputs:
        yield f"  write   {output.name} ({output.tag}) {output.files_written}"
