"""Binding outputs: the columns they write."""

from __future__ import annotations

from clinker_spark.config.model.output import OutputNode
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.types import ANY, STRING, Kind
from clinker_spark.plan.bind.envelope import framing_of, with_envelope
from clinker_spark.plan.bind.node import NodeBinder, Streams
from clinker_spark.plan.nodes.base import Schema
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.output_columns import written_columns

_WIDENING = ("csv", "json", "xml", "parquet")
_FOLDER_KINDS = (Kind.STRING, Kind.INT, Kind.BOOL, Kind.DATE)


def bind_output(binder: NodeBinder, node: OutputNode) -> Streams | None:
    """No streams; None when it is wrong, which is noted then."""
    with_envelope(binder, node.config)
    declared = binder.file.schema_of(node.name)
    schema, emitted = _shown(binder, node)
    undeclared = _undeclared(binder, node, schema)
    schema = {**schema, **undeclared}
    columns, wrong = _columns(binder, node, schema, emitted)
    sorted_by = _sorted_undeclared(binder, node)
    fits = _keys_known(binder, node, sorted_by)
    fits &= _folders_fit(binder, node, dict(columns))
    framing = framing_of(binder, node.config)
    fits &= framing is not None or not node.config.reconstruct_envelope
    for found in node.config.check_columns({name: schema[source] for name, source in columns if source in schema}):
        wrong.append(found.code)
        binder.problem(found.code, found.message, "config", *found.at, help=found.help)
    may_widen = node.config.include_unmapped and any(n.widens for n in binder.binder.sources.values())
    if not columns and not may_widen and fits and not wrong:
        _no_column(binder, node)
    if not fits or any(code.startswith("E") for code in wrong):
        return None
    return binder.made(
        OutputPlan(
            **binder.common(schema, emitted),
            config=node.config,
            columns=columns,
            declared=declared.columns if declared else None,
            output_name=node.output_name,
            framing=framing,
            undeclared=tuple(undeclared),
            sorted_undeclared=sorted_by,
        )
    )


def _shown(binder: NodeBinder, node: OutputNode) -> tuple[Schema, tuple[str, ...]]:
    """What can be written: the columns of the records, and the correlation keys that are asked for."""
    stream = binder.inputs[0]
    keys = binder.binder.known.keys[stream.ref.node]
    named = {item.source for item in node.config.mapping or ()}
    shown = {n: t for n, t in keys.columns.items() if node.config.include_correlation_keys or n in named}
    if not shown:
        return stream.schema, stream.emitted
    every = {**stream.schema, **shown}
    return {name: every[name] for name in keys.order if name in every}, (*stream.emitted, *shown)


def _undeclared(binder: NodeBinder, node: OutputNode, schema: Schema) -> Schema:
    """The columns in `mapping` that no schema names, but that files may have: texts, in JSON values of any type."""
    if node.config.type not in _WIDENING or not binder.carries_undeclared(binder.inputs[0].ref.node):
        return {}
    kind = (ANY if node.config.type == "json" else STRING).as_nullable()
    named = [item.source for item in node.config.mapping or () if not item.source.startswith("$")]
    # One that is nearly that of a schema is meant to be that.
    return {name: kind for name in named if name not in schema and did_you_mean(name, schema) is None}


def _sorted_undeclared(binder: NodeBinder, node: OutputNode) -> tuple[str, ...]:
    """The columns in `sort_order` that no schema names, but that files may have."""
    [stream] = binder.inputs
    if not binder.carries_undeclared(stream.ref.node):
        return ()
    known = {**stream.schema, **binder.binder.known.keys[stream.ref.node].columns}
    named = [item.field for item in node.config.sort_order if not item.field.startswith("$")]
    return tuple(name for name in named if name not in known and did_you_mean(name, known) is None)


def _columns(
    binder: NodeBinder, node: OutputNode, schema: Schema, emitted: tuple[str, ...]
) -> tuple[tuple[tuple[str, str], ...], list[str]]:
    """The columns that are written, and the codes of what is wrong with them, which is noted."""
    columns, problems = written_columns(node.config, schema, emitted)
    if any(n.config.on_unmapped.mode == "auto_widen" for n in binder.binder.sources.values()):
        problems = [p for p in problems if p[0] != "W366"]  # it may be a column that no schema names
    for code, message, at, help_text in problems:
        binder.problem(code, message, "config", *at, help=help_text)
    return columns, [code for code, *_ in problems]


def _keys_known(binder: NodeBinder, node: OutputNode, undeclared: tuple[str, ...]) -> bool:
    """Are the columns there by which records are sorted, and put into files?"""
    schema, split = binder.inputs[0].schema, node.config.split
    keys = binder.binder.known.keys[binder.inputs[0].ref.node].columns
    there = {**schema, **keys, **dict.fromkeys(undeclared, ANY)}
    known = binder.known(there, [item.field for item in node.config.sort_order], "config", "sort_order")
    if split is not None and split.group_key is not None:
        known &= binder.known(schema, [split.group_key], "config", "split", "group_key")
    return known


def _no_column(binder: NodeBinder, node: OutputNode) -> None:
    """An output of empty lines, which nobody can want; a Parquet file cannot even be written."""
    key = "exclude" if node.config.exclude else "include_unmapped"
    at = ("config", key) if key in node.config.model_fields_set else ("config",)
    why = "all of them are excluded" if node.config.exclude else f"'{binder.inputs[0].ref.node}' emits none"
    help_text = "list the columns in 'mapping', or write them all: include_unmapped: true and no 'exclude'"
    code = "E366" if node.config.type == "parquet" else "W367"
    binder.problem(code, f"no column is written: {why}", *at, help=help_text, key=True)


def _folders_fit(binder: NodeBinder, node: OutputNode, columns: dict[str, str]) -> bool:
    """Can the values of the columns of `partition_by` be folders?"""
    names = getattr(node.config, "partition_by", ())
    schema = binder.inputs[0].schema
    fine = binder.known(columns, names, "config", "partition_by")
    for i, name in enumerate(names):
        kind = schema.get(columns.get(name, ""))
        if kind is not None and (kind.is_dynamic or kind.kind not in _FOLDER_KINDS):
            message = f"values of type {kind} cannot be folders"
            help_text = "partition by texts, integers, dates and booleans; a program can make them"
            binder.problem("E443", message, "config", "partition_by", i, help=help_text)
            fine = False
    if names and set(names) >= set(columns):
        message = "every column is in 'partition_by': no column is left for the files"
        binder.problem("E443", message, "config", "partition_by", help="leave one out")
        fine = False
    return fine
