"""Lowering statements: a row program becomes steps over a DataFrame, its output columns and its error column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clinker_spark.core.recursion import deep_recursion
from clinker_spark.cxl import ir
from clinker_spark.cxl.check.infer.overloads import shown_as, traced
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, GROUP_KEY_PREFIX, LEAF_PREFIX, RANK_COLUMN, variable_column
from clinker_spark.cxl.limits import MAX_CONSTRUCTED_BYTES
from clinker_spark.cxl.lower.errors import Named, first_error
from clinker_spark.cxl.lower.expressions.rules import rule_of
from clinker_spark.cxl.lower.fanout import BlockLowering, leaf_columns
from clinker_spark.cxl.lower.keys import lower_key, partition_sql
from clinker_spark.cxl.lower.lowering import Lowering, WindowSpec
from clinker_spark.cxl.lower.plan import EMPTY, LoweredProgram, PlanBuilder, Sql, quote, without_dead
from clinker_spark.cxl.system import Context

MANY = 32
"""Failures, and steps, that become one error column: their conditions are not kept to the end of a long program."""


def lower_program(
    program: ir.TypedProgram,
    context: Context,
    *,
    fields: Mapping[str, str] | None = None,
    system_columns: frozenset[str] = frozenset(),
    window: WindowSpec | None = None,
    tag: str = "",
    error: str | None = None,
    ordinals: bool = False,
    texts: bool = True,
) -> LoweredProgram:
    """The program as data for the Spark layer.

    `fields` says how to read a column whose Spark type is not the one the program expects;
    `tag` keeps the helper columns of several programs over one DataFrame apart. `error` is a column with the errors
    that records bring along, and `ordinals` asks for the ordinal of each record among those of its fan-out. Without
    `texts` errors say nothing but that they are there.
    """
    lowering = Lowering(rule_of, PlanBuilder(tag), context, fields or {}, system_columns, window)
    if window is not None:
        lowering.window = _by_key(window, program, lowering)
    return RowLowering(program, lowering, error, ordinals, texts=texts).run()


def _by_key(window: WindowSpec, program: ir.TypedProgram, lowering: Lowering) -> WindowSpec:
    """The window with its partition columns as keys, where the program knows their types."""
    types = {quote(name): (lowering.fields.get(name, quote(name)), t) for name, t in program.schema.items()}
    keys: list[tuple[str, str]] = []
    partition_by = []
    for column in window.partition_by:
        key = partition_sql(*types[column]) if column in types else None
        if key is not None:
            keys.append((lowering.builder.fresh(GROUP_KEY_PREFIX), key))
            column = quote(keys[-1][0])
        partition_by.append(column)
    if keys:
        lowering.builder.project(keys)
    return replace(window, partition_by=tuple(partition_by))


class Failing:
    """What can have failed so far, and the one column that it becomes."""

    def __init__(self, builder: PlanBuilder, error: str | None, texts: bool) -> None:
        self.builder = builder
        self.texts = texts
        self.failures: list[Named] = []
        self.built: list[str] = []
        self.error = error  # a column that holds the error found so far
        self.level = 0

    def note(self, sql: Sql, field: str | None) -> None:
        """Remember how a statement's value can fail; what it builds is added to what was built before."""
        for f in sql.failures:
            if f.size is not None:
                self.built.append(f.size)
                total = Sql(" + ".join(self.built), f.level)
                if len(self.built) > MANY:
                    total = self.builder.bind(total)
                    self.built = [total.text]
                f = replace(f, when=f"{total.text} > {MAX_CONSTRUCTED_BYTES}", level=total.level)
            self.failures.append((f, field))
        if len(self.failures) > MANY and max(f.level for f, _ in self.failures) > self.level + MANY:
            self.bind()

    def bind(self) -> str | None:
        """The error so far as one column; None when nothing can have failed."""
        if not self.failures:
            return self.error
        level = max(f.level for f, _ in self.failures)
        text = first_error(self.failures, texts=self.texts)
        if self.error is not None:
            text = f"coalesce({self.error}, {text})"
        self.failures = []
        bound = self.builder.bind(Sql(text, max(level, self.level)))
        self.error, self.level = bound.text, bound.level
        return self.error


