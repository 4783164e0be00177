"""Running a compiled program over a DataFrame: the lowered steps become DataFrame operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.errors import InputError
from clinker_spark.core.types import Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN, ERROR_TYPE
from clinker_spark.cxl.lower.aggregates import LoweredAggregate, lower_aggregate
from clinker_spark.cxl.lower.lowering import WHOLE, WindowFrame, WindowSpec
from clinker_spark.cxl.lower.plan import FanOut, LoweredProgram, Project, PythonColumn, Step, Where, quote
from clinker_spark.cxl.lower.statements import lower_program
from clinker_spark.cxl.program import Program
from clinker_spark.cxl.system import Context, default_context
from clinker_spark.plan.columns import UNTRACED, WINDOW_COLUMN
from clinker_spark.query.hidden import FIRST_COLUMN
from clinker_spark.spark.columns.python_calls import python_column
from clinker_spark.spark.columns.select import named, select_sql
from clinker_spark.spark.columns.types import read_as
from clinker_spark.spark.plan_cuts import EVERY, LONG, cut


@dataclass(frozen=True)
class Window:
    """The analytic window of a node: columns to partition and sort by. `sort_by` may also hold SQL, such as
    "`day` DESC NULLS LAST"."""

    group_by: Sequence[str] = ()
    sort_by: Sequence[str] = ()
    frame: WindowFrame = WHOLE


@dataclass(frozen=True)
class Identity:
    """The texts of the keys of groups, as a column of groups and of what they are made of."""

    name: str
    given: Callable[[DataFrame], None]
    """Gets the rows with that column."""
    traced: Column | None = None
    """Which rows can be traced to records of sources? The text of a group without such rows begins with `UNTRACED`."""


class Counter(Protocol):
    """Whoever counts the rows that a program leaves out, or makes more of."""

    def where(self, df: DataFrame, step: Where) -> DataFrame: ...

    def fan_out(self, df: DataFrame, step: FanOut) -> DataFrame: ...


def lower(
    program: Program, df: DataFrame, context: Context, window: Window | None = None, *, texts: bool = True
) -> LoweredProgram:
    """The program lowered for this DataFrame's columns."""
    spec = None
    if window is not None:
        sort_by = tuple(quote(item) if item in df.columns else item for item in window.sort_by)
        spec = WindowSpec(tuple(map(quote, window.group_by)), sort_by, quote(ARRIVAL_COLUMN), window.frame)
    system = system_columns(df)
    return lower_program(
        program.typed,
        context,
        fields=field_texts(program, df),
        system_columns=system,
        window=spec,
        error=quote(ERROR_COLUMN) if ERROR_COLUMN in system else None,
        ordinals=ARRIVAL_COLUMN in system,
        texts=texts,
    )


def apply(
    program: Program,
    df: DataFrame,
    *,
    context: Context | None = None,
    window: Window | None = None,
    include_unmapped: bool = True,
    counter: Counter | None = None,
    texts: bool = True,
) -> DataFrame:
    """The DataFrame with the emitted columns added (an emit of an existing name replaces it in place).

    When the program can fail there is one more column, `$error`: null, or a struct of kind, field, value and
    message. Failed rows are kept, so that nothing is lost; separate them with `$error IS NULL`. Scoped
    variables become hidden columns such as `$record.x`. `include_unmapped=False` keeps only what is emitted.

    A row that comes with an `$error` keeps it, and nothing else happens to it. `$arrival`, where it is there, still
    orders the rows afterwards: the rows of a fan-out get an array of the old arrival and their own place. Without
    `texts`, errors only say that they are there.
    """
    context = context or default_context(program.typed.source.name)
    if program.typed.mode == "aggregate":
        raise TypeError("an aggregate program is applied with apply_aggregate")
    lowered = lower(program, df, context, window, texts=texts)
    kept = list(df.columns) if include_unmapped else []
    if lowered.needs_arrival and ARRIVAL_COLUMN not in df.columns:
        df = df.withColumn(ARRIVAL_COLUMN, F.monotonically_increasing_id())
    df = run_steps(df, lowered.steps, context, counter)
    emitted = {**dict(lowered.outputs), **dict(lowered.scoped)}
    if lowered.ordinal is not None:
        arrival = quote(ARRIVAL_COLUMN)
        before = arrival if isinstance(df.schema[ARRIVAL_COLUMN].dataType, ArrayType) else f"array({arrival})"
        emitted[ARRIVAL_COLUMN] = f"concat({before}, array(coalesce({lowered.ordinal}, 0L)))"
    columns = [named(emitted.pop(name, quote(name)), name) for name in kept if name != ERROR_COLUMN]
    columns += [named(text, name) for name, text in emitted.items()]
    if lowered.error is not None:
        columns.append(named(lowered.error, ERROR_COLUMN))
    return select_sql(df, columns)


