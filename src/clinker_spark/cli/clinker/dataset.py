"""`clinker dataset`: recordings of many entities over time."""

from __future__ import annotations

import json
from typing import Any

import click


@click.group("dataset")
def command() -> None:
    """Import recordings, and query their state over time."""


@command.command("import")
@click.argument("dataset", type=click.Path())
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--index", "indexes", multiple=True, metavar="FIELD", help="A field that orders events in time.")
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "csv", "parquet", "rrd"]), help="By default, the files' endings."
)
@click.option("-q", "--quiet", is_flag=True, help="No summary.")
def import_(dataset: str, files: tuple[str, ...], indexes: tuple[str, ...], form: str | None, quiet: bool) -> int:
    """Add the events of FILES to a DATASET, a folder that is made if it is not there.

    \b
    clinker dataset import robots/ events.jsonl --index frame --index log_time

    An event has a `segment` (the recording), an `entity` (a path such as /arm/left), values of indexes, and other
    fields, its components. Recordings of Rerun (.rrd) bring their timelines as indexes. All events are added, or none.
    """
    from clinker_spark.core.diagnostics.render import render_all  # other commands start without it
    from clinker_spark.runtime.dataset.imports import import_events  # pyarrow: not for --help

    done = import_events(dataset, files, indexes, form)
    if done.notes:
        click.echo(render_all(list(done.notes), False), err=True)
    if not quiet:
        click.echo(
            f"{dataset}: {_count(done.events, 'event')} in {_count(done.chunks, 'chunk')} of "
            f"{_count(done.segments, 'segment')}, {_bytes(done.size)}"
        )
    return 0


@command.command("info")
@click.argument("dataset")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(dataset: str, as_json: bool) -> int:
    """Show segments, entities, components, ranges of indexes and bytes."""
    from clinker_spark.dataset.either import type_text  # other commands start without it
    from clinker_spark.dataset.files.manifest import Dataset
    from clinker_spark.dataset.indexes import shown

    known = Dataset.open(dataset).catalogue
    ranges = {
        segment.name: {i: [shown(n, known.indexes[i]) for n in r] for i, r in segment.ranges.items()}
        for segment in known.segments.values()
    }
    if as_json:
        body = {
            "indexes": known.indexes,
            "segments": {
                s.name: {"rows": s.rows, "chunks": s.chunks, "bytes": s.size, "ranges": ranges[s.name]}
                for s in known.segments.values()
            },
            "entities": {e: {n: type_text(t) for n, t in c.items()} for e, c in sorted(known.components.items())},
        }
        click.echo(json.dumps(body, indent=2, ensure_ascii=False))
        return 0
    size = sum(s.size for s in known.segments.values())
    rows = sum(s.rows for s in known.segments.values())
    click.echo(f"{dataset}: {_count(len(known.segments), 'segment')}, {_count(rows, 'row')}, {_bytes(size)}")
    click.echo("\nindexes")
    for name, kind in known.indexes.items():
        click.echo(f"  {name}: {kind}")
    click.echo("\nsegments")
    for s in known.segments.values():
        spans = "".join(f", {name} {low} to {high}" for name, (low, high) in ranges[s.name].items())
        click.echo(f"  {s.name}: {_count(s.rows, 'row')} in {_count(s.chunks, 'chunk')}, {_bytes(s.size)}{spans}")
    click.echo("\nentities")
    for entity, components in sorted(known.components.items()):
        click.echo(
            f"  {entity}: {', '.join(f'{name} ({type_text(kind)})' for name, kind in sorted(components.items()))}"
        )
    return 0


@command.command("verify")
@click.argument("dataset")
def verify(dataset: str) -> int:
    """Read everything, and compare it with the checksums and manifests."""
    from clinker_spark.dataset.errors import DatasetDamaged  # other commands start without it
    from clinker_spark.dataset.files.manifest import Dataset
    from clinker_spark.runtime.dataset.verify import verify as problems

    opened = Dataset.open(dataset)
    found = list(problems(opened))
    for problem in found:
        click.echo(problem, err=True)
    if found:
        raise DatasetDamaged("E851", f"'{dataset}' is damaged: {_count(len(found), 'problem')}")
    chunks = sum(segment.chunks for segment in opened.catalogue.segments.values())
    click.echo(f"{dataset}: {_count(chunks, 'chunk')} of {_count(len(opened.catalogue.segments), 'segment')} are whole")
    return 0


@command.command("compact")
@click.argument("dataset", type=click.Path())
@click.option("-q", "--quiet", is_flag=True, help="No summary.")
def compact(dataset: str, quiet: bool) -> int:
    """Write the chunks again, full and in order: after many small imports, queries are faster."""
    from clinker_spark.runtime.dataset.imports import compact as compact_chunks  # other commands start without it

    before, after = compact_chunks(dataset)
    if not quiet:
        click.echo(f"{dataset}: {_count(before, 'chunk')} became {after}")
    return 0


