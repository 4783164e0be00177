"""Lowering `emit each`: an array of leaf records per input record, each with its columns and its error.

All leaves of a record are computed before any is let out, because one leaf that fails takes the whole
record with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clinker_spark.core.types import ANY, ARRAY, MAP, Kind, Type, array_of
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins import physical as ph
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.check.overloads import shown_as
from clinker_spark.cxl.errors import ErrorKind
from clinker_spark.cxl.hidden import LEAF_EMPTY_FIELD, LEAF_ERROR_FIELD, variable_column
from clinker_spark.cxl.interpret.statements import NOT_AN_ARRAY, expansion_message
from clinker_spark.cxl.ir import expressions_of
from clinker_spark.cxl.lower.errors import NO_ERROR, first_error, passed_on_whole
from clinker_spark.cxl.lower.plan import Failing, Sql, combine, quote, variables_in
from clinker_spark.cxl.lower.python_calls import python_reason

if TYPE_CHECKING:
    from clinker_spark.cxl.lower.statements import RowLowering

Named = tuple[Failing, str | None]


def lower_fan_out(row: RowLowering, block: ir.TEach) -> tuple[Sql, list[Named]]:
    """The leaves of a top-level block as a column, and how the block can fail."""
    from clinker_spark.cxl.lower.statements import leaf_columns

    builder = row.builder
    columns = leaf_columns(row.program)
    if any(python_reason(node) for e in expressions_of((block,)) for node in e.walk()):
        made, raised = _in_python(row, block, columns)
        return made, [*raised, (_too_many(row, made), None)]
    lowering = _Leaves(row, columns)
    leaves, source_failures = lowering.block(block, {})
    bound = builder.bind(leaves.bare())
    failures: list[Named] = [(f, None) for f in source_failures]
    if lowering.can_fail:  # leaves beyond the limit are never made, so they do not fail
        most = f"CAST(greatest({row.program.max_expansion} - ({_made_before(row)}), 0) AS INT)"
        within = f"slice({bound.text}, 1, {most if row.leaves else row.program.max_expansion})"
        error = quote(LEAF_ERROR_FIELD)
        found = f"get(filter({within}, cxl_l -> cxl_l.{error} IS NOT NULL), 0).{error}"
        first = builder.bind(Sql(found, max([bound.level, *(earlier.level for earlier in row.leaves)])))
        failures.append((passed_on_whole(first.text, first.level), None))
    failures.append((_too_many(row, bound), None))
    return bound, failures


def _made_before(row: RowLowering) -> str:
    """How many leaves the blocks before this one made: the limit counts all of a record."""
    return " + ".join(f"size({leaves.text})" for leaves in row.leaves) or "0"


def _too_many(row: RowLowering, leaves: Sql) -> Failing:
    limit = row.program.max_expansion
    return Failing(
        f"{_made_before(row)} + size({leaves.text}) > {limit}" if row.leaves else f"size({leaves.text}) > {limit}",
        sql_string(ErrorKind.EXPANSION_LIMIT_EXCEEDED.value),
        "CAST(NULL AS STRING)",
        sql_string(expansion_message(limit)),
        max([leaves.level, *(earlier.level for earlier in row.leaves)]),
    )


def _in_python(row: RowLowering, block: ir.TEach, columns: Sequence[str]) -> tuple[Sql, list[Named]]:
    """A block with a call that has no Spark expression: the interpreter makes its leaves."""
    from clinker_spark.cxl.lower.statements import block_columns

    node = ir.FanOut(block.span, array_of(MAP), True, block, row.program.max_expansion, row.program.output)
    made = row.lowering.lower(node)
    own = set(block_columns((block,)))
    texts = []
    for name in columns:
        to = row.program.output[name]
        before = row.columns.get(name)
        text = before.text if before is not None else _null(to)
        if name in own:
            value = f"try_element_at(cxl_m, {sql_string(name)})"
            if to.kind is Kind.DECIMAL and not to.is_dynamic:
                value = f"try_cast(try_variant_get({value}, '$', 'string') AS {ph.physical(to)})"
            elif not to.is_dynamic:
                value = ph.narrow_sql(value, to)
            text = f"CASE WHEN map_contains_key(cxl_m, {sql_string(name)}) THEN {value} ELSE {text} END"
        texts.append(f"{sql_string(name)}, {text}")
    if _leaves_can_fail(row.program):  # not these, but the leaves of all blocks have one shape
        texts.append(f"'{LEAF_ERROR_FIELD}', {NO_ERROR}")
    leaf = f"named_struct({', '.join(texts)})" if texts else f"named_struct('{LEAF_EMPTY_FIELD}', 1)"
    leaves = row.builder.bind(combine(f"transform({made.text}, cxl_m -> {leaf})", [made.bare()]))
    return leaves, [(f, None) for f in made.failures]


class _Leaves:
    def __init__(self, row: RowLowering, columns: list[str]) -> None:
        self.row = row
        self.lowering = row.lowering
        self.builder = row.builder
        self.columns = columns
        self.can_fail = _leaves_can_fail(row.program)

    def block(self, block: ir.TEach, emitted: dict[str, Sql]) -> tuple[Sql, list[Failing]]:
        """The leaves of one block inside `emitted`, and the failures of its source."""
        source, failures = self.elements(block)
        variable = self.builder.fresh("cxl_x")
        self.builder.open_lambda(variable)
        self.lowering.slots[block.slot] = Sql(variable, variables=frozenset((variable,)), simple=True)
        inner, nested = self.body(block.body, dict(emitted))
        closed = self.builder.close_lambda(inner)
        mapped = f"transform({source.text}, {variable} -> {closed.text})"
        return combine(f"flatten({mapped})" if nested else mapped, [source.bare(), closed]), failures

    def elements(self, block: ir.TEach) -> tuple[Sql, list[Failing]]:
        """What is looped over: never null, one null element for an empty source of an outer block."""
        sql = self.builder.bind(self.lowering.lower(block.source))
        failures = list(sql.failures)
        if block.source.type.is_dynamic:
            kind = ph.kind_sql(sql.text)
            wrong = f"NOT {ph.is_null_sql(sql.text, ANY)} AND NOT {ph.variant_is(kind, Kind.ARRAY)}"
            kind_text = sql_string(ErrorKind.TYPE_MISMATCH.value)
            failures.append(Failing(wrong, kind_text, sql_text(sql.text, ANY), sql_string(NOT_AN_ARRAY), sql.level))
            sql = self.builder.bind(combine(ph.narrow_sql(sql.text, ARRAY), [sql.bare()]))
        empty = f"CAST(array() AS ARRAY<{ph.physical(block.element)}>)"
        if block.outer:
            one_null = f"array(CAST(NULL AS {ph.physical(block.element)}))"
            text = f"CASE WHEN size({sql.text}) > 0 THEN {sql.text} ELSE {one_null} END"
        else:
            text = f"coalesce({sql.text}, {empty})"
        return combine(text, [sql.bare()]), failures

    def body(self, body: tuple[ir.TStatement, ...], emitted: dict[str, Sql]) -> tuple[Sql, bool]:
        from clinker_spark.cxl.lower.statements import traced

        failures: list[Named] = []
        inner: list[Sql] = []
        for s in body:
            match s:
                case ir.TLet():
                    self.lowering.slots[s.slot] = self.value(s.value, None, failures)
                case ir.TEmit(scope=None):
                    plain = self.value(s.value, s.name, failures)
                    self.lowering.slots[s.slot] = plain
                    to = self.row.program.output.get(s.name)
                    if to is not None:  # None: no record has it, because only blocks before it make records
                        emitted[s.name] = self.value(shown_as(s.value, s.slot, to), s.name, failures)
                case ir.TEmit(scope=str(scope)):
                    name = variable_column(scope, s.name)
                    self.lowering.slots[s.slot] = self.value(s.value, name, failures)
                case ir.TTrace():
                    if (message := traced(s)).fallible:
                        self.value(message, None, failures)
                case ir.TBare():
                    if s.value.fallible:
                        self.value(s.value, None, failures)
                case ir.TEach():
                    leaves, source_failures = self.block(s, emitted)
                    failures += [(f, None) for f in source_failures]
                    inner.append(leaves)
        if not inner:
            return self.leaf(emitted, failures), False
        text = inner[0].text if len(inner) == 1 else f"concat({', '.join(i.text for i in inner)})"
        result = combine(text, inner)
        if failures:  # the failure of a body without leaves of its own needs a leaf to stand in
            error = first_error(failures)
            level = max(f.level for f, _ in failures)
            bound = self.builder.bind(Sql(error, level, 2, variables=_mentioned(failures)))
            stand_in = self.leaf({}, [(passed_on_whole(bound.text, bound.level), None)])
            text = f"CASE WHEN {bound.text} IS NOT NULL THEN array({stand_in.text}) ELSE {text} END"
            result = combine(text, [*inner, bound, stand_in])
        return result, True

    def value(self, e: ir.TExpr, field: str | None, failures: list[Named]) -> Sql:
        sql = self.lowering.lower(e)
        failures += [(f, field) for f in sql.failures]
        return self.builder.bind(sql.bare())

    def leaf(self, emitted: dict[str, Sql], failures: list[Named]) -> Sql:
        parts: list[Sql] = []
        texts: list[str] = []
        for name in self.columns:
            before = self.row.columns.get(name)
            sql = emitted.get(name) or before or Sql(_null(self.row.program.output[name]))
            parts.append(sql.bare())
            texts.append(f"{sql_string(name)}, {sql.text}")
        if self.can_fail:
            texts.append(f"'{LEAF_ERROR_FIELD}', {first_error(failures) if failures else NO_ERROR}")
        level = max((f.level for f, _ in failures), default=0)
        made = combine(
            f"named_struct({', '.join(texts)})" if texts else f"named_struct('{LEAF_EMPTY_FIELD}', 1)", parts
        )
        return Sql(made.text, max(made.level, level), made.depth + 1, (), made.variables | _mentioned(failures))


def _mentioned(failures: Sequence[Named]) -> frozenset[str]:
    return variables_in(" ".join(f.when for f, _ in failures))


def _null(t: Type) -> str:
    return f"CAST(NULL AS {ph.physical(t)})"


def _leaves_can_fail(program: ir.TypedProgram) -> bool:
    return any(_can_fail(s) for s in program.statements if isinstance(s, ir.TEach))


def _can_fail(block: ir.TEach) -> bool:
    return any(
        (isinstance(s, ir.TEach) and (_can_fail(s) or s.source.type.is_dynamic))
        or any(getattr(getattr(s, f, None), "fallible", False) for f in ("value", "condition", "message", "source"))
        for s in block.body
    )