def apply_with_errors(program: Program, df: DataFrame, **options: Any) -> DataFrame:
    """The same for people, who should not have to know which programs can fail: `$error` is always there."""
    result = apply(program, df, **options)
    if ERROR_COLUMN in result.columns:
        return result
    return result.withColumn(ERROR_COLUMN, F.lit(None).cast(ERROR_TYPE))


def apply_aggregate(
    program: Program, df: DataFrame, *, context: Context | None = None
) -> tuple[DataFrame, DataFrame | None]:
    """The groups, in order of first appearance, and the rows that failed before grouping (None: none can)."""
    if ARRIVAL_COLUMN not in df.columns:
        df = df.withColumn(ARRIVAL_COLUMN, F.monotonically_increasing_id())
    original = [*df.columns, ERROR_COLUMN]
    failed: list[DataFrame] = []

    def divert(rows: DataFrame) -> DataFrame:
        failed.append(rows.where(F.col(quote(ERROR_COLUMN)).isNotNull()).select(*map(quote, original)))
        return rows.where(F.col(quote(ERROR_COLUMN)).isNull())

    groups = group(program, df, context or default_context(program.typed.source.name), divert)
    names = [name for name in groups.columns if name != ARRIVAL_COLUMN]
    return groups.orderBy(quote(ARRIVAL_COLUMN)).select(*map(quote, names)), failed[0] if failed else None


def group(
    program: Program,
    df: DataFrame,
    context: Context,
    divert: Callable[[DataFrame], DataFrame],
    also_by: Sequence[str] = (),
    identity: Identity | None = None,
    first_of: Sequence[str] = (),
    refine: Callable[[DataFrame, Sequence[Column]], DataFrame] | None = None,
    counter: Counter | None = None,
) -> DataFrame:
    """The groups with the arrival of their first row as `$arrival`, in no order.

    `divert` gets the rows with an `$error` column when rows can fail before grouping, and gives back those
    that did not. `also_by` are hidden columns that keep groups apart; the groups carry them. `first_of` are hidden
    columns of which groups carry the value of one of their rows. `refine` gets the rows that will be grouped, with
    their keys, and may add `also_by`.
    """
    lowered = lower_aggregate(program.typed, context, field_texts(program, df), system_columns(df))
    df = run_steps(df, lowered.before, context, counter)
    if lowered.row_error is not None:
        df = divert(df.withColumn(ERROR_COLUMN, F.expr(lowered.row_error)))
    if refine is not None:
        df = refine(df, [F.expr(text) for _, text in lowered.keys])
    keys = [F.expr(text).alias(name) for name, text in lowered.keys]
    keys += [F.col(quote(name)) for name in also_by]
    partials = [F.expr(text).alias(name) for name, text in lowered.partials]
    partials += [F.first(quote(name)).alias(name) for name in first_of]
    first = F.min(quote(ARRIVAL_COLUMN)).alias(FIRST_COLUMN)
    if identity is not None:
        text = _identity([*(text for _, text in lowered.keys), *map(quote, also_by)])
        identity.given(df.withColumn(identity.name, F.expr(text)))
        partials += [] if identity.traced is None else [F.max(identity.traced).alias(identity.name)]
    groups = run_steps(df.groupBy(*keys).agg(first, *partials), lowered.after.steps, context)
    columns = [*_finished(lowered), *map(quote, (*also_by, *first_of)), named(quote(FIRST_COLUMN), ARRIVAL_COLUMN)]
    if identity is not None:
        text = _identity([quote(name) for name in (*(name for name, _ in lowered.keys), *also_by)])
        if identity.traced is not None:
            text = f"CASE WHEN {quote(identity.name)} THEN {text} ELSE concat('{UNTRACED}', {text}) END"
        columns.append(named(text, identity.name))
    return select_sql(groups, columns)