@command.command("query")
@click.argument("dataset")
@click.option("--index", metavar="NAME", help="The index that orders the rows. Without it: static values.")
@click.option("--entities", multiple=True, metavar="PATTERN", help='Which entities: /arm, "/arm/**".  [default: all]')
@click.option("--segments", multiple=True, metavar="NAME", help="Which segments.  [default: all]")
@click.option("--range", "span", metavar="FIRST:LAST", help="Rows from an index value to another; either may be empty.")
@click.option("--values", metavar="V,V,...", help="Rows at exactly these index values.")
@click.option("--every", metavar="STEP", help="Rows at a steady pace: 10, or 100ms where the index is a time.")
@click.option("--fill-latest-at", "fill", is_flag=True, help="Fill cells with the newest value up to their row.")
@click.option("--columns", multiple=True, metavar="NAME", help="Only these columns of the result.")
@click.option("--origin-time", is_flag=True, help="For each value, the time at which it was logged.")
@click.option("--row-ids", is_flag=True, help="For each value, the number of its event.")
@click.option("--all-values", is_flag=True, help="Lists of all values of one time, not only the last.")
@click.option("--output", "-o", default="-", metavar="FILE", help="A .jsonl, .csv or .parquet file.  [default: -]")
@click.option("--format", "form", type=click.Choice(["jsonl", "csv", "parquet"]), help="By default, the file's ending.")
@click.option("--force", is_flag=True, help="Write even if another run seems to write there.")
def query(dataset: str, output: str, form: str | None, force: bool, **options: Any) -> int:
    """The state of everything at each moment: one row for each index value, one column for each component.

    \b
    clinker dataset query robots/ --index frame --fill-latest-at --output table.jsonl
    clinker dataset query robots/ --index frame --entities "/arm/**" --segments run1 --range 30:50 --values 30,35,40
    """
    from clinker_spark.core.diagnostics.render import render_all  # other commands start without it
    from clinker_spark.dataset.files.manifest import Dataset
    from clinker_spark.dataset.query import query as rows_of
    from clinker_spark.dataset.selection import layout_of
    from clinker_spark.runtime.dataset.results import write_result

    opened = Dataset.open(dataset)
    asked = _query(opened, options)
    layout = layout_of(opened, asked)
    batches = rows_of(opened, asked, lambda found: click.echo(render_all([found], False), err=True))
    here = None if opened.store.remote else opened.store.shown
    rows = write_result(batches, layout.schema, output, form, dataset=here, force=force)
    if output != "-":
        click.echo(f"{output}: {_count(rows, 'row')}", err=True)
    return 0


def _query(opened: Any, options: dict[str, Any]) -> Any:
    from clinker_spark.dataset.errors import DatasetError  # other commands start without it
    from clinker_spark.dataset.selection import Query

    index = options["index"]
    span = None if options["span"] is None else _span(options["span"], opened, index)
    values: Any = None
    if options["values"] is not None:
        values = [value for value in options["values"].split(",") if value.strip()]
        if not values:
            raise DatasetError("E854", "--values has no value", "write them with commas: 30,35,40")
    return Query(
        index,
        tuple(options["entities"]),
        tuple(options["segments"]) or None,
        span,
        values,
        options["every"],
        options["fill"],
        tuple(options["columns"]) or None,
        options["origin_time"],
        options["row_ids"],
        options["all_values"],
    )


def _span(text: str, opened: Any, index: str | None) -> tuple[str | None, str | None]:
    """FIRST:LAST. Times have colons, too: the one that parts two values, or a value and nothing, is meant."""
    from clinker_spark.dataset.errors import DatasetError  # other commands start without it
    from clinker_spark.dataset.indexes import number_of

    def is_value(part: str) -> bool:
        try:
            return not part or index is None or number_of(part, opened.index_type(index), index) is not None
        except DatasetError:
            return False

    cuts = [i for i, sign in enumerate(text) if sign == ":"]
    pairs = [(text[:cut], text[cut + 1 :]) for cut in cuts]
    found = [pair for pair in pairs if is_value(pair[0]) and is_value(pair[1])]
    if not cuts:
        raise DatasetError("E854", f"'{text}' is no range", "write FIRST:LAST, as in 30:50")
    first, last = (found or pairs)[len(found or pairs) // 2]  # if none will do, the one in the middle is explained
    return first or None, last or None


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _bytes(size: int) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size = size / 1000  # type: ignore[assignment]
    raise AssertionError
