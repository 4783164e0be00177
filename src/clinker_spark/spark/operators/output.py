"""Outputs: the last step on Spark. A record becomes a line of text, in order; parts are written in parallel."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from clinker_spark.core.errors import InputError
from clinker_spark.core.types import STRING, Kind
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.hidden import ERROR_COLUMN, ERROR_TYPE
from clinker_spark.cxl.lower.errors import first_error
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import (
    BYTES_COLUMN,
    CELLS_PREFIX,
    DOCUMENT_COLUMN,
    FAILED_COLUMN,
    FILE_KEY_COLUMN,
    GOOD_COLUMN,
    HELD_COLUMN,
    SORT_PREFIX,
    WIDENED_COLUMN,
    WITHHELD_COLUMN,
)
from clinker_spark.plan.facts import Fragment
from clinker_spark.plan.ledger import WITHHELD_FROM, End, count, total
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.spark.build.stream import Stream, direction, failed, not_failed
from clinker_spark.spark.columns import undeclared
from clinker_spark.spark.connectors.shapes import shape_of
from clinker_spark.spark.fragments.frames import fragment_of, lines_of_fragment
from clinker_spark.spark.fragments.task import LINE_END, OUTPUT
from clinker_spark.spark.fragments.totals.frames import made_in_workers
from clinker_spark.spark.operators.framing import carried, check_headers, document_of, framed, framed_rendering
from clinker_spark.spark.operators.sort_keys import dropped, sort_keys
from clinker_spark.spark.rejects.collected import Held
from clinker_spark.spark.rejects.withheld import with_held
from clinker_spark.spark.render.csv_lines import quoted_cell
from clinker_spark.spark.render.folder_names import folder_failures, folder_text
from clinker_spark.spark.render.rendering import OutColumn, Rendering, render

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


LINE_COLUMN = "value"
_FIXED_BYTES = {Kind.BOOL: 1, Kind.DATE: 4, Kind.INT: 8, Kind.FLOAT: 8, Kind.DATETIME: 8, Kind.DECIMAL: 16}
MANY = 40
"""From so many undeclared columns on, the cells of a CSV line are not made one by one."""
_METRICS = {FAILED_COLUMN: "failed", WITHHELD_COLUMN: "withheld"}
NULL_DROPPED = "null_order: drop"
KEY_SEPARATOR, RECORD_SEPARATOR = "\x1f", "\x1e\n"
"""In the parts of outputs that become several files: what stands after the key and after a record."""


@dataclass(frozen=True)
class Prepared:
    """An output that is ready to be written. `rendering` is None for formats that Spark writes itself."""

    node: OutputPlan
    frame: DataFrame
    rendering: Rendering | None
    keyed: bool
    """Each line begins with the key that decides about its file."""
    beside: tuple[str, ...] = ()
    """The outputs, itself included, whose lines are made by the same workers: one job writes all of them."""
    parts: str | None = None
    """Where workers write the lines themselves; then the frame has none."""
    written: bool = False
    """They have done so already."""
    line_end: str | None = None
    """What Spark writes after each row; by default, what stands between records."""


def prepare_output(builder: Builder, node: OutputPlan) -> Prepared:
    """The records of an output as lines in order, failures diverted and counted."""
    fragment = fragment_of(builder, node)
    if fragment is not None:
        made = _of_fragment(builder, fragment)
        if made is not None:
            return made[node.name]
    [stream] = builder.inputs(node)
    stream = _with_undeclared(builder, node, with_held(builder, node, stream))
    columns = output_columns(builder, node, stream)
    rendering = None if node.config.type == "parquet" else _rendering(node, columns)
    names = b"" if rendering is None else rendering.prefix
    if rendering is not None:  # the first record of a document begins with its header
        rendering = _writable(rendering) if node.framing is None else framed_rendering(node, rendering)
        check_headers(builder, node)
    folders = [column for column in columns if column.name in node.partition_by]
    stream = _refused(builder, node, stream, rendering.error if rendering is not None else _unwritable_folders(folders))
    key = _key(node) if node.config.split is not None or node.per_file else None
    if rendering is None:
        written = _values(node, columns, folders, key)
    else:
        line = rendering.line if key is None else f"concat({key}, {sql_string(KEY_SEPARATOR)}, {rendering.line})"
        written = [F.expr(line).alias(LINE_COLUMN)]
    return Prepared(node, _finish(builder, node, stream, written, names), rendering, key is not None)


def _rendering(node: OutputPlan, columns: tuple[OutColumn, ...]) -> Rendering:
    """How records become lines. Raises InputError, with its place, where the format cannot hold what files have."""
    try:
        return render(node.config, columns, node.declared)
    except InputError as error:
        found = [node.diagnostic(d.code, d.message, "config", "type", help=d.help) for d in error.diagnostics]
        raise InputError(found) from None


def _with_undeclared(builder: Builder, node: OutputPlan, stream: Stream) -> Stream:
    """The stream with the columns that only `mapping` names; null where no file has them."""
    if not node.undeclared:
        return stream
    fields, known = stream.frame.schema, widened_names(builder, node.inputs[0].node)
    found = {}
    for name in node.undeclared:
        read, sql = undeclared.value if node.schema[name].is_dynamic else undeclared.text, "NULL"
        if name in known and WIDENED_COLUMN in fields.names:
            sql = read(name, fields[WIDENED_COLUMN].dataType)
        found[name] = F.expr(f"CAST({sql} AS {physical(node.schema[name])})")
    return stream.over(stream.frame.withColumns(found))


def _values(node: OutputPlan, columns: Sequence[OutColumn], folders: list[OutColumn], key: str | None) -> list[Column]:
    """The columns of an output that Spark writes itself: those that become folders last, then what decides about the
    file of a record."""
    inner = [F.expr(folder_text(c)).alias(c.name) for name in node.partition_by for c in folders if c.name == name]
    found = [*(F.expr(c.sql).alias(c.name) for c in columns if c not in folders), *inner]
    found += [] if key is None else [F.expr(key).alias(FILE_KEY_COLUMN)]
    split = node.config.split
    if split is not None and split.max_bytes is not None:
        found.append(F.expr(" + ".join(_bytes(c) for c in columns)).alias(BYTES_COLUMN))
    return found


def _unwritable_folders(columns: list[OutColumn]) -> str | None:
    """SQL for the error of a record whose values cannot be folders."""
    failures = [failure for column in columns for failure in folder_failures(column)]
    return first_error(failures) if failures else None


def _of_fragment(builder: Builder, fragment: Fragment) -> dict[str, Prepared] | None:
    """All outputs of a fragment; None when its files have columns that only Spark can write."""
    known: dict[str, dict[str, Prepared] | None] = builder.memo.fragments
    if fragment.sources[0] not in known:
        known[fragment.sources[0]] = _prepared_fragment(builder, fragment)
    return known[fragment.sources[0]]


def _prepared_fragment(builder: Builder, fragment: Fragment) -> dict[str, Prepared] | None:
    if fragment.totals:
        made_too = made_in_workers(builder, fragment)
        found = None if made_too is None else made_too.lines
    else:
        found = lines_of_fragment(builder, fragment)
    if found is None:
        return None
    frame, renderings = found.frame, found.renderings
    several = len(fragment.outputs) > 1
    together = several and not builder.run.small
    if several and not together:  # small inputs are read once, and each output is a part of the same job
        frame = builder.shared(frame)
    made = {}
    for i, name in enumerate(fragment.outputs):
        lines = frame if together or found.parts else frame.where(F.col(OUTPUT) == i).select(LINE_COLUMN)
        made[name] = Prepared(
            builder.plan.output(name),
            lines,
            renderings[name],
            False,
            fragment.outputs if together else (),
            found.parts.get(name),
            found.written,
            LINE_END,
        )
    return made


def plain_rendering(node: OutputPlan) -> Rendering | None:
    """How the lines of an output become a file, if its records have no columns but those of the plan."""
    if node.config.type == "parquet":
        return None
    columns = tuple(OutColumn(name, node.schema[source], quote(source)) for name, source in node.columns)
    return _writable(_rendering(node, columns))


def records_of(builder: Builder, node: OutputPlan) -> DataFrame:
    """The records of an output with its columns, for what is no file; failures diverted and counted."""
    [stream] = builder.inputs(node)
    shape = shape_of(node)
    stream = _refused(builder, node, stream, shape.error)
    return _finish(builder, node, stream, [F.expr(sql).alias(name) for name, sql in shape.columns])


def _refused(builder: Builder, node: OutputPlan, stream: Stream, error: str | None) -> Stream:
    """The stream, with the records that cannot be written marked as failures."""
    if error is None:
        return stream
    known = f"coalesce({quote(ERROR_COLUMN)}, {error})" if stream.fallible else error
    stream = stream.over(stream.frame.withColumn(ERROR_COLUMN, F.expr(f"CAST({known} AS {ERROR_TYPE})")))
    return builder.mark(node, stream)


def _finish(builder: Builder, node: OutputPlan, stream: Stream, columns: list[Column], names: bytes = b"") -> DataFrame:
    """Only `columns`, without failures, in the order that the output promises; counted on the way.

    Lines are made before records are counted: counting ends Spark's generated code, and a line is the shortest form
    in which a record can get over that.
    """
    if builder.finds:
        fine = builder.divert(node, stream)
        if HELD_COLUMN in fine.frame.columns:
            builder.rejects.held.append(Held(fine.frame.where(F.col(quote(HELD_COLUMN))), node, fine.frame))
        return stream.frame
    known = widened_names(builder, node.inputs[0].node) if node.sorted_undeclared else ()
    order = sort_keys(node, stream, known)
    flags, metrics = _ends(node, stream, known)
    more = {**order, **flags, **({} if node.framing is None else carried(node.framing))}
    frame = stream.frame.select(*columns, *[column.alias(name) for name, column in more.items()])
    _write_down(builder, node, stream, metrics)
    kept = frame.columns[: len(columns)]
    frame = builder.metrics.count(node.name, frame, **metrics)
    if GOOD_COLUMN in flags:
        frame = frame.where(not_failed(builder.asked.strict, f"({quote(GOOD_COLUMN)} IS NULL)"))
    if order or node.partition_by:
        items = {f"{SORT_PREFIX}{i}": item for i, item in enumerate(node.config.sort_order)}
        # By the folders themselves, and not by copies of them: then Spark sees that it need not sort to write them.
        folders = [F.col(quote(name)) for name in node.partition_by]
        keys = [direction(items[name], name) if name in items else F.col(quote(name)) for name in order]
        if node.framing is not None:
            frame, folders = framed(node, frame, keys, names), [document_of()]
        frame = frame.orderBy(*folders, *keys)
    return frame.select(*[F.col(quote(name)) for name in kept])


def _ends(node: OutputPlan, stream: Stream, known: Collection[str]) -> tuple[dict[str, Column], dict[str, Column]]:
    """What becomes of records, as flags of each, and as counts of all: written, failed, withheld or dropped.

    Flags are TRUE or null, so that they can be counted as they are: for the conditions of `count_if` Spark would add
    a projection, in which every line is copied once more."""
    dropping = dropped(node, stream, known)
    gone, bad = _kept_out(stream)
    bad += dropping
    every = F.count(F.lit(1))
    if not bad:
        return {}, {"rows": every}
    flags = {GOOD_COLUMN: F.when(reduce(Column.__and__, [~reason for reason in bad]), True)}
    left = every - F.count(quote(GOOD_COLUMN))
    counts: dict[str, Column] = dict.fromkeys(gone, left)
    if len(gone) + bool(dropping) > 1:
        flags |= {name: F.when(flag, True) for name, flag in gone.items()}
        counts = {name: F.count(quote(name)) for name in gone}
    metrics = {"rows": F.count(quote(GOOD_COLUMN))}
    metrics |= {_METRICS[name]: number for name, number in counts.items()}
    if dropping:
        metrics["dropped"] = reduce(Column.__sub__, counts.values(), left)
    return flags, metrics


def _kept_out(stream: Stream) -> tuple[dict[str, Column], list[Column]]:
    """Which records failed, and which are withheld, by the flag that counts them; and any reason not to write one. A
    record of a group that is withheld can fail now, because others were retracted: that is a failure."""
    gone: dict[str, Column] = {}
    bad: list[Column] = []
    if HELD_COLUMN in stream.frame.columns:
        held = F.col(quote(HELD_COLUMN))
        gone[WITHHELD_COLUMN] = held & ~failed() if stream.fallible else held
        bad.append(held)
    if stream.fallible:
        gone = {FAILED_COLUMN: failed(), **gone}
        bad.append(failed())
    return gone, bad


def _write_down(builder: Builder, node: OutputPlan, stream: Stream, counted: Iterable[str]) -> None:
    """What the ledger must know: everything that comes is written, fails, or is left out."""
    ends = {name: count(f"{node.name}: {name}") for name in counted}
    what = "takes {left} records, and {right} were written, failed or left out"
    builder.ledger.law(node.name, what, stream.flow, total(ends.values()))
    entry = builder.ledger.entry(node.name)
    entry.took[str(node.inputs[0])] = End(stream.flow, stream.carried)
    entry.passed[None] = End(ends["rows"])
    if "failed" in ends:
        entry.failed[node.name] = ends["failed"]
    if "dropped" in ends:
        entry.dropped[NULL_DROPPED, 0] = ends["dropped"]
    if "withheld" in ends:
        entry.dropped[WITHHELD_FROM, 0] = ends["withheld"]


def _writable(rendering: Rendering) -> Rendering:
    """Spark ends every line with something. XML records have nothing between them, but all begin with `<`: what
    Spark puts after a record is the beginning of the next."""
    if rendering.separator or not rendering.prefix.startswith(b"<"):
        return rendering
    line = f"substring({rendering.line}, 2)"
    return replace(rendering, line=line, prefix=rendering.prefix + b"<", separator=b"<")


def output_columns(builder: Builder, node: OutputPlan, stream: Stream) -> tuple[OutColumn, ...]:
    """The columns of the file: those of the plan, then what the sources had besides their schemas."""
    columns = [OutColumn(name, node.schema[source], quote(source)) for name, source in node.columns]
    _with_cells(builder, node, stream, columns)
    if node.config.include_unmapped and WIDENED_COLUMN in stream.frame.columns:
        kind = stream.frame.schema[WIDENED_COLUMN].dataType
        taken = {column.name for column in columns} | set(node.schema) | set(node.config.exclude)
        names = [name for name in widened_names(builder, node.inputs[0].node) if name not in taken]
        cells = None
        if len(names) >= MANY and node.config.type == "csv":
            delimiter = node.config.options.delimiter
            cells = undeclared.cells(names, kind, delimiter, lambda text: quoted_cell(text, delimiter))
        for name in names:
            sql = undeclared.text(name, kind)
            value = undeclared.json(name) if undeclared.has_types(kind) else None
            columns.append(OutColumn(name, STRING.as_nullable(), sql, cells=cells, json=value))
    return tuple(columns)


def _with_cells(builder: Builder, node: OutputPlan, stream: Stream, columns: list[OutColumn]) -> None:
    """Note where the reader has given finished cells."""
    for cells in builder.plan.facts.columns.cells.get(node.name, ()):
        name = f"{CELLS_PREFIX}{cells.number}"
        if name in stream.frame.columns:
            for i in range(cells.at, cells.at + len(cells.run.columns)):
                columns[i] = replace(columns[i], cells=quote(name))


def _bytes(column: OutColumn) -> str:
    """SQL for the bytes of a value, before Parquet packs it: the same however the records are spread over parts."""
    kind = column.type.kind
    if kind in _FIXED_BYTES and not column.type.is_dynamic:
        return f"CAST({_FIXED_BYTES[kind]} AS BIGINT)"
    text = sql_text(column.sql, column.type)
    return f"CAST(coalesce(octet_length({text}), 0) AS BIGINT)"


def widened_names(builder: Builder, node: str) -> list[str]:
    """The undeclared columns that the records of a node can carry, in the order of their sources and files."""
    return undeclared.names_of(builder.plan, node, {name: scan.widened for name, scan in builder.scans.items()})


def _key(node: OutputPlan) -> str | None:
    """SQL for the text that keeps records in one file: the input file, or the key of a split."""
    if node.per_file:
        return f"CAST({quote(DOCUMENT_COLUMN)} AS STRING)"
    split = node.config.split
    if split is None or split.group_key is None:
        return None
    text = sql_text(quote(split.group_key), node.schema[split.group_key])
    return f"coalesce({text}, '')"