def totals(program: Program, df: DataFrame, context: Context, window: Column, counter: Counter) -> DataFrame:
    """The totals of groups of a stream, window by window, as far as Spark has to hold them: `finish` makes records of
    them. No row can fail before it is added up."""
    lowered = lower_aggregate(program.typed, context, field_texts(program, df), system_columns(df))
    assert lowered.row_error is None
    # The records of a stream have no order: of keys that look different, any is shown.
    df = run_steps(df, lowered.before, context, counter).withColumn(ARRIVAL_COLUMN, F.lit(0))
    keys = [F.expr(text).alias(name) for name, text in lowered.keys]
    partials = [F.expr(text).alias(name) for name, text in lowered.partials]
    partials = partials or [F.min(quote(ARRIVAL_COLUMN)).alias(FIRST_COLUMN)]  # only keys come out
    groups = df.withColumn(WINDOW_COLUMN, window).groupBy(F.col(quote(WINDOW_COLUMN)), *keys).agg(*partials)
    return groups.drop(quote(WINDOW_COLUMN))


def finish(program: Program, groups: DataFrame, context: Context, *, added_up: bool = False) -> DataFrame:
    """Records of what `totals` holds; or, `added_up`, of groups with their totals and `$arrival`."""
    lowered = lower_aggregate(program.typed, context, added_up=added_up)
    kept = [quote(ARRIVAL_COLUMN)] if added_up else []
    return select_sql(run_steps(groups, lowered.after.steps, context), [*_finished(lowered), *kept])


def _finished(lowered: LoweredAggregate) -> list[str]:
    columns = [named(text, name) for name, text in lowered.after.outputs]
    return [*columns, *([named(lowered.after.error, ERROR_COLUMN)] if lowered.after.error is not None else [])]


def _identity(keys: Sequence[str]) -> str:
    """SQL for keys as one text, nulls included."""
    fields = ", ".join(f"'k{i}', CAST({key} AS STRING)" for i, key in enumerate(keys))
    return f"to_json(named_struct({fields}), map('ignoreNullFields', 'false'))" if keys else "'{}'"


def run_steps(df: DataFrame, steps: Sequence[Step], context: Context, counter: Counter | None = None) -> DataFrame:
    """The steps of a lowered program, one after the other."""
    for number, step in enumerate(steps, 1):
        match step:
            case Project(columns=columns, dead=dead):
                rest = f"* EXCEPT ({', '.join(map(quote, dead))})" if dead else "*"
                df = select_sql(df, [rest, *(named(text, name) for name, text in columns)])
            case Where(condition=condition):
                df = df.where(condition) if counter is None else counter.where(df, step)
            case FanOut():
                df = df if counter is None else counter.fan_out(df, step)
            case PythonColumn():
                df = df.withColumn(step.name, python_column(step, context))
        if len(steps) >= LONG and number % EVERY == 0:
            df = cut(df)
    return df


def system_columns(df: DataFrame) -> frozenset[str]:
    """The hidden columns that rows have: among them the system variables that differ from row to row."""
    return frozenset(name for name in df.columns if name.startswith("$"))


def field_texts(program: Program, df: DataFrame) -> dict[str, str]:
    """How to read each column the program uses; an error when one is missing or of another type."""
    have = {f.name: f.dataType for f in df.schema.fields}
    texts: dict[str, str] = {}
    problems: list[Diagnostic] = []
    for name, want in _fields(program).items():
        if name not in have:
            help_text = did_you_mean(name, have) or f"the DataFrame has: {', '.join(have)}"
            problems.append(Diagnostic("E226", f"the DataFrame has no column '{name}'", help=help_text))
            continue
        text = read_as(quote(name), have[name], want)
        if text is None:
            found = have[name].simpleString()
            message = f"column '{name}' is {found} in the DataFrame, but the program expects {want}"
            problems.append(Diagnostic("E226", message, help="cast the column, or change the schema"))
        elif text != quote(name):
            texts[name] = text
    if problems:
        raise InputError(problems)
    return texts


def _fields(program: Program) -> dict[str, Type]:
    found: dict[str, Type] = {}
    schema: Any = program.typed.schema
    for expression in program.typed.expressions():
        for node in expression.walk():
            if isinstance(node, ir.Field):
                found.setdefault(node.name, node.type)
            elif isinstance(node, ir.WindowRef) and node.field is not None:
                found.setdefault(node.field, schema[node.field])
    for name in program.typed.group_by:
        found.setdefault(name, schema[name])
    return found
