"""Reshapes: what each rule does with a record is computed beside it, and then the record becomes what is left of it and
what the rules add. All of it reads the record as it came: no rule sees what another one did."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.hidden import ERROR_COLUMN, ERROR_TYPE
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.cxl.system import META_MEMBERS
from clinker_spark.plan.columns import (
    CONFLICT_COLUMN,
    IN_CONFLICT_COLUMN,
    LEADS_COLUMN,
    MADE_COLUMN,
    META_PREFIX,
    PLACE_COLUMN,
    WIDENED_COLUMN,
)
from clinker_spark.plan.ledger import count
from clinker_spark.plan.nodes.reshape import CONFLICT, ReshapePlan, Rule
from clinker_spark.spark.build.stream import FAILED, Stream, order_text
from clinker_spark.spark.columns.programs import Window, apply
from clinker_spark.spark.columns.select import named, select_sql
from clinker_spark.spark.columns.types import read_as
from clinker_spark.spark.operators.group_order import group_keys, in_group_order, with_aggregates, with_places
from clinker_spark.spark.rejects.correlated import CORRELATED

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder

CONFLICT_MESSAGE = "rules '{}' and '{}' both set '{}'"
GROUP_MESSAGE = "correlated with failure in group: rules of '{}' contradict each other in a record of it"
_SYNTHETIC, _RULE = "synthetic", "rule"
"""Fields of what a record becomes: is it a new one, and of which rule?"""


def build_reshape(builder: Builder, node: ReshapePlan) -> Stream:
    """The records as the rules left them, and those that the rules add."""
    [stream] = builder.inputs(node)
    frame = builder.with_file_values(node, stream.frame)
    context, texts = builder.context(node), builder.asked.texts
    window = Window(node.partition_by, [order_text(item) for item in node.order_by])
    columns = list(frame.columns)
    frame = apply(node.conditions, frame, context=context, window=window, texts=texts)
    frame = _with_conflicts(builder, node, frame)
    frame = apply(node.values, frame, context=context, window=window, texts=texts)
    ordered = builder.plan.facts.columns.required[node.name].arrival
    if ordered:
        frame = with_places(frame, group_keys(node.partition_by, node.schema), node.order_by)
    made = replace(stream.over(frame), in_place=False, pushes=False)
    if node.synthesizes:
        made = _counted(builder, node, made)
    reads_meta = any(space == "meta" for other in builder.plan.nodes for space, _ in other.system_members())
    return builder.mark(node, made.over(_become(node, made.frame, columns, ordered=ordered, audited=reads_meta)))


def _with_conflicts(builder: Builder, node: ReshapePlan, frame: DataFrame) -> DataFrame:
    """A record of which two rules change the same column fails, and with it all others of its group."""
    if not node.conflicts:
        return frame
    known = f"{quote(ERROR_COLUMN)} IS NULL AND " if ERROR_COLUMN in frame.columns else ""
    cases = [
        f"WHEN {known}{quote(a.condition)} AND {quote(b.condition)} THEN "
        + _error(CONFLICT, name, f"{a.name}+{b.name}", CONFLICT_MESSAGE.format(a.name, b.name, name))
        for a, b, name in node.conflicts
    ]
    frame = select_sql(frame, ["*", named(f"CAST(CASE {' '.join(cases)} END AS {ERROR_TYPE})", CONFLICT_COLUMN)])
    keys = group_keys(node.partition_by, node.schema)
    found = {IN_CONFLICT_COLUMN: f"bool_or({quote(CONFLICT_COLUMN)} IS NOT NULL)"}
    frame = with_aggregates(builder, node, frame, keys, found)
    others = _error(CORRELATED, None, None, GROUP_MESSAGE.format(node.name))
    parts = [quote(ERROR_COLUMN)] if ERROR_COLUMN in frame.columns else []
    parts += [quote(CONFLICT_COLUMN), f"CASE WHEN {quote(IN_CONFLICT_COLUMN)} THEN {others} END"]
    gone = (ERROR_COLUMN, CONFLICT_COLUMN, IN_CONFLICT_COLUMN)
    kept = [quote(name) for name in frame.columns if name not in gone]
    return select_sql(frame, [*kept, named(f"CAST(coalesce({', '.join(parts)}) AS {ERROR_TYPE})", ERROR_COLUMN)])


def _error(kind: str, field: str | None, value: str | None, message: str) -> str:
    texts = (kind, field, value, message)
    shown = [f"CAST({'NULL' if text is None else sql_string(text)} AS STRING)" for text in texts]
    pairs = zip(("kind", "field", "value", "message"), shown, strict=True)
    return f"named_struct({', '.join(f'{sql_string(name)}, {text}' for name, text in pairs)})"


def _counted(builder: Builder, node: ReshapePlan, stream: Stream) -> Stream:
    """The same records; counted is how many they become."""
    name = f"{node.name}.synthesize"
    added = count(f"{name}: made")
    if not builder.writes:
        builder.ledger.unknown(f"{name}: made")
        return replace(stream, flow=stream.flow + added)
    hits = " + ".join(f"CAST({_adds(rule, stream.fallible)} AS BIGINT)" for rule in node.rules if rule.synthesizes)
    made = F.expr(f"coalesce(sum({hits}), 0L)")
    frame = builder.metrics.count(name, stream.frame, rows=F.count(F.lit(1)), made=made)
    rows = count(f"{name}: rows")
    builder.ledger.law(node.name, "takes {left} records, and {right} reach its rules", stream.flow, rows)
    return replace(stream.over(frame), flow=rows + added)


def _adds(rule: Rule, fallible: bool) -> str:
    """SQL: does a rule add a record? None of one that failed, or of whose group one did."""
    return f"(coalesce({quote(rule.condition)}, FALSE)" + (f" AND NOT {FAILED})" if fallible else ")")


def _become(node: ReshapePlan, frame: DataFrame, columns: list[str], *, ordered: bool, audited: bool) -> DataFrame:
    """The records that leave, in their order, with what they had before."""
    written = [name for name in columns if name in node.written]
    types = {f.name: f.dataType for f in frame.schema.fields}
    plain = {name: read_as(quote(name), types[name], node.schema[name]) or quote(name) for name in written}
    if audited:
        written += [f"{META_PREFIX}{name}" for name in META_MEMBERS]
    if WIDENED_COLUMN in columns and any(rule.blank for rule in node.rules):
        written.append(WIDENED_COLUMN)
        plain[WIDENED_COLUMN] = quote(WIDENED_COLUMN)
    first = _first(node, plain, columns, audited=audited)
    kept = [name for name in columns if name not in written and name != ERROR_COLUMN]
    kept += [name for name in (LEADS_COLUMN, PLACE_COLUMN) if ordered]
    kept += [ERROR_COLUMN] if ERROR_COLUMN in frame.columns else []
    if node.synthesizes:
        records = [_struct(first, written, 0, 0)]
        for rule in (rule for rule in node.rules if rule.synthesizes):
            new = _struct(_new(node, rule, plain, columns, audited=audited), written, 1, rule.index)
            records.append(f"CASE WHEN {_adds(rule, ERROR_COLUMN in frame.columns)} THEN {new} END")
        frame = _exploded(frame, records, kept, written, ordered=ordered)
    else:
        frame = select_sql(frame, [*map(quote, kept), *(named(first[name], name) for name in written)])
    return _as_before(in_group_order(frame) if ordered else frame, columns)


def _exploded(frame: DataFrame, records: list[str], kept: list[str], written: list[str], *, ordered: bool) -> DataFrame:
    """For each record those that it becomes, which have their own values of what is `written`, and their own place."""
    every = f"explode(array_compact(array({', '.join(records)})))"
    frame = select_sql(frame, [*map(quote, kept), named(every, MADE_COLUMN)])
    made = quote(MADE_COLUMN)
    fields = [named(f"{made}.c{i}", name) for i, name in enumerate(written)]
    if ordered:
        place = f"concat(array({made}.{_SYNTHETIC}), {quote(PLACE_COLUMN)}, array({made}.{_RULE}))"
        fields.append(named(place, PLACE_COLUMN))
    stay = [name for name in kept if name != PLACE_COLUMN or not ordered]
    return select_sql(frame, [*map(quote, stay), *fields])


def _as_before(frame: DataFrame, columns: list[str]) -> DataFrame:
    """The columns in the order in which they came; new ones last."""
    names = [name for name in columns if name in frame.columns]
    names += [name for name in frame.columns if name not in columns]
    return select_sql(frame, map(quote, names))


def _struct(values: dict[str, str], names: list[str], synthetic: int, rule: int) -> str:
    fields = [f"'c{i}', {values[name]}" for i, name in enumerate(names)]
    fields += [f"'{_SYNTHETIC}', {synthetic}L", f"'{_RULE}', {rule}L"]
    return f"named_struct({', '.join(fields)})"


def _first(node: ReshapePlan, plain: dict[str, str], columns: list[str], *, audited: bool) -> dict[str, str]:
    """By column that rules write: its value in the record that was there."""
    found = dict(plain)
    for name in plain:
        cases = [
            f"WHEN {quote(rule.condition)} THEN {quote(rule.set_columns[name])}"
            for rule in node.rules
            if name in rule.sets
        ]
        if cases:
            found[name] = f"CASE {' '.join(cases)} ELSE {plain[name]} END"
    if audited:
        mine = [
            f"CASE WHEN {quote(rule.condition)} THEN {sql_string(f'{node.name}:{rule.name}')} END"
            for rule in node.rules
            if rule.sets
        ]
        before = _before(columns)
        mutated = f"concat_ws(',', {', '.join([before['mutated_by'], *mine])})"
        found |= {
            f"{META_PREFIX}synthetic": f"coalesce({before['synthetic']}, FALSE)",
            f"{META_PREFIX}synthesized_by": f"CAST({before['synthesized_by']} AS STRING)",
            f"{META_PREFIX}mutated_by": f"nullif({mutated}, '')",
        }
    return found


def _new(node: ReshapePlan, rule: Rule, plain: dict[str, str], columns: list[str], *, audited: bool) -> dict[str, str]:
    """By column that rules write: its value in the record that a rule adds."""
    found = dict(plain)
    found |= {name: quote(column) for name, column in rule.override_columns.items() if name in plain}
    if rule.blank and WIDENED_COLUMN in found:
        found[WIDENED_COLUMN] = "NULL"
    if audited:
        found |= {
            f"{META_PREFIX}synthetic": "TRUE",
            f"{META_PREFIX}synthesized_by": sql_string(f"{node.name}:{rule.name}"),
            f"{META_PREFIX}mutated_by": "CAST(NULL AS STRING)",
        }
    return found


def _before(columns: list[str]) -> dict[str, str]:
    """What another reshape said about the record."""
    names = {name: f"{META_PREFIX}{name}" for name in META_MEMBERS}
    return {name: quote(column) if column in columns else "NULL" for name, column in names.items()}
