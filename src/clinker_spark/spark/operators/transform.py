"""Transforms: the lowered program over a DataFrame, then the checks that every record must pass."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.hidden import ERROR_COLUMN, ERROR_TYPE, lookup_column, variable_column
from clinker_spark.cxl.lower.lowering import WindowFrame
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import BEFORE_COLUMN, OK_COLUMN
from clinker_spark.plan.nodes.base import Schema
from clinker_spark.plan.nodes.record_rules import Check
from clinker_spark.plan.nodes.transform import TransformPlan, WindowPlan
from clinker_spark.plan.variables import SHARED
from clinker_spark.spark.build.counting import Tap
from clinker_spark.spark.build.stream import Stream, order_text
from clinker_spark.spark.columns.programs import Window, apply
from clinker_spark.spark.operators.time_windows import micros, micros_since_1970
from clinker_spark.spark.operators.window_lookup import with_lookups

if TYPE_CHECKING:
    from clinker_spark.cxl.system import Context
    from clinker_spark.spark.build.builder import Builder


def build_transform(builder: Builder, node: TransformPlan) -> Stream:
    """The stream with what the program emits; failed records stay in it with their error."""
    stream, *others = builder.inputs(node)
    return transformed(builder, node, stream, *others)


def transformed(builder: Builder, node: TransformPlan, stream: Stream, *others: Stream) -> Stream:
    """The same for a stream that is not yet that of an input; `others` are the records that its window looks into."""
    context = builder.context(node)
    window = None
    frame = builder.with_file_values(node, stream.frame)
    if others:
        frame = with_lookups(builder, node, frame, others[0])
    elif node.window is not None:
        window = analytic_window(node.window, node.schema)
    tap = Tap(builder, node, stream)
    texts = builder.asked.texts
    frame = apply(node.program, frame, context=context, window=window, counter=tap, texts=texts)
    if builder.finds and not builder.asked.texts and ERROR_COLUMN in frame.columns:
        # Only failures are kept: Spark would compute every error within that filter, and with it what the error is
        # about, once for each time it is mentioned. It moves no filter through what is not the same for each call.
        # (With texts, what is made of a record costs more than that: these are made of failures only.)
        once = F.expr(f"IF(monotonically_increasing_id() >= 0, {quote(ERROR_COLUMN)}, NULL)")
        frame = frame.withColumn(ERROR_COLUMN, once)
    frame = _without_helpers(builder, node, frame)
    result = Stream(
        frame, node.in_order([stream.in_place]), stream.route, tap.flow, stream.carried, tap.pushes and not others
    )
    for check in node.checks:
        if check.severity == "error":
            result = _check(result, check, context, node)
        elif not builder.finds:
            result = _watch(builder, result, check, context, node)
    return builder.mark(node, result)


def _without_helpers(builder: Builder, node: TransformPlan, frame: DataFrame) -> DataFrame:
    """Without what the program looked up, and the variables that it only set."""
    helpers = [lookup_column(i) for i in range(len(node.program.typed.lookups))]
    if builder.asked.values_of != node.name:
        shared = [variable_column(d.scope, d.name) for d in node.declares if d.scope in SHARED]
        helpers += [name for name in shared if name in frame.columns]
    return frame.drop(*[F.col(quote(name)) for name in helpers]) if helpers else frame


def analytic_window(window: WindowPlan, schema: Schema) -> Window:
    """The window as SQL texts: what to partition and sort by, and which part of it functions see."""
    sort_by, frame = [order_text(item) for item in window.sort_by], window.frame
    if frame is None:
        return Window(window.group_by, sort_by)
    if frame.range is None:
        first, last = (_bound(at, end) for at, end in zip(frame.rows or (), ("PRECEDING", "FOLLOWING"), strict=True))
        return Window(window.group_by, sort_by, WindowFrame("ROWS", first, last))
    [item] = window.sort_by
    time = order_text(item, f"({micros_since_1970(item.field, schema[item.field])})")
    return Window(window.group_by, [time], WindowFrame("RANGE", f"{micros(frame.range)}L PRECEDING"))


def _bound(at: int | None, end: str) -> str:
    if at is None:
        return f"UNBOUNDED {end}"
    return "CURRENT ROW" if at == 0 else f"{abs(at)} {'PRECEDING' if at < 0 else 'FOLLOWING'}"


def _watch(builder: Builder, stream: Stream, check: Check, context: Context, node: TransformPlan) -> Stream:
    """Count the records for which the condition is not true; they go on as they are."""
    names = stream.frame.columns
    plain = stream.frame if ERROR_COLUMN not in names else stream.frame.withColumnRenamed(ERROR_COLUMN, BEFORE_COLUMN)
    frame = apply(check.program, plain, context=context)
    wrong = ~F.coalesce(F.col(quote(OK_COLUMN)), F.lit(False))
    if BEFORE_COLUMN in frame.columns:
        wrong = wrong & F.col(quote(BEFORE_COLUMN)).isNull()
    frame = builder.metrics.count(f"{node.name}.check {node.checks.index(check)}", frame, warned=F.count_if(wrong))
    columns = [F.col(quote(BEFORE_COLUMN if name == ERROR_COLUMN else name)).alias(name) for name in names]
    return replace(stream.over(frame.select(*columns)), pushes=False)


def _check(stream: Stream, check: Check, context: Context, node: TransformPlan) -> Stream:
    """A record for which the condition is not true fails; one whose condition fails to evaluate does, too."""
    names = stream.frame.columns
    frame = apply(check.program, stream.frame, context=context)
    value = "CAST(NULL AS STRING)"
    if check.field is not None:
        value = sql_text(quote(check.field), node.schema[check.field])
    message = f"validation '{check.name}': {check.message}"
    error = (
        f"named_struct('kind', 'validation_failure', 'field', {sql_string(check.field or check.name)}, "
        f"'value', {value}, 'message', {sql_string(message)})"
    )
    known = f"coalesce({quote(ERROR_COLUMN)}, " if ERROR_COLUMN in frame.columns else "("
    text = f"{known}CASE WHEN NOT coalesce({quote(OK_COLUMN)}, FALSE) THEN {error} END)"
    kept = [F.col(quote(name)) for name in names if name != ERROR_COLUMN]
    return stream.over(frame.select(*kept, F.expr(f"CAST({text} AS {ERROR_TYPE})").alias(ERROR_COLUMN)))
