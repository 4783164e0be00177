"""Long runs of transforms as one program: Spark looks at a whole plan again for each DataFrame that is made of it, so a
thousand transforms one by one would cost a thousand times a thousand steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clinker_spark.cxl import ir
from clinker_spark.cxl.lower.expressions import Lowering
from clinker_spark.cxl.lower.plan import ERROR_COLUMN, PlanBuilder, Sql, quote, without_dead
from clinker_spark.cxl.lower.python_calls import python_reason
from clinker_spark.cxl.lower.statements import RowLowering
from clinker_spark.plan.nodes import PlanNode, TransformPlan
from clinker_spark.spark.columns import field_texts, run_steps
from clinker_spark.spark.operators.stream import STAGE_COLUMN, Stream

if TYPE_CHECKING:
    from clinker_spark.spark.operators.build import Builder

LONG = 16
"""Transforms from which on a run of them is one program."""
_PLAIN = (ir.TLet, ir.TEmit, ir.TBare, ir.TTrace)
_WRITTEN_OUT = {"now", "vars", "config"}
"""What programs read that stands in their text, and in no column."""


def transform_run(builder: Builder, node: PlanNode) -> list[TransformPlan]:
    """The long run of plain transforms that ends with a node, first one first; none, when there is no such run."""
    found: list[TransformPlan] = []
    last: PlanNode = node
    while isinstance(last, TransformPlan) and _is_plain(builder, last):
        if found and (len(builder.plan.readers(last.name)) > 1 or last.name in builder.keeps):
            break
        if found and not _fits(last, found[-1]):
            break
        found.append(last)
        last = builder.plan[last.inputs[0].node]
    return found[::-1] if len(found) >= LONG else []


def _is_plain(builder: Builder, node: TransformPlan) -> bool:
    """Does a transform do nothing but compute columns, one record from one?"""
    typed = node.program.typed
    if node.checks or node.declares or node.window is not None or len(node.inputs) > 1 or typed.lookups:
        return False
    if builder.values_of == node.name or not all(
        isinstance(s, _PLAIN) and getattr(s, "scope", None) is None for s in typed.statements
    ):
        return False
    if any(namespace not in _WRITTEN_OUT for namespace, _ in node.system_members()):
        return False
    return not any(python_reason(part) for e in typed.expressions() for part in e.walk())


def _fits(before: TransformPlan, after: TransformPlan) -> bool:
    """Does the later one read what the earlier one emits as the type it has there?"""
    schema = after.program.typed.schema
    return all(name not in schema or schema[name].unwrap() == t.unwrap() for name, t in before.program.output.items())


def build_transform_run(builder: Builder, nodes: list[TransformPlan]) -> Stream:
    """The stream after all of them, as if each had been applied to what the one before it gave."""
    stream = builder.stream(nodes[0].inputs[0])
    frame = stream.frame
    names = frame.columns
    plan = PlanBuilder()
    error = Sql(quote(ERROR_COLUMN)) if ERROR_COLUMN in names else None
    stage = Sql(quote(STAGE_COLUMN)) if STAGE_COLUMN in names else None
    failing: list[str] = []
    emitted: dict[str, Sql] = {}
    hidden = frozenset(name for name in names if name.startswith("$"))
    for node in nodes:
        fields = field_texts(node.program, frame, frozenset(emitted))
        lowering = Lowering(plan, builder.contexts[node.name], fields, hidden, emitted=dict(emitted))
        before = None if error is None else error.text
        rows = RowLowering(node.program.typed, lowering, before, error_level=0 if error is None else error.level)
        rows.walk()
        emitted.update((name, sql.bare()) for name, sql in rows.columns.items())
        if rows.error is not None and rows.error != before:
            error = Sql(rows.error, rows.error_level)
            failing.append(node.name)
            if builder.letters:
                stage = _stage(plan, stage, error, builder.plan.places[node.name])
    plan.flush()
    columns = {name: quote(name) for name in names if name not in (ERROR_COLUMN, STAGE_COLUMN)}
    columns.update((name, sql.text) for name, sql in emitted.items())
    if stage is not None:
        columns[STAGE_COLUMN] = stage.text
    if error is not None:
        columns[ERROR_COLUMN] = error.text
    steps = without_dead(plan.steps, columns.values(), plan.temporaries)
    frame = run_steps(frame, steps, builder.contexts[nodes[-1].name])
    carried = tuple(dict.fromkeys((*stream.carried, *failing)))
    after = replace(stream, carried=carried, pushes=False)
    return after.over(frame.select(*[F.expr(text).alias(name) for name, text in columns.items()]))


def _stage(plan: PlanBuilder, known: Sql | None, error: Sql, place: int) -> Sql:
    """At which node a record failed that had not failed before (see `Builder.mark`)."""
    here = f"CASE WHEN {error.text} IS NOT NULL THEN {place} END"
    if known is None:
        return plan.bind(Sql(here, error.level))
    return plan.bind(Sql(f"coalesce({known.text}, {here})", max(known.level, error.level)))