class RowLowering:
    """Walks the statements; keeps what is emitted, what can fail and what has been filtered."""

    def __init__(
        self,
        program: ir.TypedProgram,
        lowering: Lowering,
        error: str | None = None,
        ordinals: bool = False,
        texts: bool = True,
    ) -> None:
        self.program = program
        self.ordinals = ordinals
        self.lowering = lowering
        self.columns: dict[str, Sql] = {}
        self.scoped: dict[str, Sql] = {}
        self.failing = Failing(lowering.builder, error, texts)
        self.leaves: list[Sql] = []  # what each block makes of a record
        self.last_block = max((i for i, s in enumerate(program.statements) if isinstance(s, ir.TEach)), default=-1)
        self.ordinal: str | None = None
        self.reaches_rows = True  # does what is emitted here get into some record?
        self.needs_arrival = lowering.window is not None
        self.windows: list[ir.TExpr] = []
        if lowering.window is not None:
            self.windows = [n for e in program.expressions() for n in e.walk() if isinstance(n, ir.WindowRef)]

    @property
    def builder(self) -> PlanBuilder:
        return self.lowering.builder

    def walk(self) -> None:
        """All statements, one after another; `columns` and `error` then say what became of them."""
        with deep_recursion():
            self._compute_windows()
            for i, statement in enumerate(self.program.statements):
                self.reaches_rows = not self.leaves or i < self.last_block
                self.statement(statement)
                self._compute_windows()
        self.failing.bind()

    def run(self) -> LoweredProgram:
        self.walk()
        if self.leaves:
            self.explode()
        self.builder.flush()
        outputs = tuple((name, self.columns[name].text) for name in self.program.output if name in self.columns)
        scoped = tuple((name, sql.text) for name, sql in self.scoped.items())
        read = [text for _, text in (*outputs, *scoped)] + [self.failing.error or "", self.ordinal or ""]
        return LoweredProgram(
            steps=without_dead(self.builder.steps, read, self.builder.temporaries),
            outputs=outputs,
            scoped=scoped,
            error=self.failing.error,
            needs_arrival=self.needs_arrival,
            ordinal=self.ordinal,
        )

    def _compute_windows(self) -> None:
        """A window sees the node's whole input, so it is computed before any filter of the program, or, where it
        reads a let or an emitted name, as soon as that is known."""
        ready = [node for node in self.windows if ir.free_slots(node) <= self.lowering.slots.keys()]
        computed = set(map(id, ready))
        self.windows = [node for node in self.windows if id(node) not in computed]
        for node in ready:
            self.lowering.lower(node)

    # ----------------------------------------------------------- statements

    def statement(self, s: ir.TStatement) -> None:
        match s:
            case ir.TLet():
                self.lowering.slots[s.slot] = self.value(s.value, None)
            case ir.TEmit(scope=None):
                self.lowering.slots[s.slot] = self.value(s.value, s.name)
                if self.reaches_rows:
                    shown = shown_as(s.value, s.slot, self.program.output[s.name])
                    self.columns[s.name] = self.value(shown, s.name)
            case ir.TEmit(scope=str(scope)):
                name = variable_column(scope, s.name)
                self.lowering.slots[s.slot] = self.scoped[name] = self.value(s.value, name)
            case ir.TFilter():
                self.filter(s)
            case ir.TDistinct():
                self.distinct(s)
            case ir.TTrace():
                if (message := traced(s)).fallible:
                    self.value(message, None)
            case ir.TBare():
                if s.value.fallible:
                    self.value(s.value, None)
            case ir.TEach():
                block = BlockLowering(self.program, self.lowering, self.columns, self.leaves)
                leaves, failures = block.lower(s)
                self.leaves.append(leaves)
                self.failing.failures += failures

    def value(self, e: ir.TExpr, field: str | None) -> Sql:
        """A statement's value as a column, its failures noted under the column being computed."""
        sql = self.lowering.lower(e)
        self.failing.note(sql, field)
        return self.builder.bind(sql.bare())

    def filter(self, s: ir.TFilter) -> None:
        predicate = self.lowering.lower(s.predicate)
        self.failing.note(predicate, None)
        if predicate.failures:
            predicate = self.builder.bind(predicate.bare())
        error = self.failing.bind()
        self.builder.where(predicate.text if error is None else f"{error} IS NOT NULL OR {predicate.text}")

    def distinct(self, s: ir.TDistinct) -> None:
        self.needs_arrival = True
        keys = [self.key(k) for k in s.keys]
        error = self.failing.bind()
        partition = ", ".join(k.text for k in keys) or "1"
        if error is not None:
            partition = f"({error} IS NULL), {partition}"
        rank = f"row_number() OVER (PARTITION BY {partition} ORDER BY {quote(ARRIVAL_COLUMN)})"
        name = self.builder.fresh(RANK_COLUMN)
        self.builder.project([(name, rank)])
        first = f"{quote(name)} = 1"
        self.builder.where(first if error is None else f"{error} IS NOT NULL OR {first}", "distinct")

    def key(self, e: ir.TExpr) -> Sql:
        lowered = lower_key(self.lowering, e, "distinct")
        self.failing.failures += [(f, None) for f in lowered.failures]
        return lowered.key

    # -------------------------------------------------------------- fan-out

    def explode(self) -> None:
        """One row per leaf of all blocks. A failed record keeps its one row and its error."""
        texts = [leaves.text for leaves in self.leaves]
        leaves = texts[0] if len(texts) == 1 else f"concat({', '.join(texts)})"
        level = max(sql.level for sql in self.leaves)
        bound = self.builder.bind(Sql(leaves, level))
        name = self.builder.fresh(LEAF_PREFIX)
        array, leaf = bound.text, quote(name)
        if self.ordinals:
            array = f"transform({array}, (cxl_leaf1, cxl_place1) -> named_struct('v', cxl_leaf1, 'i', cxl_place1))"
            self.ordinal, leaf = f"CAST({leaf}.i AS BIGINT)", f"{leaf}.v"
        self.builder.fan_out(f"size({bound.text})", self.failing.error)
        if self.failing.error is None:
            self.builder.project([(name, f"explode({array})")])
        else:
            self.builder.where(f"{self.failing.error} IS NOT NULL OR size({bound.text}) > 0", EMPTY)
            self.builder.project([(name, f"explode_outer(CASE WHEN {self.failing.error} IS NULL THEN {array} END)")])
        for column in leaf_columns(self.program):
            self.columns[column] = Sql(f"{leaf}.{quote(column)}", simple=True)
